//! Space packets (CCSDS 133.0-B-2 4.1) and encapsulation packets (133.1-B-3 4.1): their headers.
//!
//! [`Header::parse`] needs [`Header::LONGEST`] bytes at most and says when more are needed; after
//! it succeeds, `total_len` is what to wait for. The content is not read, except for the time
//! ([`crate::time`]).

use crate::id::Apid;

/// The header of a space packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpaceHeader {
    /// Telecommand rather than telemetry.
    pub is_telecommand: bool,
    /// A secondary header follows the primary one.
    pub has_secondary: bool,
    /// Application process id.
    pub apid: Apid,
    /// Place in its group.
    pub grouping: Grouping,
    /// Sequence count, modulo 16384.
    pub count: u16,
    /// Length of the whole packet in bytes, 7 to 65542.
    pub total_len: usize,
}

/// Place of a packet in a group (CCSDS 133.0-B-2 4.1.3.4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping {
    /// In the middle of a group.
    Continuation,
    /// First of a group.
    First,
    /// Last of a group.
    Last,
    /// Not in a group.
    Standalone,
}

/// The header of an encapsulation packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncapsulationHeader {
    /// Protocol of the content: 3 bits; 0 is idle.
    pub protocol: u8,
    /// Length of the header in bytes: 1, 2, 4 or 8.
    pub header_len: usize,
    /// Length of the whole packet in bytes.
    pub total_len: usize,
}

/// The header of either kind of packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// A space packet.
    Space(SpaceHeader),
    /// An encapsulation packet.
    Encapsulation(EncapsulationHeader),
}

/// Why bytes are no packet header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// More bytes are needed to tell.
    #[error("the packet header is cut off")]
    Incomplete,
    /// Neither a space packet nor an encapsulation packet.
    #[error("packet version {0} is neither a space packet (0) nor an encapsulation packet (7)")]
    Version(u8),
    /// An encapsulation packet whose length field is less than its own header.
    #[error(
        "an encapsulation packet of {total_len} bytes is shorter than its header of {header_len}"
    )]
    Length {
        /// Header length in bytes.
        header_len: usize,
        /// Declared length in bytes.
        total_len: usize,
    },
}

impl Header {
    /// Bytes after which [`HeaderError::Incomplete`] no longer happens.
    pub const LONGEST: usize = 8;

    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// [`HeaderError`]; `Incomplete` asks for more bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, HeaderError> {
        let first = *bytes.first().ok_or(HeaderError::Incomplete)?;
        match first >> 5 {
            0 => SpaceHeader::parse(bytes).map(Self::Space),
            7 => EncapsulationHeader::parse(bytes).map(Self::Encapsulation),
            version => Err(HeaderError::Version(version)),
        }
    }
    /// Length of the whole packet in bytes.
    pub const fn total_len(&self) -> usize {
        match self {
            Self::Space(header) => header.total_len,
            Self::Encapsulation(header) => header.total_len,
        }
    }
    /// Whether the packet only fills space.
    pub fn is_idle(&self) -> bool {
        match self {
            Self::Space(header) => header.apid == Apid::IDLE,
            Self::Encapsulation(header) => header.protocol == 0,
        }
    }
}

impl SpaceHeader {
    /// Length of the primary header in bytes.
    pub const LEN: usize = 6;
    /// Length of the longest space packet in bytes.
    pub const LONGEST_PACKET: usize = 65_542;

    /// Reads a space packet's primary header (CCSDS 133.0-B-2 4.1.3).
    ///
    /// # Errors
    /// [`HeaderError::Incomplete`] below six bytes, [`HeaderError::Version`] for any other version.
    pub fn parse(bytes: &[u8]) -> Result<Self, HeaderError> {
        let [a, b, c, d, e, f] = *bytes.first_chunk::<6>().ok_or(HeaderError::Incomplete)?;
        if a >> 5 != 0 {
            return Err(HeaderError::Version(a >> 5));
        }
        let sequence = u16::from_be_bytes([c, d]);
        Ok(Self {
            is_telecommand: a & 0x10 != 0,
            has_secondary: a & 0x08 != 0,
            apid: Apid::from_bits(u16::from_be_bytes([a, b])),
            grouping: match sequence >> 14 {
                0 => Grouping::Continuation,
                1 => Grouping::First,
                2 => Grouping::Last,
                _ => Grouping::Standalone,
            },
            count: sequence & 0x3FFF,
            total_len: usize::from(u16::from_be_bytes([e, f])) + Self::LEN + 1,
        })
    }

    /// The header's six bytes. `total_len` is limited to 7 to 65542.
    pub fn to_bytes(&self) -> [u8; 6] {
        let kind = u16::from(self.is_telecommand) << 12 | u16::from(self.has_secondary) << 11;
        let [a, b] = (kind | self.apid.value()).to_be_bytes();
        let grouping: u16 = match self.grouping {
            Grouping::Continuation => 0,
            Grouping::First => 1,
            Grouping::Last => 2,
            Grouping::Standalone => 3,
        };
        let [c, d] = (grouping << 14 | self.count & 0x3FFF).to_be_bytes();
        let length = self.total_len.clamp(Self::LEN + 1, Self::LONGEST_PACKET) - Self::LEN - 1;
        let [e, f] = (length as u16).to_be_bytes();
        [a, b, c, d, e, f]
    }
}

impl EncapsulationHeader {
    fn parse(bytes: &[u8]) -> Result<Self, HeaderError> {
        let first = *bytes.first().ok_or(HeaderError::Incomplete)?;
        let protocol = first >> 2 & 7;
        // CCSDS 133.1-B-3 4.1.2.4: length of length 0, 1, 2, 4 bytes.
        let (header_len, length_len) = [(1, 0), (2, 1), (4, 2), (8, 4)][usize::from(first & 3)];
        let header = bytes.get(..header_len).ok_or(HeaderError::Incomplete)?;
        let declared =
            header[header_len - length_len..].iter().fold(0, |n, byte| n << 8 | usize::from(*byte));
        let total_len = if length_len == 0 { 1 } else { declared };
        if total_len < header_len {
            return Err(HeaderError::Length { header_len, total_len });
        }
        Ok(Self { protocol, header_len, total_len })
    }
}

/// The complete packets at the start of `bytes`, as in a packet file. After the last one,
/// [`Packets::rest`] has the bytes that are not a packet.
#[derive(Debug, Clone)]
pub struct Packets<'a> {
    rest: &'a [u8],
}

impl<'a> Packets<'a> {
    /// Begins at the start of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
    /// The bytes without a packet: empty for a well-formed file.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = (Header, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let header = Header::parse(self.rest).ok()?;
        let (packet, rest) = self.rest.split_at_checked(header.total_len())?;
        self.rest = rest;
        Some((header, packet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn idle_packets_of_both_kinds() {
        let space = Header::parse(&[0x07, 0xFF, 0xC0, 0x00, 0x00, 0x00]).unwrap();
        assert!(space.is_idle());
        assert_eq!(space.total_len(), 7);
        let encapsulation = Header::parse(&[0xE0]).unwrap();
        assert!(encapsulation.is_idle());
        assert_eq!(encapsulation.total_len(), 1);
    }

    #[test]
    fn encapsulation_lengths() {
        assert_eq!(Header::parse(&[0xE9, 9]).unwrap().total_len(), 9);
        assert_eq!(Header::parse(&[0xEA, 0, 1, 2]).unwrap().total_len(), 258);
        assert_eq!(Header::parse(&[0xEB, 0, 0, 0, 0, 1, 0, 0]).unwrap().total_len(), 65536);
        assert_eq!(Header::parse(&[0xEA, 0, 1]), Err(HeaderError::Incomplete));
        let short = Header::parse(&[0xEA, 0, 0, 3]);
        assert_eq!(short, Err(HeaderError::Length { header_len: 4, total_len: 3 }));
    }

    #[test]
    fn other_versions_are_refused() {
        assert_eq!(Header::parse(&[0x20, 0, 0, 0, 0, 0]), Err(HeaderError::Version(1)));
    }

    proptest! {
        #[test]
        fn a_space_header_survives_a_round_trip(bytes: [u8; 6]) {
            let bytes = [bytes[0] & 0x1F, bytes[1], bytes[2], bytes[3], bytes[4], bytes[5]];
            prop_assert_eq!(SpaceHeader::parse(&bytes).unwrap().to_bytes(), bytes);
        }

        #[test]
        fn any_bytes_give_packets_that_lie_within_them(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let mut packets = Packets::new(&bytes);
            let taken: usize = packets.by_ref().map(|(_, packet)| packet.len()).sum();
            prop_assert_eq!(taken + packets.rest().len(), bytes.len());
        }
    }
}
