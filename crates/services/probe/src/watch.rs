//! A line watched for weeks: what one interval of pings says, and when that is an alarm.

use crate::clock::PingComparison;
use crate::report::Minute;
use crate::stats::Spread;
use crate::survey::{ClockOffset, MILLIS, signed};
use serde::Serialize;
use skyhaul_units::{Duration, Probability};

/// One interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interval {
    /// Pings sent.
    pub sent: u64,
    /// Pings without an answer.
    pub lost: u64,
    /// The part lost, over both ways.
    pub loss: f64,
    /// Round trip.
    pub round_trip_ms: Spread,
    /// One-way delay to the far end.
    pub up_ms: Spread,
    /// And back.
    pub down_ms: Spread,
    /// What is known of the two clocks; `None` without any answer.
    pub clocks: Option<ClockOffset>,
    /// Why there is a gap, where the far end did not answer for some of the time or all of it.
    pub gap: Option<String>,
}

/// What is an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlarmRule {
    /// A loss above this.
    pub loss: Probability,
    /// A median round trip above this; `None`: no such alarm.
    pub round_trip: Option<Duration>,
}

impl Interval {
    /// Of an interval's pings; `gap` says why there were no more.
    pub fn of(comparison: &PingComparison, gap: Option<String>) -> Self {
        let (sent, answered) = comparison.counts();
        let lost = sent.saturating_sub(answered);
        let trips: Vec<i64> = comparison.pings().map(|ping| signed(ping.round_trip())).collect();
        let (up, down): (Vec<i64>, Vec<i64>) =
            comparison.delays().into_iter().map(|[up, down]| (up, down)).unzip();
        Self {
            sent,
            lost,
            loss: if sent == 0 { 1.0 } else { lost as f64 / sent as f64 },
            round_trip_ms: Spread::of(&trips, MILLIS),
            up_ms: Spread::of(&up, MILLIS),
            down_ms: Spread::of(&down, MILLIS),
            clocks: (answered > 0).then(|| ClockOffset::of(comparison)),
            gap,
        }
    }

    /// What a page shows of it.
    pub fn minute(&self, began: skyhaul_units::Utc, alarms: &[String]) -> Minute {
        let has_answers = self.round_trip_ms.count > 0;
        Minute {
            began,
            pings: [self.sent, self.lost],
            round_trip_ms: has_answers.then_some([
                self.round_trip_ms.min,
                self.round_trip_ms.p50,
                self.round_trip_ms.p99,
            ]),
            one_way_ms: has_answers.then_some([self.up_ms.p50, self.down_ms.p50]),
            alarms: alarms.to_vec(),
        }
    }

    /// What is alarming about it, in words.
    pub fn alarms(&self, rule: AlarmRule) -> Vec<String> {
        let mut alarms = Vec::new();
        if let Some(gap) = &self.gap {
            alarms.push(format!("gap: {gap}"));
        }
        if self.sent > 0 && self.loss > rule.loss.as_f64() {
            alarms.push(format!(
                "loss {:.2} % ({} of {} pings)",
                self.loss * 100.0,
                self.lost,
                self.sent
            ));
        }
        let median = self.round_trip_ms.p50;
        if let Some(most) = rule.round_trip.filter(|most| median > most.as_secs_f64() * 1e3) {
            alarms.push(format!("round trip {median:.3} ms in the median, above {most}"));
        }
        alarms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Ping;
    use skyhaul_units::Utc;

    fn interval(asked: u32, answered: i64, gap: Option<&str>) -> Interval {
        let mut comparison = PingComparison::default();
        (0..asked).for_each(|_| comparison.asked());
        for n in 0..answered {
            let at = |millis: i64| Utc::from_micros(millis * 1_000);
            let (sent, reached) = (at(n * 1_000), at(n * 1_000 + 20));
            comparison.answered(Ping {
                sent,
                reached,
                answered: reached,
                back: at(n * 1_000 + 40),
            });
        }
        Interval::of(&comparison, gap.map(str::to_owned))
    }

    #[test]
    fn loss_a_long_round_trip_and_a_gap_are_alarms_and_nothing_else_is() {
        let rule = AlarmRule {
            loss: Probability::from_ppb(50_000_000),
            round_trip: Some(Duration::from_millis(39)),
        };
        let calm = AlarmRule { round_trip: Some(Duration::from_millis(40)), ..rule };
        assert_eq!(interval(60, 58, None).alarms(calm), Vec::<String>::new());
        assert_eq!(interval(60, 50, None).alarms(calm), ["loss 16.67 % (10 of 60 pings)"]);
        assert_eq!(
            interval(60, 60, None).alarms(rule),
            ["round trip 40.000 ms in the median, above 39 ms"]
        );
        let dead = interval(0, 0, Some("no answer in 9 s"));
        assert_eq!(
            (dead.alarms(rule), dead.clocks),
            (vec!["gap: no answer in 9 s".to_owned()], None)
        );
        let found = interval(3, 3, None);
        assert!((found.up_ms.p50 - 20.0).abs() < 1e-9 && (found.down_ms.p50 - 20.0).abs() < 1e-9);
    }
}
