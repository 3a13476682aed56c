//! Finding the rate from nothing, or from what is remembered.

use super::flights::Flight;
use crate::{Ack, Memory};
use skyhaul_units::{Bytes, Duration, Probability, Rate};

/// The state while nothing is known, or while what is remembered is being tried.
#[derive(Debug, Clone, Copy)]
pub(super) struct Startup {
    /// What would be under way at the pace, on an empty line.
    amount: Bytes,
    memory: Option<Memory>,
    arrived: u64,
    lost: u64,
    /// Flights in a row that met a queue.
    queued: u32,
    /// The rate of arrival half a round trip before.
    arrival: Rate,
}

impl Startup {
    pub(super) const fn new(memory: Option<Memory>) -> Self {
        Self { amount: INITIAL, memory, arrived: 0, lost: 0, queued: 0, arrival: Rate::ZERO }
    }

    /// The pace on a line of this empty round trip; before one is known, the first packets go out within 50 ms.
    pub(super) fn pace(&self, base: Option<Duration>) -> Rate {
        let span = base.map_or(FIRST_SPAN, |base| base.max(SHORTEST));
        let trial = self.memory.map_or(Rate::ZERO, |memory| memory.rate.scaled(TRIAL, 100));
        Rate::over(self.amount, span).max(trial)
    }

    /// What is remembered is of another route when the round trip is another.
    pub(super) fn check_memory(&mut self, rtt: Duration) {
        let is_alike =
            |memory: &Memory| rtt >= memory.rtt.scaled(2, 3) && rtt <= memory.rtt.scaled(3, 2) + TIMER;
        self.memory = self.memory.filter(is_alike);
    }

    /// What arrived makes room for more: three times as much for what arrived, and for what was lost beside
    /// it. At an even pace that is a factor of 2.35 in a round trip (x e^x = 2).
    pub(super) fn grow(&mut self, ack: &Ack, base: Option<Duration>, ceiling: Rate) {
        self.arrived += u64::from(ack.packets);
        let delivered = Probability::of(self.arrived, self.arrived + self.lost).as_ppb().max(LEAST_DELIVERED);
        let grown = ack.bytes.as_u64().saturating_mul(GROWTH) / 2;
        let grown = u128::from(grown) * u128::from(Probability::ONE.as_ppb()) / u128::from(delivered);
        let most = ceiling * base.unwrap_or(FIRST_SPAN).max(SHORTEST);
        self.amount =
            (self.amount + Bytes::new(u64::try_from(grown).unwrap_or(u64::MAX))).min(most.max(INITIAL));
    }

    pub(super) fn lost(&mut self) {
        self.lost += 1;
    }

    /// Whether what arrives in half a round trip grows no more, although what is sent does.
    pub(super) fn is_level(&mut self, arrival: Rate) -> bool {
        let before = core::mem::replace(&mut self.arrival, arrival);
        arrival < before.scaled(LEVEL, 100)
    }

    /// What a flight says about the line, where it says enough.
    pub(super) fn judge(&mut self, flight: &Flight, target: Duration) -> Finding {
        let queue = flight.queueing();
        self.queued = if queue > target { self.queued + 1 } else { 0 };
        if self.queued >= 2 || queue > target * 2 {
            return Finding::Full;
        }
        match self.memory {
            Some(memory) if self.queued == 0 && flight.queue.is_some() && flight.is_full() => {
                let is_tried = flight.rate() >= memory.rate.scaled(TRIAL, 150);
                if is_tried { Finding::AsRemembered(memory.rate) } else { Finding::Nothing }
            }
            _ => Finding::Nothing,
        }
    }
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finding {
    /// Go on.
    Nothing,
    /// The line is full.
    Full,
    /// A part of the remembered rate got through without a queue.
    AsRemembered(Rate),
}

/// 32 packets of 1,500 bytes: three times RFC 6928's window, but paced.
const INITIAL: Bytes = Bytes::new(48_000);

/// Halves of what arrived that are added.
const GROWTH: u64 = 4;

/// In half a round trip the rate grows to 153 % while the line isn't full.
const LEVEL: u64 = 115;

/// At higher loss than two thirds the growth is slower.
const LEAST_DELIVERED: u32 = 333_333_333;

/// Of the remembered rate, this percentage is tried first: on a line that has become ten times slower this is a queue
/// of three round trips.
const TRIAL: u64 = 40;

/// 32 packets in 50 ms: 7.7 Mbit/s.
const FIRST_SPAN: Duration = Duration::from_millis(50);

/// The pace is not derived from shorter round trips: the pacer's ticks are 2 ms.
const SHORTEST: Duration = Duration::from_millis(1);

/// The first round trip may hold a wait for the acknowledgement timer.
const TIMER: Duration = Duration::from_millis(30);
