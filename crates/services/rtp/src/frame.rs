//! The packets of one frame as the content of one block.
//!
//! A block has a version byte, the extended time stamp (8 bytes), and for each packet its length (2
//! bytes) and its bytes. Numbers are big-endian.

use crate::nal::RtpFrameKind;
use crate::packet::{RtpPacket, RtpPacketError};
use bytes::{BufMut, Bytes, BytesMut};

/// The packets with one time stamp, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RtpFrame {
    /// The time stamp, in ticks since the stream began to be counted, without wrap.
    pub time: u64,
    /// Its packets.
    pub packets: Vec<RtpPacket>,
    /// Packets that are missing within it or before it.
    pub missing: u64,
    /// What it needs of the others; the far end does not learn it.
    pub kind: RtpFrameKind,
}

/// Why a block is no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RtpFrameError {
    /// It is of a later version of this program.
    #[error("the block's version is {0}, not {VERSION}; use the same release at both ends")]
    Version(u8),
    /// It ends within a packet, or has none.
    #[error("the block ends within a packet")]
    Short,
    /// It has more packets than a frame may have.
    #[error("the block has more than {FRAME_PACKETS_MAX} packets")]
    Many,
    /// One of its packets is none.
    #[error("{0}")]
    Packet(#[from] RtpPacketError),
}

const VERSION: u8 = 1;
/// A frame of 1 MiB in packets of 512 bytes.
pub const FRAME_PACKETS_MAX: usize = 2_048;
/// The largest block that a session takes.
pub const FRAME_BYTES_MAX: usize = 1 << 20;
/// Version and time stamp.
const HEAD: usize = 9;
/// The length before a packet.
pub(crate) const BEFORE_PACKET: usize = 2;

impl RtpFrame {
    /// The content of its block.
    pub fn encode(&self) -> Bytes {
        let len = |packet: &RtpPacket| BEFORE_PACKET + packet.bytes().len();
        let mut block = BytesMut::with_capacity(HEAD + self.packets.iter().map(len).sum::<usize>());
        block.put_u8(VERSION);
        block.put_u64(self.time);
        for packet in &self.packets {
            let bytes = packet.bytes();
            block.put_u16(u16::try_from(bytes.len()).unwrap_or(u16::MAX));
            block.put_slice(&bytes[..bytes.len().min(usize::from(u16::MAX))]);
        }
        block.freeze()
    }

    /// Reads the content of a block.
    ///
    /// # Errors
    /// See [`RtpFrameError`].
    pub fn decode(block: &Bytes) -> Result<Self, RtpFrameError> {
        let (&version, _) = block.split_first().ok_or(RtpFrameError::Short)?;
        if version != VERSION {
            return Err(RtpFrameError::Version(version));
        }
        let time: &[u8; 8] =
            block.get(1..).and_then(<[u8]>::first_chunk).ok_or(RtpFrameError::Short)?;
        let (time, mut at) = (u64::from_be_bytes(*time), HEAD);
        let mut packets = Vec::new();
        while at < block.len() {
            let length = block.get(at..at + BEFORE_PACKET).ok_or(RtpFrameError::Short)?;
            let start = at + BEFORE_PACKET;
            at = start + usize::from(u16::from_be_bytes([length[0], length[1]]));
            if at > block.len() {
                return Err(RtpFrameError::Short);
            }
            if packets.len() == FRAME_PACKETS_MAX {
                return Err(RtpFrameError::Many);
            }
            packets.push(RtpPacket::parse(block.slice(start..at))?);
        }
        if packets.is_empty() {
            return Err(RtpFrameError::Short);
        }
        Ok(Self { time, packets, missing: 0, kind: RtpFrameKind::Unknown })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_frame_is_refused() {
        let decode = |bytes: &[u8]| RtpFrame::decode(&Bytes::copy_from_slice(bytes));
        assert_eq!(decode(&[]), Err(RtpFrameError::Short));
        assert_eq!(decode(&[2]), Err(RtpFrameError::Version(2)));
        assert_eq!(decode(&[1; 8]), Err(RtpFrameError::Short));
        assert_eq!(decode(&[1; 9]), Err(RtpFrameError::Short), "no packet");
        assert_eq!(decode(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 1]), Err(RtpFrameError::Short));
        let inner = decode(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 1]);
        assert_eq!(inner, Err(RtpFrameError::Packet(RtpPacketError::Version)));
    }

    proptest! {
        #[test]
        fn any_block_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(frame) = RtpFrame::decode(&Bytes::from(bytes.clone())) {
                prop_assert_eq!(frame.encode(), Bytes::from(bytes));
            }
        }
    }
}
