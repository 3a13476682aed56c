//! The messages between the two ends of a stream, one in each block.
//!
//! ```text
//!   source's end                                  sink's end
//!   Hello (format, lateness, sink)    ────►
//!                                     ◄────      Welcome, or Refused
//!   Group (frames), many              ────►
//!                                     ◄────      Account (counters), each second
//!   End (how many there were)         ────►
//!                                     ◄────      Map (what is missing), Finished (counters)
//!
//!   kind (1 byte)  the rest, as the kind has it         numbers are big-endian
//! ```
//!
//! Groups are expendable blocks of the flow [`DATA`], with a deadline; everything else is reliable
//! and goes over [`CONTROL`].

use crate::account::{Counters, Missing};
use crate::fields::put_text;
use crate::frame_time::{FRAME_MAX, FrameTime};
use crate::head::{FrameHead, StreamFormat};
use crate::sequence::Exception;
use bytes::Bytes;
use skyhaul_units::wire::ByteReader;
use skyhaul_units::{Duration, FlowId};

/// The version of these messages. An end that speaks another one is refused.
pub const VERSION: u16 = 1;
/// Everything that is short, and waited for.
pub const CONTROL: FlowId = FlowId(0x0002_0000);
/// Frames.
pub const DATA: FlowId = FlowId(0x0002_0001);
/// The longest name of a sink, and the longest sentence, in bytes.
pub const TEXT_MAX: usize = 1024;
/// Frames in a group, at most.
pub const GROUP_MAX: u16 = 4096;
/// Places in a message, at most.
pub const PLACES_MAX: usize = 2048;
/// Bytes in a group for what is said of frames before it, at most: 290 threads out of turn.
pub const RECAP_MAX: usize = 2048;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// What the calling end wants.
    Hello(Hello),
    /// The called end takes it.
    Welcome,
    /// The stream does not begin, or is over.
    Refused(StreamRefusal),
    /// Frames.
    Group(FrameGroup),
    /// What the sink's end counted so far.
    Account(Counters),
    /// All frames were sent.
    End(StreamEnd),
    /// Frames that the sink does not have.
    Map(Vec<Missing>),
    /// The sink has everything that came; with how many frames lack in the map, which is bounded.
    Finished(Counters, u64),
}

/// The first message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// What the frames are.
    pub format: StreamFormat,
    /// How much later than the fastest ones frames are waited for.
    pub lateness: Duration,
    /// Frames of a thread in a second, where they are known beforehand.
    pub frames_per_second: Option<u32>,
    /// Where they go.
    pub sink: String,
}

/// Why a stream is not taken, or not any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamRefusal {
    /// What programs read.
    pub reason: StreamRefusalKind,
    /// What people read.
    pub sentence: String,
}

/// Kinds of refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamRefusalKind {
    /// The far end does not allow the sink.
    NotAllowed,
    /// The far end speaks another version.
    Version,
    /// The sink cannot be opened or written.
    Sink,
    /// The sink takes less than the stream brings.
    Slow,
    /// The source cannot be read any more, or is no stream of its format.
    Source,
    /// It was ended by an operator.
    Stopped,
}

/// Frames one after the other, all of one length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameGroup {
    /// The number of the first, counted from the stream's beginning.
    pub first: u64,
    /// When the first one was there, from when the stream began.
    pub stamp: Duration,
    /// How many.
    pub count: u16,
    /// What was not to be expected among the frames before, and of the first one: how many frames
    /// before `first`, and what it was.
    pub recap: Vec<(u32, Exception)>,
    /// The frames.
    pub frames: Bytes,
}

/// The end of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEnd {
    /// Frames of the stream, those among them that were not sent.
    pub frames: u64,
    /// Frames that were dropped before they were sent.
    pub unsent: u64,
    /// As in a group.
    pub recap: Vec<(u32, Exception)>,
}

/// Why a message cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The far end speaks this version.
    #[error(
        "the far end uses version {0} of the stream protocol, this node {VERSION}; install the \
        same release at both ends"
    )]
    Version(u16),
    /// It is no message.
    #[error("not a stream message")]
    Malformed,
}

impl StreamRefusalKind {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotAllowed => "not-allowed",
            Self::Version => "version",
            Self::Sink => "sink",
            Self::Slow => "slow",
            Self::Source => "source",
            Self::Stopped => "stopped",
        }
    }

    const ALL: [Self; 6] =
        [Self::NotAllowed, Self::Version, Self::Sink, Self::Slow, Self::Source, Self::Stopped];
}

impl StreamRefusal {
    /// Of a reason and a sentence.
    pub fn new(reason: StreamRefusalKind, sentence: impl Into<String>) -> Self {
        Self { reason, sentence: sentence.into() }
    }
}

impl FrameGroup {
    /// Bytes of each frame.
    pub fn frame_len(&self) -> usize {
        self.frames.len() / usize::from(self.count)
    }
}

impl Message {
    /// The block's bytes.
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        match self {
            Self::Hello(hello) => {
                out.push(0);
                out.extend(VERSION.to_be_bytes());
                out.push(hello.format.number());
                out.extend(hello.lateness.as_nanos().to_be_bytes());
                out.extend(hello.frames_per_second.unwrap_or(0).to_be_bytes());
                put_text(&mut out, &hello.sink, TEXT_MAX);
            }
            Self::Welcome => out.push(1),
            Self::Refused(StreamRefusal { reason, sentence }) => {
                out.push(2);
                out.push(*reason as u8);
                put_text(&mut out, sentence, TEXT_MAX);
            }
            Self::Group(group) => {
                let head = GroupHead {
                    first: group.first,
                    stamp: group.stamp,
                    frame_len: group.frame_len(),
                };
                head.put(&group.recap, &mut out);
                out.extend(&group.frames);
                finish_group(&mut out, group.count);
            }
            Self::Account(counters) => {
                out.push(4);
                counters.put(&mut out);
            }
            Self::End(StreamEnd { frames, unsent, recap }) => {
                out.push(5);
                out.extend(frames.to_be_bytes());
                out.extend(unsent.to_be_bytes());
                recap.iter().for_each(|(back, exception)| exception.put(*back, &mut out));
            }
            Self::Map(missing) => {
                out.push(6);
                missing.iter().for_each(|missing| put_missing(missing, &mut out));
            }
            Self::Finished(counters, further) => {
                out.push(7);
                counters.put(&mut out);
                out.extend(further.to_be_bytes());
            }
        }
        out.into()
    }

    /// The message in a block; `format` is that of the stream, which says what headers look like.
    ///
    /// # Errors
    /// It is none, or of another version.
    pub fn decode(bytes: &Bytes, format: StreamFormat) -> Result<Self, WireError> {
        let mut fields = ByteReader::new(bytes);
        let kind = fields.u8().ok_or(WireError::Malformed)?;
        if kind == 0 {
            let version = fields.u16().ok_or(WireError::Malformed)?;
            if version != VERSION {
                return Err(WireError::Version(version));
            }
        }
        let message = match kind {
            0 => hello(&mut fields).map(Self::Hello),
            1 => Some(Self::Welcome),
            2 => refusal(&mut fields).map(Self::Refused),
            3 => group(&mut fields, bytes, format).map(Self::Group),
            4 => Counters::take(&mut fields).map(Self::Account),
            5 => end(&mut fields, format).map(Self::End),
            6 => map(&mut fields).map(Self::Map),
            7 => finished(&mut fields),
            _ => None,
        };
        message.filter(|_| fields.is_empty()).ok_or(WireError::Malformed)
    }
}

/// What stands before the frames of a group.
pub(crate) struct GroupHead {
    pub first: u64,
    pub stamp: Duration,
    pub frame_len: usize,
}

impl GroupHead {
    /// Begins a message; how many frames follow is put in by [`finish_group`].
    pub fn put(&self, recap: &[(u32, Exception)], out: &mut Vec<u8>) {
        out.push(3);
        out.extend([0, 0]);
        out.extend(self.first.to_be_bytes());
        out.extend(self.stamp.as_nanos().to_be_bytes());
        out.extend((self.frame_len as u32).to_be_bytes());
        let at = out.len();
        out.extend([0, 0]);
        for (back, exception) in recap {
            let before = out.len();
            exception.put(*back, out);
            if out.len() - at - 2 > RECAP_MAX {
                out.truncate(before);
                break;
            }
        }
        let len = (out.len() - at - 2) as u16;
        out[at..at + 2].copy_from_slice(&len.to_be_bytes());
    }
}

/// Says how many frames a group has.
pub(crate) fn finish_group(message: &mut [u8], count: u16) {
    message[1..3].copy_from_slice(&count.to_be_bytes());
}

fn hello(fields: &mut ByteReader<'_>) -> Option<Hello> {
    let format = StreamFormat::from_number(fields.u8()?)?;
    let lateness = Duration::from_nanos(fields.u64()?);
    let rate = fields.u32()?;
    let sink = fields.text16(TEXT_MAX)?;
    Some(Hello { format, lateness, frames_per_second: (rate > 0).then_some(rate), sink })
}

fn refusal(fields: &mut ByteReader<'_>) -> Option<StreamRefusal> {
    let reason = StreamRefusalKind::ALL.get(usize::from(fields.u8()?))?;
    Some(StreamRefusal {
        reason: *reason,
        sentence: skyhaul_units::printable(&fields.text16(TEXT_MAX)?, TEXT_MAX),
    })
}

fn group(fields: &mut ByteReader<'_>, bytes: &Bytes, format: StreamFormat) -> Option<FrameGroup> {
    let count = fields.u16().filter(|count| (1..=GROUP_MAX).contains(count))?;
    let (first, stamp) = (fields.u64()?, Duration::from_nanos(fields.u64()?));
    first.checked_add(u64::from(GROUP_MAX))?;
    let frame_len = fields.u32()? as usize;
    let recap_len = usize::from(fields.u16()?);
    let recap = recap(fields.take(recap_len)?, format)?;
    let frames = bytes.slice(bytes.len() - fields.rest().len()..);
    fields.take(fields.rest().len())?;
    let fits =
        (1..=FRAME_MAX).contains(&frame_len) && frames.len() == frame_len * usize::from(count);
    let is_frame = |frame: &[u8]| {
        FrameHead::read(format, frame).is_ok_and(|head| head.frame_len() == frame.len())
    };
    let are_frames = match format {
        StreamFormat::Datagrams => true,
        // Each has a time of its own.
        StreamFormat::Rtp => count == 1,
        StreamFormat::Vdif | StreamFormat::Mark5b => fits && frames.chunks(frame_len).all(is_frame),
    };
    (fits && are_frames).then_some(FrameGroup { first, stamp, count, recap, frames })
}

fn recap(bytes: &[u8], format: StreamFormat) -> Option<Vec<(u32, Exception)>> {
    let mut fields = ByteReader::new(bytes);
    let mut recap = Vec::new();
    while !fields.is_empty() {
        recap.push(Exception::take(&mut fields, format)?);
    }
    Some(recap)
}

fn end(fields: &mut ByteReader<'_>, format: StreamFormat) -> Option<StreamEnd> {
    let (frames, unsent) = (fields.u64()?, fields.u64()?);
    let recap = recap(fields.rest(), format)?;
    fields.take(fields.rest().len())?;
    Some(StreamEnd { frames, unsent, recap })
}

fn put_missing(missing: &Missing, out: &mut Vec<u8>) {
    let Missing { place, last } = missing;
    out.extend(place.station.to_be_bytes());
    out.extend(place.thread.to_be_bytes());
    out.extend(place.second.to_be_bytes());
    out.extend(place.number.to_be_bytes());
    out.extend(last.to_be_bytes());
}

fn map(fields: &mut ByteReader<'_>) -> Option<Vec<Missing>> {
    let mut map = Vec::new();
    while !fields.is_empty() && map.len() < PLACES_MAX {
        let (station, thread) = (fields.u16()?, fields.u16()?);
        let place = FrameTime { station, thread, second: fields.u64()?, number: fields.u32()? };
        let last = fields.u32().filter(|last| *last >= place.number)?;
        map.push(Missing { place, last });
    }
    Some(map)
}

fn finished(fields: &mut ByteReader<'_>) -> Option<Message> {
    let counters = Counters::take(fields)?;
    Some(Message::Finished(counters, fields.u64()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Synthesis;

    fn messages() -> Vec<Message> {
        let mut synthesis = Synthesis::new(8, 1, 10).unwrap();
        let mut frames = Vec::new();
        (0..3).for_each(|_| synthesis.frame(&mut frames));
        let head = FrameHead::read(StreamFormat::Vdif, &frames).unwrap();
        let recap = vec![(4, Exception::Thread(3)), (2, Exception::Head(head))];
        let place = FrameTime { station: 1, thread: 2, second: 3, number: 4 };
        let counters =
            Counters { received: 7, runs: crate::LossRuns::default(), ..Counters::default() };
        let (first, stamp) = (1 << 40, Duration::from_millis(5));
        let hello = Hello {
            format: StreamFormat::Vdif,
            lateness: Duration::from_millis(40),
            frames_per_second: Some(1_600),
            sink: "null".to_owned(),
        };
        vec![
            Message::Hello(hello),
            Message::Welcome,
            Message::Refused(StreamRefusal::new(StreamRefusalKind::Stopped, "it was stopped")),
            Message::Group(FrameGroup {
                first,
                stamp,
                count: 3,
                recap: recap.clone(),
                frames: frames.into(),
            }),
            Message::Account(counters),
            Message::End(StreamEnd { frames: 9, unsent: 2, recap }),
            Message::Map(vec![Missing { place, last: 9 }]),
            Message::Finished(counters, 3),
        ]
    }

    #[test]
    fn messages_are_read_as_they_were_written_and_cut_ones_refused() {
        for message in messages() {
            let bytes = message.encode();
            assert_eq!(Message::decode(&bytes, StreamFormat::Vdif), Ok(message.clone()));
            for len in 0..bytes.len() {
                if let Ok(other) = Message::decode(&bytes.slice(..len), StreamFormat::Vdif) {
                    // What has several items may have fewer.
                    assert!(
                        matches!(other, Message::Map(_) | Message::End(_)),
                        "{message:?} at {len}"
                    );
                }
            }
        }
    }

    #[test]
    fn another_version_is_told() {
        let mut bytes = messages()[0].encode().to_vec();
        bytes[2] = 9;
        assert_eq!(Message::decode(&bytes.into(), StreamFormat::Vdif), Err(WireError::Version(9)));
    }

    #[test]
    fn frames_that_are_none_are_refused() {
        let Message::Group(mut group) = messages().swap_remove(3) else { panic!("a group") };
        let other: Vec<u8> = group.frames.iter().map(|byte| byte ^ 0x55).collect();
        group.frames = other.into();
        let bytes = Message::Group(group).encode();
        assert_eq!(Message::decode(&bytes, StreamFormat::Vdif), Err(WireError::Malformed));
        assert!(Message::decode(&bytes, StreamFormat::Datagrams).is_err(), "the recap has headers");
    }
}
