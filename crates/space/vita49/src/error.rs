//! The reasons for which a packet is refused.

/// Why bytes are no packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// Less than a header.
    #[error("{0} bytes are shorter than a VITA 49 header")]
    Short(usize),
    /// A kind that the standard does not have.
    #[error("unknown VITA 49 packet type {0}")]
    Kind(u8),
    /// The length in the header and that of the datagram do not fit.
    #[error("the VITA 49 header says {said} bytes, there are {there}")]
    Length {
        /// As the header says.
        said: usize,
        /// As received.
        there: usize,
    },
    /// The fields that the header announces are longer than the packet.
    #[error("the fields of a VITA 49 packet are longer than the packet's {0} bytes")]
    Fields(usize),
    /// A fractional second of more than a second.
    #[error("a VITA 49 time stamp has {0} ps, a second or more")]
    Picoseconds(u64),
    /// More padding than payload.
    #[error("a VITA 49 payload of {payload} bytes has {pad_bits} bits of padding")]
    Padding {
        /// Bytes of payload.
        payload: usize,
        /// Bits of padding.
        pad_bits: u8,
    },
    /// A payload format that contradicts itself.
    #[error("a VITA 49 payload format has items of {item} bits in fields of {field}")]
    Items {
        /// Bits of an item.
        item: u8,
        /// Bits of the field it is in.
        field: u8,
    },
    /// Fields with attributes: each would come several times.
    #[error("a VITA 49 context packet has field attributes (CIF 7), which are not read")]
    Attributes,
}
