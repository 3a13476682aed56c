//! Messages of channels, one in each block of the session.
//!
//! ```text
//!   kind (1 byte)  generation (4)  the rest, as the kind has it      numbers are big-endian
//!   0 open         window (4)  request of the service
//!   1 accept       window (4)
//!   2 data         bytes, at least one
//!   3 expendable   bytes
//!   4 finish
//!   5 reset        reason of the service
//!   6 windows      generation is 0; then for each channel: slot (4)  generation (4)  limit (8)
//!   16 to 255      the service's own messages; the generation is a number of the service
//! ```
//!
//! Windows and the service's own messages are on the service's control flow. The flow of another
//! message gives the slot of its channel.

use super::ChannelKey;
use bytes::{BufMut as _, Bytes, BytesMut};
use skyhaul_units::wire::ByteReader;

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelMessage {
    /// Which channel of the flow's slot.
    pub generation: u32,
    /// What it says of the channel.
    pub content: ChannelContent,
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelContent {
    /// A channel begins.
    Open {
        /// What the sender of this takes of the channel before it says more, in bytes. With 0 the
        /// channel carries expendable bytes only.
        window: u32,
        /// What the service says with it.
        request: Bytes,
    },
    /// The far end takes the channel.
    Accept {
        /// What the sender of this takes of the channel before it says more, in bytes.
        window: u32,
    },
    /// Bytes that count against the window.
    Data(Bytes),
    /// Bytes that need no window, and that may be lost.
    Expendable(Bytes),
    /// No more bytes come from the sender of this.
    Finish,
    /// The channel ends at once; what is in transit is worth nothing.
    Reset {
        /// What the service says with it; may be empty.
        reason: Bytes,
    },
    /// How much of each channel may be sent in all.
    Windows(Vec<ChannelLimit>),
    /// A message of the service that is about no channel.
    Service {
        /// Its kind, [`KIND_SERVICE`] or more.
        kind: u8,
        /// The rest.
        body: Bytes,
    },
}

/// How much of a channel may be sent, counted from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChannelLimit {
    /// The channel.
    pub key: ChannelKey,
    /// What may be sent in all, in bytes as the service counts them.
    pub limit: u64,
}

/// A block is not a message of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a block of {len} bytes is not a valid channel message")]
pub struct BadChannelMessage {
    /// The block's length.
    pub len: usize,
}

/// Bytes of kind and generation.
pub const HEAD: usize = 5;
/// Channels in one [`ChannelContent::Windows`], at most: a datagram's worth.
pub const WINDOWS_MAX: usize = 80;
/// The first kind of the services' own messages.
pub const KIND_SERVICE: u8 = 16;
const KIND_DATA: u8 = 2;
const KIND_EXPENDABLE: u8 = 3;

impl ChannelMessage {
    /// As a block.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(HEAD + self.content.len());
        out.put_u8(self.content.kind());
        out.put_u32(self.generation);
        match &self.content {
            ChannelContent::Open { window, request } => {
                out.put_u32(*window);
                out.put_slice(request);
            }
            ChannelContent::Accept { window } => out.put_u32(*window),
            ChannelContent::Data(bytes) | ChannelContent::Expendable(bytes) => out.put_slice(bytes),
            ChannelContent::Finish => {}
            ChannelContent::Reset { reason } => out.put_slice(reason),
            ChannelContent::Windows(limits) => {
                for ChannelLimit { key, limit } in limits.iter().take(WINDOWS_MAX) {
                    out.put_u32(key.slot);
                    out.put_u32(key.generation);
                    out.put_u64(*limit);
                }
            }
            ChannelContent::Service { body, .. } => out.put_slice(body),
        }
        out.freeze()
    }

    /// From a block.
    ///
    /// # Errors
    /// It is not a message.
    pub fn decode(block: &Bytes) -> Result<Self, BadChannelMessage> {
        Self::read(block).ok_or(BadChannelMessage { len: block.len() })
    }

    fn read(block: &Bytes) -> Option<Self> {
        let mut reader = ByteReader::new(block);
        let (kind, generation) = (reader.u8()?, reader.u32()?);
        let rest = || block.slice(HEAD..);
        let content = match kind {
            0 => {
                let window = reader.u32()?;
                let request = block.slice(HEAD + size_of_val(&window)..);
                ChannelContent::Open { window, request }
            }
            1 => {
                let window = reader.u32()?;
                reader.is_empty().then_some(ChannelContent::Accept { window })?
            }
            KIND_DATA => (!reader.is_empty()).then(|| ChannelContent::Data(rest()))?,
            KIND_EXPENDABLE => ChannelContent::Expendable(rest()),
            4 => reader.is_empty().then_some(ChannelContent::Finish)?,
            5 => ChannelContent::Reset { reason: rest() },
            6 => {
                let limits = reader.all(limit).filter(|limits| limits.len() <= WINDOWS_MAX)?;
                ChannelContent::Windows(limits)
            }
            KIND_SERVICE.. => ChannelContent::Service { kind, body: rest() },
            _ => return None,
        };
        Some(Self { generation, content })
    }
}

impl ChannelContent {
    const fn kind(&self) -> u8 {
        match self {
            Self::Open { .. } => 0,
            Self::Accept { .. } => 1,
            Self::Data(_) => KIND_DATA,
            Self::Expendable(_) => KIND_EXPENDABLE,
            Self::Finish => 4,
            Self::Reset { .. } => 5,
            Self::Windows(_) => 6,
            Self::Service { kind, .. } => *kind,
        }
    }

    const fn len(&self) -> usize {
        match self {
            Self::Open { request, .. } => 4 + request.len(),
            Self::Accept { .. } => 4,
            Self::Data(bytes) | Self::Expendable(bytes) => bytes.len(),
            Self::Finish => 0,
            Self::Reset { reason } => reason.len(),
            Self::Windows(limits) => 16 * limits.len(),
            Self::Service { body, .. } => body.len(),
        }
    }
}

/// The block of [`ChannelContent::Data`] with a copy of `bytes`.
pub(super) fn data(generation: u32, bytes: &[u8]) -> Bytes {
    carrying(KIND_DATA, generation, bytes)
}

/// The block of [`ChannelContent::Expendable`] with a copy of `bytes`.
pub(super) fn expendable(generation: u32, bytes: &[u8]) -> Bytes {
    carrying(KIND_EXPENDABLE, generation, bytes)
}

fn carrying(kind: u8, generation: u32, bytes: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(HEAD + bytes.len());
    out.put_u8(kind);
    out.put_u32(generation);
    out.put_slice(bytes);
    out.freeze()
}

fn limit(reader: &mut ByteReader<'_>) -> Option<ChannelLimit> {
    let key = ChannelKey { slot: reader.u32()?, generation: reader.u32()? };
    Some(ChannelLimit { key, limit: reader.u64()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn contents() -> Vec<ChannelContent> {
        let limit = ChannelLimit { key: ChannelKey { slot: 7, generation: 9 }, limit: 1 << 40 };
        vec![
            ChannelContent::Open { window: 65_536, request: "to".into() },
            ChannelContent::Accept { window: u32::MAX },
            ChannelContent::Data("block".into()),
            ChannelContent::Expendable("x".into()),
            ChannelContent::Finish,
            ChannelContent::Reset { reason: "why".into() },
            ChannelContent::Windows(vec![limit; WINDOWS_MAX]),
            ChannelContent::Service { kind: KIND_SERVICE, body: "own".into() },
        ]
    }

    #[test]
    fn messages_cross_and_no_part_of_one_is_taken_for_another() {
        for content in contents() {
            let message = ChannelMessage { generation: 77, content };
            let block = message.encode();
            assert_eq!(block.len(), HEAD + message.content.len());
            assert_eq!(ChannelMessage::decode(&block).as_ref(), Ok(&message));
            for len in 0..block.len() {
                assert_ne!(ChannelMessage::decode(&block.slice(..len)).ok(), Some(message.clone()));
            }
        }
    }

    #[test]
    fn what_is_not_a_message_is_refused() {
        for block in [
            &b""[..],
            b"\x02\0\0\0",
            b"\x02\0\0\0\x01",
            b"\x00\0\0\0\x01\0\0\0",
            b"\x01\0\0\0\x01\0\0\0\x01x",
            b"\x04\0\0\0\x01x",
            b"\x06\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0",
            b"\x07\0\0\0\x01",
            b"\x0f\0\0\0\x01",
        ] {
            let block = Bytes::copy_from_slice(block);
            let len = block.len();
            assert_eq!(ChannelMessage::decode(&block), Err(BadChannelMessage { len }), "{block:?}");
        }
        let limit = [0; 16];
        let many = [&[6, 0, 0, 0, 0][..], &limit.repeat(WINDOWS_MAX + 1)].concat();
        assert!(ChannelMessage::decode(&many.into()).is_err());
    }

    #[test]
    fn bytes_from_a_socket_are_the_message_of_these_bytes() {
        let message = |content| ChannelMessage { generation: 5, content }.encode();
        assert_eq!(data(5, b"abc"), message(ChannelContent::Data("abc".into())));
        assert_eq!(expendable(5, b"abc"), message(ChannelContent::Expendable("abc".into())));
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_the_same(bytes in proptest::collection::vec(any::<u8>(),
            0..200), kind in 0u8..18) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            let block = Bytes::from(bytes);
            if let Ok(message) = ChannelMessage::decode(&block) {
                prop_assert_eq!(message.encode(), block);
            }
        }
    }
}
