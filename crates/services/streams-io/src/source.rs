//! Where a stream comes from: files, pipes, datagrams, shared memory, and memory of its own.

mod contiguous;
mod datagrams;
mod memory;

use crate::SourcePace;
use crate::spec::{Numbering, RtpSourceSpec, SourceSpec};
use contiguous::Stream;
use datagrams::Receiver;
use memory::Memory;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use skyhaul_rtp::RtpRules;
use skyhaul_streams::{FrameFinder, FrameHead, FrameSequence, NextBytes, StreamFormat};
use skyhaul_units::Duration;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// An open source.
#[derive(Debug)]
pub struct StreamSource(Kind);

#[derive(Debug)]
enum Kind {
    Stream(Stream),
    Datagrams(Receiver),
    /// Packets of RTP, a datagram each.
    Rtp(Receiver, RtpRules),
    Memory(Memory),
}

/// The result of reading a source.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// There may be units now.
    More,
    /// Nothing came.
    Idle,
    /// The source has ended.
    End,
}

/// An item of a source.
#[derive(Debug)]
pub(crate) enum Unit<'a> {
    /// A frame, or a datagram without a header.
    Frame(Option<FrameHead>, &'a [u8]),
    /// Bytes that belong to no frame.
    Skipped(u64),
    /// Units that are missing before the next one.
    Missing(u64),
    /// The next unit belongs before those that came.
    Reordered,
    /// Frames have another length from here on.
    Changed(usize, usize),
}

/// Why a source cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StreamSourceError {
    /// Error of the operating system.
    #[error("{what} ({error}); {help}")]
    System {
        /// What cannot be done, with the source's name.
        what: String,
        /// The error.
        error: io::Error,
        /// What to do about it.
        help: &'static str,
    },
    /// The request is invalid.
    #[error("{0}")]
    Usage(String),
}

impl StreamSource {
    /// Opens what `spec` names; its frames are of `format`, or of the one that is found.
    ///
    /// # Errors
    /// See [`StreamSourceError`].
    pub fn open(
        spec: &SourceSpec,
        format: Option<StreamFormat>,
    ) -> Result<Self, StreamSourceError> {
        let refused =
            |what: String, help| move |error| StreamSourceError::System { what, error, help };
        let datagrams = format == Some(StreamFormat::Datagrams);
        let stream = |spec: &str| {
            let sentence = format!(
                "{spec} has no datagrams; give --format vdif or mark5b, or omit it if the format \
                can be detected"
            );
            if datagrams { Err(StreamSourceError::Usage(sentence)) } else { Ok(()) }
        };
        let kind = match spec {
            SourceSpec::File(path) => {
                stream("a file")?;
                let what = format!("the source {} cannot be read", path.display());
                let file = File::open(path)
                    .map_err(refused(what, "give an existing file that this user can read"))?;
                Kind::Stream(Stream::file(file, format))
            }
            SourceSpec::Pipe => {
                stream("standard input")?;
                Kind::Stream(Stream::pipe(format))
            }
            SourceSpec::Ring(name) => {
                stream("shared memory")?;
                let what = format!("the ring {name} cannot be read");
                let help = "start the program that writes it first (see docs/how-to/streams.md)";
                Kind::Stream(Stream::ring(
                    crate::Ring::open(&name.path()).map_err(refused(what, help))?,
                    format,
                ))
            }
            SourceSpec::Udp { address, numbering } => {
                let what = format!("datagrams cannot be received at {address}");
                Kind::Datagrams(
                    Receiver::bind(address, *numbering, format).map_err(refused(what, ADDRESS))?,
                )
            }
            SourceSpec::Rtp(RtpSourceSpec { address, codec, clock_rate }) => {
                let what = format!("packets cannot be received at {address}");
                let datagrams = Some(StreamFormat::Datagrams);
                let receiver = Receiver::bind(address, Numbering::Plain, datagrams)
                    .map_err(refused(what, ADDRESS))?;
                let (codec, clock_rate) = (*codec, *clock_rate);
                Kind::Rtp(receiver, RtpRules { codec, clock_rate, ..RtpRules::default() })
            }
            SourceSpec::Zero(_) => Kind::Memory(Memory::zeros()),
            SourceSpec::Vdif { rate, payload, threads } => {
                let sentence = "no such VDIF is possible; samples of a frame are a multiple of 8 \
                               bytes and at most 1 MiB, threads at \
                                most 1024, and each has at least a frame a second";
                let memory = Memory::vdif(*rate, *payload, *threads);
                Kind::Memory(memory.ok_or_else(|| StreamSourceError::Usage(sentence.to_owned()))?)
            }
        };
        Ok(Self(kind))
    }

    /// The default pace.
    pub const fn pace(spec: &SourceSpec) -> SourcePace {
        match spec {
            SourceSpec::File(_) => SourcePace::Frames,
            SourceSpec::Pipe
            | SourceSpec::Udp { .. }
            | SourceSpec::Rtp(_)
            | SourceSpec::Ring(_) => SourcePace::Live,
            SourceSpec::Zero(rate) | SourceSpec::Vdif { rate, .. } => match rate {
                Some(rate) => SourcePace::Rate(*rate),
                None => SourcePace::Line,
            },
        }
    }

    /// Frames of a thread in a second, as the first frames of a file tell: by their headers, or by
    /// the first second that ends.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn frames_per_second(path: &Path, format: Option<StreamFormat>) -> io::Result<Option<u32>> {
        let (mut file, mut finder, mut course) =
            (File::open(path)?, FrameFinder::new(format), FrameSequence::new(None));
        let mut left = LOOKED_AT;
        while left > 0 {
            while let Some(found) = finder.next() {
                match found {
                    NextBytes::Frame(head, _) => course.take(&head),
                    NextBytes::Skipped(_) => {}
                    NextBytes::Changed(..) => return Ok(course.frames_per_second()),
                }
                if course.frames_per_second().is_some() {
                    return Ok(course.frames_per_second());
                }
            }
            let space = finder.space(CHUNK);
            let len = io::Read::read(&mut file, space)?;
            finder.cut(CHUNK - len);
            if len == 0 {
                break;
            }
            left = left.saturating_sub(len);
        }
        Ok(None)
    }

    /// Whether a file, of which the rate is not known, has frames at all.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn holds(path: &Path, format: Option<StreamFormat>) -> io::Result<Holds> {
        let mut finder = FrameFinder::new(format);
        let space = finder.space(CHUNK);
        let mut len = 0;
        let mut file = File::open(path)?;
        while len < space.len() {
            match io::Read::read(&mut file, &mut space[len..])? {
                0 => break,
                read => len += read,
            }
        }
        let is_mark4 = is_mark4(&space[..len]);
        let unused = space.len() - len;
        finder.cut(unused);
        while let Some(found) = finder.next() {
            if let NextBytes::Frame(..) = found {
                return Ok(Holds::Frames);
            }
        }
        Ok(if is_mark4 { Holds::Mark4 } else { Holds::Unknown })
    }

    /// The format of its units, once that is known.
    pub(crate) fn format(&self) -> Option<StreamFormat> {
        match &self.0 {
            Kind::Stream(stream) => stream.format(),
            Kind::Datagrams(receiver) => receiver.format(),
            Kind::Rtp(..) => Some(StreamFormat::Rtp),
            Kind::Memory(memory) => Some(memory.format()),
        }
    }

    /// How its packets are read, where it is an RTP stream.
    pub(crate) const fn rtp(&self) -> Option<RtpRules> {
        match &self.0 {
            Kind::Rtp(_, rules) => Some(*rules),
            _ => None,
        }
    }

    /// Frames of a thread in a second, where the source makes them itself.
    pub(crate) const fn own_rate(&self) -> Option<u32> {
        match &self.0 {
            Kind::Memory(memory) => memory.frames_per_second(),
            _ => None,
        }
    }

    /// Reads on, for `wait` at most. Items returned before become invalid.
    pub(crate) fn advance(&mut self, wait: Duration) -> io::Result<Step> {
        match &mut self.0 {
            Kind::Stream(stream) => stream.advance(wait),
            Kind::Datagrams(receiver) | Kind::Rtp(receiver, _) => receiver.advance(wait),
            Kind::Memory(memory) => Ok(memory.advance()),
        }
    }

    /// The next item of those that were read.
    pub(crate) fn unit(&mut self) -> Option<Unit<'_>> {
        match &mut self.0 {
            Kind::Stream(stream) => stream.unit(),
            Kind::Datagrams(receiver) | Kind::Rtp(receiver, _) => receiver.unit(),
            Kind::Memory(memory) => memory.unit(),
        }
    }
}

/// The contents of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Frames of a supported format.
    Frames,
    /// Mark 4, which is not supported: lost frames could not be replaced without frame headers.
    Mark4,
    /// Unknown.
    Unknown,
}

/// Whether these are frames of Mark 4: 20,000 bits of each of 16, 32 or 64 tracks, with 32 bits of
/// ones on all of them.
fn is_mark4(bytes: &[u8]) -> bool {
    [64, 32, 16].into_iter().any(|tracks| {
        let (sync, frame) = (4 * tracks, 2_500 * tracks);
        let is_sync = |at: usize| {
            bytes.get(at..at + sync).is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0xFF))
        };
        let mut at = 0;
        while let Some(next) = bytes
            .get(at..bytes.len().min(frame))
            .and_then(|rest| rest.iter().position(|byte| *byte == 0xFF))
        {
            at += next;
            if is_sync(at) && is_sync(at + frame) {
                return true;
            }
            at += 1;
        }
        false
    })
}

/// Whether `from` can be read, or has ended, within `wait`.
fn is_ready(from: &impl AsFd, wait: Duration) -> io::Result<bool> {
    let mut waiting = [PollFd::new(from, PollFlags::IN)];
    let (tv_sec, tv_nsec) =
        ((wait.as_nanos() / 1_000_000_000) as i64, (wait.as_nanos() % 1_000_000_000) as i64);
    match poll(&mut waiting, Some(&Timespec { tv_sec, tv_nsec })) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// What to do where a port cannot be used.
const ADDRESS: &str = "give an address of this host, and a port that no other program uses";
/// Bytes read at a time.
const CHUNK: usize = 1 << 20;
/// Bytes of a file that are read to learn its rate: two seconds of 1 Gbit/s.
const LOOKED_AT: usize = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mark_4_is_known_for_what_it_is() {
        for tracks in [16, 32, 64] {
            let mut bytes: Vec<u8> =
                (0..3 * 2_500 * tracks).map(|at| (at * 31 % 251) as u8).collect();
            for frame in 0..3 {
                let sync = 2_500 * tracks * frame + 8 * tracks;
                bytes[sync..sync + 4 * tracks].fill(0xFF);
            }
            assert!(is_mark4(&bytes[100..]), "{tracks}");
            bytes[2_500 * tracks + 9 * tracks] = 0;
            bytes[5_000 * tracks + 9 * tracks] = 0;
            assert!(!is_mark4(&bytes), "{tracks}");
        }
        assert!(!is_mark4(&[0x55; 1_000]));
        assert!(!is_mark4(&[]));
    }
}
