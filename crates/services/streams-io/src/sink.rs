//! Where a stream goes: files below a folder, standard output, datagrams, shared memory, or
//! nowhere.

mod file;
mod writer;

pub(crate) use writer::Writer;

use crate::ring::Ring;
use crate::spec::{Numbering, SinkSpec};
use file::FileSink;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use skyhaul_rtp::RtpFrame;
use skyhaul_streams::wire::{Hello, StreamRefusal, StreamRefusalKind};
use skyhaul_streams::{SinkFrames, StreamFormat};
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
    Rtp(UdpSink),
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
    /// Opens the sink that a caller names, if it is permitted and takes its stream.
    pub fn open(hello: &Hello, allowed: &AllowedSinks) -> Result<Self, StreamRefusal> {
        let text = &*hello.sink;
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
        let is_rtp = matches!(spec, SinkSpec::Rtp { .. });
        if is_rtp != (hello.format == StreamFormat::Rtp) {
            let sentence =
                format!("the sink {text} takes no stream of {}; {RTP}", hello.format.name());
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
            SinkSpec::Rtp { address } => {
                Self::Rtp(UdpSink::open(&address, Numbering::Plain).map_err(cannot)?)
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
            Self::Rtp(udp) => udp.write_packets(given)?,
            Self::Ring(ring) => ring.write(bytes)?,
        }
        Ok(true)
    }

    /// Everything was written.
    pub fn finish(self) -> io::Result<()> {
        match self {
            // Standard output was written past its buffer.
            Self::Null | Self::Udp(_) | Self::Rtp(_) | Self::Pipe => Ok(()),
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
            self.send(&self.datagram)?;
        }
        Ok(())
    }

    /// The packets of an RTP frame. The receiver sees by their numbers that others are missing.
    fn write_packets(&self, given: &SinkFrames) -> io::Result<()> {
        if given.missing {
            return Ok(());
        }
        let packets = RtpFrame::packets_in(&given.bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        packets.iter().try_for_each(|packet| self.send(packet.bytes()))
    }

    /// A missing listener is no error: one may start later.
    fn send(&self, datagram: &[u8]) -> io::Result<()> {
        match self.socket.send(datagram) {
            Err(error)
                if !matches!(
                    error.kind(),
                    io::ErrorKind::ConnectionRefused | io::ErrorKind::WouldBlock
                ) =>
            {
                Err(error)
            }
            _ => Ok(()),
        }
    }
}

/// What to do about a sink of another kind.
const RTP: &str = "a stream from rtp:// goes to a sink rtp://, and any other to another sink";
/// Bytes of datagrams that wait for the network, at most.
const SOCKET_BUFFER: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::Duration;

    #[test]
    fn a_sink_takes_a_stream_of_its_kind_only() {
        let sinks = ["rtp://127.0.0.1:9", "udp://127.0.0.1:9"];
        let allowed = sinks.map(|sink| sink.parse().unwrap()).to_vec();
        let allowed = AllowedSinks::new(None, allowed).unwrap();
        let open = |format, sink: &str| {
            let (lateness, sink) = (Duration::ZERO, sink.to_owned());
            let hello = Hello { format, lateness, frames_per_second: None, sink };
            Sink::open(&hello, &allowed).map_err(|refusal| refusal.sentence)
        };
        assert!(matches!(open(StreamFormat::Rtp, "rtp:127.0.0.1:9"), Ok(Sink::Rtp(_))));
        assert!(matches!(open(StreamFormat::Vdif, sinks[1]), Ok(Sink::Udp(_))));
        for (format, sink) in [(StreamFormat::Rtp, sinks[1]), (StreamFormat::Datagrams, sinks[0])] {
            let sentence = open(format, sink).unwrap_err();
            assert!(sentence.contains("takes no stream of"), "{sentence}");
        }
        let sentence = open(StreamFormat::Rtp, "rtp://127.0.0.1:7").unwrap_err();
        assert!(sentence.contains("--allow rtp://127.0.0.1:7"), "{sentence}");
    }
}
