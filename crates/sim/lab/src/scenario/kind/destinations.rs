//! `destinations`: a node with a session to each of several others, which share its line and one
//! class tree.

use super::medium::{Medium, off};
use super::{Broken, Experiment, ParametersRefused, Plain, watched};
use crate::scenario::metric::{LIMIT, Measured, Metric, PointSeries, Unit};
use crate::world::{QuicLine, Reach, Star, StarConfig, limit};
use serde::Deserialize;
use skyhaul_transport::{ClassConfig, ClassTree, ClassesConfig};
use skyhaul_units::{ByteCount, Duration, Instant, Probability, Rate};

/// The kind.
pub(super) static KIND: Plain<Settings> = Plain::new(
    "destinations",
    "a node that sends all it can to several others over one line, a session each: who gets what, \
    and what the others get while one is cut off",
    METRICS,
);

/// The line, and who is behind it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    /// The line's rate, counted in IP packets, which is declared for all sessions together.
    rate: Rate,
    /// Round trip of the empty line.
    rtt: Duration,
    /// Share of packets lost, each alone, in both directions.
    loss: Probability,
    /// How long all of it goes on.
    duration: Duration,
    /// From when on figures count.
    from: Duration,
    /// The others.
    destinations: Vec<Destination>,
    /// The first of them is cut off from then on.
    cut_from: Duration,
    /// Until then.
    cut_until: Duration,
}

/// One of the others, and what it is promised.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Destination {
    /// Of its class; several may have the same.
    class: String,
    /// Its class has this whenever it has data. Left out: no guarantee.
    guarantee: Option<Rate>,
    /// Its class's turn of what is left. Left out: as all.
    quantum: Option<ByteCount>,
    /// What it gets of all that arrives while all are there.
    share: Probability,
}

impl super::Cell for Settings {
    fn check(&self) -> Result<(), ParametersRefused> {
        let refuse = |sentence: &str| Err(ParametersRefused::new(sentence));
        if self.destinations.len() < 2 {
            return refuse("one session shares nothing; give two `destinations` or more");
        }
        let spans = [self.from, self.cut_from, self.cut_from + SETTLED, self.cut_until];
        if !spans.is_sorted() || self.cut_until + SETTLED >= self.duration {
            return refuse(
                "`from`, `cut_from`, `cut_until` and `duration` must follow one another, the last \
                three 10 s apart",
            );
        }
        self.tree()?;
        watched::check(self.from, self.duration)
    }
}

impl Experiment for Settings {
    fn virtual_time(&self) -> Duration {
        self.duration
    }

    fn cost(&self) -> Duration {
        let packets = (self.rate * self.duration).as_u64() / 1_500;
        PER_PACKET * packets * Medium::Quic.effort()
    }

    fn run(&self, seed: u64) -> Result<Measured, Broken> {
        let tree = self.tree().map_err(|refused| Broken(refused.sentence))?;
        let path = watched::path(self.rate, self.rtt, self.loss);
        let config = StarConfig {
            links: QuicLine::of(&path, None)?.links,
            rate: self.rate,
            others: self
                .destinations
                .iter()
                .map(|other| tree.find(&other.class).unwrap_or(tree.default_leaf()))
                .collect(),
            tree,
        };
        let mut star = Star::open(&config, seed)?;
        if star.now() > BEGIN {
            return Err(Broken(format!("the sessions opened at {} only", star.now())));
        }
        let mut course = Readings::default();
        for second in 0..=self.duration.as_nanos() / STEP.as_nanos() {
            let after = STEP * second;
            star.run_until(BEGIN + after)?;
            course.0.push(Reading { delivered: star.delivered(), offered: star.offered() });
            if after == self.cut_from {
                star.set_cut(0, Reach::Cut);
            } else if after == self.cut_until {
                star.set_cut(0, Reach::Joined);
            }
        }
        Ok(self.measured(&course, limit(&path)))
    }
}

/// What was read at the beginning and after each second.
#[derive(Debug, Default)]
struct Readings(Vec<Reading>);

#[derive(Debug)]
struct Reading {
    delivered: Vec<ByteCount>,
    offered: ByteCount,
}

/// A part of a run.
#[derive(Debug, Clone, Copy)]
struct Span {
    from: Duration,
    until: Duration,
}

impl Span {
    fn length(self) -> Duration {
        self.until.saturating_sub(self.from)
    }
}

impl Readings {
    fn at(&self, after: Duration) -> &Reading {
        let index = usize::try_from(after.as_nanos() / STEP.as_nanos()).unwrap_or(usize::MAX);
        &self.0[index.min(self.0.len() - 1)]
    }

    /// What one of the others got in a span.
    fn rate(&self, other: usize, span: Span) -> Rate {
        let [before, after] = [span.from, span.until].map(|at| self.at(at).delivered[other]);
        Rate::over(after.saturating_sub(before), span.length())
    }

    /// What went onto the line in a span, in IP packets.
    fn offered(&self, span: Span) -> Rate {
        let [before, after] = [span.from, span.until].map(|at| self.at(at).offered);
        Rate::over(after.saturating_sub(before), span.length())
    }
}

impl Settings {
    fn tree(&self) -> Result<ClassTree, ParametersRefused> {
        let mut classes: Vec<ClassConfig> = Vec::new();
        for other in &self.destinations {
            if classes.iter().all(|class| class.name != other.class) {
                classes.push(ClassConfig {
                    name: other.class.clone(),
                    guarantee: other.guarantee,
                    quantum: other.quantum,
                    ..ClassConfig::default()
                });
            }
        }
        ClassTree::new(&ClassesConfig { classes, ..ClassesConfig::default() })
            .map_err(|error| ParametersRefused::new(error.to_string()))
    }

    fn measured(&self, course: &Readings, limit: Rate) -> Measured {
        let others = 0..self.destinations.len();
        let all = |span| -> Rate {
            let rates = others.clone().map(|other| course.rate(other, span).as_bps());
            Rate::from_bps(rates.sum())
        };
        let ratio = |rate: Rate, of: Rate| rate.as_bps() as f64 / of.as_bps().max(1) as f64;
        // Once before the cut, and once after all are back.
        let together = [
            Span { from: self.from, until: self.cut_from },
            Span { from: self.cut_until + SETTLED, until: self.duration },
        ];
        let apart = Span { from: self.cut_from + SETTLED, until: self.cut_until };
        let off_share = |span| {
            let worst = |worst: f64, other: usize| {
                let due = f64::from(self.destinations[other].share.as_ppb()) / 1e9;
                worst.max(off(ratio(course.rate(other, span), all(span)), due))
            };
            others.clone().fold(0.0, worst)
        };
        let of_limit = together.map(|span| ratio(all(span), limit));
        let whole = Span { from: self.from, until: self.duration };
        let mut measured = Measured::default();
        measured.add_rate(&LIMIT, limit);
        measured.add(&OF_LIMIT, of_limit[0].min(of_limit[1]));
        measured.add(&OFF_SHARE, together.map(off_share).into_iter().fold(0.0, f64::max));
        measured.add(&CUT_OF_LIMIT, ratio(all(apart), limit));
        measured.add(&OF_RATE, ratio(course.offered(whole), self.rate));
        measured.series.extend(others.clone().map(|other| self.series(course, other)));
        measured
    }

    /// What one of the others got in each second.
    fn series(&self, course: &Readings, other: usize) -> PointSeries {
        let seconds = self.duration.as_nanos() / STEP.as_nanos();
        let point = |second: u64| {
            let from = STEP * second;
            let rate = course.rate(other, Span { from, until: from + STEP });
            ((from + STEP / 2).as_secs_f64(), rate.as_bps() as f64)
        };
        PointSeries {
            name: "arriving".to_owned(),
            part: format!("centre {}", other + 1),
            x: Unit::Seconds,
            y: Unit::BitRate,
            points: (0..seconds).map(point).collect(),
        }
    }
}

const OF_LIMIT: Metric = Metric {
    key: "of_limit",
    heading: "÷ limit",
    unit: Unit::Share,
    meaning: "what arrived at all destinations ÷ what the line can carry, while all are there",
};
const OFF_SHARE: Metric = Metric {
    key: "off_share",
    heading: "off share",
    unit: Unit::Share,
    meaning: "how far the worst destination is from its share of what arrived, as a part of that \
             share, while all are there",
};
const CUT_OF_LIMIT: Metric = Metric {
    key: "cut_of_limit",
    heading: "÷ limit, one cut off",
    unit: Unit::Share,
    meaning: "the same while the first destination is cut off, from 10 s on",
};
const OF_RATE: Metric = Metric {
    key: "of_rate",
    heading: "÷ rate",
    unit: Unit::Share,
    meaning: "IP packets of all sessions ÷ the declared rate, acknowledgements included",
};
const METRICS: &[&Metric] = &[&LIMIT, &OF_LIMIT, &OFF_SHARE, &CUT_OF_LIMIT, &OF_RATE];

/// Sessions have opened by then.
const BEGIN: Instant = Instant::from_nanos(10_000_000_000);
/// Of the readings.
const STEP: Duration = Duration::from_secs(1);
/// After a cut and after its end, before figures count: a cut is noticed after a second, and what
/// was under way is sent again after it.
const SETTLED: Duration = Duration::from_secs(10);
/// What a packet costs a processor core with both ends.
const PER_PACKET: Duration = Duration::from_nanos(8_000);
