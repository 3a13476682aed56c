//! What the ends of links say: a block of the session is one message.
//!
//! ```text
//!   link (4 bytes, big-endian, from 1) | kind (1 byte) | ...
//!     0 data           the program's block
//!     1 passing data   the same, which nobody waits for
//!     2 taken          bytes that the program has taken, 8, big-endian
//!     3 end            nothing
//! ```

use bytes::{BufMut as _, Bytes, BytesMut};

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Which link of its slot, counted from 1.
    pub link: u32,
    /// What is said.
    pub said: LinkMessage,
}

/// What is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkMessage {
    /// A reliable block of the program.
    Data(Bytes),
    /// An expendable one.
    Passing(Bytes),
    /// What the program has taken since the link began, counted by [`skyhaul_transport::cost`].
    Taken(u64),
    /// Nothing more is said of this link.
    End,
}

/// No message of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a block is not a valid channel message")]
pub struct Malformed;

/// Link and kind.
pub const HEAD: usize = 5;

impl Message {
    /// As a block.
    pub fn encode(&self) -> Bytes {
        let body: &[u8] = match &self.said {
            LinkMessage::Data(bytes) | LinkMessage::Passing(bytes) => bytes,
            LinkMessage::Taken(_) | LinkMessage::End => &[],
        };
        let mut out = BytesMut::with_capacity(HEAD + body.len().max(8));
        out.put_u32(self.link);
        match &self.said {
            LinkMessage::Data(_) => out.put_u8(0),
            LinkMessage::Passing(_) => out.put_u8(1),
            LinkMessage::Taken(total) => {
                out.put_u8(2);
                out.put_u64(*total);
            }
            LinkMessage::End => out.put_u8(3),
        }
        out.put_slice(body);
        out.freeze()
    }

    /// From a block.
    ///
    /// # Errors
    /// It is no message.
    pub fn decode(block: &Bytes) -> Result<Self, Malformed> {
        let (head, _) = block.split_first_chunk::<HEAD>().ok_or(Malformed)?;
        let [a, b, c, d, kind] = *head;
        let link = u32::from_be_bytes([a, b, c, d]);
        let body = block.slice(HEAD..);
        let said = match (kind, body.len()) {
            (0, 1..) => LinkMessage::Data(body),
            (1, 1..) => LinkMessage::Passing(body),
            (2, _) => LinkMessage::Taken(u64::from_be_bytes(
                body.as_ref().try_into().map_err(|_| Malformed)?,
            )),
            (3, 0) => LinkMessage::End,
            _ => return Err(Malformed),
        };
        if link == 0 { Err(Malformed) } else { Ok(Self { link, said }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_and_what_is_none_is_told() {
        for said in [
            LinkMessage::Data(Bytes::from_static(b"block")),
            LinkMessage::Passing(Bytes::from_static(b"x")),
            LinkMessage::Taken(1 << 40),
            LinkMessage::End,
        ] {
            let message = Message { link: 7, said };
            assert_eq!(Message::decode(&message.encode()), Ok(message));
        }
        for block in [
            &b""[..],
            b"\0\0\0\x01",
            b"\0\0\0\x01\0",
            b"\0\0\0\0\x03",
            b"\0\0\0\x01\x03x",
            b"\0\0\0\x01\x02\0\0\0",
            b"\0\0\0\x01\x04",
        ] {
            assert_eq!(
                Message::decode(&Bytes::copy_from_slice(block)),
                Err(Malformed),
                "{block:?}"
            );
        }
    }
}
