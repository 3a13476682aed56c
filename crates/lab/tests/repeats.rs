//! What is spent on sending again: at the end of a transfer, where it must bring the end forward, and on blocks whose deadlines
//! are far or near, where it is bounded by the loss.

use bytes::Bytes as Buffer;
use skyhaul_lab::PlainLine;
use skyhaul_lab::workload::Arrivals;
use skyhaul_lab::world::{Bulk, Sink, World, WorldConfig, WorldPath};
use skyhaul_transport::repair::{Goal, LossEstimate, Planner, Situation};
use skyhaul_transport::{Block, PathStats, SessionConfig, Stats};
use skyhaul_units::{Bytes, Duration, FlowId, Probability, Rate};
use std::collections::BTreeSet;

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn world(line: PlainLine, seed: u64, repair: Option<Goal>) -> World<Bulk, Sink> {
    let config = WorldConfig::alike(SessionConfig { repair, ..SessionConfig::default() });
    let mut world =
        World::new(config, &[WorldPath::new(line)], seed, Bulk::of(template(), 0), Sink::default());
    assert!(world.open());
    world
}

fn template() -> Block {
    Block::reliable(FlowId(0), Buffer::from(vec![7; 64 << 10]))
}

/// From hand-over to the arrival of the last of `blocks`, in milliseconds.
fn transfer(line: PlainLine, blocks: u64, seed: u64, goal: Option<Goal>) -> u64 {
    let mut world = world(line, seed, goal);
    world.near.user = Bulk::of(template(), blocks);
    world.touch();
    let begin = world.now();
    assert!(world.run_for(millis(30_000), |world| world.far.user.blocks() == blocks));
    world.now().since(begin).as_millis()
}

#[test]
fn repair_brings_the_end_of_a_transfer_forward() {
    // (loss in per cent, Mbit/s, round trip, blocks); thirty seeds each. With repair it took as long or longer in sum.
    for (loss, mbps, rtt, blocks) in
        [(14, 93, 160, 10), (14, 93, 160, 100), (5, 93, 160, 40), (5, 20, 600, 40)]
    {
        let line = PlainLine {
            rate: Rate::from_mbps(mbps),
            one_way_delay: millis(rtt / 2),
            loss: Probability::of(loss, 100),
            ..PlainLine::default()
        };
        let sum = |goal| (0..30).map(|seed| transfer(line, blocks, seed, goal)).sum::<u64>();
        let (with, without) = (sum(Some(Goal::default())), sum(None));
        assert!(with * 10 <= without * 9, "{loss} %, {mbps} Mbit/s, {rtt} ms: {with} of {without} ms");
    }
}

#[test]
fn repair_of_an_end_without_losses_costs_next_to_nothing() {
    let line = PlainLine::default();
    let (with, without) = (transfer(line, 40, 1, Some(Goal::default())), transfer(line, 40, 1, None));
    assert!(with <= without + 3, "{with} of {without} ms: four bytes of each symbol, and a tick");
}

/// Ten seconds of a line that has a third to spare, with blocks of this lifetime at 5 % loss.
fn spent(lifetime: Duration) -> (Stats, PathStats) {
    let line = PlainLine { rate: Rate::from_mbps(20), loss: Probability::of(5, 100), ..PlainLine::default() };
    let mut world = world(line, 1, Some(Goal::default()));
    let block = Block::expendable(FlowId(0), lifetime, Buffer::from(vec![7; 16 << 10]));
    // 16 KiB each 10 ms are 13 of 20 Mbit/s.
    for _ in 0..1_000 {
        let now = world.now();
        world.near.session.send(now, block.clone()).expect("the session is open and has room");
        world.touch();
        world.run_for(millis(10), |_| false);
    }
    world.run_for(millis(1_000), |_| false);
    let path = world.near.session.paths().next().expect("the path is up").1;
    (world.near.session.stats(), path.stats)
}

#[test]
fn what_has_time_is_sent_once_more_for_each_loss_and_what_has_not_no_oftener_than_its_target_takes() {
    // Sent once more for each time lost: 0.05 ÷ 0.95 of all, and a fifth for chance.
    let (lax, path) = spent(Duration::from_secs(60));
    let share = |count: u64, of: u64| count as f64 / of as f64;
    assert!(share(lax.symbols_repeated, lax.symbols_sent) < 0.0526 * 1.2, "{lax:?}");
    assert!(share(path.repair_sent, lax.symbols_sent) < 0.005, "{path:?}");
    // One in a million is left after five at 5 %: four more for each that is lost, were none repaired by coding.
    let (tight, path) = spent(millis(200));
    assert!(share(tight.symbols_repeated, tight.symbols_sent) < 0.05 * 4.0, "{tight:?}");
    // Of these 81 were given up: what had waited was planned for as if it had no more time, and repair took the line.
    assert_eq!((tight.blocks_given_up, tight.blocks_reported), (0, 1_000), "{tight:?}");
    // Coding takes what a group of 120 ms needs at 5 %, and a new path's uncertainty: less than a fifth.
    let total = share(tight.symbols_repeated + path.repair_sent, tight.symbols_sent);
    assert!(total < 0.2, "{total}: {tight:?}, {path:?}");
}

/// A line, and blocks of so many bytes due within so many milliseconds, 66 Mbit of them for each 100 that it carries.
#[derive(Debug, Clone, Copy)]
struct Cell {
    line: PlainLine,
    block: usize,
    deadline: u64,
}

impl Cell {
    /// Loss in per cent, Mbit/s, round trip in milliseconds, size of a block in KiB, deadline in milliseconds.
    fn new([loss, mbps, rtt, kib, deadline]: [u64; 5], payload: usize) -> Self {
        let line = PlainLine {
            rate: Rate::from_mbps(mbps),
            one_way_delay: millis(rtt / 2),
            loss: Probability::of(loss, 100),
            payload,
            ..PlainLine::default()
        };
        Self { line, block: (kib as usize) << 10, deadline }
    }

    /// The least that a block takes: its time on the line, and on the way.
    fn least(&self) -> Duration {
        self.line.rate.time_for(Bytes::of(self.block)) + self.line.one_way_delay
    }

    fn offered(&self) -> Rate {
        self.line.rate.scaled(66, 100)
    }

    /// Whether there is a plan that repairs all groups but one in a million, at a tenth more than this loss.
    fn can_be_repaired(&self) -> bool {
        let plan = Planner::default().plan(&Situation {
            loss: LossEstimate::assumed(Probability::of(
                u64::from(self.line.loss.as_ppb()) * 11,
                10_000_000_000,
            )),
            rtt: Some(self.line.one_way_delay * 2),
            slack: millis(self.deadline) - self.least(),
            flow: self.offered(),
            spare: Rate::from_bps(self.line.rate.as_bps() - self.offered().as_bps()),
            payload: self.line.payload,
        });
        plan.residual <= Goal::default().target
    }

    /// Blocks that are handed over once the loss is known, and how many of them are not in time.
    fn run(&self, seed: u64) -> (u64, u64) {
        let config = WorldConfig::alike(SessionConfig::default());
        let users = (Bulk::of(template(), 0), Arrivals::default());
        let mut world = World::new(config, &[WorldPath::new(self.line)], seed, users.0, users.1);
        assert!(world.open());
        let block = Block::expendable(FlowId(0), millis(self.deadline), Buffer::from(vec![7; self.block]));
        let every = self.offered().time_for(Bytes::of(self.block));
        // A new path is taken for one that loses 5 %: what it loses shows after a round trip.
        let learning = (self.line.one_way_delay * 4).as_nanos() / every.as_nanos();
        let counted = millis(1_000).as_nanos() / every.as_nanos();
        let mut ids = Vec::new();
        for _ in 0..learning + counted {
            let now = world.now();
            ids.extend(world.near.session.send(now, block.clone()));
            world.touch();
            world.run_for(every, |_| false);
        }
        world.run_for(millis(self.deadline), |_| false);
        let arrived: BTreeSet<_> = world.far.user.blocks().iter().map(|(id, _)| *id).collect();
        let counted = &ids[learning as usize..];
        let late = counted.iter().filter(|id| !arrived.contains(id));
        (counted.len() as u64, late.count() as u64)
    }
}

#[test]
fn what_can_be_repaired_in_time_arrives_in_time() {
    // In datagrams of 700 bytes, since a plain path holds two round trips of full ones, and as many where the plan cuts small ones.
    let cells = [
        [5, 20, 160, 16, 200],
        [1, 20, 160, 16, 130],
        [5, 20, 160, 16, 130],
        [5, 20, 160, 64, 160],
        [5, 20, 600, 16, 368],
        [10, 20, 600, 16, 460],
        [5, 93, 160, 64, 103],
    ];
    for cell in cells.map(|cell| Cell::new(cell, 700)) {
        assert!(millis(cell.deadline) >= cell.least().scaled(6, 5) && cell.can_be_repaired(), "{cell:?}");
        for seed in 0..20 {
            let (counted, late) = cell.run(seed);
            assert_eq!(late, 0, "of {counted}, seed {seed}: {cell:?}");
        }
    }
}
