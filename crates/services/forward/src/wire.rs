//! Messages between the two ends, one in each block.
//!
//! ```text
//!   kind (1 byte)  stream (4)  the rest, as the kind has it          numbers are big-endian
//!   0 open         window (4)  carriage  target
//!   1 accepted     window (4)
//!   2 refused      reason (1)  sentence
//!   3 data         bytes
//!   4 finish
//!   5 reset
//!   6 windows      stream is 0; then for each stream: flow (4)  stream (4)  limit (8)
//!   7 datagram     bytes
//!   8 listen       idle ms (4)  carriage  address length (1)  address  target
//!   9 listening    address
//!  10 not listening  reason (1)  sentence
//!
//!   carriage:      deadline ms (4)  priority (1)  class length (1)  class
//! ```
//!
//! In the last three, the field of the stream has the number of the request to listen.

use crate::carriage::Carriage;
use crate::spec::Local;
use crate::target::{TARGET_MAX, Target};
use bytes::Bytes;
use skyhaul_units::wire::{ByteReader, ByteWriter};
use skyhaul_units::{Duration, FlowId};

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Connect to `target`.
    Open {
        /// Where.
        target: Target,
        /// What the sender of this takes of the stream, in bytes.
        window: u32,
        /// How both ends' blocks are carried.
        carriage: Carriage,
    },
    /// It is connected.
    Accepted {
        /// What the sender of this takes of the stream, in bytes.
        window: u32,
    },
    /// It could not be connected.
    Refused {
        /// For programs.
        reason: ConnectRefusal,
        /// For people.
        sentence: String,
    },
    /// The next bytes of the stream.
    Data(Bytes),
    /// No more bytes come.
    Finish,
    /// The stream ends at once; what is in transit is worth nothing.
    Reset,
    /// How many bytes of each stream may be sent in all.
    Windows(Vec<Window>),
    /// One datagram, of a stream that was opened for them.
    Datagram(Bytes),
    /// Listen for the sender of this, which will connect.
    Listen(Listen),
    /// The sender of this listens there.
    Listening(Local),
    /// The sender of this does not listen.
    NotListening {
        /// For programs.
        reason: ConnectRefusal,
        /// For people.
        sentence: String,
    },
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

/// How much of a stream may be sent, counted from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The flow of the stream.
    pub flow: FlowId,
    /// Its number.
    pub stream: u32,
    /// The first byte that may not be sent.
    pub limit: u64,
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

/// Not a message of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a block of {len} bytes is not a forwarding message")]
pub struct MalformedMessage {
    /// The block's length.
    pub len: usize,
}

/// Bytes of kind and stream.
const HEAD: usize = 5;
/// Streams in one [`Message::Windows`], at most: a datagram's worth.
pub const WINDOWS_MAX: usize = 80;
/// The longest sentence, in bytes.
pub const SENTENCE_MAX: usize = 512;
const KIND_DATA: u8 = 3;
const KIND_DATAGRAM: u8 = 7;

impl Message {
    /// The block's bytes, for the stream of this number.
    pub fn encode(&self, stream: u32) -> Bytes {
        let mut out = ByteWriter::default();
        out.u8(self.kind());
        out.u32(stream);
        match self {
            Self::Open { target, window, carriage } => {
                out.u32(*window);
                put_carriage(&mut out, carriage);
                out.bytes(target.to_string().as_bytes());
            }
            Self::Accepted { window } => out.u32(*window),
            Self::Listen(Listen { at, target, carriage, idle }) => {
                out.u32(millis(*idle));
                put_carriage(&mut out, carriage);
                put_text8(&mut out, &at.to_string());
                out.bytes(target.to_string().as_bytes());
            }
            Self::Listening(at) => out.bytes(at.to_string().as_bytes()),
            Self::Refused { reason, sentence } | Self::NotListening { reason, sentence } => {
                out.u8(reason.number());
                out.bytes(cut(sentence, SENTENCE_MAX).as_bytes());
            }
            Self::Data(bytes) | Self::Datagram(bytes) => out.bytes(bytes),
            Self::Finish | Self::Reset => {}
            Self::Windows(windows) => {
                for window in windows.iter().take(WINDOWS_MAX) {
                    out.u32(window.flow.0);
                    out.u32(window.stream);
                    out.u64(window.limit);
                }
            }
        }
        out.into_bytes().into()
    }

    /// The number of the stream, and the message.
    ///
    /// # Errors
    /// The bytes are not a message.
    pub fn decode(block: &Bytes) -> Result<(u32, Self), MalformedMessage> {
        Self::read(block).ok_or(MalformedMessage { len: block.len() })
    }

    fn read(block: &Bytes) -> Option<(u32, Self)> {
        let mut reader = ByteReader::new(block);
        let (kind, stream) = (reader.u8()?, reader.u32()?);
        let message = match kind {
            0 => Self::Open {
                window: reader.u32()?,
                carriage: carriage(&mut reader)?,
                target: target(&mut reader)?,
            },
            1 => Self::Accepted { window: reader.u32()? },
            2 => {
                let (reason, sentence) = refusal(&mut reader)?;
                Self::Refused { reason, sentence }
            }
            KIND_DATA => return Some((stream, Self::Data(block.slice(HEAD..)))),
            4 => Self::Finish,
            5 => Self::Reset,
            6 => {
                let windows = reader.all(window).filter(|windows| windows.len() <= WINDOWS_MAX)?;
                return Some((stream, Self::Windows(windows)));
            }
            KIND_DATAGRAM => return Some((stream, Self::Datagram(block.slice(HEAD..)))),
            8 => Self::Listen(listen(&mut reader)?),
            9 => {
                let address = rest(&mut reader, u8::MAX.into())?;
                Self::Listening(address.parse().ok()?)
            }
            10 => {
                let (reason, sentence) = refusal(&mut reader)?;
                Self::NotListening { reason, sentence }
            }
            _ => return None,
        };
        reader.is_empty().then_some((stream, message))
    }

    const fn kind(&self) -> u8 {
        match self {
            Self::Open { .. } => 0,
            Self::Accepted { .. } => 1,
            Self::Refused { .. } => 2,
            Self::Data(_) => KIND_DATA,
            Self::Finish => 4,
            Self::Reset => 5,
            Self::Windows(_) => 6,
            Self::Datagram(_) => KIND_DATAGRAM,
            Self::Listen(_) => 8,
            Self::Listening(_) => 9,
            Self::NotListening { .. } => 10,
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

/// The block of [`Message::Data`] with a copy of `bytes`.
pub(crate) fn data(stream: u32, bytes: &[u8]) -> Bytes {
    carrying(KIND_DATA, stream, bytes)
}

/// The block of [`Message::Datagram`] with a copy of `bytes`.
pub(crate) fn datagram(stream: u32, bytes: &[u8]) -> Bytes {
    carrying(KIND_DATAGRAM, stream, bytes)
}

fn carrying(kind: u8, stream: u32, bytes: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(HEAD + bytes.len());
    out.push(kind);
    out.extend(stream.to_be_bytes());
    out.extend(bytes);
    out.into()
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

fn refusal(reader: &mut ByteReader<'_>) -> Option<(ConnectRefusal, String)> {
    let reason = ConnectRefusal::from_number(reader.u8()?)?;
    Some((reason, skyhaul_units::printable(rest(reader, SENTENCE_MAX)?, SENTENCE_MAX)))
}

fn target(reader: &mut ByteReader<'_>) -> Option<Target> {
    rest(reader, TARGET_MAX)?.parse().ok()
}

fn window(reader: &mut ByteReader<'_>) -> Option<Window> {
    let (flow, stream, limit) = (FlowId(reader.u32()?), reader.u32()?, reader.u64()?);
    Some(Window { flow, stream, limit })
}

/// At most `max` bytes of a text, cut between characters.
fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn messages() -> Vec<Message> {
        let deadline = Some(Duration::from_millis(250));
        let carriage = Carriage { class: "bulk".to_owned(), priority: 3, deadline };
        let window = Window { flow: FlowId(7), stream: 9, limit: 1 << 40 };
        let sentence = "nobody listens at 10.0.0.1:80".to_owned();
        let target: Target = "[::1]:80".parse().unwrap();
        let listen = Listen {
            at: "[::]:8080".parse().unwrap(),
            target: target.clone(),
            carriage: Carriage { class: "live".to_owned(), priority: 0, deadline: None },
            idle: Some(Duration::from_secs(60)),
        };
        vec![
            Message::Open { target, window: 65_536, carriage },
            Message::Accepted { window: u32::MAX },
            Message::Refused { reason: ConnectRefusal::ConnectionRefused, sentence },
            Message::Data("bytes".into()),
            Message::Finish,
            Message::Reset,
            Message::Windows(vec![window; WINDOWS_MAX]),
            Message::Datagram("datagram".into()),
            Message::Listen(listen),
            Message::Listening("udp:127.0.0.1:53".parse().unwrap()),
            Message::NotListening { reason: ConnectRefusal::InUse, sentence: "taken".to_owned() },
        ]
    }

    #[test]
    fn messages_cross_and_no_part_of_one_is_taken_for_another() {
        for message in messages() {
            let block = message.encode(77);
            assert_eq!(Message::decode(&block), Ok((77, message.clone())));
            for len in 0..block.len() {
                assert_ne!(Message::decode(&block.slice(..len)).ok(), Some((77, message.clone())));
            }
        }
    }

    #[test]
    fn bytes_from_a_socket_are_the_message_of_these_bytes() {
        assert_eq!(data(5, b"abc"), Message::Data("abc".into()).encode(5));
        assert_eq!(datagram(5, b"abc"), Message::Datagram("abc".into()).encode(5));
    }

    #[test]
    fn a_long_sentence_is_cut_between_characters() {
        let sentence = "é".repeat(SENTENCE_MAX);
        let block = Message::Refused { reason: ConnectRefusal::Failed, sentence }.encode(1);
        let Ok((1, Message::Refused { sentence, .. })) = Message::decode(&block) else {
            panic!("no refusal")
        };
        assert_eq!(sentence.len(), SENTENCE_MAX);
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_the_same(bytes in proptest::collection::vec(any::<u8>(),
            0..200), kind in 0u8..12) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            if let Ok((stream, message)) = Message::decode(&bytes.into()) {
                prop_assert_eq!(Message::decode(&message.encode(stream)), Ok((stream, message)));
            }
        }
    }
}
