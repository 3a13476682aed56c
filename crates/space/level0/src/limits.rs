//! Memory limits of processing, and the range of packet times that it accepts.

use crate::clock::ClockCheck;
use skyhaul_units::{ByteCount, Duration};

/// The memory that a contact's processing may use, and the packet times that it accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Which packet times are believed.
    pub clock: ClockCheck,
    /// How late, in packet time, a packet may be and still be put in place directly. Default 30 s:
    /// channels of one spacecraft are a few seconds apart.
    pub window_span: Duration,
    /// Memory for packets in the windows of all products. Default 24 MiB: 12 s at 15 Mbit/s, where
    /// every packet is a kilobyte. At the limit, the earliest packets of the largest window are
    /// written.
    pub window: ByteCount,
    /// Memory for late packets of all products. Default 8 MiB; at the limit, those of the product
    /// with the most are moved to a file.
    pub late: ByteCount,
    /// Size of the file of packets set aside from one product. Default 256 MiB; past it packets are
    /// dropped and counted as rejected.
    pub set_aside: ByteCount,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clock: ClockCheck::default(),
            window_span: Duration::from_secs(30),
            window: ByteCount::mib(24),
            late: ByteCount::mib(8),
            set_aside: ByteCount::mib(256),
        }
    }
}
