//! The packets of one frame as the content of one block.
//!
//! For each packet the content has its length (2 bytes, big-endian) and its bytes.

use crate::nal::RtpFrameKind;
use crate::packet::{RtpPacket, RtpPacketError};
use bytes::{BufMut, Bytes, BytesMut};

/// The packets with one time stamp, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RtpFrame {
    /// The time stamp in ticks, without wrap. Another source begins at any number.
    pub time: u64,
    /// Its packets.
    pub packets: Vec<RtpPacket>,
    /// Packets that are missing within it or before it.
    pub missing: u64,
    /// What it needs of the others; the far end does not learn it.
    pub kind: RtpFrameKind,
}

/// Why bytes are not the packets of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RtpFrameError {
    /// It ends within a packet, or has none.
    #[error("the frame ends within a packet")]
    Short,
    /// It has more packets than a frame may have.
    #[error("the frame has more than {FRAME_PACKETS_MAX} packets")]
    Many,
    /// One of its packets is none.
    #[error("{0}")]
    Packet(#[from] RtpPacketError),
}

/// A frame of 1 MiB in packets of 512 bytes.
pub const FRAME_PACKETS_MAX: usize = 2_048;
/// The largest frame that a stream takes, with the lengths.
pub const FRAME_BYTES_MAX: usize = 1 << 20;
/// The length of each packet.
pub(crate) const BEFORE_PACKET: usize = 2;

impl RtpFrame {
    /// Its packets as the content of a block.
    pub fn encode(&self) -> Bytes {
        let len = |packet: &RtpPacket| BEFORE_PACKET + packet.bytes().len();
        let mut block = BytesMut::with_capacity(self.packets.iter().map(len).sum::<usize>());
        for packet in &self.packets {
            let bytes = packet.bytes();
            block.put_u16(u16::try_from(bytes.len()).unwrap_or(u16::MAX));
            block.put_slice(&bytes[..bytes.len().min(usize::from(u16::MAX))]);
        }
        block.freeze()
    }

    /// The packets in the content of a block.
    ///
    /// # Errors
    /// See [`RtpFrameError`].
    pub fn packets_in(block: &Bytes) -> Result<Vec<RtpPacket>, RtpFrameError> {
        let (mut packets, mut at) = (Vec::new(), 0);
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
        if packets.is_empty() { Err(RtpFrameError::Short) } else { Ok(packets) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame_of(packets: Vec<RtpPacket>) -> RtpFrame {
        RtpFrame { time: 0, packets, missing: 0, kind: RtpFrameKind::Unknown }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        let read = |bytes: &[u8]| RtpFrame::packets_in(&Bytes::copy_from_slice(bytes));
        assert_eq!(read(&[]), Err(RtpFrameError::Short));
        assert_eq!(read(&[0]), Err(RtpFrameError::Short));
        assert_eq!(read(&[0, 5, 1]), Err(RtpFrameError::Short));
        assert_eq!(read(&[0, 2, 1, 1]), Err(RtpFrameError::Packet(RtpPacketError::Version)));
        let one = [&[0, 12, 0x80, 96], &[0; 10][..]].concat();
        assert_eq!(read(&one).map(|packets| packets.len()), Ok(1));
        assert_eq!(read(&one.repeat(FRAME_PACKETS_MAX + 1)), Err(RtpFrameError::Many));
    }

    proptest! {
        #[test]
        fn any_block_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(packets) = RtpFrame::packets_in(&Bytes::from(bytes.clone())) {
                prop_assert_eq!(frame_of(packets).encode(), Bytes::from(bytes));
            }
        }
    }
}
