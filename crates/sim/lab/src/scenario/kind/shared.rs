//! `shared`: several applications of two nodes in one session and one class tree, on one line.

use super::controller::Choice;
use super::medium::Medium;
use super::{Broken, Experiment, ParametersRefused, Plain, watched};
use crate::scenario::metric::{LIMIT, Measured, Metric, PointSeries, Unit};
use crate::workload::{
    Arrivals, BlockRecord, HandedOver, Lifetime, Pattern, StreamConfig, Traffic,
};
use crate::world::{Over, Sessions, Users, WorldConfig, limit};
use serde::Deserialize;
use skyhaul_transport::{ClassConfig, ClassId, ClassTree, ClassesConfig, Mode, SessionConfig};
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Probability, Rate};

/// The kind.
pub(super) static KIND: Plain<Settings> = Plain::new(
    "shared",
    "several applications of two nodes in one session and one class tree: who gets what of a line, \
    and how late",
    METRICS,
);

/// The line, and who uses it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    /// The line's rate, counted in IP packets.
    rate: Rate,
    /// Round trip of the empty line.
    rtt: Duration,
    /// Share of packets lost, each alone, in both directions.
    loss: Probability,
    /// How long all of it goes on.
    duration: Duration,
    /// From when on figures count: all of the applications are there.
    from: Duration,
    /// Until when they do.
    until: Duration,
    /// What the path is.
    #[serde(default)]
    over: Medium,
    /// Who decides over QUIC how fast it sends; `line`, as if left out, declares the line's rate.
    controller: Option<Choice>,
    /// Who sends. Each has a class of its own.
    applications: Vec<Application>,
}

/// What one of them sends, and what it is promised.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Application {
    /// Of its class.
    name: String,
    /// Its class has this whenever it has data, counted in datagrams.
    guarantee: Rate,
    /// Of its class: 0 comes first where more than guarantees is given out.
    priority: u8,
    /// What it hands over. Left out: as much as it may.
    rate: Option<Rate>,
    /// The size of its blocks.
    block: ByteCount,
    /// How long a block is worth something. Left out: for ever.
    lifetime: Option<Duration>,
    /// Late blocks are given up.
    #[serde(default)]
    expendable: bool,
    /// When it begins. Left out: at once.
    #[serde(default)]
    from: Duration,
    /// When it ends. Left out: with all of it.
    until: Option<Duration>,
}

impl super::Cell for Settings {
    fn check(&self) -> Result<(), ParametersRefused> {
        let refuse = |sentence: String| Err(ParametersRefused::new(sentence));
        if self.applications.is_empty() {
            return refuse("nobody sends; give `applications`".to_owned());
        }
        for application in &self.applications {
            let name = &application.name;
            if application.block == ByteCount::ZERO || application.block > ByteCount::mib(1) {
                return refuse(format!("the blocks of `{name}` do not fit; give `block` ≤ 1 MiB"));
            }
            if application.expendable && application.lifetime.is_none() {
                return refuse(format!(
                    "`{name}` is expendable and never late; give its `lifetime`"
                ));
            }
        }
        if self.over == Medium::Plain && self.controller.is_some() {
            return refuse(
                "plain paths have no controller; leave it out, or add over = \"quic\"".to_owned(),
            );
        }
        if self.until > self.duration {
            return refuse("figures count beyond the end; lengthen `duration`".to_owned());
        }
        self.tree()?;
        watched::check(self.from, self.until)
    }
}

impl Experiment for Settings {
    fn virtual_time(&self) -> Duration {
        self.duration
    }

    fn cost(&self) -> Duration {
        PER_PACKET * ((self.rate * self.duration).as_u64() / 1_500) * self.over.effort()
    }

    fn run(&self, seed: u64) -> Result<Measured, Broken> {
        let tree = self.tree().map_err(|refused| Broken(refused.sentence))?;
        let streams = (0..).zip(&self.applications).map(|(flow, application)| {
            let class = tree.find(&application.name).unwrap_or(tree.default_leaf());
            StreamConfig { class, ..application.stream(FlowId(flow), self) }
        });
        let near = Traffic::new(streams.collect::<Vec<_>>(), seed);
        let users = Users { near, far: Arrivals::default() };
        let near = SessionConfig { classes: tree.clone(), ..SessionConfig::default() };
        let world =
            WorldConfig { sessions: [near, SessionConfig::default()], ..WorldConfig::default() };
        let path = watched::path(self.rate, self.rtt, self.loss);
        let over = match (self.over, self.controller) {
            (Medium::Quic, Some(Choice::Config(controller))) => Over::Quic(Some(controller)),
            (medium, _) => medium.over(),
        };
        let mut sessions = Sessions::open(over, world, &[path], seed, users)?;
        if sessions.now() > BEGIN {
            return Err(Broken(format!("the sessions opened at {} only", sessions.now())));
        }
        sessions.run_until(BEGIN + self.from)?;
        let before = self.sent(&sessions)?;
        sessions.run_until(BEGIN + self.until)?;
        let after = self.sent(&sessions)?;
        sessions.run_until(BEGIN + self.duration + self.rtt * 4)?;
        let (traffic, arrivals) = sessions.into_users()?;
        let mut ledger = traffic.ledger;
        ledger.settle(&arrivals);
        let sent: Vec<u64> =
            after.iter().zip(before).map(|(after, before)| after - before).collect();
        Ok(self.measured(&ledger, &sent, limit(&path)))
    }
}

impl Settings {
    fn tree(&self) -> Result<ClassTree, ParametersRefused> {
        let class = |application: &Application| ClassConfig {
            name: application.name.clone(),
            guarantee: Some(application.guarantee),
            priority: Some(application.priority),
            ..ClassConfig::default()
        };
        let classes = self.applications.iter().map(class).collect();
        ClassTree::new(&ClassesConfig { classes, ..ClassesConfig::default() })
            .map_err(|error| ParametersRefused::new(error.to_string()))
    }

    /// What each class has sent so far, in bytes of datagrams.
    fn sent(&self, sessions: &Sessions<Traffic, Arrivals>) -> Result<Vec<u64>, Broken> {
        let tree = sessions.session(0)?.sender().classes();
        let of = |application: &Application| {
            tree.find(&application.name).map_or(0, |leaf| tree.counters(leaf).sent.as_u64())
        };
        Ok(self.applications.iter().map(of).collect())
    }

    fn measured(&self, ledger: &HandedOver, sent: &[u64], limit: Rate) -> Measured {
        let (from, until) = (BEGIN + self.from, BEGIN + self.until);
        let span = until.since(from);
        let flows = || (0..).map(FlowId).zip(&self.applications);
        let arrived: Vec<u64> =
            flows().map(|(flow, _)| ledger.bytes_within(flow, from, until).as_u64()).collect();
        let kept =
            flows().zip(sent.iter().zip(&arrived)).map(|((_, application), (sent, arrived))| {
                // What has a rate below its guarantee is to arrive as it is.
                let (due, got) =
                    match application.rate.filter(|rate| *rate <= application.guarantee) {
                        Some(rate) => (rate, *arrived),
                        None => (application.guarantee, *sent),
                    };
                got as f64 / (due * span).as_u64() as f64
            });
        let mut measured = Measured::default();
        measured.add_rate(&LIMIT, limit);
        measured
            .add(&OF_LIMIT, arrived.iter().sum::<u64>() as f64 / (limit * span).as_u64() as f64);
        measured.add(
            &KEPT,
            kept.fold(None, |least: Option<f64>, kept| Some(least.map_or(kept, |l| l.min(kept)))),
        );
        let counted = |is_expendable: bool| -> Vec<&BlockRecord> {
            let of_kind = flows().filter(|(_, application)| {
                application.expendable == is_expendable && application.lifetime.is_some()
            });
            let records = of_kind.flat_map(|(flow, _)| ledger.of(flow));
            records.filter(|record| (from..until).contains(&record.at)).collect()
        };
        let timed = counted(false);
        let mut latencies: Vec<Duration> =
            timed.iter().filter_map(|record| record.latency()).collect();
        latencies.sort_unstable();
        let at =
            |share: usize| latencies.get(latencies.len().saturating_sub(1) * share / 100).copied();
        for (metric, share) in [(&LATENCY_P50, 50), (&LATENCY_P99, 99), (&LATENCY_MAX, 100)] {
            measured.add_time(metric, at(share));
        }
        measured.add(&LATE, share_late(&timed));
        measured.add(&LOST, share_late(&counted(true)));
        measured
            .series
            .extend(flows().map(|(flow, application)| self.course(ledger, flow, application)));
        measured
    }

    /// What arrived of an application in each second.
    fn course(&self, ledger: &HandedOver, flow: FlowId, application: &Application) -> PointSeries {
        let seconds = self.duration.as_nanos() / STEP.as_nanos();
        let point = |second: u64| {
            let at = BEGIN + STEP * second;
            let rate = Rate::over(ledger.bytes_within(flow, at, at + STEP), STEP);
            ((STEP * second + STEP / 2).as_secs_f64(), rate.as_bps() as f64)
        };
        PointSeries {
            name: "arriving".to_owned(),
            part: application.name.clone(),
            x: Unit::Seconds,
            y: Unit::BitRate,
            points: (0..seconds).map(point).collect(),
        }
    }
}

impl Application {
    fn stream(&self, flow: FlowId, of: &Settings) -> StreamConfig {
        let pattern = match self.rate {
            Some(rate) => Pattern::Steady { rate, least: self.block, most: self.block },
            None => Pattern::Bulk { size: self.block, held: of.rate * (of.rtt * 2) },
        };
        StreamConfig {
            flow,
            class: ClassId::default(),
            priority: self.priority,
            lifetime: self.lifetime.map(|fixed| Lifetime { fixed, filled_at: None }),
            mode: if self.expendable { Mode::Expendable } else { Mode::Reliable },
            pattern,
            start: BEGIN + self.from,
            stop: BEGIN + self.until.unwrap_or(of.duration),
        }
    }
}

fn share_late(records: &[&BlockRecord]) -> Option<f64> {
    let late = records.iter().filter(|record| !record.is_on_time()).count();
    (!records.is_empty()).then(|| late as f64 / records.len() as f64)
}

const OF_LIMIT: Metric = Metric {
    key: "of_limit",
    heading: "÷ limit",
    unit: Unit::Share,
    meaning: "what arrived of all applications ÷ what the line can carry, while figures count",
};
const KEPT: Metric = Metric {
    key: "guarantee_kept",
    heading: "guarantee kept",
    unit: Unit::Share,
    meaning: "the worst class: sent ÷ its guarantee, or arrived ÷ handed over where that is less \
             than the guarantee",
};
const LATENCY_P50: Metric =
    latency("latency_s.p50", "latency p50", "of reliable blocks that can be late: median");
const LATENCY_P99: Metric = latency("latency_s.p99", "p99", "99th percentile of it");
const LATENCY_MAX: Metric = latency("latency_s.max", "max", "the longest");
const LATE: Metric = Metric {
    key: "late",
    heading: "late",
    unit: Unit::Share,
    meaning: "share of reliable blocks that arrived after their lifetime",
};
const LOST: Metric = Metric {
    key: "lost",
    heading: "lost",
    unit: Unit::Share,
    meaning: "share of expendable blocks that did not arrive within their lifetime",
};
const METRICS: &[&Metric] =
    &[&LIMIT, &OF_LIMIT, &KEPT, &LATENCY_P50, &LATENCY_P99, &LATENCY_MAX, &LATE, &LOST];

const fn latency(key: &'static str, heading: &'static str, meaning: &'static str) -> Metric {
    Metric { key, heading, unit: Unit::Seconds, meaning }
}

/// Sessions have opened by then.
const BEGIN: Instant = Instant::from_nanos(30_000_000_000);
/// Of the courses.
const STEP: Duration = Duration::from_secs(1);
/// What a packet costs a processor core with both sessions.
const PER_PACKET: Duration = Duration::from_nanos(8_000);
