//! Finding the rate from nothing, or from what is remembered.

use super::intervals::Interval;
use super::loss::Round;
use super::share::PPM;
use crate::{Ack, Memory};
use skyhaul_units::{ByteCount, Duration, Instant, Rate};

/// The state while the rate is unknown, or while a remembered one is tested.
#[derive(Debug, Clone, Copy)]
pub(super) struct Startup {
    /// Data in flight at the pace, on an empty line.
    amount: ByteCount,
    memory: Option<Memory>,
    arrived: u64,
    lost: u64,
    queued: Option<Queued>,
    round: Round,
    is_warned: bool,
    /// Quarters of a round trip in a row in which much more was sent than before, but no more
    /// arrived.
    flat: u32,
    /// The last interval seen was at a rate that may make a queue.
    is_used: bool,
}

/// A queue that ends start-up.
#[derive(Debug, Clone, Copy)]
pub(super) struct StandingQueue {
    pub(super) longer_than: Duration,
    pub(super) at_least_for: Duration,
}

impl Startup {
    pub(super) fn new(memory: Option<Memory>) -> Self {
        let round = Round::default();
        let (amount, queued) = (INITIAL, None);
        Self {
            amount,
            memory,
            arrived: 0,
            lost: 0,
            queued,
            round,
            is_warned: false,
            flat: 0,
            is_used: false,
        }
    }

    /// The pace on a line of this empty round trip; before one is known, the first packets go out
    /// within 50 ms.
    pub(super) fn pace(&self, base: Option<Duration>) -> Rate {
        let span = base.unwrap_or(FIRST_SPAN).max(SHORTEST);
        Rate::over(self.allowed(span), span)
    }

    /// The first round trip of a long line is sent as fast as that of a short one, up to a bound.
    fn allowed(&self, span: Duration) -> ByteCount {
        match self.memory {
            Some(_) => self.amount,
            None => self.amount.max((Rate::over(INITIAL, FIRST_SPAN) * span).min(LONG_INITIAL)),
        }
    }

    /// Forgets the memory if the round trip differs by a third: it is of another route.
    pub(super) fn check_memory(&mut self, rtt: Duration) {
        let is_alike = |memory: &Memory| {
            rtt >= memory.rtt.scaled(2, 3) && rtt <= memory.rtt.scaled(3, 2) + TIMER
        };
        self.memory = self.memory.filter(is_alike);
    }

    /// Packets arrived: what arrived, and what was lost beside it, is replaced by three times as
    /// much. At an even pace the rate grows by a factor of 2.35 in a round trip (x e^x = 2).
    pub(super) fn grow(&mut self, ack: &Ack, base: Option<Duration>) {
        self.arrived += u64::from(ack.packets);
        let span = base.unwrap_or(FIRST_SPAN).max(SHORTEST);
        if let Some(memory) = self.memory {
            self.amount = memory.rate.scaled(TRIAL, 100) * span;
            return;
        }
        if self.is_warned {
            return;
        }
        let grown = u128::from(ack.bytes.as_u64()) * u128::from(GROWTH * self.sent_for_arrived())
            / u128::from(PPM);
        let grown = ByteCount::new(u64::try_from(grown).unwrap_or(u64::MAX));
        let fastest = if self.round.packets >= FEWEST_KNOWN {
            self.round.arrived().scaled(MOST_AHEAD * self.sent_for_arrived(), PPM).min(FASTEST)
        } else {
            FASTEST
        };
        let most = (fastest * span).max(INITIAL);
        let allowed = self.allowed(span);
        self.amount = (allowed + grown).min(most.max(allowed));
    }

    /// An interval was seen. Where it was slower than allowed nothing more was tried: what is
    /// allowed stays near what is used.
    pub(super) fn seen(&mut self, interval: &Interval, base: Duration) {
        self.is_used = interval.rate() >= interval.pace.scaled(1, UNUSED * 2);
        if interval.is_full() {
            return;
        }
        if self.arrived > FEWEST_ARRIVED {
            let used = interval.rate().scaled(UNUSED, 1) * base.max(SHORTEST);
            self.amount = self.amount.min(used.max(INITIAL));
        }
    }

    pub(super) fn lost(&mut self) {
        self.lost += 1;
    }

    /// The part of a round trip before this one, where more arrives than in that one: the line was
    /// not full then. `None` when what arrives grows no more, although what is sent does.
    pub(super) fn grown(&mut self, round: Round) -> Option<Round> {
        let before = core::mem::replace(&mut self.round, round);
        let has_grown = round.arrived() >= before.arrived().scaled(LEVEL, 100);
        self.is_warned &= !has_grown;
        self.flat = if !has_grown && round.is_overfull() { self.flat + 1 } else { 0 };
        has_grown.then_some(before)
    }

    /// The rate of arrival, where it has not grown for long although more was sent: the line is
    /// full, and drops what it does not carry.
    pub(super) fn is_flat(&self) -> Option<Rate> {
        (self.flat >= FLAT).then(|| self.round.arrived())
    }

    /// Too much is lost, and no more arrives than before. Returns whether this is the first time in
    /// a row, which may be a burst.
    pub(super) fn is_first_warning(&mut self) -> bool {
        !core::mem::replace(&mut self.is_warned, true)
    }

    /// The rate of arrival, once acknowledgements in a row have met a standing queue.
    pub(super) fn full(
        &mut self,
        now: Instant,
        ack: &Ack,
        queue: Duration,
        standing: StandingQueue,
    ) -> Option<Rate> {
        // Where next to nothing is sent, the far end acknowledges by its timer: the delay is not a
        // queue of ours.
        if queue <= standing.longer_than || !self.is_used {
            self.queued = None;
            return None;
        }
        let Some(queued) = &mut self.queued else {
            let factor = self.sent_for_arrived();
            self.queued = Some(Queued { since: now, arrived: ByteCount::ZERO, acks: 0, factor });
            return None;
        };
        queued.arrived += ack.bytes;
        queued.acks += 1;
        let (span, arrived, factor) = (now.since(queued.since), queued.arrived, queued.factor);
        let is_sure = queued.acks >= FEWEST_ACKS && span >= standing.at_least_for.max(SHORTEST);
        is_sure.then(|| Rate::over(arrived, span).scaled(factor, PPM))
    }

    /// The rate remembered, once an interval at a part of it met no queue.
    pub(super) fn confirm(&mut self, interval: &Interval, target: Duration) -> Option<Rate> {
        let memory = self.memory?;
        let is_tried = interval.rate() >= memory.rate.scaled(TRIAL, 150);
        (is_tried && interval.queueing() <= target).then_some(memory.rate)
    }

    /// Sent ÷ arrived, in parts per million.
    fn sent_for_arrived(&self) -> u64 {
        let all = self.arrived + self.lost;
        (all * PPM).checked_div(self.arrived).map_or(PPM, |sent| sent.min(SENT_FOR_ARRIVED_MAX))
    }
}

/// What arrived since acknowledgements meet a queue.
#[derive(Debug, Clone, Copy)]
struct Queued {
    since: Instant,
    arrived: ByteCount,
    acks: u32,
    /// Sent for what arrives, before there was a queue that could overflow.
    factor: u64,
}

/// 32 packets of 1,500 bytes: three times RFC 6928's window, but paced.
const INITIAL: ByteCount = ByteCount::new(48_000);

/// 64 packets: 4.8 Mbit/s at 160 ms; where the line carries 1 Mbit/s, three quarters of a second of
/// it.
const LONG_INITIAL: ByteCount = ByteCount::new(96_000);

/// While the line is not full, three times what arrived in the last known quarter of a round trip
/// is sent. More than four times has no measurement behind it; fewer than 200 packets are none.
const MOST_AHEAD: u64 = 4;
const FEWEST_KNOWN: u64 = 200;

/// Bytes added for each byte that arrived.
const GROWTH: u64 = 2;

/// The pace is at most four times what the application uses.
const UNUSED: u64 = 4;

/// Packets after which the application's use is measured: the handshake and the first round trip
/// do not show it.
const FEWEST_ARRIVED: u64 = 64;

/// 100 Gbit/s: beyond any path of this transport.
const FASTEST: Rate = Rate::from_mbps(100_000);

/// Acknowledgements in a row that must meet a queue: fewer may by chance.
const FEWEST_ACKS: u32 = 4;

/// Eight quarters of a round trip: within two round trips an increase would have shown.
const FLAT: u32 = 8;

/// Percentage from which arrivals count as grown. While the line is not full, the rate grows to
/// 124 % in a quarter of a round trip.
const LEVEL: u64 = 107;

/// Sent ÷ arrived at which growth no longer makes up for loss: two thirds lost.
const SENT_FOR_ARRIVED_MAX: u64 = 3 * PPM;

/// Of the remembered rate, this percentage is tried first: on a line that has become ten times
/// slower this is a queue of three round trips.
const TRIAL: u64 = 40;

/// 32 packets in 50 ms: 7.7 Mbit/s.
const FIRST_SPAN: Duration = Duration::from_millis(50);

/// The pace is not derived from shorter round trips: the pacer's ticks are 2 ms.
const SHORTEST: Duration = Duration::from_millis(1);

/// The first round trip may hold a wait for the acknowledgement timer.
const TIMER: Duration = Duration::from_millis(30);

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(160);

    fn ack(packets: u32) -> Ack {
        Ack {
            bytes: ByteCount::new(u64::from(packets) * 1_500),
            packets,
            rtt: Some(RTT),
            ..Ack::default()
        }
    }

    #[test]
    fn what_arrived_and_what_was_lost_beside_it_make_room_for_twice_as_much() {
        let mut startup = Startup::new(None);
        startup.grow(&ack(10), Some(FIRST_SPAN));
        assert_eq!(startup.amount, ByteCount::new(48_000 + 30_000));
        (0..10).for_each(|_| startup.lost());
        startup.grow(&ack(10), Some(FIRST_SPAN));
        // 30 sent for 20 arrived.
        assert_eq!(startup.amount, ByteCount::new(48_000 + 30_000 + 45_000));
    }

    #[test]
    fn a_long_line_is_begun_as_fast_as_a_short_one_up_to_a_bound() {
        let startup = Startup::new(None);
        for (millis, kbps) in [(1, 384_000), (50, 7_680), (100, 7_680), (160, 4_800), (640, 1_200)]
        {
            let pace = startup.pace(Some(Duration::from_millis(millis)));
            assert_eq!(pace, Rate::from_bps(kbps * 1_000), "{millis} ms");
        }
        let memory = Memory { rate: Rate::from_bps(500_000), rtt: RTT };
        let mut startup = Startup::new(Some(memory));
        startup.grow(&ack(1), Some(RTT));
        assert_eq!(startup.pace(Some(RTT)), Rate::from_bps(200_000));
    }

    #[test]
    fn a_memory_of_another_route_is_forgotten() {
        let memory = Memory { rate: Rate::from_mbps(100), rtt: RTT };
        for (rtt, kept) in [(40, false), (120, true), (160, true), (185, true), (600, false)] {
            let mut startup = Startup::new(Some(memory));
            startup.check_memory(Duration::from_millis(rtt));
            startup.grow(&ack(1), Some(RTT));
            assert_eq!(startup.pace(Some(RTT)) == Rate::from_mbps(40), kept, "{rtt} ms");
        }
    }

    #[test]
    fn the_line_is_full_when_acknowledgements_in_a_row_met_a_queue() {
        let mut startup = Startup { is_used: true, ..Startup::new(None) };
        let longer_than = Duration::from_millis(4);
        let standing = StandingQueue { longer_than, at_least_for: Duration::from_millis(10) };
        let mut now = Instant::ZERO;
        let mut full = None;
        for n in 0..40 {
            now += Duration::from_millis(1);
            // One in five at first met none.
            let queue = if n % 5 == 0 && n < 20 { Duration::ZERO } else { longer_than * 2 };
            full = startup.full(now, &ack(10), queue, standing);
            if full.is_some() {
                break;
            }
        }
        // 10 packets each millisecond.
        assert_eq!(full, Some(Rate::from_mbps(120)));
        assert_eq!(now, Instant::ZERO + Duration::from_millis(27));
    }
}
