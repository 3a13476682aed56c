//! What the session needs of a path: room for symbols, news of those sent, an ordered control
//! stream.
//!
//! A path may lose, repeat and reorder symbols. Whether they arrived is its business to find out
//! ([`PathEvent::Acked`], [`PathEvent::Lost`]); both are hints that may be wrong, because the far
//! end's report is what counts. When a path may send, and how fast, is its congestion controller's
//! decision.

use bytes::Bytes;
use skyhaul_units::{ByteCount, Duration, Instant, Probability, Rate};

/// A path within a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u8);

/// The session's name for one transmission of one symbol. Each transmission gets a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// What a path reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathEvent {
    /// The path carries symbols of up to `payload` bytes from now on. Reported again when `payload`
    /// changes.
    Up {
        /// Largest symbol datagram, its own header included, in bytes. A path with less than
        /// [`PAYLOAD_MIN`] is not used.
        payload: usize,
    },
    /// A symbol or report datagram arrived.
    Datagram(Bytes),
    /// The next bytes of the control stream arrived, in order.
    Control(Bytes),
    /// The far end's path received the datagram sent under this token.
    Acked(Token),
    /// The datagram sent under this token is considered lost.
    Lost(Token),
    /// The path is gone; nothing more comes from it.
    Down(DownReason),
}

/// Why a path ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DownReason {
    /// We closed it.
    ClosedHere,
    /// The far end closed it and gave this reason.
    ClosedByPeer(String),
    /// The far end closed it because its node goes on in another process, which takes calls at
    /// once.
    GoesOnElsewhere,
    /// Nothing was heard for the idle time-out.
    TimedOut,
    /// The path found the peer at fault, or failed itself.
    Failed(String),
}

/// A path's measurements, for scheduling and for status output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Estimate {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Smallest round-trip time seen lately.
    pub min_rtt: Duration,
    /// Mean deviation of the round-trip time.
    pub rtt_variation: Duration,
    /// The rate the congestion controller allows now, counted in IP packets.
    pub rate: Rate,
    /// Share of datagrams lost, over the last few thousand.
    pub loss: Probability,
    /// When the far end last acknowledged anything, signs of life included; zero where the path
    /// does not say.
    pub answered: Instant,
    /// Bytes of IP packets that left this end so far, the path's own and headers included; zero
    /// where the path does not say.
    pub sent: ByteCount,
}

impl core::fmt::Display for DownReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::ClosedHere => f.write_str("closed by this end"),
            Self::ClosedByPeer(reason) => write!(f, "closed by the far end: {reason}"),
            Self::GoesOnElsewhere => f.write_str(GOES_ON),
            Self::TimedOut => f.write_str("nothing was heard from the far end"),
            Self::Failed(reason) => f.write_str(reason),
        }
    }
}

/// What a node says that goes on in another process.
pub const GOES_ON: &str = "the node goes on in another process";

/// The smallest payload with which a path can be used: a report of one flow at its longest fits.
pub const PAYLOAD_MIN: usize = 400;
/// The largest payload that is used: what repair is computed of has a length of 16 bits.
pub const PAYLOAD_MAX: usize = 65_000;

/// How a session may use a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PathOptions {
    /// Sending on it costs: it carries only what would be late on the free ones.
    pub metered: bool,
    /// It is used only while no other path works.
    pub standby: bool,
}

/// What a session does with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathState {
    /// It is being set up.
    Probing,
    /// It carries what it has room for.
    Active,
    /// It waits for the others to fail.
    Standby,
    /// It has not answered for longer than a round trip allows: nothing goes there but a report now
    /// and then, to see whether it is back.
    Stalled,
    /// Nothing was heard from it for long, and no other path carries its data: only what loses its
    /// worth by waiting goes there, and a report now and then, to see whether it is back.
    Silent,
    /// It answers short datagrams, and brings no symbols: full ones are tried now and then.
    BlackHole,
    /// A hint says that it is out, or will be before an answer came back.
    Absent,
}

impl PathState {
    /// For status output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Probing => "probing",
            Self::Active => "active",
            Self::Standby => "standby",
            Self::Stalled => "stalled",
            Self::Silent => "silent",
            Self::BlackHole => "black-hole",
            Self::Absent => "absent",
        }
    }
}

/// One way between two nodes, driven without IO: time is passed in.
pub trait Path {
    /// How many full-size datagrams the congestion controller and the pacer let go at `now`.
    fn room(&mut self, now: Instant) -> usize;

    /// Hands over one datagram of at most the announced payload. Call only while `room` is above
    /// zero. `token` is `None` for datagrams whose fate the session does not follow (reports).
    fn send(&mut self, now: Instant, token: Option<Token>, datagram: Bytes);

    /// Appends to the ordered, reliable control stream. Bounded: returns the number of bytes taken.
    fn send_control(&mut self, now: Instant, bytes: &[u8]) -> usize;

    /// The next event, until `None`.
    fn poll(&mut self, now: Instant) -> Option<PathEvent>;

    /// Current measurements.
    fn estimate(&self) -> Estimate;

    /// Closes the path, telling the far end `reason`.
    fn close(&mut self, now: Instant, reason: &str);
}
