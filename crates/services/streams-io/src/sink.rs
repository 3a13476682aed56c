//! Where a stream goes: files below a folder, standard output, datagrams, shared memory, or
//! nowhere.

mod file;
mod writer;

pub(crate) use writer::Writer;

use crate::ring::Ring;
use crate::spec::{Numbering, SinkSpec};
use file::FileSink;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use skyhaul_streams::SinkFrames;
use skyhaul_streams::wire::{StreamRefusal, StreamRefusalKind};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::Path;

/// The sinks that are permitted at this end.
#[derive(Debug, Default)]
pub struct AllowedSinks {
    root: Option<OwnedFd>,
    sinks: Vec<SinkSpec>,
}

impl AllowedSinks {
    /// These sinks; files where there is a folder.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn new(root: Option<&Path>, sinks: Vec<SinkSpec>) -> io::Result<Self> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let root = root.map(|root| rustix::fs::open(root, flags, Mode::empty())).transpose()?;
        Ok(Self { root, sinks })
    }

    fn allows(&self, sink: &SinkSpec) -> bool {
        let is_same = |allowed: &SinkSpec| match (allowed, sink) {
            // The caller chooses the size of the ring, within bounds.
            (SinkSpec::Ring(one, most), SinkSpec::Ring(other, size)) => {
                one == other && size <= most
            }
            (one, other) => one == other,
        };
        matches!(sink, SinkSpec::File(_)) && self.root.is_some() || self.sinks.iter().any(is_same)
    }
}

/// An open sink.
#[derive(Debug)]
pub(crate) enum Sink {
    Null,
    Pipe,
    File(FileSink),
    Udp(UdpSink),
    Ring(Ring),
}

/// Datagrams, a frame each.
#[derive(Debug)]
pub(crate) struct UdpSink {
    socket: UdpSocket,
    numbering: Numbering,
    datagram: Vec<u8>,
}

impl Sink {
    /// Opens the sink that a caller names, if it is permitted.
    pub fn open(text: &str, allowed: &AllowedSinks) -> Result<Self, StreamRefusal> {
        let spec: SinkSpec = text.parse().map_err(|error: crate::EndpointSpecError| {
            StreamRefusal::new(StreamRefusalKind::NotAllowed, error.to_string())
        })?;
        if !allowed.allows(&spec) {
            let sentence = match spec {
                SinkSpec::File(_) => {
                    "the far end does not accept files; set its folder there: --root, or `root` in \
                    [peer.streams]"
                        .to_owned()
                }
                _ => format!(
                    "the sink {text} is not allowed there; allow it at the far end: --allow \
                    {text}, or `allow` in [peer.streams]"
                ),
            };
            return Err(StreamRefusal::new(StreamRefusalKind::NotAllowed, sentence));
        }
        let cannot = |error: io::Error| {
            StreamRefusal::new(
                StreamRefusalKind::Sink,
                format!("the sink {text} cannot be opened ({error})"),
            )
        };
        Ok(match spec {
            SinkSpec::Null => Self::Null,
            SinkSpec::Pipe => Self::Pipe,
            SinkSpec::File(path) => {
                let root =
                    allowed.root.as_ref().expect("files are allowed where there is a folder");
                Self::File(FileSink::create(root, &path).map_err(cannot)?)
            }
            SinkSpec::Udp { address, numbering } => {
                Self::Udp(UdpSink::open(&address, numbering).map_err(cannot)?)
            }
            SinkSpec::Ring(name, size) => {
                Self::Ring(Ring::create(&name.path(), size.as_u64()).map_err(cannot)?)
            }
        })
    }

    /// Writes frames; `false` where a reader took nothing for a moment, and `written` bytes of them
    /// are written so far.
    pub fn write(&mut self, given: &SinkFrames, written: &mut usize) -> io::Result<bool> {
        let bytes = &given.bytes[*written..];
        match self {
            Self::Null => {}
            Self::Pipe => {
                let len = pipe(bytes)?;
                *written += len;
                return Ok(*written == given.bytes.len());
            }
            Self::File(file) => file.write(bytes)?,
            Self::Udp(udp) => udp.write(given)?,
            Self::Ring(ring) => ring.write(bytes)?,
        }
        Ok(true)
    }

    /// Everything was written.
    pub fn finish(self) -> io::Result<()> {
        match self {
            // Standard output was written past its buffer.
            Self::Null | Self::Udp(_) | Self::Pipe => Ok(()),
            Self::File(file) => file.finish(),
            Self::Ring(ring) => ring.finish(),
        }
    }

    /// The stream broke off.
    pub fn abandon(self) -> io::Result<()> {
        match self {
            Self::File(file) => file.abandon(),
            Self::Ring(ring) => ring.finish(),
            _ => Ok(()),
        }
    }
}

/// Writes what standard output takes without waiting for its reader for longer than a moment.
fn pipe(bytes: &[u8]) -> io::Result<usize> {
    let out = io::stdout();
    let mut waiting = [PollFd::new(&out, PollFlags::OUT)];
    let moment = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    match poll(&mut waiting, Some(&moment)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(0),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    // A pipe that is ready takes so much at once.
    let len = bytes.len().min(PIPE_AT_ONCE);
    Ok(rustix::io::write(&out, &bytes[..len])?)
}

/// `PIPE_BUF` of Linux.
const PIPE_AT_ONCE: usize = 4096;

impl UdpSink {
    fn open(address: &str, numbering: Numbering) -> io::Result<Self> {
        let none = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        let remote = address.to_socket_addrs()?.next().ok_or_else(none)?;
        let local: SocketAddr = match remote {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(local)?;
        let _ = socket2::SockRef::from(&socket).set_send_buffer_size(SOCKET_BUFFER);
        socket.connect(remote)?;
        Ok(Self { socket, numbering, datagram: Vec::new() })
    }

    /// A missing listener is no error: one may start later.
    fn write(&mut self, given: &SinkFrames) -> io::Result<()> {
        let len = given.bytes.len() / usize::try_from(given.count).unwrap_or(usize::MAX).max(1);
        if len == 0 {
            return Ok(());
        }
        for (number, frame) in (given.first..).zip(given.bytes.chunks(len)) {
            self.datagram.clear();
            if self.numbering == Numbering::Numbered {
                self.datagram.extend(number.to_le_bytes());
            }
            self.datagram.extend_from_slice(frame);
            match self.socket.send(&self.datagram) {
                Err(error)
                    if !matches!(
                        error.kind(),
                        io::ErrorKind::ConnectionRefused | io::ErrorKind::WouldBlock
                    ) =>
                {
                    return Err(error);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Bytes of datagrams that wait for the network, at most.
const SOCKET_BUFFER: usize = 4 << 20;
