//! HighSpeed TCP: Reno up to a window of 38 segments; above, the increase grows and the decrease
//! shrinks with the window (RFC 3649). The average window is 0.12 ÷ p^0.835.

use crate::segments::Segments;
use crate::window::{Law, Seen, Windowed, full_packet};
use serde::{Deserialize, Serialize};
use skyhaul_units::ByteCount;

/// Parameters of `highspeed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HighSpeedConfig {
    /// What the window is counted in. Default 1500 bytes.
    pub segment: ByteCount,
}

impl Default for HighSpeedConfig {
    fn default() -> Self {
        Self { segment: full_packet() }
    }
}

/// The law of HighSpeed TCP.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HighSpeed;

impl HighSpeed {
    /// A controller by this law.
    pub(crate) const fn controller(config: HighSpeedConfig) -> Windowed<Self> {
        Windowed::with(Self, config.segment)
    }
}

impl Law for HighSpeed {
    fn avoidance(&mut self, seen: &Seen<'_>) -> Segments {
        seen.share(between_rows(seen.window, |index| Segments::whole(index as u64 + 1)))
    }

    fn decreased(&mut self, window: Segments) -> Segments {
        window.minus(
            window.times(between_rows(window, |index| Segments::ONE.scaled(ROWS[index].1, 100))),
        )
    }
}

/// What a row says at `window`, interpolated: at small windows the rows are far apart, and a whole
/// number of segments would be off the response function by a fifth. Below the first row and above
/// the last it is what they say.
fn between_rows(window: Segments, of: impl Fn(usize) -> Segments) -> Segments {
    let next = ROWS.partition_point(|(least, _)| *least <= window.count());
    if next == 0 || next == ROWS.len() {
        return of(next.saturating_sub(1));
    }
    let (from, to) = (Segments::whole(ROWS[next - 1].0), Segments::whole(ROWS[next].0));
    let (way, done) = (to.minus(from).steps(), window.minus(from).steps());
    of(next - 1).scaled(way - done, way).plus(of(next).scaled(done, way))
}

/// RFC 3649 appendix B: at this window the number of the row (counted from one) is added each round
/// trip, and these hundredths are given up at a loss.
const ROWS: [(u64, u64); 73] = [
    (38, 50),
    (118, 44),
    (221, 41),
    (347, 38),
    (495, 37),
    (663, 35),
    (851, 34),
    (1058, 33),
    (1284, 32),
    (1529, 31),
    (1793, 30),
    (2076, 29),
    (2378, 28),
    (2699, 28),
    (3039, 27),
    (3399, 27),
    (3778, 26),
    (4177, 26),
    (4596, 25),
    (5036, 25),
    (5497, 24),
    (5979, 24),
    (6483, 23),
    (7009, 23),
    (7558, 22),
    (8130, 22),
    (8726, 22),
    (9346, 21),
    (9991, 21),
    (10661, 21),
    (11358, 20),
    (12082, 20),
    (12834, 20),
    (13614, 19),
    (14424, 19),
    (15265, 19),
    (16137, 19),
    (17042, 18),
    (17981, 18),
    (18955, 18),
    (19965, 17),
    (21013, 17),
    (22101, 17),
    (23230, 17),
    (24402, 16),
    (25618, 16),
    (26881, 16),
    (28193, 16),
    (29557, 15),
    (30975, 15),
    (32450, 15),
    (33986, 15),
    (35586, 14),
    (37253, 14),
    (38992, 14),
    (40808, 14),
    (42707, 13),
    (44694, 13),
    (46776, 13),
    (48961, 13),
    (51258, 13),
    (53677, 12),
    (56230, 12),
    (58932, 12),
    (61799, 12),
    (64851, 11),
    (68113, 11),
    (71617, 11),
    (75401, 10),
    (79517, 10),
    (84035, 10),
    (89053, 10),
    (94717, 9),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::drive::{Drive, RTT, close};

    /// The rows by the formulas of RFC 3649 5: b falls from 0.5 to 0.1 with the logarithm of the
    /// window between 38 and 83,000; a follows from p(w) = 0.078 / w^1.2. A row stands where a has
    /// grown by one.
    fn generated() -> Vec<(u64, u64)> {
        let mut rows = vec![(38, 50)];
        let mut grown_to = 1.0;
        for window in 39..100_000u64 {
            let w = window as f64;
            let b = 0.5 - 0.4 * (w.ln() - 38f64.ln()) / (83_000f64.ln() - 38f64.ln());
            let a = w * w * 2.0 * b / ((2.0 - b) * w.powf(1.2) * 12.8);
            if a > grown_to + 1.0 {
                rows.push((window, (b * 100.0).round() as u64));
                grown_to = a;
            }
        }
        rows
    }

    #[test]
    fn the_rows_are_those_of_the_formulas() {
        assert_eq!(generated(), ROWS);
    }

    #[test]
    fn rows_printed_in_the_standard_are_among_them() {
        let printed = [
            (38, 50),
            (118, 44),
            (221, 41),
            (347, 38),
            (495, 37),
            (1_058, 33),
            (2_076, 29),
            (5_036, 25),
            (10_661, 21),
            (21_013, 17),
            (40_808, 14),
            (84_035, 10),
            (89_053, 10),
        ];
        assert!(printed.iter().all(|row| ROWS.contains(row)));
    }

    #[test]
    fn a_small_window_behaves_as_reno_s() {
        let mut drive = Drive::avoiding(HighSpeed, 20);
        drive.round(RTT);
        assert!(close(drive.segments(), 21.0, 0.002), "{}", drive.segments());
        drive.lose();
        assert!(close(drive.segments(), 10.5, 0.002), "{}", drive.segments());
    }

    #[test]
    fn a_large_window_adds_and_gives_up_what_its_row_says() {
        let mut drive = Drive::avoiding(HighSpeed, 2_076);
        drive.round(RTT);
        assert!(close(drive.segments(), 2_088.0, 0.0005), "{}", drive.segments());
        drive.lose();
        assert!(close(drive.segments(), 2_088.0 * 0.7104, 0.0005), "{}", drive.segments());
    }

    #[test]
    fn between_two_rows_it_is_in_between() {
        let added = |window| {
            between_rows(Segments::whole(window), |index| Segments::whole(index as u64 + 1))
        };
        assert_eq!(added(5), Segments::ONE);
        assert_eq!(added(78), Segments::whole(3).scaled(1, 2));
        assert_eq!(added(118), Segments::whole(2));
        assert_eq!(
            between_rows(Segments::MAX, |index| Segments::whole(index as u64 + 1)),
            Segments::whole(73)
        );
    }
}
