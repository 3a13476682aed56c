//! What experiments yield: named figures with a unit, and courses over time or probability.

use skyhaul_units::{Duration, Rate};

/// What a figure is called, and how it is written.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its key in the JSON output and in bars. A point makes an object of it: `latency_s.p50`.
    pub key: &'static str,
    /// Its heading in tables.
    pub heading: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// What it means, for documentation.
    pub meaning: &'static str,
}

/// What a figure counts, and with which precision it is given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things, in whole numbers.
    Count,
    /// Bits a second, in whole numbers.
    BitRate,
    /// Seconds, to the microsecond.
    Seconds,
    /// A part of a whole, or a ratio, to the millionth.
    Share,
    /// Round trips, to the thousandth.
    RoundTrips,
}

impl Unit {
    /// `value` with the unit's precision, so that the same run gives the same text.
    pub fn round(self, value: f64) -> f64 {
        let scale = match self {
            Self::Count | Self::BitRate => 1.0,
            Self::Seconds | Self::Share => 1e6,
            Self::RoundTrips => 1e3,
        };
        (value * scale).round() / scale
    }

    /// `value` as a reader wants it.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Count => format!("{value:.0}"),
            Self::BitRate => format!("{} Mbit/s", significant(value / 1e6)),
            Self::Seconds if value == 0.0 => "0 s".to_owned(),
            Self::Seconds if value.abs() < 1.0 => format!("{} ms", significant(value * 1e3)),
            Self::Seconds => format!("{} s", significant(value)),
            Self::Share if value != 0.0 && value.abs() < 0.000_95 => format!("{value:.1e}"),
            Self::Share => format!("{value:.3}"),
            Self::RoundTrips => format!("{value:.2}"),
        }
    }

    /// The name of the unit on an axis.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count | Self::Share => "",
            Self::BitRate => "Mbit/s",
            Self::Seconds => "s",
            Self::RoundTrips => "RTT",
        }
    }

    /// What stands for one on an axis.
    pub const fn axis_scale(self) -> f64 {
        match self {
            Self::BitRate => 1e6,
            _ => 1.0,
        }
    }
}

/// Three or four digits, whatever the size.
fn significant(value: f64) -> String {
    let decimals = match value.abs() {
        at_least_100 if at_least_100 >= 100.0 => 0,
        at_least_10 if at_least_10 >= 10.0 => 1,
        at_least_1 if at_least_1 >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// What one run of one cell yields.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    figures: Vec<(&'static Metric, Option<f64>)>,
    /// Courses, for plots.
    pub series: Vec<PointSeries>,
}

/// A course of points.
#[derive(Debug, Clone, PartialEq)]
pub struct PointSeries {
    /// What it shows; series of one name are drawn together.
    pub name: String,
    /// Whose course it is, where a run has several.
    pub part: String,
    /// What runs to the right.
    pub x: Unit,
    /// What runs upwards.
    pub y: Unit,
    /// The points, from left to right.
    pub points: Vec<(f64, f64)>,
}

impl Measured {
    /// Adds a figure, rounded as its unit is given out; `None`, or what is not a number, says that
    /// there is none.
    pub fn add(&mut self, metric: &'static Metric, value: impl Into<Option<f64>>) {
        let value = value.into().filter(|value| value.is_finite());
        self.figures.push((metric, value.map(|value| metric.unit.round(value))));
    }

    /// Adds a time.
    pub fn add_time(&mut self, metric: &'static Metric, value: impl Into<Option<Duration>>) {
        self.add(metric, value.into().map(Duration::as_secs_f64));
    }

    /// Adds a rate.
    pub fn add_rate(&mut self, metric: &'static Metric, value: Rate) {
        self.add(metric, value.as_bps() as f64);
    }

    /// The figures, in the order in which they were added.
    pub fn figures(&self) -> &[(&'static Metric, Option<f64>)] {
        &self.figures
    }

    /// A figure by its metric's key.
    pub fn figure(&self, key: &str) -> Option<f64> {
        self.figures.iter().find(|(metric, _)| metric.key == key).and_then(|(_, value)| *value)
    }
}

/// Goodput after start-up.
pub const GOODPUT: Metric = Metric {
    key: "goodput_bps",
    heading: "goodput",
    unit: Unit::BitRate,
    meaning: "bytes that the application gets, after start-up, over time",
};
/// The most that the line could give.
pub const LIMIT: Metric = Metric {
    key: "limit_bps",
    heading: "limit",
    unit: Unit::BitRate,
    meaning: "rate × (1 − loss) × (payload ÷ IP packet)",
};
/// Goodput over limit.
pub const RATIO: Metric = Metric {
    key: "ratio",
    heading: "ratio",
    unit: Unit::Share,
    meaning: "goodput after start-up ÷ limit",
};
/// Time to 90 % of the rate.
pub const STARTUP: Metric = Metric {
    key: "startup_s",
    heading: "start-up",
    unit: Unit::Seconds,
    meaning: "from the handshake's end until packets arrive at 90 % of the limit",
};
/// The same in round trips.
pub const STARTUP_RTTS: Metric = Metric {
    key: "startup_rtts",
    heading: "start-up, RTT",
    unit: Unit::RoundTrips,
    meaning: "`startup_s` in round trips of the empty line",
};
/// Median of the queueing delay.
pub const QUEUE_P50: Metric = Metric {
    key: "queue_delay_p50_s",
    heading: "queue p50",
    unit: Unit::Seconds,
    meaning: "median time that a packet would wait at the bottleneck, after start-up",
};

/// A published figure.
pub const PUBLISHED: Metric = Metric {
    key: "published",
    heading: "published",
    unit: Unit::BitRate,
    meaning: "the figure that others have published for the cell",
};
/// Ours over theirs.
pub const OF_PUBLISHED: Metric = Metric {
    key: "of_published",
    heading: "÷ published",
    unit: Unit::Share,
    meaning: "our figure ÷ the published one",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_rounded_to_what_is_given_out() {
        let mut measured = Measured::default();
        measured.add(&RATIO, 2.0 / 3.0);
        measured.add(&GOODPUT, 1.4);
        measured.add(&STARTUP, f64::NAN);
        assert_eq!(measured.figure("ratio"), Some(0.666_667));
        assert_eq!(measured.figure("goodput_bps"), Some(1.0));
        assert_eq!((measured.figure("startup_s"), measured.figure("absent")), (None, None));
    }

    #[test]
    fn figures_are_shown_as_a_reader_wants_them() {
        let cases = [
            (Unit::BitRate, 92_950_000.0, "93.0 Mbit/s"),
            (Unit::BitRate, 4_100.0, "0.004 Mbit/s"),
            (Unit::Seconds, 0.0051, "5.10 ms"),
            (Unit::Seconds, 12.345, "12.3 s"),
            (Unit::Seconds, 0.0, "0 s"),
            (Unit::Share, 0.97, "0.970"),
            (Unit::Share, 0.000_012, "1.2e-5"),
            (Unit::RoundTrips, 7.5, "7.50"),
            (Unit::Count, 12.0, "12"),
        ];
        for (unit, value, text) in cases {
            assert_eq!(unit.show(value), text);
        }
    }
}
