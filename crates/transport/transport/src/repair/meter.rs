//! The loss rate of a path and the length of its bursts, from the fate of each datagram in the
//! order of sending.
//!
//! Two windows fade exponentially: a long one for precision, a short one for changes. A run of
//! arrivals that is all but impossible under the long window's loss replaces both at once: this
//! detects a path that has become clean.

use skyhaul_units::{Duration, Instant, Probability};

/// The measured losses of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossEstimate {
    /// Share of datagrams lost.
    pub loss: Probability,
    /// The same plus one standard deviation of the measurement: FEC repair is sized for this.
    pub upper: Probability,
    /// Share of datagrams lost among those that follow a lost one; equal to `upper` where losses
    /// look independent.
    pub after_loss: Probability,
    /// Whether nothing was lost for so long that the path counts as clean.
    pub is_clean: bool,
}

/// What became of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatagramFate {
    /// It arrived.
    Arrived,
    /// It was lost.
    Lost,
}

/// Measures the losses of one path at the sending end.
#[derive(Debug, Clone)]
pub struct LossMeter {
    long: Window,
    short: Window,
    /// Arrivals since the last loss.
    run: u64,
    last_was_lost: bool,
    /// When the windows fade next.
    tick: Option<Instant>,
    /// What the windows began with, while they have all of it: another assumption may take its
    /// place.
    prior: Option<Window>,
}

/// Counts of datagrams, each in parts of [`ONE`] and fading.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    sent: u64,
    lost: u64,
    /// Lost directly after a lost one.
    again: u64,
}

impl LossMeter {
    /// For a new path: starts as if 5 % of the last 200 datagrams had been lost.
    pub fn new() -> Self {
        Self::with_prior(Probability::from_ppb(PRIOR_LOSS_PPB))
    }

    /// For a path whose loss is known from configuration or an earlier session.
    pub fn with_prior(loss: Probability) -> Self {
        let sent = PRIOR_DATAGRAMS * ONE;
        let lost = sent / 1_000 * u64::from(loss.as_ppb()) / 1_000_000;
        let window = Window { sent, lost, again: lost * lost / sent };
        let prior = Some(window);
        Self { long: window, short: window, run: 0, last_was_lost: false, tick: None, prior }
    }

    /// A loss that is known from elsewhere, or is so no longer: it takes the place of what was
    /// assumed before, until as many fates are known as the assumption counts for.
    pub fn assume(&mut self, loss: Option<Probability>) {
        let new = loss.map_or_else(Self::new, Self::with_prior);
        if let (Some(before), Some(after)) = (self.prior, new.prior) {
            for window in [&mut self.long, &mut self.short] {
                window.exchange(before, after);
            }
            self.prior = Some(after);
        }
    }

    /// The fate of the next datagram, in the order of sending; `now` is when it became known.
    pub fn fate(&mut self, now: Instant, fate: DatagramFate) {
        self.forget(now);
        let lost = fate == DatagramFate::Lost;
        let again = lost && self.last_was_lost;
        for window in [&mut self.long, &mut self.short] {
            window.sent += ONE;
            window.lost += if lost { ONE } else { 0 };
            window.again += if again { ONE } else { 0 };
        }
        if self.long.sent >= 2 * PRIOR_DATAGRAMS * ONE {
            self.prior = None;
        }
        self.last_was_lost = lost;
        self.run = if lost { 0 } else { self.run + 1 };
        self.notice_a_clean_run();
    }

    /// The present estimate.
    pub fn estimate(&self) -> LossEstimate {
        let long = &self.long;
        let burst = long.mean_burst();
        let mut loss = Probability::of(long.lost, long.sent);
        let mut upper = Probability::of(above(long.bursts()) * burst / ONE, long.sent);
        // The short window notices a rise: by three standard deviations, not by chance.
        let risen = Probability::of(below(self.short.bursts()) * burst / ONE, self.short.sent);
        if risen > upper {
            loss = Probability::of(self.short.lost, self.short.sent);
            upper = loss;
        }
        let is_clean = long.bursts() < CLEAN_BURSTS && self.run >= CLEAN_RUN;
        LossEstimate { loss, upper, after_loss: self.after_loss(upper), is_clean }
    }

    /// The measured share, where it exceeds `upper` by more than chance explains.
    fn after_loss(&self, upper: Probability) -> Probability {
        let Window { lost, again, .. } = self.long;
        if lost < LOSSES_FOR_BURSTS * ONE {
            return upper;
        }
        let measured = Probability::of(again, lost);
        // Two standard deviations of a share of `upper` among `lost` losses, in parts per billion.
        let variance =
            u64::from(upper.as_ppb()) * u64::from(upper.complement().as_ppb()) / (lost / ONE);
        let chance = 2 * variance.isqrt();
        if u64::from(measured.as_ppb()) > u64::from(upper.as_ppb()) + chance {
            measured
        } else {
            upper
        }
    }

    /// A run without loss whose probability was e^-[`SURPRISE`] means that the path has changed:
    /// the windows restart from the run.
    fn notice_a_clean_run(&mut self) {
        let before = self.long.sent.saturating_sub(self.run * ONE);
        let expected = u128::from(self.run) * u128::from(self.long.bursts());
        if before > 0 && expected > u128::from(SURPRISE) * u128::from(before) {
            let run = Window { sent: self.run * ONE, ..Window::default() };
            self.long = run;
            self.short = run;
            self.prior = None;
        }
    }

    fn forget(&mut self, now: Instant) {
        let mut tick = self.tick.unwrap_or(now + TICK);
        // A pause longer than the memory fades no more than the memory's length.
        if now > tick + TICK * LONG_TICKS {
            tick = now - TICK * LONG_TICKS;
        }
        for _ in 0..LONG_TICKS {
            if tick > now {
                break;
            }
            self.long.fade(LONG_TICKS, LONG_LEAST);
            self.short.fade(SHORT_TICKS, SHORT_LEAST);
            // The loss has fallen by more than four standard deviations: the long window restarts
            // from the short one.
            let fallen = Probability::of(
                far_above(self.short.bursts()) * self.short.mean_burst() / ONE,
                self.short.sent,
            );
            if fallen < Probability::of(self.long.lost, self.long.sent) {
                self.long = self.short;
            }
            tick += TICK;
        }
        self.tick = Some(tick.max(now));
    }
}

impl Default for LossMeter {
    fn default() -> Self {
        Self::new()
    }
}

impl LossEstimate {
    /// A configured loss, as on a path without return: independent losses.
    pub const fn assumed(loss: Probability) -> Self {
        Self { loss, upper: loss, after_loss: loss, is_clean: loss.as_ppb() == 0 }
    }

    /// The same where at least `loss` is to be expected.
    pub fn at_least(self, loss: Probability) -> Self {
        let upper = self.upper.max(loss);
        Self {
            loss: self.loss.max(loss),
            upper,
            after_loss: self.after_loss.max(upper),
            is_clean: self.is_clean && loss == Probability::ZERO,
        }
    }

    /// Mean length of a run of losses, in thousandths of a datagram.
    pub fn mean_burst_milli(&self) -> u32 {
        let ends = self.after_loss.complement().as_ppb().max(1);
        u32::try_from(1_000_000_000_000 / u64::from(ends)).unwrap_or(u32::MAX)
    }
}

impl Window {
    /// Runs of losses.
    fn bursts(&self) -> u64 {
        self.lost - self.again
    }

    /// Losses in each run on average, in parts of [`ONE`].
    fn mean_burst(&self) -> u64 {
        if self.bursts() == 0 {
            ONE
        } else {
            (u128::from(self.lost) * u128::from(ONE) / u128::from(self.bursts())) as u64
        }
    }

    /// Counts `after` in place of `before`, which is part of it.
    const fn exchange(&mut self, before: Self, after: Self) {
        self.sent = self.sent - before.sent + after.sent;
        self.lost = self.lost - before.lost + after.lost;
        self.again = self.again - before.again + after.again;
    }

    /// Drops one part in `ticks` of the counts, while more than `least` datagrams are counted.
    fn fade(&mut self, ticks: u64, least: u64) {
        if self.sent > least * ONE {
            self.sent -= self.sent / ticks;
            self.lost -= self.lost / ticks;
            self.again -= self.again / ticks;
            self.again = self.again.min(self.lost);
        }
    }
}

/// One standard deviation above a fading count, whose variance is that of a plain count twice as
/// large (Wilson's bound, 1927).
fn above(count: u64) -> u64 {
    let twice = 2 * count;
    (twice + ONE / 2 + (twice * ONE + ONE * ONE / 4).isqrt()) / 2
}

/// Four standard deviations above.
fn far_above(count: u64) -> u64 {
    let twice = 2 * count;
    (twice + 8 * ONE + 4 * (twice * ONE + 4 * ONE * ONE).isqrt()) / 2
}

/// Three standard deviations below.
fn below(count: u64) -> u64 {
    let twice = 2 * count;
    twice.saturating_sub(3 * (twice * ONE).isqrt()) / 2
}

/// A datagram counts as 1,024 parts, so that rounding while fading loses little.
const ONE: u64 = 1 << 10;

/// Interval of fading.
const TICK: Duration = Duration::from_millis(100);
/// The long window remembers 16 s: at 5 % of 3,600 datagrams a second the loss rate is known to 1.4
/// %.
const LONG_TICKS: u64 = 160;
/// The short one remembers 1 s.
const SHORT_TICKS: u64 = 10;
/// Datagrams that do not fade however old they are, so that slow flows have a measurement too.
const LONG_LEAST: u64 = 2_000;
const SHORT_LEAST: u64 = 400;

/// A new path counts as a bad one at first: within the first round trip, too much repair harms less
/// than too little. 400 arrivals without a loss end this.
const PRIOR_LOSS_PPB: u32 = 50_000_000;
const PRIOR_DATAGRAMS: u64 = 200;
// Nothing fades while the assumption can be exchanged.
const _: () = assert!(2 * PRIOR_DATAGRAMS <= SHORT_LEAST && SHORT_LEAST <= LONG_LEAST);

/// A run of arrivals is a change of the path if 20 bursts were expected in it: e^-20 = 2e-9.
const SURPRISE: u64 = 20;
/// A path is clean with less than a tenth of a burst remembered, and 1,000 arrivals since the last
/// loss.
const CLEAN_BURSTS: u64 = ONE / 10;
const CLEAN_RUN: u64 = 1_000;

/// Losses from which the mean burst length is significant.
const LOSSES_FOR_BURSTS: u64 = 20;

#[cfg(test)]
mod tests;
