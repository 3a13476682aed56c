//! Forecasts of a path, from a contact plan or signal strength: its outages, its rates and its
//! losses.
//!
//! Before an outage, a path gets no datagram that would not arrive, and be acknowledged, before the
//! outage begins; without another path, the acknowledgement may come afterwards. During the outage
//! the path counts as absent: it is not probed, and its silence is no stall. At the end the path is
//! used at once, at the rate that was forecast or measured last. The forecasts of flows include all
//! of this.
//!
//! A rate with an end is a ceiling too: the session sends no more, so that what is urgent does not
//! wait in a queue behind it. A loss is what FEC repair is sized for before a loss was measured,
//! and at least, until its end.

use skyhaul_units::{Duration, Instant, Probability, Rate};

/// A forecast of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// The path's rate from an instant on, counted in IP packets. It is used for eight round trips,
    /// and for one second at least: by then the path has measured its rate.
    Rate {
        /// When it begins.
        from: Instant,
        /// Until then the path carries no more, whatever it measures. Left out: no ceiling.
        until: Option<Instant>,
        /// The rate.
        rate: Rate,
    },
    /// The share of datagrams that the path loses at least.
    Loss {
        /// When it begins.
        from: Instant,
        /// When it ends.
        until: Instant,
        /// The share.
        loss: Probability,
    },
    /// An outage: the path carries nothing.
    Outage {
        /// When it begins.
        from: Instant,
        /// When it ends.
        until: Instant,
    },
    /// Withdraws all forecasts of the path.
    Withdraw,
}

/// The forecasts of one path.
#[derive(Debug, Default)]
pub struct Hints {
    /// In their order, without overlap.
    outages: Vec<(Instant, Instant)>,
    /// In their order.
    rates: Vec<ForetoldRate>,
    /// In their order.
    losses: Vec<ForetoldLoss>,
    /// How long before an outage the path gets no more datagrams.
    reach: Duration,
    standing: Presence,
    /// The forecast rate, while it is used.
    pub predicted: Option<Rate>,
    /// What the path carries at most now.
    pub ceiling: Option<Rate>,
    /// What it loses at least now.
    pub loss: Option<Probability>,
    /// Nothing in flight counts as lost before this instant.
    pub judge_from: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ForetoldRate {
    from: Instant,
    until: Option<Instant>,
    rate: Rate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ForetoldLoss {
    from: Instant,
    until: Instant,
    loss: Probability,
}

/// Whether a path may be used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Presence {
    #[default]
    Present,
    /// A datagram sent now would not arrive before the outage.
    Leaving,
    Out {
        until: Instant,
    },
}

/// Outages, rates and losses, of each, forecast of one path at most: four days of passes of a low
/// orbit.
const FORETOLD_MAX: usize = 64;
/// A congestion controller finds the rate within eight round trips: its tests require that.
const BELIEVED_ROUND_TRIPS: u64 = 8;
/// A forecast is used for one second at least: on short paths, the far end's reports and the
/// pacer's ticks take longer than eight round trips.
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
    /// Adds a hint; returns whether there was room for it.
    pub fn add(&mut self, hint: Hint) -> bool {
        match hint {
            Hint::Rate { from, until, rate } => {
                let new = ForetoldRate { from, until, rate };
                insert(&mut self.rates, new, |rate| rate.from)
            }
            Hint::Loss { from, until, loss } => {
                let new = ForetoldLoss { from, until, loss };
                insert(&mut self.losses, new, |loss| loss.from)
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
                self.losses.clear();
                true
            }
        }
    }

    pub fn is_idle(&self) -> bool {
        self.outages.is_empty()
            && self.rates.is_empty()
            && self.losses.is_empty()
            && self.predicted.is_none()
            && self.ceiling.is_none()
            && self.loss.is_none()
            && self.standing == Presence::Present
    }

    /// Whether the path is out, or about to be.
    pub fn is_absent(&self) -> bool {
        self.standing != Presence::Present
    }

    /// Until when the path is out; none if it is not.
    pub fn out_until(&self) -> Option<Instant> {
        match self.standing {
            Presence::Out { until } => Some(until),
            Presence::Present | Presence::Leaving => None,
        }
    }

    /// Whether a datagram sent at `now` arrives before the next outage.
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
        let ForetoldRate { from, rate, .. } = self.rate_at(now)?;
        // Nothing is measured while the path is out: the time counts from the end of the outage.
        let out = self.outages.iter().rev().find(|(begin, until)| *begin <= now && from < *until);
        let since = out.map_or(from, |(_, until)| (*until).max(from));
        (now < since + hold).then_some(rate)
    }

    /// Of the rates that hold at an instant, the one that begins last.
    fn rate_at(&self, at: Instant) -> Option<ForetoldRate> {
        self.rates.iter().rev().find(|rate| rate.from <= at && rate.lasts(at)).copied()
    }

    /// What the path carries at most at an instant.
    pub fn ceiling_at(&self, at: Instant) -> Option<Rate> {
        let holds = self.rate_at(at).filter(|rate| rate.until.is_some());
        holds.map(|rate| rate.rate).filter(|rate| *rate > Rate::ZERO)
    }

    /// Of the losses that hold at an instant, the one that begins last.
    fn loss_at(&self, at: Instant) -> Option<Probability> {
        let holds = self.losses.iter().rev().find(|loss| loss.from <= at && at < loss.until);
        holds.map(|loss| loss.loss)
    }

    /// Removes forecasts that are too old to matter.
    fn forget_before(&mut self, now: Instant, hold: Duration) {
        self.outages.retain(|(_, until)| now < *until + hold);
        self.losses.retain(|loss| now < loss.until);
        let current = self.rates.partition_point(|rate| rate.from <= now).saturating_sub(1);
        let mut place = 0;
        self.rates.retain(|rate| {
            place += 1;
            // One with an end may come into force again after a later, shorter one.
            if rate.until.is_some() { rate.lasts(now) } else { place > current }
        });
        if self.outages.is_empty()
            && let Some(first) = self.rates.first()
            && first.until.is_none()
            && first.from + hold * 2 <= now
        {
            self.rates.remove(0);
        }
    }

    /// When the path's presence, or its forecast rate or loss, changes next.
    pub fn next_change(&self, now: Instant) -> Option<Instant> {
        let edges =
            self.outages.iter().flat_map(|(from, until)| [*from - self.reach, *from, *until]);
        let losses = self.losses.iter().flat_map(|loss| [loss.from, loss.until]);
        edges.chain(self.rate_edges()).chain(losses).filter(|at| *at > now).min()
    }

    fn rate_edges(&self) -> impl Iterator<Item = Instant> + '_ {
        self.rates.iter().flat_map(|rate| [Some(rate.from), rate.until]).flatten()
    }

    /// Updates the path's presence, and its forecast rate and loss, for a path of this round trip,
    /// which may exceed it by `swing`.
    pub fn update(&mut self, now: Instant, rtt: Duration, swing: Duration, beside: Beside) {
        // Where another path takes over, the acknowledgement has to arrive before the outage too:
        // otherwise symbols that have arrived would be retransmitted there.
        let reach = match beside {
            Beside::Another => rtt + swing + ANSWER_DELAY,
            Beside::None => rtt / 2 + swing / 2 + TICKS,
        };
        if !self.is_absent() {
            self.reach = reach;
        }
        self.predicted = self.predicted_at(now, rtt);
        self.ceiling = self.ceiling_at(now);
        self.loss = self.loss_at(now);
        self.forget_before(now, (rtt * BELIEVED_ROUND_TRIPS).max(BELIEVED_MIN));
        self.standing = self.standing(now);
        if let Presence::Out { until } = self.standing
            && beside == Beside::None
        {
            self.judge_from = until + rtt + swing + ANSWER_DELAY;
        }
    }

    /// Whether an outage hits a datagram that is sent and arrives at these instants.
    pub fn is_out(&self, sending: Instant, arriving: Instant) -> bool {
        self.outages.iter().any(|(from, until)| *from <= sending && arriving < *until)
    }

    /// The rate forecast for `at`, if it does not hold at `now` already.
    pub fn rate_foretold(&self, now: Instant, at: Instant) -> Option<Rate> {
        self.rate_at(at).filter(|rate| now < rate.from).map(|rate| rate.rate)
    }

    /// The instants at which the delivery of a path with this delay ends, begins or changes its
    /// rate.
    pub fn edges(&self, one_way_delay: Duration) -> impl Iterator<Item = Instant> + '_ {
        let outages =
            self.outages.iter().flat_map(move |(from, until)| [*from - one_way_delay, *until]);
        outages.chain(self.rate_edges())
    }
}

impl ForetoldRate {
    fn lasts(&self, at: Instant) -> bool {
        self.until.is_none_or(|until| at < until)
    }
}

/// Inserts in the order of `from`, in place of one with the same; returns whether there was room.
fn insert<T>(sorted: &mut Vec<T>, new: T, from: impl Fn(&T) -> Instant) -> bool {
    let at = sorted.partition_point(|earlier| from(earlier) < from(&new));
    if sorted.get(at).is_some_and(|same| from(same) == from(&new)) {
        sorted[at] = new;
        return true;
    }
    let fits = sorted.len() < FORETOLD_MAX;
    if fits {
        sorted.insert(at, new);
    }
    fits
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

    fn rate(from: u64, until: Option<u64>) -> Hint {
        Hint::Rate { from: at(from), until: until.map(at), rate: Rate::from_mbps(from + 1) }
    }

    #[test]
    fn a_rate_with_an_end_is_a_ceiling_until_then_and_a_loss_holds_until_its_end() {
        let mut hints = Hints::default();
        for hint in [rate(5, Some(9_000)), rate(6, Some(100)), rate(20_000, None)] {
            assert!(hints.add(hint));
        }
        let loss = Probability::from_ppb(20_000_000);
        assert!(hints.add(Hint::Loss { from: at(50), until: at(200), loss }));
        let in_force = |hints: &mut Hints, millis| {
            hints.update(at(millis), Duration::from_millis(20), Duration::ZERO, Beside::None);
            (hints.ceiling, hints.loss)
        };
        let expected = [
            (4, None, None),
            (5, Some(Rate::from_mbps(6)), None),
            (60, Some(Rate::from_mbps(7)), Some(loss)),
            (100, Some(Rate::from_mbps(6)), Some(loss)),
            (200, Some(Rate::from_mbps(6)), None),
            (9_000, None, None),
            (20_000, None, None),
        ];
        for (millis, ceiling, loss) in expected {
            let next = hints.next_change(at(millis));
            assert!(next.is_none_or(|next| next > at(millis)), "{millis}");
            assert_eq!(in_force(&mut hints, millis), (ceiling, loss), "{millis} ms");
        }
        assert!(in_force(&mut hints, 60_000) == (None, None) && hints.is_idle());
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
            assert!(hints.add(rate(number, None)));
        }
        assert!(!hints.add(rate(99, None)));
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
        hints.add(Hint::Rate { from: at(5_000), until: None, rate });
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
