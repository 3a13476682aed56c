//! The messages between the two ends, one in each datagram.
//!
//! Every datagram begins with four bytes that no other protocol has, the version and the kind.
//! These are the same in all versions, so that an end can report its version to one that speaks
//! another. Numbers are big-endian. Bytes behind a message's fields are padding, and are ignored.

use crate::host::HostCounters;
use crate::stream::{Spec, StreamDirection};
use skyhaul_units::wire::{ByteReader, ByteWriter};
use skyhaul_units::{ByteCount, Duration, Rate, Utc};

/// The version that this crate speaks.
pub const VERSION: u8 = 1;

/// Length of a [`Message::Hello`], padded: no answer to one that has not shown its address is
/// longer.
pub const HELLO_LEN: usize = 128;

/// Bytes of a [`Message::Data`] without padding.
pub const DATA_LEN: usize = HEAD_LEN + 8 + 4 + 4 + 8;

/// The longest UDP payload that is used: IPv6 in a jumbo frame of 9,216 bytes and more.
pub const DATAGRAM_MAX: usize = 16_384;

/// Arrivals in a [`Message::Arrivals`]; with them it stays below 1,200 bytes.
pub const ARRIVALS_AT_ONCE: usize = 90;

/// A message. `session` is the number that the far end gave, `nonce` one that the near end drew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Near: is there a probe?
    Hello {
        /// Comes back in the answer.
        nonce: u64,
    },
    /// Far: here is a cookie, to show that you are where you say.
    Challenge {
        /// Of the question.
        nonce: u64,
        /// Holds for this address for a minute or so.
        cookie: Cookie,
    },
    /// Near: let us measure.
    Open {
        /// Comes back in the answer.
        nonce: u64,
        /// As it came.
        cookie: Cookie,
    },
    /// Far: agreed.
    Opened {
        /// Of the question.
        nonce: u64,
        /// For all that follows.
        session: u64,
        /// The most that this end allows.
        limits: RequestLimits,
    },
    /// Far: no.
    Refused {
        /// The nonce, the session or the stream of what was asked.
        about: u64,
        /// Why.
        reason: RequestRefusal,
    },
    /// Near: what does your clock say?
    Ping {
        /// Of this measurement.
        session: u64,
        /// To match the answer.
        number: u32,
        /// When it left.
        sent: Utc,
    },
    /// Far: its clock.
    Pong {
        /// Of this measurement.
        session: u64,
        /// Of the question.
        number: u32,
        /// When the question left.
        sent: Utc,
        /// When it came, by the far end's clock.
        reached: Utc,
        /// When the answer left, by the same.
        answered: Utc,
    },
    /// Near: did this, as long as it is, arrive? Answer with one of `answer` bytes of payload.
    Size {
        /// Of this measurement.
        session: u64,
        /// To match the answer.
        number: u32,
        /// Payload of the answer.
        answer: u16,
    },
    /// Far: it did.
    Sized {
        /// Of this measurement.
        session: u64,
        /// Of the question.
        number: u32,
        /// Payload that arrived.
        arrived: u16,
    },
    /// Near: a stream of datagrams begins.
    Begin {
        /// Of this measurement.
        session: u64,
        /// Counts up.
        stream: u32,
        /// Which way.
        direction: StreamDirection,
        /// What is sent.
        spec: Spec,
    },
    /// Far: ready to receive it, or begins to send.
    Begun {
        /// Of this measurement.
        session: u64,
        /// Of the question.
        stream: u32,
    },
    /// A datagram of a stream.
    Data {
        /// Of this measurement.
        session: u64,
        /// Which stream.
        stream: u32,
        /// From zero.
        seq: u32,
        /// By the sender's clock.
        sent: Utc,
    },
    /// Near: what has arrived of the stream so far?
    Ask {
        /// Of this measurement.
        session: u64,
        /// Which stream.
        stream: u32,
    },
    /// Far: this.
    Told {
        /// Of this measurement.
        session: u64,
        /// Which stream.
        stream: u32,
        /// What the far end counted.
        tally: Tally,
    },
    /// Near: when did they arrive, beginning with the one that came as number `from`?
    Fetch {
        /// Of this measurement.
        session: u64,
        /// Which stream.
        stream: u32,
        /// Order of arrival, from zero.
        from: u32,
    },
    /// Far: then.
    Arrivals {
        /// Of this measurement.
        session: u64,
        /// Which stream.
        stream: u32,
        /// Order of arrival of the first.
        from: u32,
        /// Sequence number and time of arrival by the far end's clock.
        arrivals: Vec<(u32, Utc)>,
    },
    /// Near: that was all.
    Close {
        /// Of this measurement.
        session: u64,
    },
}

/// Shows that a near end receives at the address that it sends from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cookie(pub [u8; 16]);

/// The most that a far end allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// Of a stream, either way, in UDP payload.
    pub rate: Rate,
    /// Of a measurement.
    pub time: Duration,
    /// Datagrams of a stream.
    pub datagrams: u32,
}

/// What the far end counted of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Datagrams that it handed to its system, or had refused by it.
    pub offered: u32,
    /// Datagrams that its system refused to send.
    pub refused: u32,
    /// Different datagrams that came.
    pub received: u32,
    /// Datagrams that came again.
    pub duplicates: u32,
    /// What its system counted since the stream began.
    pub host: HostCounters,
}

/// Why a far end does not do what it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestRefusal {
    /// The near end speaks another version.
    Version,
    /// The cookie is of another address, or too old.
    Cookie,
    /// All sessions are taken.
    Busy,
    /// The stream is more than the limits allow.
    Limit,
    /// There is no such session any more.
    Session,
}

/// Why a datagram is not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// It does not begin as ours do.
    #[error("not a datagram of a probe")]
    Foreign,
    /// It is of another version.
    #[error("a datagram of version {0} of the probe's protocol; this end speaks version {VERSION}")]
    Version(u8),
    /// It begins as ours do, and goes on otherwise.
    #[error("a damaged datagram")]
    Damaged,
}

impl Message {
    /// The message, padded with zeroes to `len` bytes where it is shorter.
    pub fn encode(&self, len: usize) -> Vec<u8> {
        let mut out = ByteWriter::with_capacity(len.max(64));
        out.bytes(&MAGIC);
        out.bytes(&[VERSION, self.kind()]);
        self.fields(&mut out);
        let mut out = out.into_bytes();
        if out.len() < len {
            out.resize(len, 0);
        }
        out
    }

    /// The message in a datagram.
    ///
    /// # Errors
    /// It is another protocol's, another version's, or damaged.
    pub fn decode(datagram: &[u8]) -> Result<Self, WireError> {
        let (head, fields) = datagram.split_at_checked(HEAD_LEN).ok_or(WireError::Foreign)?;
        if head[..4] != MAGIC {
            return Err(WireError::Foreign);
        }
        if head[4] != VERSION {
            return Err(WireError::Version(head[4]));
        }
        read(head[5], &mut ByteReader::new(fields)).ok_or(WireError::Damaged)
    }

    const fn kind(&self) -> u8 {
        match self {
            Self::Hello { .. } => HELLO,
            Self::Challenge { .. } => CHALLENGE,
            Self::Open { .. } => OPEN,
            Self::Opened { .. } => OPENED,
            Self::Refused { .. } => REFUSED,
            Self::Ping { .. } => PING,
            Self::Pong { .. } => PONG,
            Self::Size { .. } => SIZE,
            Self::Sized { .. } => SIZED,
            Self::Begin { .. } => BEGIN,
            Self::Begun { .. } => BEGUN,
            Self::Data { .. } => DATA,
            Self::Ask { .. } => ASK,
            Self::Told { .. } => TOLD,
            Self::Fetch { .. } => FETCH,
            Self::Arrivals { .. } => ARRIVALS,
            Self::Close { .. } => CLOSE,
        }
    }

    fn fields(&self, out: &mut ByteWriter) {
        match self {
            Self::Hello { nonce } => out.u64(*nonce),
            Self::Challenge { nonce, cookie } | Self::Open { nonce, cookie } => {
                out.u64(*nonce);
                out.bytes(&cookie.0);
            }
            Self::Opened { nonce, session, limits } => {
                out.u64(*nonce);
                out.u64(*session);
                out.u64(limits.rate.as_bps());
                out.u64(limits.time.as_nanos());
                out.u32(limits.datagrams);
            }
            Self::Refused { about, reason } => {
                out.u64(*about);
                out.u8(reason.code());
            }
            Self::Ping { session, number, sent } => {
                write_pair(out, *session, *number);
                write_utc(out, *sent);
            }
            Self::Pong { session, number, sent, reached, answered } => {
                write_pair(out, *session, *number);
                [sent, reached, answered].iter().for_each(|time| write_utc(out, **time));
            }
            Self::Size { session, number, answer: size }
            | Self::Sized { session, number, arrived: size } => {
                write_pair(out, *session, *number);
                out.u16(*size);
            }
            Self::Begin { session, stream, direction, spec } => {
                write_pair(out, *session, *stream);
                out.u8(u8::from(*direction == StreamDirection::Down));
                out.u16(u16::try_from(spec.payload.as_u64()).unwrap_or(u16::MAX));
                out.u64(spec.spacing.as_nanos());
                out.u32(spec.count);
            }
            Self::Begun { session, stream } | Self::Ask { session, stream } => {
                write_pair(out, *session, *stream);
            }
            Self::Data { session, stream, seq, sent } => {
                write_pair(out, *session, *stream);
                out.u32(*seq);
                write_utc(out, *sent);
            }
            Self::Told { session, stream, tally } => {
                write_pair(out, *session, *stream);
                let counts = [tally.offered, tally.refused, tally.received, tally.duplicates];
                counts.iter().for_each(|count| out.u32(*count));
                let host = tally.host.as_array();
                host.iter().for_each(|count| out.u64(count.unwrap_or(u64::MAX)));
            }
            Self::Fetch { session, stream, from } => {
                write_pair(out, *session, *stream);
                out.u32(*from);
            }
            Self::Arrivals { session, stream, from, arrivals } => {
                write_pair(out, *session, *stream);
                out.u32(*from);
                out.u16(u16::try_from(arrivals.len()).unwrap_or(0));
                for (seq, at) in arrivals {
                    out.u32(*seq);
                    write_utc(out, *at);
                }
            }
            Self::Close { session } => out.u64(*session),
        }
    }
}

impl RequestRefusal {
    const ALL: [Self; 5] = [Self::Version, Self::Cookie, Self::Busy, Self::Limit, Self::Session];

    fn code(self) -> u8 {
        Self::ALL.iter().position(|other| *other == self).map_or(0, |index| index as u8)
    }
}

fn read(kind: u8, from: &mut ByteReader<'_>) -> Option<Message> {
    Some(match kind {
        HELLO => Message::Hello { nonce: from.u64()? },
        CHALLENGE => Message::Challenge { nonce: from.u64()?, cookie: Cookie(from.array()?) },
        OPEN => Message::Open { nonce: from.u64()?, cookie: Cookie(from.array()?) },
        OPENED => Message::Opened {
            nonce: from.u64()?,
            session: from.u64()?,
            limits: RequestLimits {
                rate: Rate::from_bps(from.u64()?),
                time: Duration::from_nanos(from.u64()?),
                datagrams: from.u32()?,
            },
        },
        REFUSED => Message::Refused {
            about: from.u64()?,
            reason: *RequestRefusal::ALL.get(usize::from(from.u8()?))?,
        },
        PING => Message::Ping { session: from.u64()?, number: from.u32()?, sent: read_utc(from)? },
        PONG => Message::Pong {
            session: from.u64()?,
            number: from.u32()?,
            sent: read_utc(from)?,
            reached: read_utc(from)?,
            answered: read_utc(from)?,
        },
        SIZE => Message::Size { session: from.u64()?, number: from.u32()?, answer: from.u16()? },
        SIZED => Message::Sized { session: from.u64()?, number: from.u32()?, arrived: from.u16()? },
        CLOSE => Message::Close { session: from.u64()? },
        _ => return read_of_stream(kind, from),
    })
}

fn read_of_stream(kind: u8, from: &mut ByteReader<'_>) -> Option<Message> {
    let (session, stream) = (from.u64()?, from.u32()?);
    Some(match kind {
        BEGIN => {
            let direction =
                if from.u8()? == 0 { StreamDirection::Up } else { StreamDirection::Down };
            let payload = ByteCount::new(u64::from(from.u16()?));
            let spec =
                Spec { payload, spacing: Duration::from_nanos(from.u64()?), count: from.u32()? };
            Message::Begin { session, stream, direction, spec }
        }
        BEGUN => Message::Begun { session, stream },
        DATA => Message::Data { session, stream, seq: from.u32()?, sent: read_utc(from)? },
        ASK => Message::Ask { session, stream },
        TOLD => {
            let mut tally = Tally {
                offered: from.u32()?,
                refused: from.u32()?,
                received: from.u32()?,
                duplicates: from.u32()?,
                host: HostCounters::default(),
            };
            let mut counts = [None; HostCounters::COUNT];
            for count in &mut counts {
                *count = Some(from.u64()?).filter(|count| *count != u64::MAX);
            }
            tally.host = HostCounters::from_array(counts);
            Message::Told { session, stream, tally }
        }
        FETCH => Message::Fetch { session, stream, from: from.u32()? },
        ARRIVALS => {
            let (first, count) = (from.u32()?, from.u16()?);
            if usize::from(count) > ARRIVALS_AT_ONCE {
                return None;
            }
            let arrivals =
                (0..count).map(|_| Some((from.u32()?, read_utc(from)?))).collect::<Option<_>>()?;
            Message::Arrivals { session, stream, from: first, arrivals }
        }
        _ => return None,
    })
}

fn write_utc(out: &mut ByteWriter, value: Utc) {
    out.i64(value.as_nanos());
}

/// The session, and a number or stream in it.
fn write_pair(out: &mut ByteWriter, session: u64, number: u32) {
    out.u64(session);
    out.u32(number);
}

fn read_utc(from: &mut ByteReader<'_>) -> Option<Utc> {
    from.i64().map(Utc::from_nanos)
}

/// How every datagram begins.
const MAGIC: [u8; 4] = *b"SkhP";
/// The magic bytes, the version and the kind.
const HEAD_LEN: usize = 6;

const HELLO: u8 = 1;
const CHALLENGE: u8 = 2;
const OPEN: u8 = 3;
const OPENED: u8 = 4;
/// The same in all versions; its datagram carries the version of the end that refuses.
const REFUSED: u8 = 5;
const PING: u8 = 6;
const PONG: u8 = 7;
const SIZE: u8 = 8;
const SIZED: u8 = 9;
const BEGIN: u8 = 10;
const BEGUN: u8 = 11;
const DATA: u8 = 12;
const ASK: u8 = 13;
const TOLD: u8 = 14;
const FETCH: u8 = 15;
const ARRIVALS: u8 = 16;
const CLOSE: u8 = 17;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn every_kind() -> Vec<Message> {
        let (session, stream, number, sent) = (7, 3, 9, Utc::from_nanos(-5));
        let spec = Spec {
            payload: ByteCount::new(1_400),
            spacing: Duration::from_micros(120),
            count: 500,
        };
        let limits = RequestLimits {
            rate: Rate::from_mbps(300),
            time: Duration::from_secs(600),
            datagrams: 10,
        };
        let counts = [Some(4), None, Some(0), Some(2), None];
        let host = HostCounters::from_array(counts);
        let tally = Tally { offered: 5, refused: 1, received: 3, duplicates: 2, host };
        vec![
            Message::Hello { nonce: 1 },
            Message::Challenge { nonce: 1, cookie: Cookie([5; 16]) },
            Message::Open { nonce: 2, cookie: Cookie([6; 16]) },
            Message::Opened { nonce: 2, session, limits },
            Message::Refused { about: 2, reason: RequestRefusal::Limit },
            Message::Ping { session, number, sent },
            Message::Pong { session, number, sent, reached: sent, answered: sent },
            Message::Size { session, number, answer: 1_200 },
            Message::Sized { session, number, arrived: 9_000 },
            Message::Begin { session, stream, direction: StreamDirection::Down, spec },
            Message::Begun { session, stream },
            Message::Data { session, stream, seq: 8, sent },
            Message::Ask { session, stream },
            Message::Told { session, stream, tally },
            Message::Fetch { session, stream, from: 90 },
            Message::Arrivals { session, stream, from: 90, arrivals: vec![(1, sent), (0, sent)] },
            Message::Close { session },
        ]
    }

    #[test]
    fn messages_cross_padded_or_not() {
        for message in every_kind() {
            assert_eq!(Message::decode(&message.encode(0)), Ok(message.clone()));
            assert_eq!(Message::decode(&message.encode(1_000)), Ok(message.clone()));
            assert!(message.encode(1_000).len() == 1_000);
            let whole = message.encode(0);
            assert_eq!(
                Message::decode(&whole[..whole.len() - 1]),
                Err(WireError::Damaged),
                "{message:?}"
            );
        }
        let data = Message::Data { session: 1, stream: 1, seq: 1, sent: Utc::from_nanos(0) };
        assert_eq!(data.encode(0).len(), DATA_LEN);
    }

    #[test]
    fn another_protocol_and_another_version_are_told_apart() {
        assert_eq!(Message::decode(b"HTTP/1.1 400"), Err(WireError::Foreign));
        assert_eq!(Message::decode(b""), Err(WireError::Foreign));
        let mut later = Message::Hello { nonce: 1 }.encode(0);
        later[4] = 9;
        assert_eq!(Message::decode(&later), Err(WireError::Version(9)));
    }

    #[test]
    fn arrivals_fit_any_line() {
        let arrivals = vec![(0, Utc::from_nanos(0)); ARRIVALS_AT_ONCE];
        let message = Message::Arrivals { session: 0, stream: 0, from: 0, arrivals };
        assert!(message.encode(0).len() <= 1_200);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(kind in 0..20u8,
            fields in proptest::collection::vec(any::<u8>(), 0..80)) {
            let datagram = [&MAGIC[..], &[VERSION, kind], &fields].concat();
            if let Ok(message) = Message::decode(&datagram) {
                prop_assert_eq!(Message::decode(&message.encode(0)), Ok(message));
            }
        }
    }
}
