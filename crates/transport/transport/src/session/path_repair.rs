//! FEC repair of one path: the coder and the decoder, the losses that were measured, and the plan
//! that follows from them.

use super::slacks::Slacks;
use crate::inflight::{Inflight, many};
use crate::repair::{
    Coder, DatagramFate, Goal, LossEstimate, LossMeter, Planner, RepairDecoder, Situation,
    UNDER_SYMBOL,
};
use skyhaul_coding::erasure::SOURCES_MAX;
use skyhaul_units::{ByteCount, Duration, Instant, Probability, Rate};

/// The FEC repair of one path.
#[derive(Debug)]
pub struct PathRepair {
    pub coder: Coder,
    pub decoder: RepairDecoder,
    losses: LossMeter,
    /// What a hint says is lost at least.
    foretold: Option<Probability>,
    planner: Planner,
    timed: Timed,
    replan_at: Instant,
    /// This many unanswered transmissions in a row are not lost by chance.
    many: u64,
}

/// Traffic with deadlines that retransmission may not meet.
#[derive(Debug, Default)]
struct Timed {
    since: Instant,
    bytes: ByteCount,
    /// Of the stretch before.
    rate: Rate,
    slacks: Slacks,
}

impl Timed {
    /// The rate of this traffic on a line of the rate `line`. At its beginning it is assumed to
    /// take half of the line, or more where one FEC group of datagrams shows more: FEC repair
    /// planned for too little traffic fills the line. A lower rate is not believed yet, since the
    /// traffic may only have begun.
    fn rate_at(&self, now: Instant, line: Rate, payload: usize) -> Rate {
        if self.rate > Rate::ZERO {
            return self.rate;
        }
        let guess = line.scaled(1, 2);
        let since = now.since(self.since);
        if since < BEGINNING || self.bytes < ByteCount::of(payload * SOURCES_MAX) {
            return guess;
        }
        Rate::over(self.bytes, since).max(guess)
    }
}

/// FEC repair is planned anew this often.
const REPLAN: Duration = Duration::from_millis(100);
/// The same before the rate of traffic with deadlines was measured once.
const BEGINNING: Duration = Duration::from_millis(25);
/// The rate of traffic with deadlines is measured over this time.
const STRETCH: Duration = Duration::from_millis(500);

impl PathRepair {
    pub fn new(goal: Goal) -> Self {
        Self {
            coder: Coder::new(),
            decoder: RepairDecoder::new(),
            losses: LossMeter::new(),
            foretold: None,
            planner: Planner::new(goal),
            timed: Timed::default(),
            replan_at: Instant::ZERO,
            many: many(0),
        }
    }

    /// This many unanswered transmissions in a row are not lost by chance.
    pub const fn many(&self) -> u64 {
        self.many
    }

    /// Passes the outcomes that became known to the loss meter, in the order of sending.
    pub fn learn_losses(&mut self, now: Instant, inflight: &mut Inflight) {
        while let Some(lost) = inflight.next_fate() {
            self.losses.fate(now, if lost { DatagramFate::Lost } else { DatagramFate::Arrived });
        }
    }

    /// A hint says that so much is lost at least, or no longer does. Before a loss was measured it
    /// takes the place of the assumption for a path that nothing is known of, which is back without
    /// it.
    pub fn foretell(&mut self, loss: Option<Probability>) {
        if self.foretold == loss {
            return;
        }
        self.foretold = loss;
        self.replan_at = Instant::ZERO;
        self.losses.assume(loss);
    }

    /// The losses to be expected: those measured, and what a hint says at least.
    fn expected(&self) -> LossEstimate {
        let measured = self.losses.estimate();
        self.foretold.map_or(measured, |loss| measured.at_least(loss))
    }

    /// The loss rate.
    pub fn loss(&self) -> Probability {
        self.expected().loss
    }

    /// The upper bound of the loss rate, with the uncertainty of the measurement.
    pub fn loss_at_most(&self) -> Probability {
        self.expected().upper
    }

    /// A symbol with a deadline goes out: it has so many `bytes`, and `slack` left after its
    /// flight. Datagrams have at most `payload` bytes.
    pub fn timed(&mut self, now: Instant, bytes: usize, slack: Duration, payload: usize) {
        let timed = &mut self.timed;
        if timed.bytes == ByteCount::ZERO && timed.rate == Rate::ZERO {
            timed.since = now;
            self.replan_at = now;
        }
        if now.since(timed.since) >= STRETCH {
            let is_recent = now.since(timed.since) < STRETCH * 4;
            timed.rate = if is_recent {
                Rate::over(timed.bytes, now.since(timed.since))
            } else {
                Rate::ZERO
            };
            timed.bytes = ByteCount::ZERO;
            if !is_recent {
                timed.slacks = Slacks::default();
            }
            timed.since = now;
            self.replan_at = now;
        }
        let full = self.coder.plan().payload.min(payload).max(1);
        self.timed.bytes += ByteCount::of(bytes + header_excess(bytes, full));
        self.timed.slacks.add(now, ByteCount::of(bytes), slack);
    }

    /// Plans FEC repair anew where that is due, for datagrams of at most `payload` bytes on a line
    /// of this round trip and rate.
    pub fn replan(&mut self, now: Instant, payload: usize, rtt: Duration, rate: Rate) {
        if now < self.replan_at {
            return;
        }
        let begins = self.timed.rate == Rate::ZERO && self.timed.bytes > ByteCount::ZERO;
        self.replan_at = now + if begins { BEGINNING } else { REPLAN };
        let slack = self.timed.slacks.typical().unwrap_or(rtt / 4);
        let flow = self.timed.rate_at(now, rate, payload);
        // The line's rate is counted in IP packets.
        let most = rate.scaled(payload as u64, (payload + UNDER_SYMBOL) as u64);
        let loss = self.expected();
        self.many = many(loss.mean_burst_milli());
        let situation = Situation {
            loss,
            rtt: Some(rtt),
            slack,
            flow,
            spare: Rate::from_bps(most.as_bps().saturating_sub(flow.as_bps())),
            payload,
        };
        self.coder.adopt(self.planner.plan(&situation));
    }
}

/// The bytes of headers below a symbol of `bytes` beyond its share of the headers of a `full`
/// datagram. Headers are a sixth of each packet of speech and text; FEC repair planned without them
/// would take the rate that those packets need.
fn header_excess(bytes: usize, full: usize) -> usize {
    UNDER_SYMBOL - UNDER_SYMBOL * bytes.min(full) / full
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    /// Bytes on the line in 20 s, of sources and of their repair: 40 symbols in a second, 127
    /// kbit/s with their headers, over 200 kbit/s whose loss is not known.
    fn carried(slack: Duration) -> (usize, usize) {
        let mut repair = PathRepair::new(Goal::default());
        let (rate, rtt) = (Rate::from_bps(200_000), Duration::from_millis(600));
        let payload = 1_430;
        let content = Bytes::from(vec![7; 330]);
        let (mut sources, mut repairs, mut now) = (0, 0, Instant::ZERO);
        for _ in 0..40 * 20 {
            repair.timed(now, content.len(), slack, payload);
            repair.replan(now, payload, rtt, rate);
            repair.coder.protect(now, &content, Some(now + slack));
            sources += content.len() + UNDER_SYMBOL;
            while let Some(symbol) = repair.coder.poll(now) {
                repairs += symbol.bytes.len() + UNDER_SYMBOL;
            }
            now += Duration::from_millis(25);
        }
        (sources, repairs)
    }

    #[test]
    fn a_loss_that_is_foretold_takes_the_place_of_the_assumption_and_is_the_least_after_it() {
        let (percent, half) = (Probability::from_ppb(10_000_000), Probability::from_ppb(5_000_000));
        let mut repair = PathRepair::new(Goal::default());
        let assumed = repair.loss_at_most();
        assert!(assumed > percent);
        repair.foretell(Some(percent));
        assert_eq!(repair.loss(), percent);
        assert!(repair.loss_at_most() < assumed, "no longer that of an unknown path");
        for millis in 0..4_000 {
            repair.losses.fate(Instant::from_nanos(millis * 1_000_000), DatagramFate::Arrived);
        }
        assert_eq!(repair.loss(), percent, "although nothing was lost");
        assert!(!repair.expected().is_clean);
        repair.foretell(Some(half));
        assert_eq!(repair.loss(), half);
        repair.foretell(None);
        assert_eq!(repair.loss(), Probability::ZERO);
    }

    /// Regression: a loss that was foretold stayed the assumption after it was withdrawn, until
    /// there was traffic.
    #[test]
    fn a_loss_that_is_withdrawn_leaves_nothing_of_it() {
        let third = Probability::of(1, 3);
        for fates in [0, 1, 50, 199] {
            let [mut hinted, mut other] = [(); 2].map(|()| PathRepair::new(Goal::default()));
            hinted.foretell(Some(third));
            for number in 0..fates {
                let fate =
                    if number % 10 == 3 { DatagramFate::Lost } else { DatagramFate::Arrived };
                for repair in [&mut hinted, &mut other] {
                    repair.losses.fate(Instant::from_nanos(number * 1_000_000), fate);
                }
            }
            assert!(hinted.loss() >= third && other.loss() < third, "{fates} fates");
            hinted.foretell(None);
            assert_eq!(hinted.expected(), other.expected(), "{fates} fates");
        }
    }

    /// Of speech and text each packet is headers by a sixth. Repair that did not count them took
    /// more than the line had left, and most of what it was to repair came late.
    #[test]
    fn repair_of_small_symbols_leaves_them_the_line_with_their_headers() {
        let most = 200_000 / 8 * 20;
        for millis in [100, 150, 200, 250, 300, 400] {
            let (sources, repairs) = carried(Duration::from_millis(millis));
            assert!(repairs > 0, "{millis} ms: there is room for some");
            assert!(sources + repairs <= most, "{millis} ms: {sources} and {repairs} in {most}");
        }
    }
}
