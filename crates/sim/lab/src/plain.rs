//! A path without QUIC between two sessions: for tests of what lies above a path, thousands of runs
//! at a time.
//!
//! It knows the fate of each datagram when it is sent, and tells it after a round trip, or lies
//! about it, or keeps it to itself: a path's claims are hints, and the session above must do
//! without them. Its acknowledgements are lost on the way back as any datagram is. It lets
//! datagrams go exactly at the line's rate, and no more of them than two round trips hold: what a
//! controller that knows the line would do.

mod acks;
mod chance;
mod end;
mod timeline;

pub(crate) use end::HEADERS as IP_AND_QUIC;
pub use end::PlainEnd;

use core::num::NonZeroU32;
use skyhaul_units::{Duration, Instant, Probability, Rate};

/// What one direction of a path does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainLine {
    /// The line's rate, counted in IP packets.
    pub rate: Rate,
    /// From the end of a datagram's transmission to its arrival.
    pub one_way_delay: Duration,
    /// Datagrams lost.
    pub loss: Probability,
    /// How many datagrams in a row are lost, on average; 1 for losses that know nothing of each
    /// other.
    pub mean_burst: NonZeroU32,
    /// Datagrams that the path calls arrived although they were dropped behind it.
    pub lies: Probability,
    /// Datagrams of whose fate the path never tells.
    pub silence: Probability,
    /// How the far end acknowledges.
    pub acknowledging: Acknowledging,
    /// Largest datagram, in bytes.
    pub payload: usize,
    /// Datagrams are taken so long before they leave, as an end does that is served in ticks.
    pub ahead: Duration,
}

impl Default for PlainLine {
    /// 93 Mbit/s, 160 ms there and back, nothing lost, datagrams as QUIC leaves them of IPv4
    /// packets of 1500 bytes.
    fn default() -> Self {
        let (rate, one_way_delay) = (Rate::from_mbps(93), Duration::from_millis(80));
        let (loss, lies, silence) = Default::default();
        let (acknowledging, mean_burst, ahead) =
            (Acknowledging::Each, NonZeroU32::MIN, Duration::ZERO);
        Self {
            rate,
            one_way_delay,
            loss,
            mean_burst,
            lies,
            silence,
            acknowledging,
            payload: 1438,
            ahead,
        }
    }
}

/// When the far end of a path acknowledges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Acknowledging {
    /// Each datagram as it arrives.
    #[default]
    Each,
    /// Ten at a time, or what came within 25 ms (RFC 9000 18.2).
    Batches,
}

/// What becomes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainChange {
    /// Another rate.
    Rate(Rate),
    /// Another delay in both directions, for datagrams that leave from then on.
    OneWayDelay(Duration),
    /// Another share of loss, with the bursts it had.
    Loss(Probability),
    /// Nothing gets through for so long, and no news of it comes before it is over.
    Hole(Duration),
}

/// A path's two ends. After an end was used, [`PlainPath::exchange`] moves what it sent.
#[derive(Debug)]
pub struct PlainPath {
    /// The ends, to drive a session over.
    pub ends: [PlainEnd; 2],
}

impl PlainPath {
    /// A path that is the same in both directions, whose chances `seed` decides.
    pub fn new(line: PlainLine, seed: u64) -> Self {
        Self::between([line, line], seed)
    }

    /// A path of two directions: from the first end to the second, and back.
    pub fn between([there, back]: [PlainLine; 2], seed: u64) -> Self {
        let ends = [PlainEnd::new(there, back, seed), PlainEnd::new(back, there, seed ^ 0x5555)];
        Self { ends }
    }

    /// Puts what each end sent under way to the other.
    pub fn exchange(&mut self) {
        let [first, second] = &mut self.ends;
        first.pass_on(second);
        second.pass_on(first);
    }

    /// Lets nothing through before `until`. What is under way arrives.
    pub fn cut(&mut self, until: Instant) {
        for end in &mut self.ends {
            end.cut(until);
        }
    }

    /// Both directions change at an instant to come. Changes are told in the order in which they
    /// happen.
    pub fn change(&mut self, at: Instant, change: PlainChange) {
        for side in 0..2 {
            self.change_from(side, at, change);
        }
    }

    /// The direction from one end, 0 or 1, to the other changes.
    pub fn change_from(&mut self, side: usize, at: Instant, change: PlainChange) {
        self.ends[side].change(at, change);
        self.ends[1 - side].change_back(at, change);
    }
}

#[cfg(test)]
mod tests;
