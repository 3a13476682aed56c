//! Datagrams and control bytes over a path that is up: order, fates, bounds, measurements, damage.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::pair::{App, CLIENT, Options, SERVER, World};
use proptest::prelude::*;
use skyhaul_tcp::TlsPathConfig;
use skyhaul_transport::{DownReason, Path, PathEvent};
use skyhaul_units::{ByteCount, Duration, Instant, Probability, Rate};

fn numbers(count: u64, size: usize) -> App {
    App::Numbers { next: 0, count, size }
}

/// The numbers of the datagrams that `end` received, in their order.
fn received(world: &World, end: usize) -> Vec<u64> {
    let number = |(_, event): &(Instant, PathEvent)| match event {
        PathEvent::Datagram(datagram) => {
            Some(u64::from_be_bytes(datagram[..8].try_into().expect("a number")))
        }
        _ => None,
    };
    world.seen[end].events.iter().filter_map(number).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn datagrams_arrive_both_ways_whole_in_order_once(
        seed in any::<u32>(),
        sizes in [16_usize..3_000, 16..40_000],
        piece in 1_usize..20_000,
        mbps in 1_u64..1_000,
        millis in 1_u64..350,
        stall_one_in in prop_oneof![Just(0_u64), 2..40_u64],
    ) {
        let options = Options {
            seed: seed.into(),
            piece,
            rate: Rate::from_mbps(mbps),
            one_way: Duration::from_millis(millis),
            stall_one_in,
            ..Options::default()
        };
        let mut world = World::connected(&options);
        let count = 150;
        world.apps = sizes.map(|size| numbers(count, size));
        world.run_until(world.now + Duration::from_secs(900), |world| {
            world.seen.iter().all(|seen| seen.acked.len() as u64 == count)
        });
        for end in [CLIENT, SERVER] {
            let all: Vec<u64> = (0..count).collect();
            prop_assert_eq!(&received(&world, end), &all);
            prop_assert_eq!(&world.seen[end].acked, &all);
            prop_assert!(world.seen[end].lost.is_empty() && world.seen[end].down.is_none());
            prop_assert_eq!(world.seen[end].datagram_bytes, count * sizes[1 - end] as u64);
        }
    }
}

#[test]
fn control_bytes_arrive_in_order_beside_datagrams_and_are_bounded() {
    let mut world = World::connected(&Options { rate: Rate::from_mbps(5), ..Options::default() });
    world.apps[CLIENT] = numbers(2_000, 1_438);
    let text: Vec<u8> = (0..600_000_u32).map(|n| (n % 251) as u8).collect();
    let now = world.now;
    let first = world.paths[CLIENT].send_control(now, &text);
    assert_eq!(first, 256 * 1024, "as much as is configured");
    assert_eq!(world.paths[CLIENT].send_control(now, &text[first..]), 0);
    let mut taken = first;
    while taken < text.len() {
        world.run(Duration::from_millis(100));
        let now = world.now;
        taken += world.paths[CLIENT].send_control(now, &text[taken..]);
    }
    world.run(Duration::from_secs(10));
    assert!(world.seen[SERVER].control == text && world.seen[SERVER].datagrams == 2_000);
}

#[test]
fn the_line_is_used_to_the_full_and_measured() {
    for (mbps, millis, buffer) in [
        (1, 100, 64 << 10),
        (93, 160, 16 << 20),
        (93, 660, 16 << 20),
        (300, 160, 64 << 20),
        (1_000, 2, 4 << 20),
    ] {
        let (rate, rtt) = (Rate::from_mbps(mbps), Duration::from_millis(millis));
        let options =
            Options { rate, one_way: rtt / 2, buffer, piece: 15_000, ..Options::default() };
        let mut world = World::connected(&options);
        world.apps[CLIENT] = numbers(u64::MAX, 1_438);
        let warm = (rtt * 20).max(Duration::from_secs(2));
        world.run(warm);
        let (before, began) = (world.seen[SERVER].datagram_bytes, world.now);
        world.seen[SERVER].latencies.clear();
        let span = if mbps >= 300 { Duration::from_secs(4) } else { Duration::from_secs(25) };
        world.run(span);
        let gained = ByteCount::new(world.seen[SERVER].datagram_bytes - before);
        let goodput = Rate::over(gained, world.now.since(began));
        let estimate = world.paths[CLIENT].estimate();
        let slowest = *world.seen[SERVER].latencies.iter().max().unwrap();
        println!("{rate} {rtt}: {goodput}, {estimate:?}, at most {slowest}");
        assert!(goodput >= rate.scaled(98, 100), "{rate} {rtt}: {goodput}");
        assert!(estimate.rate >= rate.scaled(95, 100) && estimate.rate <= rate.scaled(110, 100));
        assert!(
            estimate.min_rtt >= rtt
                && estimate.min_rtt <= rtt.scaled(3, 2) + Duration::from_millis(200)
        );
        assert_eq!(estimate.loss, Probability::ZERO);
        // However deep the buffers below: a round trip of queue, what acknowledgements wait for,
        // and 64 KiB on either side.
        let bound = rtt / 2
            + rtt.scaled(3, 2)
            + Duration::from_millis(50)
            + rate.time_for(ByteCount::kib(160));
        assert!(slowest <= bound, "{rate} {rtt}: {slowest} above {bound}");
    }
}

#[test]
fn the_measured_rate_follows_the_line_down_and_up() {
    let mut world = World::connected(&Options { buffer: 16 << 20, ..Options::default() });
    world.apps[CLIENT] = numbers(u64::MAX, 1_438);
    for mbps in [93, 20, 200, 5] {
        let rate = Rate::from_mbps(mbps);
        world.pipes[CLIENT].rate = rate;
        world.run(Duration::from_secs(30));
        let estimate = world.paths[CLIENT].estimate();
        assert!(
            estimate.rate >= rate.scaled(9, 10) && estimate.rate <= rate.scaled(11, 10),
            "{rate}: {estimate:?}"
        );
        let slowest = world.seen[SERVER].latencies.iter().rev().take(100).max().unwrap();
        assert!(*slowest < Duration::from_millis(600), "{rate}: {slowest}");
    }
}

#[test]
fn a_lossy_line_that_tcp_repairs_costs_time_and_nothing_else() {
    let options = Options { stall_one_in: 500, piece: 15_000, ..Options::default() };
    let mut world = World::connected(&options);
    world.apps[CLIENT] = numbers(60_000, 1_438);
    let done = world.run_until(world.now + Duration::from_secs(60), |world| {
        world.seen[CLIENT].acked.len() == 60_000
    });
    let took = world.now.since(Instant::ZERO);
    assert!(done && world.seen[SERVER].datagrams == 60_000 && world.seen[CLIENT].lost.is_empty());
    assert!(took < Duration::from_secs(15), "{took}: 7.5 s of line time");
    let rate = world.paths[CLIENT].estimate().rate;
    assert!(rate <= Rate::from_mbps(115), "bunches do not look like a fast line: {rate}");
}

#[test]
fn an_end_that_does_not_poll_holds_the_other_back_within_bounds() {
    let path = TlsPathConfig { receive_buffer: ByteCount::kib(512), ..TlsPathConfig::default() };
    let mut world = World::connected(&Options { path, ..Options::default() });
    world.asleep[SERVER] = true;
    world.apps[CLIENT] = numbers(100_000, 1_438);
    world.run(Duration::from_secs(30));
    let now = world.now;
    assert_eq!(world.paths[CLIENT].room(now), 0);
    assert!(!world.paths[SERVER].wants_read());
    let App::Numbers { next, .. } = world.apps[CLIENT] else { unreachable!() };
    assert!(next * 1_438 < 4 << 20, "{next} datagrams handed over");
    // Nor is the silence of an end that is not read taken for its death.
    world.run(Duration::from_secs(100));
    assert!(
        world.paths.iter().all(|path| path.lifecycle().refusal().is_none() && !path.is_finished())
    );
    world.asleep[SERVER] = false;
    world.run(Duration::from_secs(30));
    assert_eq!((world.seen[SERVER].datagrams, world.seen[CLIENT].acked.len()), (100_000, 100_000));
}

#[test]
fn each_token_has_one_fate_and_none_is_lost_before_the_end() {
    let mut world = World::connected(&Options::default());
    world.apps[CLIENT] = numbers(u64::MAX, 1_438);
    world.run(Duration::from_secs(1));
    assert!(world.seen[CLIENT].lost.is_empty());
    let now = world.now;
    world.paths[CLIENT].stream_failed(now, "connection reset by peer");
    world.run(Duration::from_secs(1));
    let App::Numbers { next, .. } = world.apps[CLIENT] else { unreachable!() };
    let seen = &world.seen[CLIENT];
    let fates: Vec<u64> = seen.acked.iter().chain(&seen.lost).copied().collect();
    assert!(fates.iter().copied().eq(0..next), "each once, acknowledged ones before");
    assert!(!seen.lost.is_empty() && seen.acked.len() as u64 <= world.seen[SERVER].datagrams);
    assert!(
        matches!(seen.events.last(), Some((_, PathEvent::Down(_))) | None)
            || seen.events.len() == 10_000
    );
    let now = world.now;
    assert_eq!(world.paths[CLIENT].room(now), 0);
}

#[test]
fn what_came_before_the_end_is_given_out_before_it() {
    let mut world = World::connected(&Options::default());
    world.asleep[SERVER] = true;
    world.apps[CLIENT] = numbers(100, 1_438);
    world.run(Duration::from_millis(500));
    let now = world.now;
    world.paths[CLIENT].close(now, "done");
    world.run(Duration::from_millis(500));
    world.asleep[SERVER] = false;
    world.run(Duration::from_millis(1));
    assert_eq!(world.seen[SERVER].datagrams, 100);
    assert_eq!(*world.down(SERVER), DownReason::ClosedByPeer("done".to_owned()));
}

#[test]
fn a_damaged_byte_anywhere_ends_the_path_and_nothing_wrong_is_given_out() {
    for seed in 0..150 {
        let options = Options { seed, one_way: Duration::from_millis(10), ..Options::default() };
        let mut world = World::new(&options);
        let end = (seed % 2) as usize;
        // In the handshake (some 600 bytes), at its seam, and behind it.
        world.pipes[end].damage = Some(if seed < 100 { seed * 8 } else { seed * 997 });
        world.apps = [numbers(3_000, 1_438), numbers(3_000, 1_438)];
        world.run(Duration::from_secs(40));
        for side in [CLIENT, SERVER] {
            let all: Vec<u64> = (0..world.seen[side].datagrams).collect();
            assert_eq!(received(&world, side), all, "seed {seed}");
            assert!(
                world.seen[side].down.is_some() && world.paths[side].is_finished(),
                "seed {seed}"
            );
        }
        let hit = world.down(1 - end);
        assert!(
            matches!(hit, DownReason::Failed(_) | DownReason::TimedOut),
            "seed {seed}: {hit:?}"
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        let mut world = World::connected(&Options { stall_one_in: 50, ..Options::default() });
        world.apps = [numbers(2_000, 1_438), numbers(500, 300)];
        world.run(Duration::from_secs(5));
        world.seen.map(|seen| seen.events)
    };
    assert_eq!(run(), run());
}
