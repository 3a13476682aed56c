//! What is spent on sending again: at the end of a transfer, where it must bring the end forward,
//! and on blocks whose deadlines are far or near, where it is bounded by the loss.

use bytes::Bytes;
use skyhaul_lab::PlainLine;
use skyhaul_lab::world::{Bulk, Sink, World, WorldConfig, WorldPath};
use skyhaul_transport::repair::Goal;
use skyhaul_transport::{Block, PathStats, SessionConfig, Stats};
use skyhaul_units::{Duration, FlowId, Probability, Rate};

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
    Block::reliable(FlowId(0), Bytes::from(vec![7; 64 << 10]))
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
    // (loss in per cent, Mbit/s, round trip, blocks); thirty seeds each. With repair it took as
    // long or longer in sum.
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
        assert!(
            with * 10 <= without * 9,
            "{loss} %, {mbps} Mbit/s, {rtt} ms: {with} of {without} ms"
        );
    }
}

#[test]
fn repair_of_an_end_without_losses_costs_next_to_nothing() {
    let line = PlainLine::default();
    let (with, without) =
        (transfer(line, 40, 1, Some(Goal::default())), transfer(line, 40, 1, None));
    assert!(with <= without + 3, "{with} of {without} ms: four bytes of each symbol, and a tick");
}

/// Ten seconds of a line that has a third to spare, with a thousand blocks of this lifetime at 5 %
/// loss: what was spent, and how many arrived.
fn spent(lifetime: Duration) -> (Stats, PathStats, u64) {
    let line = PlainLine {
        rate: Rate::from_mbps(20),
        loss: Probability::of(5, 100),
        ..PlainLine::default()
    };
    let mut world = world(line, 1, Some(Goal::default()));
    let block = Block::expendable(FlowId(0), lifetime, Bytes::from(vec![7; 16 << 10]));
    // 16 KiB each 10 ms are 13 of 20 Mbit/s.
    for _ in 0..1_000 {
        let now = world.now();
        world.near.session.send(now, block.clone()).expect("the session is open and has room");
        world.touch();
        world.run_for(millis(10), |_| false);
    }
    world.run_for(millis(1_000), |_| false);
    let path = world.near.session.paths().iter().next().expect("the path is up").1;
    (world.near.session.stats(), path.stats, world.far.user.blocks())
}

#[test]
fn what_has_time_is_sent_once_more_for_each_loss_and_what_has_not_no_oftener_than_its_target_takes()
{
    // Sent once more for each time lost: 0.05 ÷ 0.95 of all, and a fifth for chance.
    let (lax, path, arrived) = spent(Duration::from_secs(60));
    assert_eq!(arrived, 1_000);
    let share = |count: u64, of: u64| count as f64 / of as f64;
    let repeated = share(lax.sent.symbols_repeated, lax.sent.symbols_sent);
    assert!((0.0526 * 0.8..0.0526 * 1.2).contains(&repeated), "{repeated}: {lax:?}");
    assert!(share(path.repair_sent, lax.sent.symbols_sent) < 0.005, "{path:?}");
    // One in a million is left after five at 5 %: four more for each that is lost, were none
    // repaired by coding.
    let (tight, path, _) = spent(millis(200));
    assert!(share(tight.sent.symbols_repeated, tight.sent.symbols_sent) < 0.05 * 4.0, "{tight:?}");
    // Coding takes what a group of 120 ms needs at 5 %, and a new path's uncertainty: less than a
    // fifth.
    let total = share(tight.sent.symbols_repeated + path.repair_sent, tight.sent.symbols_sent);
    assert!(total < 0.2, "{total}: {tight:?}, {path:?}");
}
