//! Where a channel's data comes from, and in which form.

use crate::channel_error::ChannelError;
use crate::name::{HostPort, from_text};
use skyhaul_ccsds::identify;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a channel's data comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Waits for one TCP connection at a time on this address.
    TcpListen(SocketAddr),
    /// Connects, and connects again, to a TCP server.
    Tcp(HostPort),
    /// Takes the payloads of UDP datagrams sent to this address.
    Udp(SocketAddr),
    /// Reads a file once, from its beginning.
    File(PathBuf),
    /// Reads standard input.
    Stdin,
    /// Reads the files of a `[[folder]]` that names the channel, one after the other.
    Folder,
}

/// What a channel's data is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputFormat {
    /// Found out from the data.
    Auto,
    /// A bit stream, at any bit offset.
    Bits,
    /// Channel access data units, marker first, on byte boundaries.
    Cadus,
    /// Transfer frames without marker and check symbols.
    Frames,
    /// A demodulator's symbols, one bit each, packed.
    Symbols,
    /// A demodulator's symbols, one byte each.
    Soft,
    /// VITA 49 or DIFI packets.
    Vita49,
}

/// What a byte of a soft symbol means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SoftForm {
    /// Signed: positive for a one.
    Signed,
    /// Unsigned: above 127 for a one.
    Offset,
}

impl InputFormat {
    /// What is known of the data; `None` where it is found out.
    pub const fn known(self) -> Option<identify::InputLayout> {
        match self {
            Self::Auto | Self::Vita49 => None,
            Self::Bits => Some(identify::InputLayout::Bits),
            Self::Cadus => Some(identify::InputLayout::Cadus),
            Self::Frames => Some(identify::InputLayout::Frames),
            Self::Symbols => Some(identify::InputLayout::Symbols),
            Self::Soft => Some(identify::InputLayout::Soft),
        }
    }
}

impl Input {
    /// Whether it can be read again from any place.
    pub const fn is_file(&self) -> bool {
        matches!(self, Self::File(_) | Self::Folder)
    }

    /// Whether the system chooses its port.
    pub(super) const fn is_any_port(&self) -> bool {
        matches!(self, Self::TcpListen(address) | Self::Udp(address) if address.port() == 0)
    }
}

impl FromStr for Input {
    type Err = ChannelError;
    fn from_str(text: &str) -> Result<Self, ChannelError> {
        let refuse = || ChannelError::Input(text.to_owned());
        match text {
            "stdin" => return Ok(Self::Stdin),
            "folder" => return Ok(Self::Folder),
            _ => {}
        }
        let (kind, place) = text.split_once(':').ok_or_else(refuse)?;
        match kind {
            "tcp-listen" => place.parse().map(Self::TcpListen).map_err(|_| refuse()),
            "tcp" => place.parse().map(Self::Tcp).map_err(|_| refuse()),
            "udp" => place.parse().map(Self::Udp).map_err(|_| refuse()),
            "file" if !place.is_empty() => Ok(Self::File(PathBuf::from(place))),
            _ => Err(refuse()),
        }
    }
}

impl FromStr for InputFormat {
    type Err = ChannelError;
    fn from_str(text: &str) -> Result<Self, ChannelError> {
        match text {
            "auto" => Ok(Self::Auto),
            "bits" => Ok(Self::Bits),
            "cadus" => Ok(Self::Cadus),
            "frames" => Ok(Self::Frames),
            "symbols" => Ok(Self::Symbols),
            "soft" => Ok(Self::Soft),
            "vita49" => Ok(Self::Vita49),
            _ => Err(ChannelError::Format(text.to_owned())),
        }
    }
}

impl FromStr for SoftForm {
    type Err = ChannelError;
    fn from_str(text: &str) -> Result<Self, ChannelError> {
        match text {
            "signed" => Ok(Self::Signed),
            "offset" => Ok(Self::Offset),
            _ => Err(ChannelError::Soft(text.to_owned())),
        }
    }
}

impl std::fmt::Display for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TcpListen(address) => write!(f, "tcp-listen:{address}"),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
            Self::Udp(address) => write!(f, "udp:{address}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Stdin => f.write_str("stdin"),
            Self::Folder => f.write_str("folder"),
        }
    }
}
impl std::fmt::Display for InputFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Bits => "bits",
            Self::Cadus => "cadus",
            Self::Frames => "frames",
            Self::Symbols => "symbols",
            Self::Soft => "soft",
            Self::Vita49 => "vita49",
        })
    }
}

from_text!(Input, InputFormat, SoftForm);
