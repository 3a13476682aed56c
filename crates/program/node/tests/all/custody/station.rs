//! The station's end: captures into flows, syncs in groups, feeds the session, loses power.

use super::truth::{FINAL, Truth, is_final};
use super::{Moment, millis};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use skyhaul_config::LineSharing;
use skyhaul_node::custody::{Feeder, find_divergence, renew};
use skyhaul_store::sim::SimDisk;
use skyhaul_store::{
    DestinationId, FlowRoute, Settle, Spool, SpoolConfig, SpoolDestination, SpoolDraw, SpoolError,
    SyncHandle,
};
use skyhaul_transport::{Custody, Event, Session};
use skyhaul_units::{ByteCount, Duration, FlowId, Instant};
use std::collections::BTreeMap;
use std::sync::Arc;

pub struct Station {
    pub disk: SimDisk,
    pub node: Option<Node>,
    /// What its spool held, and those before it that it is a copy of.
    pub truth: Truth,
    restart_at: Instant,
    /// When it calls the centre next.
    pub call_at: Instant,
    /// No new flows, and open ones get their last record.
    pub is_ending: bool,
    /// So often did it find out that it is a copy.
    pub parted: u64,
    /// Its destinations, by the number of the centre; none where it has the one it began with.
    pub declared: Vec<Option<SpoolDestination>>,
    /// A centre's store was put back: what it had receipted may be gone.
    pub may_miss: bool,
}

/// The process.
pub struct Node {
    pub spool: Spool,
    /// By the number of the centre.
    feeders: Vec<Option<Feeder>>,
    /// Whether flows settle in different ways.
    are_routed: bool,
    append_at: Instant,
    free_at: Instant,
    sync: Option<Sync>,
}

/// A sync under way: what it covers, and when the disk is done.
struct Sync {
    done_at: Instant,
    handle: SyncHandle,
    covers: BTreeMap<FlowId, usize>,
}

const FLOWS_OPEN: usize = 3;
const RETRY: Duration = millis(200);

impl Station {
    pub fn new(disk: SimDisk) -> Self {
        Self {
            disk,
            node: None,
            truth: Truth::default(),
            restart_at: Instant::ZERO,
            call_at: Instant::ZERO,
            is_ending: false,
            parted: 0,
            declared: Vec::new(),
            may_miss: false,
        }
    }

    /// Another one with the same files: a backup, or a machine that was cloned as it ran.
    pub fn copy(&self) -> Self {
        let mut copy = Self::new(self.disk.copy());
        (copy.truth, copy.parted) = (self.truth.clone(), self.parted);
        copy
    }

    /// The process is gone; it starts again at `at`.
    pub fn die(&mut self, at: Instant) {
        self.disk.kill();
        self.node = None;
        self.restart_at = at;
    }

    pub fn next_wake(&self) -> Instant {
        let Some(node) = &self.node else { return self.restart_at };
        let sync = node.sync.as_ref().map_or(Instant::FAR_FUTURE, |sync| sync.done_at);
        node.append_at.min(node.free_at).min(sync)
    }

    /// Does what is due; `false` where the process has died of its disk.
    pub fn work(&mut self, at: Moment, rng: &mut ChaCha8Rng, luck: &mut ChaCha8Rng) -> bool {
        if self.node.is_none() && at.now >= self.restart_at {
            self.start(at, draw(luck));
        }
        let is_ending = self.is_ending;
        let Some(node) = &mut self.node else { return true };
        let lives = node.work(at, &mut self.truth, rng, is_ending);
        let missing = node.spool.stats().missing;
        let may_miss = self.parted > 0 || self.may_miss;
        assert!(missing == 0 || may_miss, "{missing} places could not be read back");
        if !lives {
            self.die(at.now + millis(rng.random_range(1..500)));
        }
        lives
    }

    fn start(&mut self, at: Moment, draw: SpoolDraw) {
        let truth = &mut self.truth;
        let mut ids = Vec::new();
        let opened = Spool::open(Arc::new(self.disk.clone()), config(), at.utc(), draw);
        let opened = opened.and_then(|mut spool| {
            ids = set(&mut spool, &self.declared)?;
            Ok(spool)
        });
        let spool = match opened {
            Ok(spool) => spool,
            Err(SpoolError::State { .. } | SpoolError::Log(_) | SpoolError::Full { .. }) => {
                self.disk.kill();
                self.restart_at = at.now + RETRY;
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let open: BTreeMap<FlowId, u64> =
            spool.queue().open_flows().iter().map(|open| (open.flow, open.next.0)).collect();
        // An opening that failed half-way may show after a restart.
        for flow in open.keys() {
            truth.flow(*flow);
        }
        for (flow, known) in &mut truth.flows {
            let Some(next) = open.get(flow) else {
                assert!(
                    known.durable == known.appended.len(),
                    "{flow:?} is closed and lacks records"
                );
                continue;
            };
            let kept = *next as usize;
            assert!(
                (known.durable..=known.appended.len()).contains(&kept),
                "{flow:?}: {kept} kept of {known:?}"
            );
            known.appended.truncate(kept);
            known.durable = kept;
        }
        let feeders = ids.into_iter().map(|id| id.map(feeder)).collect();
        let are_routed = !self.declared.is_empty();
        let (append_at, free_at) = (at.now, at.now);
        self.node = Some(Node { spool, feeders, are_routed, append_at, free_at, sync: None });
    }

    /// Has these destinations from now on; it starts again where that cannot be kept.
    pub fn declare(&mut self, declared: Vec<Option<SpoolDestination>>, back: Instant) {
        self.declared = declared;
        let Some(node) = &mut self.node else { return };
        let Ok(ids) = set(&mut node.spool, &self.declared) else { return self.die(back) };
        for (known, id) in node.feeders.iter_mut().zip(ids) {
            if known.as_ref().map(Feeder::to) != id {
                *known = id.map(feeder);
            }
        }
    }

    /// What the session with a centre tells; `false` where it must not go on.
    pub fn event(&mut self, at: Moment, far: usize, event: Event, rng: &mut ChaCha8Rng) -> bool {
        let Some(node) = &mut self.node else { return true };
        let Some(feeder) = &mut node.feeders[far] else { return false };
        match event {
            Event::Greeted { custody, .. } => return self.greeted(at, far, custody, rng),
            Event::Custody { flow, next } => feeder.custody(&mut node.spool, flow, next),
            Event::Settled { id, .. } => feeder.settled(id),
            Event::PathUp(_) | Event::PathStalled(_) | Event::PathBack(_) => {}
            other => panic!("{other:?}"),
        }
        true
    }

    fn greeted(
        &mut self,
        at: Moment,
        far: usize,
        custody: Option<Custody>,
        rng: &mut ChaCha8Rng,
    ) -> bool {
        let Some(node) = &mut self.node else { return true };
        let Some(feeder) = &mut node.feeders[far] else { return false };
        let to = feeder.to();
        let custody = custody.unwrap_or_default();
        if custody != Custody::default() {
            match find_divergence(&mut node.spool, to, &custody) {
                Ok(None) => {}
                Ok(Some(_)) => {
                    self.parted +=
                        u64::from(renew(&mut node.spool, to, &custody, draw(rng)).is_ok());
                    return false;
                }
                Err(_) => return false,
            }
        }
        feeder.greeted(&mut node.spool, &custody.resume, at.utc());
        true
    }
}

/// The numbers of the destinations, by the number of the centre.
fn set(
    spool: &mut Spool,
    declared: &[Option<SpoolDestination>],
) -> Result<Vec<Option<DestinationId>>, SpoolError> {
    if declared.is_empty() {
        return Ok(vec![Some(DestinationId::FIRST)]);
    }
    let wanted: Vec<SpoolDestination> = declared.iter().flatten().cloned().collect();
    let mut ids = spool.destinations_mut().set(&wanted)?.into_iter();
    Ok(declared.iter().map(|one| one.as_ref().and_then(|_| ids.next())).collect())
}

fn feeder(to: DestinationId) -> Feeder {
    Feeder::new(to, LineSharing::default(), ByteCount::mib(64))
}

fn draw(rng: &mut ChaCha8Rng) -> SpoolDraw {
    SpoolDraw(rng.random())
}

impl Node {
    fn work(
        &mut self,
        at: Moment,
        truth: &mut Truth,
        rng: &mut ChaCha8Rng,
        is_ending: bool,
    ) -> bool {
        let outcome = self
            .finish_sync(at, truth)
            .and_then(|()| self.capture(at, truth, rng, is_ending))
            .and_then(|()| self.free(at));
        self.begin_sync(at, truth, rng);
        match outcome {
            Ok(()) => true,
            Err(SpoolError::Log(_) | SpoolError::State { .. }) => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// Opens, appends to and closes flows.
    fn capture(
        &mut self,
        at: Moment,
        truth: &mut Truth,
        rng: &mut ChaCha8Rng,
        is_ending: bool,
    ) -> Result<(), SpoolError> {
        if at.now < self.append_at {
            return Ok(());
        }
        self.append_at = at.now + millis(rng.random_range(2..60));
        let open: Vec<FlowId> =
            self.spool.queue().open_flows().iter().map(|open| open.flow).collect();
        if open.len() < FLOWS_OPEN && !is_ending && (open.is_empty() || rng.random_bool(0.05)) {
            return match self.spool.open_flow(at.utc()) {
                Ok(flow) => {
                    assert!(!truth.flows.contains_key(&flow), "{flow:?} was given twice");
                    truth.flow(flow);
                    if self.are_routed {
                        let settle = [Settle::All, Settle::All, Settle::Any, Settle::First];
                        let settle = settle[rng.random_range(0..settle.len())];
                        truth.flow(flow).settle = settle;
                        let to = self.feeders.iter().flatten().map(Feeder::to).collect();
                        self.spool.destinations_mut().route(flow, &FlowRoute { settle, to });
                    }
                    Ok(())
                }
                Err(SpoolError::Full { .. }) => Ok(()),
                Err(error) => Err(error),
            };
        }
        if open.is_empty() {
            self.append_at = at.now + RETRY;
            return Ok(());
        }
        let flow = open[rng.random_range(0..open.len())];
        let known = truth.flow(flow);
        if known.is_final() {
            // Freeing may have synced what no sync of this node did.
            if known.durable == known.appended.len() || !self.spool.needs_sync() {
                self.spool.close_flow(flow)?;
                truth.flows.values_mut().for_each(|flow| flow.durable = flow.appended.len());
            }
            return Ok(());
        }
        let last = rng.random_bool(if is_ending { 1.0 } else { 0.02 });
        let payload = payload(flow, known.appended.len(), last, rng);
        match self.spool.append(flow, &payload, at.utc()) {
            Ok(seq) => {
                assert_eq!(seq.0, known.appended.len() as u64, "{flow:?}");
                known.appended.push(payload);
                Ok(())
            }
            Err(SpoolError::Full { .. }) => {
                self.append_at = at.now + RETRY;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn begin_sync(&mut self, at: Moment, truth: &Truth, rng: &mut ChaCha8Rng) {
        if self.sync.is_none()
            && let Some(handle) = self.spool.sync_handle()
        {
            let covers =
                truth.flows.iter().map(|(flow, known)| (*flow, known.appended.len())).collect();
            let done_at = at.now + millis(rng.random_range(1..40));
            self.sync = Some(Sync { done_at, handle, covers });
        }
    }

    fn finish_sync(&mut self, at: Moment, truth: &mut Truth) -> Result<(), SpoolError> {
        let Some(sync) = self.sync.take_if(|sync| sync.done_at <= at.now) else { return Ok(()) };
        self.spool.synced(sync.handle.sync())?;
        for (flow, count) in sync.covers {
            let known = truth.flow(flow);
            known.durable = known.durable.max(count);
        }
        Ok(())
    }

    fn free(&mut self, at: Moment) -> Result<(), SpoolError> {
        if at.now >= self.free_at {
            self.free_at = at.now + Duration::from_secs(1);
            self.spool.free(at.utc())?;
            assert_eq!(
                self.spool.stats().custody_ahead,
                0,
                "the centre has what the station never had"
            );
        }
        Ok(())
    }

    pub fn disconnected(&mut self, far: usize) {
        self.feeders[far].iter_mut().for_each(Feeder::disconnected);
    }

    pub fn feed(&mut self, at: Moment, far: usize, session: &mut Session) {
        let spool = &mut self.spool;
        let Some(feeder) = &mut self.feeders[far] else { return };
        feeder.settle_finished(spool);
        feeder
            .feed(
                |reader, wanted| spool.queue_mut().read_flows(reader, wanted),
                session,
                at.now,
                || at.utc(),
            )
            .unwrap();
    }
}

fn payload(flow: FlowId, place: usize, last: bool, rng: &mut ChaCha8Rng) -> Vec<u8> {
    let len = *[2, 40, 700, 2_000].get(rng.random_range(0..4)).unwrap();
    let mark = if last { FINAL } else { 1 };
    // What is drawn comes first: blocks of contacts have the time in them, and no two are the same.
    let words = [rng.random(), u64::from(flow.0), place as u64];
    let payload: Vec<u8> = [mark]
        .into_iter()
        .chain(words.iter().flat_map(|word| word.to_be_bytes()).cycle().take(len))
        .collect();
    assert_eq!(is_final(&payload), last);
    payload
}

fn config() -> SpoolConfig {
    SpoolConfig {
        segment_size: ByteCount::kib(4),
        max_size: ByteCount::kib(32),
        retention: Duration::from_secs(3),
        reserve: ByteCount::new(300),
    }
}
