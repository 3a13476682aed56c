//! One RTP packet (RFC 3550 5.1).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |V=2|P|X|  CC   |M|     PT      |       sequence number         |
//! |                           timestamp                           |
//! |           synchronization source (SSRC) identifier            |
//! |            contributing source (CSRC) identifiers ...         |
//! ```

use bytes::Bytes;

/// A packet whose header was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RtpPacket {
    bytes: Bytes,
    payload: core::ops::Range<usize>,
}

/// Why bytes are no RTP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RtpPacketError {
    /// The header, its sources, its extension or its padding goes beyond the end.
    #[error("the packet is shorter than its header says")]
    Short,
    /// The first two bits are not those of version 2.
    #[error("the packet is not RTP of version 2")]
    Version,
    /// A packet of RTCP came to the port of RTP (RFC 5761 4).
    #[error("the packet is of RTCP, not of RTP")]
    Control,
}

const HEADER: usize = 12;

impl RtpPacket {
    /// Reads a packet.
    ///
    /// # Errors
    /// See [`RtpPacketError`].
    pub fn parse(bytes: Bytes) -> Result<Self, RtpPacketError> {
        let &[first, second, ..] = &bytes[..] else { return Err(RtpPacketError::Short) };
        if first >> 6 != 2 {
            return Err(RtpPacketError::Version);
        }
        // RFC 5761 4: payload types 64 to 95 with the marker are RTCP's 192 to 223.
        if (192..=223).contains(&second) {
            return Err(RtpPacketError::Control);
        }
        let mut start = HEADER + 4 * usize::from(first & 0x0f);
        if first & 0x10 != 0 {
            // RFC 3550 5.3.1: sixteen bits of the profile's, and the length in words of 32 bits.
            let length = bytes.get(start + 2..start + 4).ok_or(RtpPacketError::Short)?;
            start += 4 + 4 * usize::from(u16::from_be_bytes([length[0], length[1]]));
        }
        let mut end = bytes.len();
        if first & 0x20 != 0 {
            let padding = bytes.last().copied().map_or(0, usize::from);
            end = end.checked_sub(padding.max(1)).ok_or(RtpPacketError::Short)?;
        }
        if start > end || bytes.len() < HEADER {
            return Err(RtpPacketError::Short);
        }
        Ok(Self { bytes, payload: start..end })
    }

    /// The packet as it came.
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// What it carries.
    pub fn payload(&self) -> &[u8] {
        &self.bytes[self.payload.clone()]
    }

    /// Whether a frame of video ends with it, as its profile says.
    pub fn has_marker(&self) -> bool {
        self.bytes[1] & 0x80 != 0
    }

    /// Its place in the stream, modulo 2^16.
    pub fn sequence(&self) -> u16 {
        u16::from_be_bytes([self.bytes[2], self.bytes[3]])
    }

    /// When its first byte was sampled, in ticks of the payload's clock, modulo 2^32.
    pub fn timestamp(&self) -> u32 {
        self.word(4)
    }

    /// Its source.
    pub fn ssrc(&self) -> u32 {
        self.word(8)
    }

    fn word(&self, at: usize) -> u32 {
        let [a, b, c, d] = [0, 1, 2, 3].map(|step| self.bytes[at + step]);
        u32::from_be_bytes([a, b, c, d])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(bytes: &[u8]) -> Result<RtpPacket, RtpPacketError> {
        RtpPacket::parse(Bytes::copy_from_slice(bytes))
    }

    #[test]
    fn sources_extension_and_padding_are_around_the_payload() {
        let mut bytes = vec![0b1011_0010, 0x60 | 0x80, 0x12, 0x34];
        bytes.extend([0, 0, 0x30, 0x39, 0, 0, 0, 9]);
        bytes.extend([0xaa; 8]);
        bytes.extend([0xbe, 0xde, 0, 1, 1, 2, 3, 4]);
        bytes.extend(b"video");
        bytes.extend([0, 0, 3]);
        let packet = parse(&bytes).unwrap();
        assert_eq!(packet.payload(), b"video");
        assert_eq!((packet.sequence(), packet.timestamp(), packet.ssrc()), (0x1234, 12_345, 9));
        assert!(packet.has_marker());
        for len in 0..28 {
            assert_eq!(parse(&bytes[..len]), Err(RtpPacketError::Short), "{len}");
        }
    }

    #[test]
    fn what_is_not_rtp_is_named() {
        let packet = |first, second| parse(&[first, second, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(packet(0x40, 96), Err(RtpPacketError::Version));
        assert_eq!(packet(0x80, 200), Err(RtpPacketError::Control));
        assert_eq!(packet(0xa0, 96), Err(RtpPacketError::Short), "padding without room");
        assert!(packet(0x80, 96).unwrap().payload().is_empty());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(packet) = parse(&bytes) {
                prop_assert!(packet.payload().len() + 12 <= bytes.len());
            }
        }
    }
}
