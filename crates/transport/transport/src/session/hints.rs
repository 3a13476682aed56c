//! What is known of a path beforehand, from a contact plan or signal strength: when it will be out,
//! and how much it will carry.
//!
//! Before an outage nothing is put on the path that would not arrive, and be answered, before it
//! begins; without another path the answer may wait until afterwards. While it lasts the path
//! counts as absent: nothing goes there to see whether it is back, and its silence is no stall. At
//! its end the path is used at once, at the rate that was foretold or is remembered. The forecast
//! of flows counts with all of it.

use super::Session;
use super::attached::Attached;
use crate::path::PathId;
use crate::schedule::{Candidate, Forecast, forecast_by};
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Rate};

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
/// The headers of IPv4, UDP and QUIC around a datagram: those of a symbol are a part of the
/// datagram.
const PACKET_HEADERS: u64 = 62;
/// The usual header of a symbol.
const SYMBOL_HEADER: u64 = 8;

impl Hints {
    /// Takes a hint in; whether there was room for it.
    fn add(&mut self, hint: Hint) -> bool {
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

    fn is_idle(&self) -> bool {
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
}

impl Session {
    /// Takes in what is known of a path beforehand; times are of the session's clock. Whether the
    /// path is there, and no more than 64 outages and as many rates are foretold of it. Outages
    /// that touch become one.
    pub fn hint(&mut self, path: PathId, hint: Hint) -> bool {
        let now = self.clock;
        let taken = self.paths.get_mut(&path).is_some_and(|path| path.hints.add(hint));
        if taken {
            self.see_hints(now);
        }
        taken
    }

    /// For every flow with something to send: on time, or late by how much, at what the paths carry
    /// now and are foretold to.
    pub fn forecasts(&mut self, now: Instant) -> Vec<Forecast> {
        self.forecasts_with(now, &[])
    }

    /// The same with what lies `behind` the session, in a spool: a candidate of each flow for each
    /// of its deadlines.
    pub fn forecasts_with(
        &mut self,
        now: Instant,
        behind: &[(FlowId, Candidate)],
    ) -> Vec<Forecast> {
        let line = self.line();
        let mut queue = self.outbox.candidates(now, &line, self.policy.as_ref());
        queue.extend_from_slice(behind);
        queue.sort_by_key(|(_, candidate)| self.policy.key(now, candidate, &line));
        let timetable = Timetable::of(now, &self.paths.values().collect::<Vec<_>>());
        let queue = queue.iter().map(|(flow, candidate)| (*flow, candidate));
        forecast_by(queue, |ahead| timetable.arrival(ahead))
    }

    /// Brings the paths' standing up to date: who goes, who is back, what is believed of their
    /// rates.
    pub(super) fn see_hints(&mut self, now: Instant) {
        if self.paths.values().all(|path| path.hints.is_idle()) {
            return;
        }
        let ids: Vec<PathId> = self.paths.keys().copied().collect();
        for id in ids {
            let others = self.paths.iter().any(|(other, path)| *other != id && path.is_usable());
            let Some(path) = self.paths.get_mut(&id) else { continue };
            let was_absent = path.hints.is_absent();
            path.see_hints(now, others);
            match (was_absent, path.hints.is_absent()) {
                (false, true) if self.control.path == Some(id) && others => {
                    self.choose_control_path();
                }
                (true, false) => self.path_returns(now, id, others),
                _ => {}
            }
        }
    }

    fn path_returns(&mut self, now: Instant, id: PathId, others: bool) {
        let Some(path) = self.paths.get_mut(&id) else { return };
        let _ = path.health.recover();
        path.try_at = now;
        // What had no answer before the outage owes none now; on an only path the answers are still
        // to come.
        let open = if others { path.inflight.judge_all() } else { Vec::new() };
        for sent in open {
            let _ = self.lost(sent);
        }
    }
}

impl Attached {
    fn see_hints(&mut self, now: Instant, others: bool) {
        let swing = self.estimate.rtt_variation * 4;
        // Where another path takes what this one leaves, the answer has to be back too: what
        // arrived and is not known to have would be sent again there.
        let reach = match others {
            true => self.rtt() + swing + ANSWER_DELAY,
            false => self.rtt() / 2 + swing / 2 + TICKS,
        };
        if !self.hints.is_absent() {
            self.hints.reach = reach;
        }
        let rtt = self.rtt();
        self.hints.predicted = self.hints.predicted_at(now, rtt);
        self.hints.forget_before(now, (rtt * BELIEVED_ROUND_TRIPS).max(BELIEVED_MIN));
        self.hints.standing = self.hints.standing(now);
        if let Presence::Out { until } = self.hints.standing
            && !others
        {
            self.hints.judge_from = until + rtt + swing + ANSWER_DELAY;
        }
    }

    /// What of blocks, in bytes a second as a rate, it brings over at an instant to come.
    fn brings(&self, at: Instant, now: Instant) -> Rate {
        let sending = at + self.rtt() / 2;
        if self.hints.outages.iter().any(|(from, until)| *from <= sending && at < *until) {
            return Rate::ZERO;
        }
        let foretold = self.hints.rates.iter().rev().find(|(from, _)| now < *from && *from <= at);
        let known = self.hints.predicted.unwrap_or(self.estimate.rate);
        let rate = foretold.map_or(known, |(_, rate)| *rate);
        let payload = self.payload.map_or(0, |payload| payload as u64);
        let arriving = rate.scaled(payload.saturating_sub(SYMBOL_HEADER), payload + PACKET_HEADERS);
        let loss = self.loss().as_f64();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a rate"
        )]
        let lost = (arriving.as_bps() as f64 * loss) as u64;
        Rate::from_bps(arriving.as_bps().saturating_sub(lost))
    }

    /// Whether it carries, or is foretold to carry, anything.
    fn serves(&self) -> bool {
        self.payload.is_some() && (!self.is_stalled() || self.hints.is_absent())
    }
}

/// What all paths together bring over from now on.
#[derive(Debug)]
struct Timetable {
    one_way_delay: Duration,
    /// From when, what was brought until then, and how much is from then on.
    steps: Vec<(Instant, ByteCount, Rate)>,
}

impl Timetable {
    fn of(now: Instant, paths: &[&Attached]) -> Self {
        let serving: Vec<&Attached> = paths.iter().filter(|path| path.serves()).copied().collect();
        let edges = serving.iter().flat_map(|path| {
            let half = path.rtt() / 2;
            let outages =
                path.hints.outages.iter().flat_map(move |(from, until)| [*from - half, *until]);
            outages.chain(path.hints.rates.iter().map(|(from, _)| *from))
        });
        let mut edges: Vec<Instant> = edges.filter(|at| *at > now).chain([now]).collect();
        edges.sort_unstable();
        edges.dedup();
        let total = |at: Instant, standby: bool| {
            let of = serving.iter().filter(|path| path.options.standby == standby);
            Rate::from_bps(of.map(|path| path.brings(at, now).as_bps()).sum())
        };
        let mut steps: Vec<(Instant, ByteCount, Rate)> = Vec::with_capacity(edges.len());
        for at in edges {
            let rate = Some(total(at, false)).filter(|rate| *rate > Rate::ZERO);
            let rate = rate.unwrap_or_else(|| total(at, true));
            let brought = steps.last().map_or(ByteCount::ZERO, |(since, brought, rate)| {
                *brought + *rate * at.since(*since)
            });
            steps.push((at, brought, rate));
        }
        let delays = serving.iter().map(|path| path.rtt() / 2);
        Self { one_way_delay: delays.min().unwrap_or(Duration::ZERO), steps }
    }

    /// When the last of `ahead` bytes arrives; none while nothing is known to bring it.
    fn arrival(&self, ahead: ByteCount) -> Option<Instant> {
        let next = self.steps.partition_point(|(_, brought, _)| *brought < ahead).saturating_sub(1);
        let able = self.steps.get(next..)?.iter().find(|(_, _, rate)| *rate > Rate::ZERO);
        able.map(|(since, brought, rate)| {
            let left = ByteCount::new(ahead.as_u64().saturating_sub(brought.as_u64()));
            *since + rate.time_for(left) + self.one_way_delay
        })
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

    #[test]
    fn a_timetable_leaves_outages_out() {
        let steps = vec![
            (at(0), ByteCount::ZERO, Rate::from_mbps(8)),
            (at(1_000), ByteCount::new(1_000_000), Rate::ZERO),
            (at(4_000), ByteCount::new(1_000_000), Rate::from_mbps(16)),
        ];
        let timetable = Timetable { one_way_delay: Duration::from_millis(50), steps };
        let arrivals = [0, 500_000, 1_000_000, 1_000_002, 3_000_000]
            .map(|ahead| timetable.arrival(ByteCount::new(ahead)));
        assert_eq!(arrivals[..3], [50, 550, 1_050].map(|millis| Some(at(millis))));
        assert_eq!(arrivals[3], Some(at(4_050) + Duration::from_micros(1)));
        assert_eq!(arrivals[4], Some(at(5_050)));
        let never = Timetable { steps: vec![(at(0), ByteCount::ZERO, Rate::ZERO)], ..timetable };
        assert_eq!(never.arrival(ByteCount::new(1)), None);
    }
}
