//! A station's channels: where downlink data comes in, and what is known about it beforehand.

use super::feeds::ChannelInputs;
use super::name::{HostPort, Name, from_text};
use super::section::section;
use skyhaul_ccsds::identify;
use skyhaul_ccsds::select::MAX_INPUTS;
use skyhaul_units::{ByteCount, Duration, Rate};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

section! {
    /// A downlink, from one input or several. A station has at least one channel.
    "[[channel]]" Channel checked by Channel::check {
        /// The channel's name in status output and in the accounts of products.
        name: Name => required,
        /// The data source: `tcp-listen:ADDR`, `tcp:HOST:PORT`, `udp:ADDR`, `file:PATH` or `stdin`.
        /// Give either this key or `inputs`.
        input: Input => optional,
        /// Up to 16 inputs of the same downlink (two antennas, two receivers). The station takes
        /// the better copy of each frame, once and in order. Write a list of values as for `input`,
        /// or tables as below.
        inputs: ChannelInputs => optional,
        /// With several inputs: the longest time that a frame waits for a better copy and for the
        /// frames before it, at most 10 s. A frame that only one input has is lost if it arrives
        /// later than this. 50 ms: the largest difference between antennas of one station. Files
        /// wait for each other instead.
        select_window: Duration => "50 ms",
        /// The data format: `auto`, `bits`, `cadus`, `frames`; a demodulator's symbols before the
        /// Viterbi decoder, as `symbols` (one bit each) or `soft` (one byte each); or `vita49`:
        /// VITA 49 or DIFI packets that carry bits or symbols. `auto` detects all except `soft` and
        /// `vita49`.
        format: InputFormat => "auto",
        /// With `soft`: `signed`, positive for a one, the magnitude is the confidence; or `offset`,
        /// above 127 for a one.
        soft: SoftForm => "signed",
        /// A mission's name, or a file ending in `.toml`. Default: the program identifies the
        /// mission from the data.
        mission: MissionRef => optional,
        /// How long the input may be silent before the contact closes. Two seconds are longer than
        /// a receiver needs to reacquire its carrier, and delay products no longer than that. A
        /// frame that a pause cut is complete when its rest arrives. Time in which the station did
        /// not run does not count as silence.
        silence: Duration => "2 s",
        /// For `file:` inputs: plays the file at this rate, like a live downlink. Default: as fast
        /// as the station accepts it.
        rate: Rate => optional,
        /// The class of its contacts. Default: the first leaf class.
        class: Name => optional,
        /// The priority of its contacts within their class, 0 (the most important) to 7, for the
        /// policies that use it.
        priority: u8 => "1",
        /// The time after capture by which data should be at the centre. A shorter deadline is sent
        /// sooner, and status and log forecast late data. Late data is still sent.
        deadline: Duration => optional,
        /// Sends the Reed-Solomon check symbols too (an eighth more bytes), for archives that keep
        /// CADUs as received.
        keep_check_symbols: bool => "false",
        /// Records every byte as received, under `raw/` in the node's state folder, indexed by
        /// time: for `skyhaul replay` and for decoding again. A full disk ends the recording, never
        /// the capture.
        record_raw: bool => "false",
        /// The largest size of an input's recording on disk, at least 128 MiB. The oldest files of
        /// 64 MiB are removed first. 64 GB: nine hours of 15 Mbit/s.
        raw_size: ByteCount => "64 GB",
        /// How long a recording is kept. A week is longer than a gap stays unnoticed.
        raw_retention: Duration => "7 d",
        /// Compresses blocks before they are stored and sent: `auto` as far as the line is slower
        /// than the processor; `fast`, `normal` or `thorough` always with that effort; `off` never.
        /// Compression is lossless.
        compress: Compress => "auto",
    }
}

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

/// How much effort goes into making blocks smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compress {
    /// As much as pays.
    Auto,
    /// None.
    Off,
    /// Little: gigabits a second.
    Fast,
    /// Some: a gigabit a second.
    Normal,
    /// Much: hundreds of megabits a second.
    Thorough,
}

/// Which mission a channel carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissionRef {
    /// One of the missions that the program or the configuration's `missions` hold.
    Named(String),
    /// A mission file.
    File(PathBuf),
}

/// Why an input, format or mission was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// Not one of the forms of an input.
    #[error(
        "`{0}` is not an input; write tcp-listen:192.0.2.1:5000, tcp:host:5000, udp:0.0.0.0:5000, \
        file:PATH or stdin"
    )]
    Input(String),
    /// Not one of the formats.
    #[error("`{0}` is not a format; write auto, bits, cadus, frames, symbols, soft or vita49")]
    Format(String),
    /// Not one of the conventions.
    #[error("`{0}` is not a convention of soft symbols; write signed or offset")]
    Soft(String),
    /// Packets that do not come in datagrams.
    #[error(
        "channel `{0}` has format vita49 but no udp: input; these packets come in datagrams, write \
        udp:0.0.0.0:4991"
    )]
    NoDatagrams(Name),
    /// Not one of the efforts.
    #[error("`{0}` is not a compression effort; write auto, off, fast, normal or thorough")]
    Compress(String),
    /// Neither a name nor a file.
    #[error("a mission's name is empty; write a name such as suomi-npp, or a file ending in .toml")]
    Mission,
    /// Inputs in two places.
    #[error(
        "channel `{0}` has both `input` and `inputs`; write only one of them: a list for several \
        inputs, or a single input"
    )]
    BothInputs(Name),
    /// Nothing to read.
    #[error(
        "channel `{0}` has neither `input` nor `inputs`; write input = \
        \"tcp-listen:127.0.0.1:5000\" or the like"
    )]
    NoInput(Name),
    /// No inputs, or more than are selected from.
    #[error("channel `{0}` has {1} inputs; write 1 to {MAX_INPUTS}")]
    InputCount(Name, usize),
    /// An input that stands twice in the list.
    #[error("channel `{0}` has the input `{1}` twice; write each once")]
    SameInput(Name, String),
    /// Two inputs that are called the same.
    #[error("channel `{0}` has two inputs named `{1}`; write another name for one of them")]
    SameName(Name, String),
    /// A file that would have to keep up with a receiver.
    #[error(
        "channel `{0}` has a file beside a live input; write files only, or a channel for the file"
    )]
    FileBesideLive(Name),
    /// A window that no antennas need.
    #[error(
        "channel `{0}` has a select_window of {1}; write at most {LONGEST_SELECT_WINDOW}: every \
        frame may wait that long"
    )]
    LongSelectWindow(Name, Duration),
    /// A replay rate where nothing is replayed.
    #[error(
        "channel `{0}` has a rate but is not read from a file; remove `rate`, the sender sets the \
        pace"
    )]
    RateOfLiveInput(Name),
    /// A priority that there is none of.
    #[error(
        "channel `{0}` has priority {1}; write one from 0, the most important, to {LAST_PRIORITY}"
    )]
    Priority(Name, u8),
    /// A deadline that nothing can meet.
    #[error(
        "channel `{0}` has a deadline of zero, all data would be late; write one such as \"30 s\""
    )]
    AlwaysLate(Name),
    /// A recording that has no room for two files.
    #[error(
        "channel `{0}` has raw_size {1}; write \"128 MiB\" or more: the recording's files have 64 \
        MiB"
    )]
    SmallRecording(Name, ByteCount),
    /// A replay that would never move.
    #[error(
        "channel `{0}` would be played at 0 bit/s; write a rate such as \"15 Mbit/s\", or remove it"
    )]
    StandingStill(Name),
}

impl Channel {
    fn check(&self) -> Result<(), ChannelError> {
        if self.priority > LAST_PRIORITY {
            return Err(ChannelError::Priority(self.name.clone(), self.priority));
        }
        if self.deadline == Some(Duration::ZERO) {
            return Err(ChannelError::AlwaysLate(self.name.clone()));
        }
        self.check_feeds()?;
        if self.select_window > LONGEST_SELECT_WINDOW {
            return Err(ChannelError::LongSelectWindow(self.name.clone(), self.select_window));
        }
        if self.raw_size < LEAST_RECORDING {
            return Err(ChannelError::SmallRecording(self.name.clone(), self.raw_size));
        }
        match (self.is_files(), self.rate) {
            (true, Some(Rate::ZERO)) => Err(ChannelError::StandingStill(self.name.clone())),
            (true, _) | (_, None) => Ok(()),
            (false, Some(_)) => Err(ChannelError::RateOfLiveInput(self.name.clone())),
        }
    }

    pub(super) fn resolve(&mut self, base: &Path) {
        self.resolve_feeds(base);
        if let Some(MissionRef::File(path)) = &mut self.mission {
            super::from_base(base, path);
        }
    }
}

/// Two files of a recording.
const LEAST_RECORDING: ByteCount = ByteCount::mib(128);
/// A frame that waits longer is not live any more.
const LONGEST_SELECT_WINDOW: Duration = Duration::from_secs(10);
/// As many as classes have.
const LAST_PRIORITY: u8 = 7;

impl FromStr for Input {
    type Err = ChannelError;
    fn from_str(text: &str) -> Result<Self, ChannelError> {
        let refuse = || ChannelError::Input(text.to_owned());
        if text == "stdin" {
            return Ok(Self::Stdin);
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

impl FromStr for Compress {
    type Err = ChannelError;
    fn from_str(text: &str) -> Result<Self, ChannelError> {
        match text {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            "fast" => Ok(Self::Fast),
            "normal" => Ok(Self::Normal),
            "thorough" => Ok(Self::Thorough),
            _ => Err(ChannelError::Compress(text.to_owned())),
        }
    }
}

impl FromStr for MissionRef {
    type Err = ChannelError;
    fn from_str(text: &str) -> Result<Self, ChannelError> {
        if text.is_empty() {
            return Err(ChannelError::Mission);
        }
        let path = Path::new(text);
        if path.extension().is_some_and(|extension| extension == "toml") {
            return Ok(Self::File(path.to_owned()));
        }
        Ok(Self::Named(text.to_owned()))
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
impl std::fmt::Display for MissionRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

from_text!(Compress, Input, InputFormat, MissionRef, SoftForm);
