//! What a flow does: its packets, how they are acknowledged, and when they count as lost.

use super::host::Host;
use skyhaul_units::{ByteCount, Duration, Rate};

/// One flow over a bottleneck. The default is a greedy flow of full IP packets, acknowledged as our
/// QUIC paths are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowConfig {
    /// Size of every packet, as an IP packet.
    pub packet: ByteCount,
    /// How the receiver acknowledges.
    pub acks: Acknowledging,
    /// When a packet counts as lost.
    pub detection: LossDetection,
    /// Added to the round trip of the links, so that flows over one bottleneck may have different
    /// round trips. It lies wholly on the way back, where it costs an event for each
    /// acknowledgement and not for each packet; for a sender that is the same.
    pub access_delay: Duration,
    /// Rate at which the application hands over packets; `None` is as much as is taken. What cannot
    /// be sent at once waits.
    pub offered: Option<Rate>,
    /// When the flow begins.
    pub start: Duration,
    /// When the application stops; `None` is never.
    pub stop: Option<Duration>,
    /// The sender's host.
    pub near: Host,
    /// The receiver's host.
    pub far: Host,
}

impl Default for FlowConfig {
    fn default() -> Self {
        Self {
            packet: ByteCount::new(1_500),
            acks: Acknowledging::quic(),
            detection: LossDetection::quic(),
            access_delay: Duration::ZERO,
            offered: None,
            start: Duration::ZERO,
            stop: None,
            near: Host::default(),
            far: Host::default(),
        }
    }
}

impl FlowConfig {
    /// A greedy flow of full packets as a kernel's TCP has it: acknowledged after two packets, lost
    /// after three newer ones.
    pub fn kernel() -> Self {
        Self {
            acks: Acknowledging::kernel(),
            detection: LossDetection::kernel(),
            ..Self::default()
        }
    }
}

/// When the receiver acknowledges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acknowledging {
    /// Packets that make it acknowledge at once.
    pub every: u32,
    /// How long it waits for them.
    pub delay: Duration,
    /// What a packet out of order does.
    pub gaps: GapHandling,
}

/// What the receiver does about a packet that is not the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapHandling {
    /// Nothing: gaps are normal on a lossy line.
    Ignored,
    /// It acknowledges at once (RFC 5681 4.2).
    Acknowledged,
}

impl Acknowledging {
    /// As the QUIC paths ask for: after 10 packets or 25 ms.
    pub const fn quic() -> Self {
        Self { every: 10, delay: Duration::from_millis(25), gaps: GapHandling::Ignored }
    }

    /// As a kernel's TCP: after 2 packets or 40 ms, and at once at a gap.
    pub const fn kernel() -> Self {
        Self { every: 2, delay: Duration::from_millis(40), gaps: GapHandling::Acknowledged }
    }
}

/// When a packet counts as lost (RFC 9002 6). A packet is judged only when a newer one was
/// acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossDetection {
    /// Hundredths of the larger of the smoothed and the latest round-trip time.
    pub time_threshold: u64,
    /// Newer packets acknowledged; `None` is by time alone.
    pub packet_threshold: Option<u64>,
}

impl LossDetection {
    /// By time alone, after 1.25 round trips, as the QUIC paths do.
    pub const fn quic() -> Self {
        Self { time_threshold: 125, packet_threshold: None }
    }

    /// Three newer packets (RFC 5681 3.2), or 1.25 round trips (RFC 8985 with its widest reordering
    /// window at the start).
    pub const fn kernel() -> Self {
        Self { time_threshold: 125, packet_threshold: Some(3) }
    }
}
