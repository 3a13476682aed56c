//! What forwards say within the messages of channels ([`skyhaul_channels::wire`]).
//!
//! ```text
//!   request of an open message:   carriage  target                    numbers are big-endian
//!   reason of a reset message:    nothing, or a refusal
//!   refusal:                      reason (1)  sentence
//!   carriage:                     deadline ms (4)  priority (1)  class length (1)  class
//!
//!   16 listen         idle ms (4)  carriage  address length (1)  address  target
//!   17 listening      address
//!   18 not listening  refusal
//! ```
//!
//! The last three are messages of the service, with the number of the request to listen.

use crate::carriage::Carriage;
use crate::spec::Local;
use crate::target::{TARGET_MAX, Target};
use bytes::Bytes;
use skyhaul_channels::wire::{ChannelContent, ChannelMessage, KIND_SERVICE};
use skyhaul_units::Duration;
use skyhaul_units::wire::{ByteReader, ByteWriter};

/// A request to connect, and to carry what comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamRequest {
    /// Where.
    pub target: Target,
    /// How both ends' blocks are carried.
    pub carriage: Carriage,
}

/// A request that was not granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardRefusal {
    /// For programs.
    pub reason: ConnectRefusal,
    /// For people.
    pub sentence: String,
}

/// A message about requests to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenMessage {
    /// Listen for the sender of this, which will connect.
    Listen(Listen),
    /// The sender of this listens there.
    Listening(Local),
    /// The sender of this does not listen.
    NotListening(ForwardRefusal),
}

/// A request to listen, and to open a stream for each connection that comes, or each sender of
/// datagrams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// Where.
    pub at: Local,
    /// What it then asks to be connected to, at the end that makes this request.
    pub target: Target,
    /// How those streams are carried.
    pub carriage: Carriage,
    /// How long a stream may be idle.
    pub idle: Option<Duration>,
}

/// Why a stream did not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectRefusal {
    /// The far end's configuration does not allow it.
    NotAllowed,
    /// Nobody listens there.
    ConnectionRefused,
    /// There is no route to that host.
    HostUnreachable,
    /// There is no route to that network.
    NetworkUnreachable,
    /// Nothing answered.
    TimedOut,
    /// The name is not known.
    NameUnknown,
    /// The far end has as many streams as it may.
    Busy,
    /// The far end's system refused for another reason.
    Failed,
    /// Another program listens there.
    InUse,
}

/// Not of a message of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{len} bytes of a channel message are not of a forward")]
pub struct MalformedMessage {
    /// How many bytes.
    pub len: usize,
}

/// The longest sentence, in bytes.
pub const SENTENCE_MAX: usize = 512;
const KIND_LISTEN: u8 = KIND_SERVICE;
const KIND_LISTENING: u8 = KIND_SERVICE + 1;
const KIND_NOT_LISTENING: u8 = KIND_SERVICE + 2;

impl StreamRequest {
    /// As the request of an open message.
    pub fn encode(&self) -> Bytes {
        let mut out = ByteWriter::default();
        put_carriage(&mut out, &self.carriage);
        out.bytes(self.target.to_string().as_bytes());
        out.into_bytes().into()
    }

    /// From the request of an open message.
    ///
    /// # Errors
    /// The bytes are not such a request.
    pub fn decode(request: &[u8]) -> Result<Self, MalformedMessage> {
        let mut reader = ByteReader::new(request);
        let read = carriage(&mut reader)
            .and_then(|carriage| Some(Self { carriage, target: target(&mut reader)? }));
        read.ok_or(MalformedMessage { len: request.len() })
    }
}

impl ForwardRefusal {
    /// As the reason of a reset message.
    pub fn encode(&self) -> Bytes {
        let mut out = ByteWriter::default();
        put_refusal(&mut out, self);
        out.into_bytes().into()
    }

    /// From the reason of a reset message.
    ///
    /// # Errors
    /// The bytes are not a refusal.
    pub fn decode(reason: &[u8]) -> Result<Self, MalformedMessage> {
        refusal(&mut ByteReader::new(reason)).ok_or(MalformedMessage { len: reason.len() })
    }
}

impl ListenMessage {
    /// The block's bytes, for the request of this number.
    pub fn encode(&self, number: u32) -> Bytes {
        let mut out = ByteWriter::default();
        let kind = match self {
            Self::Listen(Listen { at, target, carriage, idle }) => {
                out.u32(millis(*idle));
                put_carriage(&mut out, carriage);
                put_text8(&mut out, &at.to_string());
                out.bytes(target.to_string().as_bytes());
                KIND_LISTEN
            }
            Self::Listening(at) => {
                out.bytes(at.to_string().as_bytes());
                KIND_LISTENING
            }
            Self::NotListening(refusal) => {
                put_refusal(&mut out, refusal);
                KIND_NOT_LISTENING
            }
        };
        let content = ChannelContent::Service { kind, body: out.into_bytes().into() };
        ChannelMessage { generation: number, content }.encode()
    }

    /// From a message of the service.
    ///
    /// # Errors
    /// The bytes are not of such a message.
    pub fn decode(kind: u8, body: &[u8]) -> Result<Self, MalformedMessage> {
        Self::read(kind, body).ok_or(MalformedMessage { len: body.len() })
    }

    fn read(kind: u8, body: &[u8]) -> Option<Self> {
        let mut reader = ByteReader::new(body);
        match kind {
            KIND_LISTEN => listen(&mut reader).map(Self::Listen),
            KIND_LISTENING => rest(&mut reader, u8::MAX.into())?.parse().ok().map(Self::Listening),
            KIND_NOT_LISTENING => refusal(&mut reader).map(Self::NotListening),
            _ => None,
        }
    }
}

impl ConnectRefusal {
    const ALL: [Self; 9] = [
        Self::NotAllowed,
        Self::ConnectionRefused,
        Self::HostUnreachable,
        Self::NetworkUnreachable,
        Self::TimedOut,
        Self::NameUnknown,
        Self::Busy,
        Self::Failed,
        Self::InUse,
    ];

    fn number(self) -> u8 {
        Self::ALL.iter().position(|reason| *reason == self).unwrap_or(0) as u8
    }

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// For counters and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotAllowed => "not-allowed",
            Self::ConnectionRefused => "connection-refused",
            Self::HostUnreachable => "host-unreachable",
            Self::NetworkUnreachable => "network-unreachable",
            Self::TimedOut => "timed-out",
            Self::NameUnknown => "name-unknown",
            Self::Busy => "busy",
            Self::Failed => "failed",
            Self::InUse => "in-use",
        }
    }
}

fn listen(reader: &mut ByteReader<'_>) -> Option<Listen> {
    let (idle, carriage) = (span(reader.u32()?), carriage(reader)?);
    let at = text8(reader)?.parse().ok()?;
    Some(Listen { at, target: target(reader)?, carriage, idle })
}

fn put_carriage(out: &mut ByteWriter, carriage: &Carriage) {
    out.u32(millis(carriage.deadline));
    out.u8(carriage.priority);
    put_text8(out, &carriage.class);
}

fn carriage(reader: &mut ByteReader<'_>) -> Option<Carriage> {
    let (deadline, priority) = (span(reader.u32()?), reader.u8()?);
    let class = text8(reader)?;
    let class = skyhaul_units::printable(class, class.len());
    Some(Carriage { class, priority, deadline })
}

/// A text behind its length, cut where it is too long for that.
fn put_text8(out: &mut ByteWriter, text: &str) {
    let text = cut(text, u8::MAX.into());
    out.u8(text.len() as u8);
    out.bytes(text.as_bytes());
}

fn text8<'a>(reader: &mut ByteReader<'a>) -> Option<&'a str> {
    let len = reader.u8()?;
    core::str::from_utf8(reader.take(len.into())?).ok()
}

/// The rest as text, of at most `max` bytes.
fn rest<'a>(reader: &mut ByteReader<'a>, max: usize) -> Option<&'a str> {
    let len = reader.rest().len();
    core::str::from_utf8(reader.take(len).filter(|rest| rest.len() <= max)?).ok()
}

/// 0 means none, so that a span shorter than a millisecond is one millisecond.
fn millis(span: Option<Duration>) -> u32 {
    let millis = span.map_or(0, |span| span.as_millis().max(1));
    u32::try_from(millis).unwrap_or(u32::MAX)
}

fn span(millis: u32) -> Option<Duration> {
    (millis > 0).then(|| Duration::from_millis(millis.into()))
}

fn put_refusal(out: &mut ByteWriter, ForwardRefusal { reason, sentence }: &ForwardRefusal) {
    out.u8(reason.number());
    out.bytes(cut(sentence, SENTENCE_MAX).as_bytes());
}

fn refusal(reader: &mut ByteReader<'_>) -> Option<ForwardRefusal> {
    let reason = ConnectRefusal::from_number(reader.u8()?)?;
    let sentence = skyhaul_units::printable(rest(reader, SENTENCE_MAX)?, SENTENCE_MAX);
    Some(ForwardRefusal { reason, sentence })
}

fn target(reader: &mut ByteReader<'_>) -> Option<Target> {
    rest(reader, TARGET_MAX)?.parse().ok()
}

/// At most `max` bytes of a text, cut between characters.
fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request() -> StreamRequest {
        let deadline = Some(Duration::from_millis(250));
        let carriage = Carriage { class: "bulk".to_owned(), priority: 3, deadline };
        StreamRequest { target: "[::1]:80".parse().unwrap(), carriage }
    }

    fn refused() -> ForwardRefusal {
        let sentence = "nobody listens at 10.0.0.1:80".to_owned();
        ForwardRefusal { reason: ConnectRefusal::ConnectionRefused, sentence }
    }

    fn messages() -> Vec<ListenMessage> {
        let listen = Listen {
            at: "[::]:8080".parse().unwrap(),
            target: request().target,
            carriage: Carriage { class: "live".to_owned(), priority: 0, deadline: None },
            idle: Some(Duration::from_secs(60)),
        };
        let taken = ForwardRefusal { reason: ConnectRefusal::InUse, sentence: "taken".to_owned() };
        vec![
            ListenMessage::Listen(listen),
            ListenMessage::Listening("udp:127.0.0.1:53".parse().unwrap()),
            ListenMessage::NotListening(taken),
        ]
    }

    /// From a block as the multiplexer has it.
    fn decoded(block: &Bytes) -> Option<(u32, ListenMessage)> {
        let message = ChannelMessage::decode(block).ok()?;
        let ChannelContent::Service { kind, body } = message.content else { return None };
        Some((message.generation, ListenMessage::decode(kind, &body).ok()?))
    }

    #[test]
    fn messages_cross_and_no_part_of_one_is_taken_for_another() {
        for message in messages() {
            let block = message.encode(77);
            assert_eq!(decoded(&block), Some((77, message.clone())));
            for len in 0..block.len() {
                assert_ne!(decoded(&block.slice(..len)), Some((77, message.clone())));
            }
        }
        let (request, refusal) = (request(), refused());
        let bytes = request.encode();
        assert_eq!(StreamRequest::decode(&bytes), Ok(request.clone()));
        for len in 0..bytes.len() {
            assert_ne!(StreamRequest::decode(&bytes[..len]).ok(), Some(request.clone()));
        }
        let bytes = refusal.encode();
        assert_eq!(ForwardRefusal::decode(&bytes), Ok(refusal.clone()));
        for len in 0..bytes.len() {
            assert_ne!(ForwardRefusal::decode(&bytes[..len]).ok(), Some(refusal.clone()));
        }
    }

    #[test]
    fn a_long_sentence_is_cut_between_characters() {
        let sentence = "é".repeat(SENTENCE_MAX);
        let bytes = ForwardRefusal { reason: ConnectRefusal::Failed, sentence }.encode();
        assert_eq!(ForwardRefusal::decode(&bytes).unwrap().sentence.len(), SENTENCE_MAX);
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_the_same(bytes in proptest::collection::vec(any::<u8>(),
            0..200), kind in 14u8..20) {
            if let Ok(message) = ListenMessage::decode(kind, &bytes) {
                prop_assert_eq!(decoded(&message.encode(9)), Some((9, message)));
            }
            if let Ok(request) = StreamRequest::decode(&bytes) {
                prop_assert_eq!(StreamRequest::decode(&request.encode()), Ok(request));
            }
            if let Ok(refusal) = ForwardRefusal::decode(&bytes) {
                prop_assert_eq!(ForwardRefusal::decode(&refusal.encode()), Ok(refusal));
            }
        }
    }
}
