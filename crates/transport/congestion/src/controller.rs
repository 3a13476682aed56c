//! The interface between a path and its congestion controller.

use crate::RateSample;
use skyhaul_units::{ByteCount, Duration, Instant, Rate};

/// One batch of acknowledgements, reported by one packet of the far end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ack {
    /// What arrived, in IP packet bytes.
    pub bytes: ByteCount,
    /// How many packets that were.
    pub packets: u32,
    /// When the newest packet of the batch was sent.
    pub sent: Instant,
    /// Time from sending the newest packet of the batch until now, the far end's delay in
    /// acknowledging included. `None` where a newer packet was acknowledged before: such a time
    /// would include the wait for the acknowledgement (RFC 9002 5.1).
    pub rtt: Option<Duration>,
    /// The path's smoothed round-trip time.
    pub smoothed: Duration,
    /// True when a full count of datagrams made the far end acknowledge at once, so that `rtt`
    /// includes no wait for an acknowledgement timer.
    pub prompt: bool,
    /// What is still in flight.
    pub in_flight: ByteCount,
    /// Delivery rate by the newest packet of the batch.
    pub sample: RateSample,
    /// Packets that the far end has newly seen marked "congestion experienced" (RFC 3168).
    pub marked: u64,
}

/// The loss of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LossEvent {
    /// Its size as an IP packet.
    pub bytes: ByteCount,
    /// When it was sent. A loss from before a reduction says nothing about the time after it.
    pub sent: Instant,
    /// What was in flight when it was sent, itself included.
    pub in_flight_when_sent: ByteCount,
    /// The packet before it was lost too: tells bursts from single losses.
    pub continues: bool,
    /// Bytes considered lost since it was sent, itself included.
    pub lost_since_sent: ByteCount,
    /// Total delivered when it was sent: tells round trips apart.
    pub delivered_when_sent: ByteCount,
    /// What is still in flight.
    pub in_flight: ByteCount,
}

/// What a controller is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Finding the rate.
    Starting,
    /// Sending at the full rate.
    Steady,
    /// Sending more for a while, to test whether more arrives.
    Probing,
    /// Sending less, so that a standing queue drains.
    Draining,
    /// Sending less after a loss or a queue; the rate is rising again.
    Recovering,
}

impl Phase {
    /// For status output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Steady => "steady",
            Self::Probing => "probing",
            Self::Draining => "draining",
            Self::Recovering => "recovering",
        }
    }
}

/// A controller's state, for status output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// What the controller is doing.
    pub phase: Phase,
    /// The rate allowed now, in IP packets.
    pub rate: Rate,
    /// What may be in flight now.
    pub window: ByteCount,
    /// The round-trip time of the empty line, if known.
    pub base_rtt: Option<Duration>,
    /// Round-trip time above the base in the last interval that was judged.
    pub queue: Duration,
    /// How often a standing queue was drained, or the window was reduced.
    pub drains: u64,
    /// How often the base was measured anew, because sending less did not shorten the round trip.
    pub route_changes: u64,
}

/// What is remembered of a path until it is used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// The rate it carried.
    pub rate: Rate,
    /// Its round-trip time without a queue.
    pub rtt: Duration,
}

/// Decides how much and how fast a path may send. Sizes are those of whole IP packets.
pub trait Controller: Send + core::fmt::Debug {
    /// `bytes` were sent; `in_flight` is what is in flight with them.
    fn on_sent(&mut self, _now: Instant, _bytes: ByteCount, _in_flight: ByteCount) {}

    /// `packets` packets sent at `sent` arrived; [`Controller::on_ack`] follows at the end of the
    /// batch.
    fn on_arrived(&mut self, _sent: Instant, _packets: u32) {}

    /// A batch of acknowledgements arrived.
    fn on_ack(&mut self, now: Instant, ack: &Ack);

    /// A packet is considered lost. Losses found with a batch of acknowledgements are reported
    /// after it.
    fn on_loss(&mut self, now: Instant, loss: &LossEvent);

    /// The rate to pace at.
    fn pacing_rate(&self) -> Rate;

    /// How many bytes may be in flight.
    fn window(&self) -> ByteCount;

    /// When [`Controller::on_timeout`] is due, for controllers that act by time.
    fn next_timeout(&self) -> Option<Instant> {
        None
    }

    /// The time-out is due.
    fn on_timeout(&mut self, _now: Instant) {}

    /// What should be remembered of the path, once something is known.
    fn memory(&self) -> Option<Memory> {
        None
    }

    /// Current state.
    fn status(&self) -> Status;
}
