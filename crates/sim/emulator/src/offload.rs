//! The kernel's description of a packet with segmentation or checksum left to do: the virtio header
//! of TUN devices.

/// Length of the header before each packet, bytes.
pub const OFFLOAD_LEN: usize = 10;

/// The `virtio_net_hdr` before a packet (Virtual I/O Device 1.2, 5.1.6), in the machine's byte
/// order as TUN devices have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offload {
    /// [`NEEDS_CHECKSUM`] and others that are passed on as they are.
    pub flags: u8,
    /// What the packet stands for: one packet, or many TCP segments or UDP datagrams.
    pub kind: u8,
    /// Length of all headers. The kernel only takes it as a hint.
    pub headers: u16,
    /// Payload of each segment but the last.
    pub segment: u16,
    /// Where the sum of the transport's checksum begins: the start of the transport's header.
    pub checksum_start: u16,
    /// Where, from there, the checksum stands.
    pub checksum_offset: u16,
}

/// The checksum field holds the sum of the pseudo header only; whoever puts the packet on a wire
/// completes it.
pub const NEEDS_CHECKSUM: u8 = 1;
/// One packet.
pub const SINGLE: u8 = 0;
/// Segments of TCP over IPv4.
pub const TCP_V4: u8 = 1;
/// Segments of TCP over IPv6.
pub const TCP_V6: u8 = 4;
/// Datagrams of UDP, over either version.
pub const UDP: u8 = 5;
/// Beside a kind of TCP: the first segment alone carries CWR.
pub const ECN: u8 = 0x80;

impl Offload {
    /// Reads the header at the start of what a device gave.
    pub fn read(bytes: &[u8; OFFLOAD_LEN]) -> Self {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Self {
            flags: bytes[0],
            kind: bytes[1],
            headers: word(2),
            segment: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        }
    }

    /// The header as a device takes it.
    pub fn to_bytes(self) -> [u8; OFFLOAD_LEN] {
        let mut bytes = [0; OFFLOAD_LEN];
        bytes[0] = self.flags;
        bytes[1] = self.kind;
        let words = [self.headers, self.segment, self.checksum_start, self.checksum_offset];
        for (place, word) in bytes[2..].chunks_exact_mut(2).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}
