//! The table that turns the readings of a line into a rate and a loss.

use crate::condition::FeedCondition;
use crate::line::FeedLine;
use skyhaul_units::{Probability, Rate};

/// A row: what holds for a line of these readings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedRow {
    /// When it holds.
    pub when: FeedCondition,
    /// The rate then; zero is an outage. Left out: a row below may say it.
    pub rate: Option<Rate>,
    /// The loss then. Left out: a row below may say it.
    pub loss: Option<Probability>,
}

/// The rows, of which the first that holds counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FeedMap(Vec<FeedRow>);

/// What a line says of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FeedValues {
    /// What it carries; zero where it is out.
    pub rate: Option<Rate>,
    /// What it loses at least.
    pub loss: Option<Probability>,
}

impl FeedMap {
    /// Of these rows, in the order in which they are tried.
    pub const fn new(rows: Vec<FeedRow>) -> Self {
        Self(rows)
    }

    /// What a line says: by itself, or else by the first row that holds and says it.
    pub fn values(&self, line: &FeedLine) -> FeedValues {
        let holds = || self.0.iter().filter(|row| row.when.holds(line));
        FeedValues {
            rate: line.rate().or_else(|| holds().find_map(|row| row.rate)),
            loss: line.loss().or_else(|| holds().find_map(|row| row.loss)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(when: &str, rate: Option<u64>, loss: Option<u32>) -> FeedRow {
        FeedRow {
            when: when.parse().unwrap(),
            rate: rate.map(Rate::from_mbps),
            loss: loss.map(|percent| Probability::from_ppb(percent * 10_000_000)),
        }
    }

    #[test]
    fn the_first_row_that_holds_counts_for_each_of_rate_and_loss() {
        let map = FeedMap::new(vec![
            row("modcod=QPSK-1/2", Some(10), None),
            row("snr>=10", Some(40), Some(0)),
            row("snr>=5", Some(20), Some(1)),
            row("", Some(0), Some(5)),
        ]);
        let values = |line: &str| {
            let values = map.values(&FeedLine::parse(line.as_bytes()).unwrap());
            (
                values.rate.map(|rate| rate.as_bps() / 1_000_000),
                values.loss.map(|loss| loss.as_ppb() / 10_000_000),
            )
        };
        assert_eq!(values("snr=12"), (Some(40), Some(0)));
        assert_eq!(values("snr=7"), (Some(20), Some(1)));
        assert_eq!(values("snr=7 modcod=QPSK-1/2"), (Some(10), Some(1)));
        assert_eq!(values("snr=1"), (Some(0), Some(5)));
        assert_eq!(values("snr=1 rate=3Mbit/s loss=2%"), (Some(3), Some(2)));
    }
}
