//! Watches the feed and the plan of one path.

use super::board::{KnownFeed, KnownPlan, PathKnowledge, SeenHint};
use super::feed_reader::FeedReader;
use super::plan_file::PlanFile;
use crate::station::shared::StationShared;
use crate::status::{FeedStatus, seconds};
use skyhaul_config::LinePath;
use skyhaul_events::AlarmKind;
use skyhaul_hints::{FeedCounters, FeedHint, PathFeed};
use skyhaul_net::Clock;
use skyhaul_units::{Duration, Instant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The watch over one path.
#[derive(Debug)]
pub struct PathWatch {
    title: String,
    feed: Option<WatchedFeed>,
    plan: Option<PlanFile>,
    plan_at: Instant,
    shared: Arc<StationShared>,
    stop: Arc<AtomicBool>,
    clock: Clock,
}

#[derive(Debug)]
struct WatchedFeed {
    feed: PathFeed,
    reader: FeedReader,
    stale_after: Duration,
    started: Instant,
}

/// Between two looks at a feed.
const LOOK: Duration = Duration::from_millis(100);
/// Between two looks at a plan's file.
const PLAN_LOOK: Duration = Duration::from_secs(1);

impl PathWatch {
    /// A watch over what a path's configuration names; `stop` ends it.
    pub fn new(
        config: &LinePath,
        shared: Arc<StationShared>,
        stop: Arc<AtomicBool>,
        clock: Clock,
    ) -> Self {
        let feed = config.feed.as_ref().map(|source| WatchedFeed {
            feed: PathFeed::new(config.feed_map(), config.feed_stale),
            reader: FeedReader::new(source.clone(), clock, config.feed_stale),
            stale_after: config.feed_stale,
            started: clock.now(),
        });
        let plan = config.plan.clone().map(PlanFile::new);
        let (title, plan_at) = (config.title().to_owned(), Instant::ZERO);
        Self { title, feed, plan, plan_at, shared, stop, clock }
    }

    /// Watches until it is stopped, or the node ends.
    pub fn run(mut self) {
        while !self.stop.load(Ordering::Relaxed) && !self.shared.shutdown.is_requested() {
            self.look();
            self.shared.shutdown.pause(LOOK);
        }
        self.shared.outside.forget(&self.title);
        self.shared.alarms.clear(AlarmKind::FeedStale, self.feed_subject());
        self.shared.alarms.clear(AlarmKind::PlanFaulty, self.plan_subject());
    }

    fn feed_subject(&self) -> String {
        format!("the feed of path {}", self.title)
    }

    fn plan_subject(&self) -> String {
        format!("the plan of path {}", self.title)
    }

    fn look(&mut self) {
        let now = self.clock.now();
        let before = self.shared.outside.of(&self.title);
        let feed = self.look_at_feed(now);
        let plan = if now < self.plan_at { before.plan.clone() } else { self.look_at_plan(now) };
        let knowledge = PathKnowledge { feed, plan };
        if knowledge != before {
            self.shared.outside.set(&self.title, knowledge);
        }
    }

    fn look_at_feed(&mut self, now: Instant) -> Option<KnownFeed> {
        let subject = self.feed_subject();
        let WatchedFeed { feed, reader, stale_after, started } = self.feed.as_mut()?;
        reader.read(now, feed);
        if let Some(garbage) = feed.take_garbage(now) {
            tracing::warn!(
                path = self.title,
                "{} lines of the feed are refused; the first: {}",
                garbage.count,
                garbage.error
            );
        }
        let newest_at = feed.newest_at();
        let stale = now >= newest_at.unwrap_or(*started) + *stale_after;
        if stale {
            let why = reader.reason().map(|why| format!(" ({why})")).unwrap_or_default();
            let reason = format!(
                "no line for more than {stale_after}{why}: what it said of the path has expired"
            );
            self.shared.alarms.raise(AlarmKind::FeedStale, &subject, &reason);
        } else if newest_at.is_some() {
            self.shared.alarms.clear(AlarmKind::FeedStale, &subject);
        }
        let utc = |at| self.clock.utc_of(at);
        let seen = |hint: FeedHint| SeenHint {
            values: hint.values,
            since: utc(hint.since),
            until: utc(hint.until),
        };
        let FeedCounters { lines, unmapped, garbage } = feed.counters();
        Some(KnownFeed {
            hint: feed.hint(now).map(seen),
            status: FeedStatus {
                source: reader.source().to_string(),
                stale,
                reason: reader.reason().map(str::to_owned),
                newest: feed.newest().map(str::to_owned),
                newest_at: newest_at.map(utc).map(seconds),
                lines,
                unmapped,
                garbage,
            },
        })
    }

    fn look_at_plan(&mut self, now: Instant) -> Option<KnownPlan> {
        self.plan_at = now + PLAN_LOOK;
        let subject = self.plan_subject();
        let plan = self.plan.as_mut()?;
        let utc = self.clock.utc_of(now);
        if plan.look() {
            tracing::info!(path = self.title, "contact plan read: {} windows", plan.count());
        }
        match plan.fault(utc) {
            Some(fault) => self.shared.alarms.raise(AlarmKind::PlanFaulty, &subject, &fault),
            None => _ = self.shared.alarms.clear(AlarmKind::PlanFaulty, &subject),
        }
        Some(plan.known(utc))
    }
}
