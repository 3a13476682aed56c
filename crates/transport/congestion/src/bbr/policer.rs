//! Detection of a token-bucket policer on the path, by heavy loss at an even rate. Where two such
//! intervals in a row agree, their rate is used for a while.

use super::Rounds;
use crate::Ack;
use crate::segments::Multiple;
use skyhaul_units::{ByteCount, Duration, Instant, Rate};

/// The rate that a policer seems to let through.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Policer {
    rate: Option<Rate>,
    in_use: bool,
    sampling: bool,
    rounds: u64,
    total_lost: ByteCount,
    /// When the interval began, and the totals then.
    began: Instant,
    began_delivered: ByteCount,
    began_lost: ByteCount,
}

impl Policer {
    /// The rate, while it is in use.
    pub(crate) const fn rate(&self) -> Option<Rate> {
        if self.in_use { self.rate } else { None }
    }

    pub(crate) fn lost(&mut self, bytes: ByteCount) {
        self.total_lost += bytes;
    }

    /// Takes an acknowledgement; `lost` since the one before. Returns true when the rate was in use
    /// long enough, so that the path must be probed again.
    pub(crate) fn update(
        &mut self,
        now: Instant,
        ack: &Ack,
        lost: ByteCount,
        rounds: Rounds,
    ) -> bool {
        self.rounds += u64::from(rounds.began);
        if self.in_use {
            let is_over = self.rounds >= HOLD_ROUNDS;
            if is_over {
                self.reset(now, ack);
            }
            return is_over;
        }
        if !self.sampling {
            if lost > ByteCount::ZERO {
                self.begin(now, ack);
                self.sampling = true;
            }
            return false;
        }
        if ack.sample.is_app_limited || self.rounds > LONGEST_ROUNDS {
            self.reset(now, ack);
        } else if self.rounds >= SHORTEST_ROUNDS && lost > ByteCount::ZERO {
            self.judge(now, ack);
        }
        false
    }

    fn judge(&mut self, now: Instant, ack: &Ack) {
        let lost = self.total_lost - self.began_lost;
        let delivered = ack.sample.total - self.began_delivered;
        let span = now.since(self.began);
        // 50 lost for 256 delivered: about 20 %.
        if delivered == ByteCount::ZERO || lost.times(256) < delivered.times(50) || span < SHORTEST
        {
            return;
        }
        let rate = Rate::over(delivered, span);
        let agrees = |before: &Rate| {
            let apart = rate.as_bps().abs_diff(before.as_bps());
            apart <= before.as_bps() / 8 || apart <= CLOSE.as_bps()
        };
        match self.rate.filter(agrees) {
            Some(before) => {
                self.rate = Some(Rate::from_bps(rate.as_bps() / 2 + before.as_bps() / 2));
                self.in_use = true;
                self.rounds = 0;
            }
            None => {
                self.rate = Some(rate);
                self.begin(now, ack);
            }
        }
    }

    fn begin(&mut self, now: Instant, ack: &Ack) {
        self.began = now;
        self.began_delivered = ack.sample.total;
        self.began_lost = self.total_lost;
        self.rounds = 0;
    }

    fn reset(&mut self, now: Instant, ack: &Ack) {
        *self = Self { total_lost: self.total_lost, ..Self::default() };
        self.begin(now, ack);
    }
}

/// Round trips of an interval.
const SHORTEST_ROUNDS: u64 = 4;
const LONGEST_ROUNDS: u64 = 16;
/// Round trips for which the rate is kept.
const HOLD_ROUNDS: u64 = 48;
/// Rates that differ by less agree.
const CLOSE: Rate = Rate::from_bps(4_000 * 8);
const SHORTEST: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays rounds of 100 ms with so many bytes delivered and lost, and gives the policer's rate.
    fn play(
        policer: &mut Policer,
        from: u64,
        rounds: u64,
        delivered: u64,
        lost: u64,
    ) -> Option<Rate> {
        for round in from..from + rounds {
            let mut ack = Ack::default();
            ack.sample.total = ByteCount::new((round + 1) * delivered);
            policer.lost(ByteCount::new(lost));
            let began = Rounds { began: true, ..Rounds::default() };
            let now = Instant::ZERO + Duration::from_millis(100) * round;
            policer.update(now, &ack, ByteCount::new(lost), began);
        }
        policer.rate()
    }

    #[test]
    fn two_intervals_of_heavy_loss_at_one_rate_are_a_policer() {
        let mut policer = Policer::default();
        assert_eq!(play(&mut policer, 0, 5, 100_000, 30_000), None);
        assert_eq!(play(&mut policer, 5, 4, 100_000, 30_000), Some(Rate::from_mbps(8)));
        assert_eq!(play(&mut policer, 9, 47, 100_000, 30_000), Some(Rate::from_mbps(8)));
        assert_eq!(
            play(&mut policer, 56, 1, 100_000, 30_000),
            None,
            "probed again after 48 rounds"
        );
    }

    #[test]
    fn loss_below_a_fifth_is_none() {
        assert_eq!(play(&mut Policer::default(), 0, 100, 100_000, 15_000), None);
    }
}
