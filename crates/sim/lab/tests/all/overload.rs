//! More than the line carries in time: what is sent of it, and that both ends say the same of each
//! block.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use bytes::Bytes;
use skyhaul_lab::PlainLine;
use skyhaul_lab::workload::Arrivals;
use skyhaul_lab::world::{User, World, WorldConfig, WorldPath};
use skyhaul_transport::{Block, BlockId, Event, Outcome, Session};
use skyhaul_units::{Duration, FlowId, Instant, Probability, Rate};
use std::collections::BTreeMap;

/// Notes what became of the blocks that a test hands over.
#[derive(Debug, Default)]
struct Fates(BTreeMap<BlockId, Outcome>);

impl User for Fates {
    fn event(&mut self, _: Instant, _: &mut Session, event: Event) {
        if let Event::Settled { id, outcome } = event {
            self.0.insert(id, outcome);
        }
    }

    fn work(&mut self, _: Instant, _: &mut Session) -> Option<Instant> {
        None
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_block_delivered_among_many_that_are_not_is_known_as_delivered() {
    // 200 blocks of 1 kB, each behind one of 100 kB that has to wait: no two of those delivered
    // stand side by side.
    for (loss, seed) in [(0, 1), (10, 2), (20, 3)] {
        let line = PlainLine {
            rate: Rate::from_mbps(1),
            loss: Probability::of(loss, 100),
            ..PlainLine::default()
        };
        let paths = [WorldPath::new(line)];
        let mut world =
            World::new(WorldConfig::default(), &paths, seed, Fates::default(), Arrivals::default());
        assert!(world.open());
        let now = world.now();
        let mut send = |life, len, priority| {
            let block = Block::expendable(FlowId(0), seconds(life), Bytes::from(vec![7; len]));
            let block = Block { priority, ..block };
            world.near.session.send(now, block).unwrap()
        };
        let small: Vec<BlockId> =
            (0..200).map(|_| (send(600, 100_000, 2), send(4, 1_000, 0)).1).collect();
        world.touch();
        world.run_for(seconds(8), |_| false);
        let arrived: Vec<BlockId> = world.far.user.blocks().iter().map(|(id, _)| *id).collect();
        let wrong = small.iter().filter(|id| {
            let delivered = world.near.user.0.get(id) == Some(&Outcome::Delivered);
            delivered != arrived.contains(id)
        });
        assert_eq!(wrong.count(), 0, "{loss} % loss");
        let delivered = small.iter().filter(|id| arrived.contains(id)).count();
        assert!(delivered >= 198, "{loss} % loss: {delivered} of 200");
    }
}
