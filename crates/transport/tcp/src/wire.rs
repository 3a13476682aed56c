//! The frames inside the TLS stream: a type, the length of the body, the body. They follow each
//! other without gaps and know nothing of TLS records.
//!
//! [`FrameReader`] takes the stream in pieces of any length and never panics; what it holds back is
//! less than one frame.

use bytes::{Buf, Bytes, BytesMut};
use skyhaul_sessions::ConnectionPurpose;
use skyhaul_units::Duration;

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TcpFrame {
    /// The first frame of each end: the keys are accepted. Bytes behind the first of its body are
    /// for later versions.
    Greeting {
        /// What the sender connects for, where it is the end that connected.
        purpose: ConnectionPurpose,
    },
    /// A datagram of a session.
    Datagram(Bytes),
    /// The next bytes of the control stream; at least one.
    Control(Bytes),
    /// What has arrived.
    Acknowledgement {
        /// Datagrams received since the beginning.
        count: u64,
        /// Between the arrival of the newest of them and this frame; in whole microseconds on the
        /// wire.
        delay: Duration,
    },
    /// Asks for a [`TcpFrame::Pong`] with the same number.
    Ping(u64),
    /// Answers a [`TcpFrame::Ping`].
    Pong(u64),
    /// The last frame of an end.
    Close {
        /// Why, for programs: [`CLOSE_VERSION`], [`CLOSE_GOES_ON`], or anything else for all
        /// other reasons.
        code: u8,
        /// Why, for people; cut to [`MAX_REASON`] bytes.
        reason: String,
    },
}

/// Close code without a meaning for programs.
pub const CLOSE_PLAIN: u8 = 0;
/// Close code: the reason is the name of the protocol version that the closing end speaks.
pub const CLOSE_VERSION: u8 = 1;
/// Close code: the node goes on in another process, which takes calls at once.
pub const CLOSE_GOES_ON: u8 = 2;
/// Bytes of a reason that are sent, and kept.
pub const MAX_REASON: usize = 200;
/// Type and length before each body, in bytes.
pub const HEADER: usize = 3;
/// Longest body, in bytes.
pub const MAX_BODY: usize = u16::MAX as usize;

/// The stream does not consist of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// No frame has this type.
    #[error("unknown frame type {0:#04x}")]
    UnknownType(u8),
    /// A body of another length than its type has.
    #[error("a frame of type {0:#04x} with {1} bytes")]
    Length(u8, usize),
    /// A greeting for neither a session nor one more path of one.
    #[error("a greeting of unknown purpose {0:#04x}")]
    Purpose(u8),
}

impl TcpFrame {
    /// Appends the frame to `out`. What does not fit a body (65,535 bytes) is cut off.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Greeting { purpose } => {
                let purpose = match purpose {
                    ConnectionPurpose::NewSession => BEGINNING,
                    ConnectionPurpose::JoinSession => JOINING,
                };
                append(out, GREETING, &[purpose]);
            }
            Self::Datagram(bytes) => append(out, DATAGRAM, bytes),
            Self::Control(bytes) => append(out, CONTROL, bytes),
            Self::Acknowledgement { count, delay } => {
                let micros = u32::try_from(delay.as_micros()).unwrap_or(u32::MAX);
                let mut body = [0; 12];
                body[..8].copy_from_slice(&count.to_be_bytes());
                body[8..].copy_from_slice(&micros.to_be_bytes());
                append(out, ACKNOWLEDGEMENT, &body);
            }
            Self::Ping(number) => append(out, PING, &number.to_be_bytes()),
            Self::Pong(number) => append(out, PONG, &number.to_be_bytes()),
            Self::Close { code, reason } => {
                let cut = reason.floor_char_boundary(MAX_REASON.min(reason.len()));
                let mut body = Vec::with_capacity(1 + cut);
                body.push(*code);
                body.extend_from_slice(&reason.as_bytes()[..cut]);
                append(out, CLOSE, &body);
            }
        }
    }

    fn decode(kind: u8, body: &[u8]) -> Result<Self, WireError> {
        let wrong = WireError::Length(kind, body.len());
        let number = || body.try_into().map(u64::from_be_bytes).map_err(|_| wrong);
        match kind {
            GREETING => match body.first() {
                Some(&BEGINNING) => Ok(Self::Greeting { purpose: ConnectionPurpose::NewSession }),
                Some(&JOINING) => Ok(Self::Greeting { purpose: ConnectionPurpose::JoinSession }),
                Some(other) => Err(WireError::Purpose(*other)),
                None => Err(wrong),
            },
            // Copied, so that a short datagram keeps no long buffer alive.
            DATAGRAM => Ok(Self::Datagram(Bytes::copy_from_slice(body))),
            CONTROL if body.is_empty() => Err(wrong),
            CONTROL => Ok(Self::Control(Bytes::copy_from_slice(body))),
            ACKNOWLEDGEMENT => {
                let (count, rest) = body.split_first_chunk().ok_or(wrong)?;
                let micros: [u8; 4] = rest.try_into().map_err(|_| wrong)?;
                let delay = Duration::from_micros(u32::from_be_bytes(micros).into());
                Ok(Self::Acknowledgement { count: u64::from_be_bytes(*count), delay })
            }
            PING => number().map(Self::Ping),
            PONG => number().map(Self::Pong),
            CLOSE => {
                let (code, reason) = body.split_first().ok_or(wrong)?;
                let reason = String::from_utf8_lossy(&reason[..reason.len().min(MAX_REASON)]);
                let reason = skyhaul_units::printable(&reason, MAX_REASON);
                Ok(Self::Close { code: *code, reason })
            }
            _ => Err(WireError::UnknownType(kind)),
        }
    }
}

fn append(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    let body = &body[..body.len().min(MAX_BODY)];
    let length = u16::try_from(body.len()).unwrap_or(u16::MAX);
    out.push(kind);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(body);
}

/// Finds the frames of a stream.
#[derive(Debug, Default)]
pub struct FrameReader {
    held: BytesMut,
}

impl FrameReader {
    /// The next bytes of the stream. Take the frames out before more is added: what is added is
    /// held.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    /// The next whole frame. After an error there is no more to be read.
    pub fn poll(&mut self) -> Result<Option<TcpFrame>, WireError> {
        let Some((head, rest)) = self.held.split_first_chunk::<HEADER>() else { return Ok(None) };
        let [kind, length @ ..] = *head;
        if !KINDS.contains(&kind) {
            return Err(WireError::UnknownType(kind));
        }
        let length = usize::from(u16::from_be_bytes(length));
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let frame = TcpFrame::decode(kind, body)?;
        self.held.advance(HEADER + length);
        Ok(Some(frame))
    }
}

/// First byte of a greeting: for a session of its own.
const BEGINNING: u8 = 0x01;
/// First byte of a greeting: for one more path of a session.
const JOINING: u8 = 0x02;

const GREETING: u8 = 0x01;
const DATAGRAM: u8 = 0x02;
const CONTROL: u8 = 0x03;
const ACKNOWLEDGEMENT: u8 = 0x04;
const PING: u8 = 0x05;
const PONG: u8 = 0x06;
const CLOSE: u8 = 0x07;
/// All types, to find one that is unknown before its body has come.
const KINDS: core::ops::RangeInclusive<u8> = GREETING..=CLOSE;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame() -> impl Strategy<Value = TcpFrame> {
        let bytes =
            |least| proptest::collection::vec(any::<u8>(), least..200).prop_map(Bytes::from);
        prop_oneof![
            any::<bool>().prop_map(|joins| TcpFrame::Greeting {
                purpose: if joins {
                    ConnectionPurpose::JoinSession
                } else {
                    ConnectionPurpose::NewSession
                }
            }),
            bytes(0).prop_map(TcpFrame::Datagram),
            bytes(1).prop_map(TcpFrame::Control),
            (any::<u64>(), any::<u32>()).prop_map(|(count, micros)| {
                TcpFrame::Acknowledgement { count, delay: Duration::from_micros(micros.into()) }
            }),
            any::<u64>().prop_map(TcpFrame::Ping),
            any::<u64>().prop_map(TcpFrame::Pong),
            (any::<u8>(), "[a-zé ]{0,90}")
                .prop_map(|(code, reason)| TcpFrame::Close { code, reason }),
        ]
    }

    proptest! {
        #[test]
        fn frames_are_read_as_written_however_they_are_cut(
            frames in proptest::collection::vec(frame(), 0..20),
            cuts in proptest::collection::vec(1_usize..300, 1..50),
        ) {
            let mut stream = Vec::new();
            frames.iter().for_each(|frame| frame.encode(&mut stream));
            let (mut reader, mut read, mut rest) =
                (FrameReader::default(), Vec::new(), &stream[..]);
            let mut cuts = cuts.into_iter().cycle();
            while !rest.is_empty() {
                let (piece, behind) = rest.split_at(cuts.next().unwrap().min(rest.len()));
                rest = behind;
                reader.extend(piece);
                while let Some(frame) = reader.poll().unwrap() {
                    read.push(frame);
                }
            }
            prop_assert_eq!(read, frames);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
            let mut reader = FrameReader::default();
            reader.extend(&bytes);
            while let Ok(Some(_)) = reader.poll() {}
        }
    }

    #[test]
    fn the_longest_datagram_fits_and_longer_is_cut() {
        let mut stream = Vec::new();
        TcpFrame::Datagram(vec![7; MAX_BODY + 10].into()).encode(&mut stream);
        let mut reader = FrameReader::default();
        reader.extend(&stream[..stream.len() - 1]);
        assert_eq!(reader.poll(), Ok(None));
        reader.extend(&stream[stream.len() - 1..]);
        assert_eq!(reader.poll(), Ok(Some(TcpFrame::Datagram(vec![7; MAX_BODY].into()))));
    }

    #[test]
    fn wrong_types_and_lengths_are_refused() {
        for (bytes, error) in [
            (&[0, 0, 0][..], WireError::UnknownType(0)),
            (&[8, 255, 255], WireError::UnknownType(8)),
            (&[1, 0, 0], WireError::Length(1, 0)),
            (&[1, 0, 1, 3], WireError::Purpose(3)),
            (&[3, 0, 0], WireError::Length(3, 0)),
            (&[4, 0, 2, 1, 1], WireError::Length(4, 2)),
            (&[5, 0, 1, 1], WireError::Length(5, 1)),
            (&[7, 0, 0], WireError::Length(7, 0)),
        ] {
            let mut reader = FrameReader::default();
            reader.extend(bytes);
            assert_eq!(reader.poll(), Err(error));
        }
    }

    #[test]
    fn a_reason_is_cut_between_characters() {
        let mut stream = Vec::new();
        TcpFrame::Close { code: 0, reason: "é".repeat(200) }.encode(&mut stream);
        let mut reader = FrameReader::default();
        reader.extend(&stream);
        assert_eq!(reader.poll(), Ok(Some(TcpFrame::Close { code: 0, reason: "é".repeat(100) })));
    }
}
