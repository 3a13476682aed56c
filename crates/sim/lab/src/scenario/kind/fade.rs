//! `fade`: rain on a satellite line: signal strength falls, the modem changes its modulation, and
//! symbols are lost at each change. With the feed of the modem, beside the same without it.

use super::controller::Choice;
use super::{Broken, Experiment, ParametersRefused, Plain};
use crate::scenario::metric::{Measured, Metric, Unit};
use crate::workload::{
    Arrivals, BlockRecord, HandedOver, Lifetime, Pattern, StreamConfig, Traffic,
};
use crate::world::{QuicLine, QuicWorld, User, Users, WorldConfig};
use serde::Deserialize;
use skyhaul_hints::{FeedMap, FeedRow, PathFeed};
use skyhaul_link::{Change, Loss};
use skyhaul_transport::{
    ClassConfig, ClassId, ClassTree, ClassesConfig, Event, Hint, Mode, PathId, Session,
    SessionConfig,
};
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Probability, Rate};

/// The kind.
pub(super) static KIND: Plain<Settings> = Plain::new(
    "fade",
    "blocks with a deadline beside bulk data over a satellite line that fades: what is late with \
    the feed of the modem, and without",
    METRICS,
);

/// The line, its fade, and what the modem tells.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    /// Round trip of the empty line.
    rtt: Duration,
    /// Who decides how fast the session sends; `line` declares the rate of the clear sky.
    controller: Choice,
    /// The rate of the blocks with a deadline. Bulk data takes the rest.
    flow: Rate,
    /// Their size.
    block: ByteCount,
    /// How long one is worth something.
    lifetime: Duration,
    /// Signal to noise ratio of the clear sky, in dB.
    clear_db: u32,
    /// By how much it falls, in dB.
    depth_db: u32,
    /// How long it falls, and rises again.
    slope: Duration,
    /// How long it stays there.
    hold: Duration,
    /// What the modem does, the strongest signal first.
    modulations: Vec<Modulation>,
    /// Symbols that are lost where the signal is less than 1 dB above what the modulation needs.
    edge_loss: Probability,
    /// What the lines of the modem mean, as `[[path.map]]`.
    map: Vec<Row>,
}

/// A modulation and coding of the modem.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Modulation {
    /// The least signal to noise ratio at which the modem uses it, in dB.
    needs_db: u32,
    /// The rate of the line then.
    rate: Rate,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    when: String,
    rate: Option<Rate>,
    loss: Option<Probability>,
}

impl super::Cell for Settings {
    fn check(&self) -> Result<(), ParametersRefused> {
        let refuse = |sentence: &str| Err(ParametersRefused::new(sentence));
        let needs = self.modulations.iter().map(|one| one.needs_db);
        if self.modulations.is_empty() || !needs.rev().is_sorted() {
            return refuse("give `modulations`, the one for the strongest signal first");
        }
        if self.depth_db > self.clear_db || self.slope == Duration::ZERO {
            return refuse("the fade is deeper than the signal, or takes no time");
        }
        if self.block == ByteCount::ZERO || self.block > ByteCount::mib(1) {
            return refuse("the blocks do not fit; give `block` ≤ 1 MiB");
        }
        self.feed_map().map(|_| ())
    }
}

impl Experiment for Settings {
    fn virtual_time(&self) -> Duration {
        self.length() * 2
    }

    fn cost(&self) -> Duration {
        PER_PACKET * ((self.clear_rate() * self.length()).as_u64() / 1_500 * 2)
    }

    fn run(&self, seed: u64) -> Result<Measured, Broken> {
        let map = self.feed_map().map_err(|refused| Broken(refused.sentence))?;
        let with = self.late(seed, Some(map))?;
        let without = self.late(seed, None)?;
        let mut measured = Measured::default();
        measured.add(&LATE, with.late);
        measured.add(&LATE_WITHOUT, without.late);
        measured.add(&LATE_RATIO, with.late / without.late.max(f64::MIN_POSITIVE));
        measured.add_time(&LATENCY, with.latency);
        measured.add_time(&LATENCY_WITHOUT, without.latency);
        measured.add(&BULK, with.bulk / without.bulk.max(1.0));
        Ok(measured)
    }
}

/// What a run showed.
struct Faded {
    /// Share of blocks that were not in time.
    late: f64,
    /// From hand-over to arrival, the 99th percentile of what arrived.
    latency: Option<Duration>,
    /// Bytes of bulk data that arrived.
    bulk: f64,
}

/// The streams, and the feed that tells the session of the line.
struct Fed {
    traffic: Traffic,
    feed: Option<PathFeed>,
    settings: Settings,
    next_line: Instant,
}

impl User for Fed {
    fn event(&mut self, now: Instant, session: &mut Session, event: Event) {
        self.traffic.event(now, session, event);
    }

    fn work(&mut self, now: Instant, session: &mut Session) -> Option<Instant> {
        if let Some(feed) = &mut self.feed
            && now >= self.next_line
        {
            self.next_line = now + LINE_EVERY;
            let signal = self.settings.signal_at(now.since(BEGIN));
            feed.line(now, format!("snr={signal:.1}dB").as_bytes());
            if let Some(hint) = feed.hint(now) {
                let (from, until) = (hint.since, hint.until);
                let rate = hint.values.rate;
                let rate = rate.map(|rate| Hint::Rate { from, until: Some(until), rate });
                let loss = hint.values.loss.map(|loss| Hint::Loss { from, until, loss });
                let hints = [Some(Hint::Withdraw), rate, loss];
                let _ = session.hint(PathId(0), hints.into_iter().flatten());
            }
        }
        let line = self.feed.as_ref().map(|_| self.next_line);
        [self.traffic.work(now, session), line].into_iter().flatten().min()
    }
}

impl Settings {
    fn feed_map(&self) -> Result<FeedMap, ParametersRefused> {
        let row = |row: &Row| {
            let when = row.when.parse();
            when.map(|when| FeedRow { when, rate: row.rate, loss: row.loss })
        };
        let rows: Result<Vec<FeedRow>, _> = self.map.iter().map(row).collect();
        rows.map(FeedMap::new).map_err(|error| ParametersRefused::new(error.to_string()))
    }

    fn clear_rate(&self) -> Rate {
        self.modulations.first().map_or(Rate::ZERO, |one| one.rate)
    }

    /// Clear sky, the fade, and clear sky again.
    fn length(&self) -> Duration {
        CLEAR * 2 + self.slope * 2 + self.hold
    }

    /// Signal to noise ratio in dB, so long after the beginning.
    fn signal_at(&self, after: Duration) -> f64 {
        let slope = self.slope.as_secs_f64();
        let fallen = (after.as_secs_f64() - CLEAR.as_secs_f64()) / slope;
        let risen = (fallen * slope - slope - self.hold.as_secs_f64()) / slope;
        let depth = fallen.clamp(0.0, 1.0) - risen.clamp(0.0, 1.0);
        f64::from(self.clear_db) - f64::from(self.depth_db) * depth
    }

    /// What the modem makes of a signal.
    fn line_at(&self, signal: f64) -> Change {
        let fits = |one: &&Modulation| signal >= f64::from(one.needs_db);
        let used = self.modulations.iter().find(fits).or(self.modulations.last());
        let margin = used.map_or(0.0, |used| signal - f64::from(used.needs_db));
        let loss = if margin < 1.0 { self.edge_loss } else { Probability::ZERO };
        Change {
            rate: used.map(|used| used.rate),
            loss: Some(Loss::Independent(loss)),
            ..Change::default()
        }
    }

    /// What changes of the line, step by step from its start.
    fn changes(&self) -> Vec<Change> {
        let steps = (self.slope * 2 + self.hold).as_nanos() / STEP.as_nanos() + 1;
        let mut changes: Vec<Change> = Vec::new();
        for step in 0..=steps {
            let after = CLEAR + STEP * step;
            let change = self.line_at(self.signal_at(after));
            let at = BEGIN.since(Instant::ZERO) + after;
            let is_as = |last: &Change| last.rate == change.rate && last.loss == change.loss;
            if !changes.last().is_some_and(is_as) {
                changes.push(Change { at, ..change });
            }
        }
        changes
    }

    fn late(&self, seed: u64, map: Option<FeedMap>) -> Result<Faded, Broken> {
        let path = super::watched::path(self.clear_rate(), self.rtt, Probability::ZERO);
        let controller = self.controller.config(self.clear_rate());
        let mut line = QuicLine::of(&path, Some(controller))?;
        line.links[0].changes = self.changes();
        let tree = tree()?;
        let session = SessionConfig { classes: tree.clone(), ..SessionConfig::default() };
        let world =
            WorldConfig { sessions: [session, SessionConfig::default()], ..WorldConfig::default() };
        let near = Fed {
            traffic: Traffic::new(self.streams(&tree), seed),
            feed: map.map(|map| PathFeed::new(map, STALE)),
            settings: self.clone(),
            next_line: Instant::ZERO,
        };
        let users = Users { near, far: Arrivals::default() };
        let mut world = QuicWorld::new(world, &[line], seed, users)?;
        world.open(self.rtt)?;
        if world.now() > BEGIN {
            return Err(Broken(format!("the sessions opened at {} only", world.now())));
        }
        world.run_until(BEGIN + self.length() + self.rtt * 4, |_| false)?;
        let (fed, arrivals) =
            world.into_users().ok_or_else(|| Broken("the session has ended".to_owned()))?;
        let mut ledger = fed.traffic.ledger;
        ledger.settle(&arrivals);
        Ok(self.faded(&ledger))
    }

    fn streams(&self, tree: &ClassTree) -> [StreamConfig; 2] {
        let class = |name| tree.find(name).unwrap_or(tree.default_leaf());
        let stream = |flow, class: ClassId, pattern, lifetime| StreamConfig {
            flow,
            class,
            priority: 0,
            lifetime,
            mode: Mode::Reliable,
            pattern,
            start: BEGIN,
            stop: BEGIN + self.length(),
        };
        let lifetime = Some(Lifetime { fixed: self.lifetime, filled_at: None });
        let period = self.flow.time_for(self.block);
        let urgent = stream(
            URGENT,
            class("urgent"),
            Pattern::Periodic { size: self.block, period },
            lifetime,
        );
        let held = (self.clear_rate() * self.rtt).max(ByteCount::mib(1)) + ByteCount::mib(1);
        let bulk = Pattern::Bulk { size: ByteCount::kib(64), held };
        [
            StreamConfig { mode: Mode::Expendable, ..urgent },
            stream(FlowId(1), class("bulk"), bulk, None),
        ]
    }

    fn faded(&self, ledger: &HandedOver) -> Faded {
        let from = BEGIN + CLEAR;
        let until = from + self.slope * 2 + self.hold;
        let in_fade = |record: &&BlockRecord| (from..until).contains(&record.at);
        let blocks: Vec<&BlockRecord> = ledger.of(URGENT).iter().filter(in_fade).collect();
        let late = blocks.iter().filter(|record| !record.is_on_time()).count();
        let mut latencies: Vec<Duration> =
            blocks.iter().filter_map(|record| record.latency()).collect();
        latencies.sort_unstable();
        let at = latencies.len().saturating_sub(1) * 99 / 100;
        Faded {
            late: late as f64 / blocks.len().max(1) as f64,
            latency: latencies.get(at).copied(),
            bulk: ledger.bytes_within(FlowId(1), from, until).as_u64() as f64,
        }
    }
}

/// The urgent blocks come first, bulk data has what is left.
fn tree() -> Result<ClassTree, Broken> {
    let class = |name: &str, priority| ClassConfig {
        name: name.to_owned(),
        priority: Some(priority),
        ..ClassConfig::default()
    };
    let classes = vec![class("urgent", 0), class("bulk", 1)];
    ClassTree::new(&ClassesConfig { classes, ..ClassesConfig::default() })
        .map_err(|error| Broken(error.to_string()))
}

const LATE: Metric = Metric {
    key: "late",
    heading: "late with feed",
    unit: Unit::Share,
    meaning: "share of the blocks with a deadline, handed over during the fade, that did not \
             arrive in time",
};
const LATE_WITHOUT: Metric = Metric {
    key: "late_without",
    heading: "without",
    unit: Unit::Share,
    meaning: "the same without the feed",
};
const LATE_RATIO: Metric = Metric {
    key: "late_ratio",
    heading: "with ÷ without",
    unit: Unit::Share,
    meaning: "the first over the second",
};
const LATENCY: Metric = Metric {
    key: "latency_p99_s",
    heading: "latency p99 with feed",
    unit: Unit::Seconds,
    meaning: "99th percentile of the time from hand-over to arrival of these blocks, of those that \
             arrived",
};
const LATENCY_WITHOUT: Metric = Metric {
    key: "latency_p99_without_s",
    heading: "without",
    unit: Unit::Seconds,
    meaning: "the same without the feed",
};
const BULK: Metric = Metric {
    key: "bulk_ratio",
    heading: "bulk, with ÷ without",
    unit: Unit::Share,
    meaning: "bytes of bulk data that arrived during the fade, with the feed over without",
};
const METRICS: &[&Metric] = &[&LATE, &LATE_WITHOUT, &LATE_RATIO, &LATENCY, &LATENCY_WITHOUT, &BULK];

const URGENT: FlowId = FlowId(0);
/// Sessions have opened by then.
const BEGIN: Instant = Instant::from_nanos(10_000_000_000);
/// Clear sky before the fade, and after it.
const CLEAR: Duration = Duration::from_secs(4);
/// Of the line's changes.
const STEP: Duration = Duration::from_millis(50);
/// From one line of the modem to the next.
const LINE_EVERY: Duration = Duration::from_secs(1);
/// The default of `feed_stale`.
const STALE: Duration = Duration::from_secs(5);
/// What a packet costs a processor core with both ends.
const PER_PACKET: Duration = Duration::from_nanos(12_000);
