//! What a path tells its congestion controller, and what it asks.

use skyhaul_units::{Bytes, Duration, Instant, Rate};

/// News that datagrams arrived: one batch of acknowledgements, reported by one packet of the far end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// What arrived, in IP packet bytes.
    pub bytes: Bytes,
    /// From sending the newest datagram of the batch until now, the far end's delay in acknowledging included.
    pub rtt: Duration,
    /// The path's smoothed round-trip time.
    pub smoothed: Duration,
    /// True when a full count of datagrams made the far end acknowledge at once, so that `rtt` holds no wait
    /// for an acknowledgement timer.
    pub prompt: bool,
}

/// What a controller is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Sending at the full rate.
    Steady,
    /// Sending less, so that a standing queue empties.
    Draining,
    /// The queue has emptied; the rate is coming back.
    Recovering,
}

/// A controller's state, for status output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// What the controller is doing.
    pub phase: Phase,
    /// The rate allowed now, in IP packets.
    pub rate: Rate,
    /// The round-trip time of the empty line, as far as known.
    pub base_rtt: Option<Duration>,
    /// Round-trip time above the base in the last interval that was judged.
    pub queue: Duration,
    /// How often a standing queue was drained.
    pub drains: u64,
    /// How often the base was learned anew, because less sending did not shorten the round trip.
    pub route_changes: u64,
}

/// Decides how much and how fast a path may send. Sizes are those of whole IP packets.
pub trait Controller: Send {
    /// `bytes` were sent; `in_flight` is what is under way with them.
    fn on_sent(&mut self, now: Instant, bytes: Bytes, in_flight: Bytes);

    /// A batch of acknowledgements came.
    fn on_ack(&mut self, now: Instant, ack: &Ack);

    /// `bytes` are considered lost.
    fn on_loss(&mut self, now: Instant, bytes: Bytes);

    /// The rate to pace at.
    fn pacing_rate(&self) -> Rate;

    /// How many bytes may be under way.
    fn window(&self) -> Bytes;

    /// Current state.
    fn status(&self) -> Status;
}
