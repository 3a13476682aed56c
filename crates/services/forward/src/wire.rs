//! What the two ends say to each other, one message in each block.
//!
//! ```text
//!   kind (1 byte)  stream (4)  the rest, as the kind has it          numbers are big-endian
//!   0 open         window (4)  deadline ms (4)  priority (1)  class length (1)  class  target
//!   1 accepted     window (4)
//!   2 refused      reason (1)  sentence
//!   3 data         bytes
//!   4 finish
//!   5 reset
//!   6 windows      stream is 0; then for each stream: flow (4)  stream (4)  limit (8)
//!   7 datagram     bytes
//!   8 listen       idle ms (4)  deadline ms (4)  priority (1)  class length (1)  class  place length (1)  place  target
//!   9 listening    place
//!  10 not listening  reason (1)  sentence
//! ```
//!
//! In the last three, what stands for the stream is the number of the wish to listen.

use crate::mux::Carriage;
use crate::spec::Local;
use crate::target::{TARGET_MAX, Target};
use bytes::Bytes;
use skyhaul_units::{Duration, FlowId};

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Connect to `target`, and carry it so.
    Open {
        /// Where.
        target: Target,
        /// What the sender of this takes of the stream, in bytes.
        window: u32,
        /// By when what is sent is wanted at the other end.
        deadline: Option<Duration>,
        /// As in a block: 0 is the most important.
        priority: u8,
        /// The class of both ends' blocks; none is the default one.
        class: String,
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
    /// The stream is over at once; what is under way is worth nothing.
    Reset,
    /// How many bytes of streams may be sent in all.
    Windows(Vec<Window>),
    /// One datagram, of a stream that was opened for them.
    Datagram(Bytes),
    /// Listen for the sender of this, which connects.
    Listen(Listen),
    /// It listens there.
    Listening(Local),
    /// It does not listen.
    NotListening {
        /// For programs.
        reason: ConnectRefusal,
        /// For people.
        sentence: String,
    },
}

/// A wish that the other end listens, and opens a stream for each connection that comes, or each
/// sender of datagrams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// Where.
    pub at: Local,
    /// What it then asks to be connected to, at the end that wishes.
    pub target: Target,
    /// How those streams go.
    pub carriage: Carriage,
    /// How long one may be still.
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
    /// There is no way to that host.
    HostUnreachable,
    /// There is no way to that network.
    NetworkUnreachable,
    /// Nothing answered.
    TimedOut,
    /// The name is not known.
    NameUnknown,
    /// The far end has as many streams as it keeps.
    Busy,
    /// The far end's system refused otherwise.
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

/// Kind and stream: what stands before the bytes of [`Message::Data`].
const HEAD: usize = 5;
/// Streams in one [`Message::Windows`], at most: a datagram's worth.
pub const WINDOWS_MAX: usize = 80;
/// The longest sentence, in bytes.
pub const SENTENCE_MAX: usize = 512;
const WINDOW_LEN: usize = 16;
const KIND_DATA: u8 = 3;
const KIND_DATAGRAM: u8 = 7;

impl Message {
    /// The block's bytes, for the stream of this number.
    pub fn encode(&self, stream: u32) -> Bytes {
        let mut out = vec![self.kind()];
        out.extend(stream.to_be_bytes());
        match self {
            Self::Open { target, window, deadline, priority, class } => {
                out.extend(window.to_be_bytes());
                put_way(&mut out, (class, *priority), *deadline);
                out.extend(target.to_string().as_bytes());
            }
            Self::Accepted { window } => out.extend(window.to_be_bytes()),
            Self::Listen(Listen { at, target, carriage, idle }) => {
                out.extend(millis(*idle));
                put_way(&mut out, (&carriage.class, carriage.priority), carriage.deadline);
                let at = at.to_string();
                let at = cut(&at, u8::MAX.into());
                out.push(at.len() as u8);
                out.extend(at.as_bytes());
                out.extend(target.to_string().as_bytes());
            }
            Self::Listening(at) => out.extend(at.to_string().as_bytes()),
            Self::Refused { reason, sentence } | Self::NotListening { reason, sentence } => {
                out.push(reason.number());
                out.extend(cut(sentence, SENTENCE_MAX).as_bytes());
            }
            Self::Data(bytes) | Self::Datagram(bytes) => out.extend(bytes),
            Self::Finish | Self::Reset => {}
            Self::Windows(windows) => {
                for window in windows.iter().take(WINDOWS_MAX) {
                    out.extend(window.flow.0.to_be_bytes());
                    out.extend(window.stream.to_be_bytes());
                    out.extend(window.limit.to_be_bytes());
                }
            }
        }
        out.into()
    }

    /// The number of the stream, and the message.
    ///
    /// # Errors
    /// The bytes are no message.
    pub fn decode(block: &Bytes) -> Result<(u32, Self), MalformedMessage> {
        Self::read(block).ok_or(MalformedMessage { len: block.len() })
    }

    fn read(block: &Bytes) -> Option<(u32, Self)> {
        let (kind, rest) = block.split_first()?;
        let (stream, rest) = number(rest)?;
        let message = match kind {
            0 => open(rest)?,
            1 => Self::Accepted { window: number(rest).filter(|(_, rest)| rest.is_empty())?.0 },
            2 => {
                let (reason, sentence) = refusal(rest)?;
                Self::Refused { reason, sentence }
            }
            &KIND_DATA => Self::Data(block.slice(HEAD..)),
            4 if rest.is_empty() => Self::Finish,
            5 if rest.is_empty() => Self::Reset,
            6 if rest.len().is_multiple_of(WINDOW_LEN)
                && rest.len() <= WINDOWS_MAX * WINDOW_LEN =>
            {
                Self::Windows(rest.chunks_exact(WINDOW_LEN).map(window).collect::<Option<_>>()?)
            }
            &KIND_DATAGRAM => Self::Datagram(block.slice(HEAD..)),
            8 => Self::Listen(listen(rest)?),
            9 if rest.len() <= usize::from(u8::MAX) => Self::Listening(text(rest)?.parse().ok()?),
            10 => {
                let (reason, sentence) = refusal(rest)?;
                Self::NotListening { reason, sentence }
            }
            _ => return None,
        };
        Some((stream, message))
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

fn open(rest: &[u8]) -> Option<Message> {
    let (window, rest) = number(rest)?;
    let (Carriage { class, priority, deadline }, rest) = way(rest)?;
    Some(Message::Open { target: target(rest)?, window, deadline, priority, class })
}

fn listen(rest: &[u8]) -> Option<Listen> {
    let (idle, rest) = number(rest)?;
    let (carriage, rest) = way(rest)?;
    let (len, rest) = rest.split_first()?;
    let (at, rest) = rest.split_at_checked(usize::from(*len))?;
    let at = text(at)?.parse().ok()?;
    Some(Listen { at, target: target(rest)?, carriage, idle: span(idle) })
}

/// Deadline, priority and class: how what follows of a stream goes.
fn put_way(out: &mut Vec<u8>, (class, priority): (&str, u8), deadline: Option<Duration>) {
    out.extend(millis(deadline));
    let class = cut(class, u8::MAX.into());
    out.extend([priority, class.len() as u8]);
    out.extend(class.as_bytes());
}

fn way(rest: &[u8]) -> Option<(Carriage, &[u8])> {
    let (deadline, rest) = number(rest)?;
    let ([priority, len], rest) = rest.split_first_chunk::<2>()?;
    let (class, rest) = rest.split_at_checked(usize::from(*len))?;
    let class = skyhaul_units::printable(text(class)?, class.len());
    Some((Carriage { class, priority: *priority, deadline: span(deadline) }, rest))
}

/// A span that is shorter than a millisecond is one of a millisecond, and none is 0.
fn millis(span: Option<Duration>) -> [u8; 4] {
    let millis = span.map_or(0, |span| span.as_millis().max(1));
    u32::try_from(millis).unwrap_or(u32::MAX).to_be_bytes()
}

fn span(millis: u32) -> Option<Duration> {
    (millis > 0).then(|| Duration::from_millis(millis.into()))
}

fn refusal(rest: &[u8]) -> Option<(ConnectRefusal, String)> {
    let (reason, sentence) = rest.split_first().filter(|(_, rest)| rest.len() <= SENTENCE_MAX)?;
    Some((
        ConnectRefusal::from_number(*reason)?,
        skyhaul_units::printable(text(sentence)?, SENTENCE_MAX),
    ))
}

fn target(bytes: &[u8]) -> Option<Target> {
    text(bytes).filter(|target| target.len() <= TARGET_MAX)?.parse().ok()
}

fn text(bytes: &[u8]) -> Option<&str> {
    core::str::from_utf8(bytes).ok()
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    bytes.split_first_chunk().map(|(number, rest)| (u32::from_be_bytes(*number), rest))
}

fn window(bytes: &[u8]) -> Option<Window> {
    let (flow, rest) = number(bytes)?;
    let (stream, rest) = number(rest)?;
    let limit = u64::from_be_bytes(*rest.first_chunk()?);
    Some(Window { flow: FlowId(flow), stream, limit })
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
        let class = "bulk".to_owned();
        let deadline = Some(Duration::from_millis(250));
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
            Message::Open { target, window: 65_536, deadline, priority: 3, class },
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
