//! What is known of a path beforehand, from a contact plan or signal strength: when it will be out,
//! and how much it will carry.
//!
//! Before an outage nothing is put on the path that would not arrive, and be answered, before it
//! begins; without another path the answer may wait until afterwards. While it lasts the path
//! counts as absent: nothing goes there to see whether it is back, and its silence is no stall. At
//! its end the path is used at once, at the rate that was foretold or is remembered. The forecast
//! of flows counts with all of it.

use skyhaul_units::{Duration, Instant, Rate};

/// Something that will happen to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// From then on it carries this much, counted in IP packets. Believed for eight round trips, a
    /// second at least: by then the path has measured it.
    Rate {
        /// When it begins to.
        from: Instant,
        /// How much.
        rate: Rate,
    },
    /// It carries nothing between these two.
    Outage {
        /// When it goes.
        from: Instant,
        /// When it is back.
        until: Instant,
    },
    /// All that was foretold of the path is void.
    Withdraw,
}

/// What is foretold of one path.
#[derive(Debug, Default)]
pub struct Hints {
    /// In their order, without overlap.
    outages: Vec<(Instant, Instant)>,
    /// In their order.
    rates: Vec<(Instant, Rate)>,
    /// How long before an outage the path is left.
    reach: Duration,
    standing: Presence,
    /// The rate foretold, while it is believed.
    pub predicted: Option<Rate>,
    /// What is under way is not called lost before this.
    pub judge_from: Instant,
}

/// Whether a path may be used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Presence {
    #[default]
    Present,
    /// What would be sent now would not arrive before the outage.
    Leaving,
    Out {
        until: Instant,
    },
}

/// Outages, and rates, foretold of one path at a time: four days of passes of a low orbit.
const FORETOLD_MAX: usize = 64;
/// A controller has found its rate within so many round trips, by the bar that it is held to.
const BELIEVED_ROUND_TRIPS: u64 = 8;
/// And a prediction holds for so long at least: the far end's reports and the pacer's ticks need
/// time on short paths.
const BELIEVED_MIN: Duration = Duration::from_secs(1);
/// An acknowledgement may be held back for 25 ms (RFC 9000 18.2), and a tick of 4 ms at each end.
const ANSWER_DELAY: Duration = Duration::from_millis(35);
/// A tick of 4 ms at each end.
const TICKS: Duration = Duration::from_millis(8);
/// Whether another path is usable beside one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// It takes over what this path leaves.
    Another,
    /// What this path leaves waits.
    None,
}

impl Hints {
    /// Takes a hint in; whether there was room for it.
    pub fn add(&mut self, hint: Hint) -> bool {
        match hint {
            Hint::Rate { from, rate } => {
                let at = self.rates.partition_point(|(earlier, _)| *earlier < from);
                if self.rates.get(at).is_some_and(|(same, _)| *same == from) {
                    self.rates[at].1 = rate;
                    return true;
                }
                let fits = self.rates.len() < FORETOLD_MAX;
                if fits {
                    self.rates.insert(at, (from, rate));
                }
                fits
            }
            Hint::Outage { from, until } if from < until => {
                let touches = |(begin, end): &(Instant, Instant)| *begin <= until && from <= *end;
                let merged = self
                    .outages
                    .iter()
                    .filter(|outage| touches(outage))
                    .fold((from, until), |all, outage| (all.0.min(outage.0), all.1.max(outage.1)));
                self.outages.retain(|outage| !touches(outage));
                let fits = self.outages.len() < FORETOLD_MAX;
                if fits {
                    let at = self.outages.partition_point(|(begin, _)| *begin < merged.0);
                    self.outages.insert(at, merged);
                }
                fits
            }
            Hint::Outage { .. } => true,
            Hint::Withdraw => {
                self.outages.clear();
                self.rates.clear();
                true
            }
        }
    }

    pub fn is_idle(&self) -> bool {
        self.outages.is_empty()
            && self.rates.is_empty()
            && self.predicted.is_none()
            && self.standing == Presence::Present
    }

    /// Whether the path is to be left alone now.
    pub fn is_absent(&self) -> bool {
        self.standing != Presence::Present
    }

    /// Until when it is out; none where it is not.
    pub fn out_until(&self) -> Option<Instant> {
        match self.standing {
            Presence::Out { until } => Some(until),
            Presence::Present | Presence::Leaving => None,
        }
    }

    /// Whether what is sent at `now` has its time.
    pub fn lets(&self, now: Instant) -> bool {
        self.standing(now) == Presence::Present
    }

    fn standing(&self, now: Instant) -> Presence {
        match self.outages.iter().find(|(_, until)| now < *until) {
            Some((from, until)) if *from <= now => Presence::Out { until: *until },
            Some((from, _)) if *from <= now + self.reach => Presence::Leaving,
            _ => Presence::Present,
        }
    }

    fn predicted_at(&self, now: Instant, rtt: Duration) -> Option<Rate> {
        let hold = (rtt * BELIEVED_ROUND_TRIPS).max(BELIEVED_MIN);
        let (from, rate) = self.rates.iter().rev().find(|(from, _)| *from <= now)?;
        // Nothing is measured while the path is out: the time counts from its end.
        let out = self.outages.iter().rev().find(|(begin, until)| *begin <= now && *from < *until);
        let since = out.map_or(*from, |(_, until)| (*until).max(*from));
        (now < since + hold).then_some(*rate)
    }

    /// Forgets what lies so far behind that it tells nothing.
    fn forget_before(&mut self, now: Instant, hold: Duration) {
        self.outages.retain(|(_, until)| now < *until + hold);
        let current = self.rates.partition_point(|(from, _)| *from <= now).saturating_sub(1);
        self.rates.drain(..current);
        if self.rates.first().is_some_and(|(from, _)| *from + hold * 2 <= now)
            && self.outages.is_empty()
        {
            self.rates.remove(0);
        }
    }

    /// When the path's standing, or the rate foretold, changes next.
    pub fn next_change(&self, now: Instant) -> Option<Instant> {
        let edges =
            self.outages.iter().flat_map(|(from, until)| [*from - self.reach, *from, *until]);
        edges.chain(self.rates.iter().map(|(from, _)| *from)).filter(|at| *at > now).min()
    }

    /// Brings the path's standing and the rate foretold up to date, for a path of this round trip
    /// and its swing.
    pub fn update(&mut self, now: Instant, rtt: Duration, swing: Duration, beside: Beside) {
        // Where another path takes what this one leaves, the answer has to be back too: what
        // arrived and is not known to have would be sent again there.
        let reach = match beside {
            Beside::Another => rtt + swing + ANSWER_DELAY,
            Beside::None => rtt / 2 + swing / 2 + TICKS,
        };
        if !self.is_absent() {
            self.reach = reach;
        }
        self.predicted = self.predicted_at(now, rtt);
        self.forget_before(now, (rtt * BELIEVED_ROUND_TRIPS).max(BELIEVED_MIN));
        self.standing = self.standing(now);
        if let Presence::Out { until } = self.standing
            && beside == Beside::None
        {
            self.judge_from = until + rtt + swing + ANSWER_DELAY;
        }
    }

    /// Whether an outage is foretold for what is sent at one instant and arrives at another.
    pub fn is_out(&self, sending: Instant, arriving: Instant) -> bool {
        self.outages.iter().any(|(from, until)| *from <= sending && arriving < *until)
    }

    /// The rate foretold for `at` that does not hold yet at `now`.
    pub fn rate_foretold(&self, now: Instant, at: Instant) -> Option<Rate> {
        let foretold = self.rates.iter().rev().find(|(from, _)| now < *from && *from <= at);
        foretold.map(|(_, rate)| *rate)
    }

    /// When what is sent arrives no longer, arrives again, or at another rate; all that is foretold
    /// of a path of this delay.
    pub fn edges(&self, one_way_delay: Duration) -> impl Iterator<Item = Instant> + '_ {
        let outages =
            self.outages.iter().flat_map(move |(from, until)| [*from - one_way_delay, *until]);
        outages.chain(self.rates.iter().map(|(from, _)| *from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn outage(from: u64, until: u64) -> Hint {
        Hint::Outage { from: at(from), until: at(until) }
    }

    #[test]
    fn outages_that_touch_become_one_and_their_number_is_bounded() {
        let mut hints = Hints::default();
        for hint in [outage(100, 200), outage(400, 500), outage(200, 300), outage(900, 900)] {
            assert!(hints.add(hint));
        }
        assert_eq!(hints.outages, [(at(100), at(300)), (at(400), at(500))]);
        for number in 2..64 {
            assert!(hints.add(outage(1_000 * number, 1_000 * number + 1)));
        }
        assert!(!hints.add(outage(100_000, 100_001)));
        assert!(hints.add(outage(0, 200_000)), "one in place of all");
        assert_eq!(hints.outages.len(), 1);
        for number in 0..64 {
            assert!(hints.add(Hint::Rate { from: at(number), rate: Rate::from_mbps(1) }));
        }
        assert!(!hints.add(Hint::Rate { from: at(99), rate: Rate::from_mbps(1) }));
        assert!(hints.add(Hint::Withdraw) && hints.is_idle());
    }

    #[test]
    fn a_path_is_left_as_long_before_as_its_answers_take_and_out_until_the_end() {
        let mut hints = Hints { reach: Duration::from_millis(60), ..Hints::default() };
        hints.add(outage(1_000, 2_000));
        let standing =
            [939, 940, 999, 1_000, 1_999, 2_000].map(|millis| hints.standing(at(millis)));
        let (leaving, out) = (Presence::Leaving, Presence::Out { until: at(2_000) });
        assert_eq!(standing, [Presence::Present, leaving, leaving, out, out, Presence::Present]);
        let changes = [0, 940, 1_000, 2_000].map(|millis| hints.next_change(at(millis)));
        assert_eq!(changes, [Some(at(940)), Some(at(1_000)), Some(at(2_000)), None]);
    }

    #[test]
    fn a_rate_is_believed_until_it_can_have_been_measured() {
        let mut hints = Hints::default();
        let rate = Rate::from_mbps(7);
        hints.add(Hint::Rate { from: at(5_000), rate });
        let believed =
            |hints: &Hints, millis| hints.predicted_at(at(millis), Duration::from_millis(500));
        let times = [4_999, 5_000, 8_999, 9_000];
        assert_eq!(
            times.map(|millis| believed(&hints, millis)),
            [None, Some(rate), Some(rate), None]
        );
        hints.add(outage(4_000, 8_000));
        assert_eq!(
            [8_000, 11_999, 12_000].map(|millis| believed(&hints, millis)),
            [Some(rate), Some(rate), None]
        );
    }
}
