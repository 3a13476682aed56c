//! Data on a path that is up: fates of tokens, order of the control stream, throughput, outages.

use crate::pair::{App, CLIENT, Options, SERVER, World, numbered};
use crate::rung::is_all;
use skyhaul_transport::{DownReason, Path, PathEvent, Token};
use skyhaul_units::{ByteCount, Duration, Instant, Rate};
use std::collections::BTreeSet;

#[test]
fn each_token_has_one_fate_and_acked_ones_have_arrived() {
    for (seed, percent, max_segments) in [(1, 0, 1), (2, 1, 32), (3, 10, 1), (4, 14, 44)] {
        let mut world =
            World::connected(&Options { seed, max_segments, ..Options::lossy(percent, 160) });
        world.apps[CLIENT] = App::Numbers { next: 0, count: 20_000, until: Instant::FAR_FUTURE };
        world.run(Duration::from_secs(10));
        let arrived: BTreeSet<u64> = world.numbers(SERVER).into_iter().collect();
        assert_eq!(arrived.len(), world.numbers(SERVER).len(), "no datagram twice");
        let fates = world.fates(CLIENT);
        assert_eq!(fates.len(), 20_000, "{percent} %");
        let mut wrongly_lost = 0;
        for (token, fate) in fates {
            assert!(fate == (1, 0) || fate == (0, 1), "token {token}: {fate:?}");
            assert!(
                fate.1 == 1 || arrived.contains(&token),
                "token {token} acknowledged, not there"
            );
            wrongly_lost += u32::from(fate.1 == 1 && arrived.contains(&token));
        }
        assert!(
            wrongly_lost <= 20,
            "{percent} %: {wrongly_lost} of 20,000 arrived but counted as lost"
        );
    }
}

#[test]
fn short_datagrams_have_their_fates_too() {
    [1, 44].into_iter().for_each(short_datagrams);
}

fn short_datagrams(max_segments: usize) {
    let mut world = World::connected(&Options { seed: 5, max_segments, ..Options::lossy(10, 160) });
    for token in 0..5_000u64 {
        let length = 8 + usize::try_from(token * 37 % 1_400).expect("a length below 1,400");
        let now = world.now;
        if token % 3 == 0 {
            world.path(CLIENT).send(now, Some(Token(token)), numbered(token, length));
        } else {
            world.path(CLIENT).send(now, Some(Token(token)), numbered(token, 8));
        }
        if token % 50 == 0 {
            world.run(Duration::from_millis(5));
        }
    }
    world.run(Duration::from_secs(5));
    let arrived: BTreeSet<u64> = world.numbers(SERVER).into_iter().collect();
    let fates = world.fates(CLIENT);
    assert_eq!(fates.len(), 5_000);
    for (token, fate) in fates {
        assert!(fate == (1, 0) || fate == (0, 1), "token {token}: {fate:?}");
        assert!(fate.1 == 1 || arrived.contains(&token), "token {token} acknowledged, not there");
    }
}

#[test]
fn the_control_stream_keeps_order_and_everything_both_ways() {
    let mut world = World::connected(&Options { seed: 6, ..Options::lossy(10, 160) });
    let text: Vec<u8> = (0..600_000u32).map(|n| (n % 251) as u8).collect();
    let mut taken = [0, 0];
    while taken.iter().any(|taken| *taken < text.len()) {
        for node in [CLIENT, SERVER] {
            let now = world.now;
            let count = world.path(node).send_control(now, &text[taken[node]..]);
            assert!(count <= 256 * 1024);
            taken[node] += count;
        }
        world.run(Duration::from_millis(50));
        assert!(world.now < Instant::ZERO + Duration::from_secs(120), "{taken:?}");
    }
    world.run(Duration::from_secs(10));
    for node in [CLIENT, SERVER] {
        let mut got = Vec::new();
        for (_, event) in &world.seen[node].path_events {
            if let PathEvent::Control(bytes) = event {
                got.extend_from_slice(bytes);
            }
        }
        assert!(got == text, "node {node}: {} of {} bytes", got.len(), text.len());
    }
}

/// Share of the line's rate × (1 − loss) that arrived after start-up, in IP bytes, and the median
/// queue.
fn throughput(options: &Options, span: Duration) -> (f64, Duration) {
    let mut world = World::connected(options);
    world.keep_events = false;
    world.apps[CLIENT] = App::Numbers { next: 0, count: u64::MAX, until: Instant::FAR_FUTURE };
    world.run(Duration::from_secs(3));
    let _ = world.take_line(CLIENT);
    let before = world.seen[SERVER].datagrams;
    world.run(span);
    let (_, mut delays) = world.take_line(CLIENT);
    delays.sort_unstable();
    // A symbol of 1,438 bytes travels in an IP packet of 1,490: frame and packet headers, tag, UDP,
    // IP.
    let arrived = ByteCount::new((world.seen[SERVER].datagrams - before) * 1_490);
    let limit =
        options.link.rate.scaled(u64::from(options.link.loss.complement().as_ppb()), 1_000_000_000);
    let share = Rate::over(arrived, span).as_bps() as f64 / limit.as_bps() as f64;
    let counters = world.path(SERVER).counters();
    assert_eq!(counters.overflowed, 0);
    (share, delays[delays.len() / 2])
}

#[test]
fn datagrams_fill_the_declared_line_at_any_loss_without_queue() {
    let lines = [(93, 160, 0), (93, 160, 14), (93, 160, 10), (300, 160, 1), (50, 660, 10)];
    let count = if is_all() { lines.len() } else { 2 };
    let span = Duration::from_secs(if is_all() { 20 } else { 8 });
    for &(mbps, round_trip, percent) in &lines[..count] {
        let mut options = Options::lossy(percent, round_trip);
        options.link.rate = Rate::from_mbps(mbps);
        options.declared = options.link.rate;
        let (share, queue) = throughput(&options, span);
        println!("{mbps} Mbit/s {round_trip} ms {percent} %: {share:.4}, queue {queue}");
        assert!(share >= 0.98, "{mbps} Mbit/s {round_trip} ms {percent} %: {share:.4}");
        assert!(
            queue <= Duration::from_millis(5),
            "{mbps} Mbit/s {round_trip} ms {percent} %: {queue}"
        );
    }
}

/// Seen with an end that only answered: what it acknowledged with counted as sent, until nothing
/// was left for its reports.
#[test]
fn an_end_that_only_answers_has_room_to_say_what_arrived() {
    let answering = Some(Rate::from_bps(50_000));
    let mut world = World::connected(&Options { answering, ..Options::lossy(0, 40) });
    world.keep_events = false;
    world.apps[CLIENT] = App::Numbers { next: 0, count: u64::MAX, until: Instant::FAR_FUTURE };
    world.run(Duration::from_secs(2));
    for report in 0..10 {
        let now = world.now;
        assert!(world.path(SERVER).room(now) > 0, "at {now}, {report} reports on");
        world.path(SERVER).send(now, Some(Token(report)), numbered(report, 50));
        world.run(Duration::from_millis(500));
    }
}

#[test]
fn a_line_slower_than_declared_keeps_a_bounded_queue() {
    let span = Duration::from_secs(if is_all() { 30 } else { 12 });
    for percent in [70, 95] {
        let mut options = Options::lossy(1, 160);
        options.link.rate = options.declared.scaled(percent, 100);
        let (share, queue) = throughput(&options, span);
        println!("{percent} % of the declared rate: {share:.4}, queue {queue}");
        assert!(share >= 0.85, "{percent} %: {share:.4}");
        assert!(queue <= Duration::from_millis(60), "{percent} %: {queue}");
    }
}

#[test]
fn control_bytes_sent_just_before_closing_arrive() {
    let mut world = World::connected(&Options::default());
    let now = world.now;
    assert_eq!(world.path(SERVER).send_control(now, b"receipt"), 7);
    world.run_until(now + Duration::from_millis(10), |_| false);
    let now = world.now;
    world.path(SERVER).close(now, "done");
    world.run(Duration::from_secs(2));
    let events: Vec<_> =
        world.seen[CLIENT].path_events.iter().map(|(_, event)| event.clone()).collect();
    let end = PathEvent::Down(DownReason::ClosedByPeer("done".to_owned()));
    assert_eq!(events[1..], [PathEvent::Control(b"receipt"[..].into()), end]);
}

#[test]
fn a_thin_line_is_filled_too() {
    let mut options = Options::lossy(1, 600);
    options.link.rate = Rate::from_mbps(1);
    options.declared = options.link.rate;
    let (share, queue) = throughput(&options, Duration::from_secs(120));
    println!("1 Mbit/s: {share:.4}, queue {queue}");
    assert!(share >= 0.96, "{share:.4}");
    assert!(queue <= Duration::from_millis(5), "{queue}");
}

#[test]
fn both_directions_are_filled_at_once() {
    let options = Options::lossy(10, 160);
    let mut world = World::connected(&options);
    world.keep_events = false;
    for node in [CLIENT, SERVER] {
        world.apps[node] = App::Numbers { next: 0, count: u64::MAX, until: Instant::FAR_FUTURE };
    }
    world.run(Duration::from_secs(3));
    let before = [CLIENT, SERVER].map(|node| world.seen[node].datagrams);
    world.run(Duration::from_secs(10));
    for node in [CLIENT, SERVER] {
        let arrived = ByteCount::new((world.seen[node].datagrams - before[node]) * 1_490);
        let share = Rate::over(arrived, Duration::from_secs(10)).as_bps() as f64 / 0.9 / 93e6;
        println!("towards node {node}: {share:.4}");
        assert!(share >= 0.97, "towards node {node}: {share:.4}");
    }
}

#[test]
fn a_translator_of_addresses_may_forget_its_table() {
    let mut world = World::connected(&Options { seed: 8, ..Options::lossy(1, 160) });
    for node in [CLIENT, SERVER] {
        world.apps[node] = App::Numbers { next: 0, count: 60_000, until: Instant::FAR_FUTURE };
    }
    world.run(Duration::from_secs(2));
    world.addresses[CLIENT] = ([198, 51, 100, 7], 50_123).into();
    world.run(Duration::from_secs(60));
    assert_eq!(world.path(SERVER).remote(), Some(world.addresses[CLIENT]));
    for node in [CLIENT, SERVER] {
        let arrived = world.numbers(1 - node).len();
        assert!(arrived > 55_000, "from node {node}: {arrived}");
        let fates = world.fates(node);
        assert_eq!(fates.len(), 60_000, "node {node}");
        assert!(fates.values().all(|fate| fate.0 + fate.1 == 1), "node {node}");
    }
}

#[test]
fn batches_change_nothing_on_the_line() {
    let plain = throughput(&Options::lossy(1, 160), Duration::from_secs(5));
    let batched =
        throughput(&Options { max_segments: 32, ..Options::lossy(1, 160) }, Duration::from_secs(5));
    assert!((plain.0 - batched.0).abs() < 0.005, "{plain:?} {batched:?}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        let mut world = World::connected(&Options { seed: 9, ..Options::lossy(10, 160) });
        world.apps[CLIENT] = App::Numbers { next: 0, count: 5_000, until: Instant::FAR_FUTURE };
        world.run(Duration::from_secs(5));
        (world.seen[SERVER].path_events.clone(), world.seen[CLIENT].path_events.clone())
    };
    assert!(run() == run());
}

#[test]
fn after_an_outage_data_flows_again_within_two_round_trips_and_a_second() {
    for (seconds, round_trip) in [(5, 660), (20, 660), (40, 660), (20, 160)] {
        let from = Instant::ZERO + Duration::from_secs(10);
        let to = from + Duration::from_secs(seconds);
        let mut options = Options::lossy(0, round_trip);
        options.link.rate = Rate::from_mbps(20);
        options.declared = options.link.rate;
        options.outages = vec![(from, to)];
        let mut world = World::connected(&options);
        world.apps[CLIENT] = App::Numbers { next: 0, count: u64::MAX, until: Instant::FAR_FUTURE };
        world.run_until(to + Duration::from_secs(8), |_| false);
        let after = world.seen[SERVER].path_events.iter().filter(|(at, _)| *at > to);
        let mut arrivals = after.filter(|(_, event)| matches!(event, PathEvent::Datagram(_)));
        // One datagram may be a lone probe: the hundredth shows that data flows.
        let (flows, _) = arrivals.nth(100).expect("data flows again");
        let limit = Duration::from_millis(2 * round_trip + 1_100);
        println!("{seconds} s at {round_trip} ms: flows after {}", flows.since(to));
        assert!(flows.since(to) <= limit, "{seconds} s at {round_trip} ms: {}", flows.since(to));
    }
}

#[test]
fn a_path_silent_for_the_idle_time_ends_with_all_tokens_resolved() {
    let from = Instant::ZERO + Duration::from_secs(2);
    let options = Options { outages: vec![(from, Instant::FAR_FUTURE)], ..Options::default() };
    let mut world = World::connected(&options);
    world.apps[CLIENT] =
        App::Numbers { next: 0, count: u64::MAX, until: from + Duration::from_secs(5) };
    world.run(Duration::from_secs(120));
    let App::Numbers { next, .. } = world.apps[CLIENT] else { panic!() };
    let fates = world.fates(CLIENT);
    assert_eq!(fates.len() as u64, next);
    assert!(fates.values().all(|fate| fate.0 + fate.1 == 1));
    let last = world.seen[CLIENT].path_events.last().map(|(_, event)| event.clone());
    assert_eq!(last, Some(PathEvent::Down(DownReason::TimedOut)));
    let id = world.seen[CLIENT].ready.unwrap();
    world.nodes[CLIENT].handle_timeout(world.now);
    assert!(world.nodes[CLIENT].path(id).is_none(), "a path read to its end is forgotten");
}

#[test]
fn datagrams_not_polled_in_time_are_counted() {
    let mut world =
        World::connected(&Options { receive_buffer: ByteCount::kib(64), ..Options::default() });
    let server = world.seen[SERVER].ready.take().unwrap();
    world.apps[CLIENT] = App::Numbers { next: 0, count: 1_000, until: Instant::FAR_FUTURE };
    world.run(Duration::from_secs(3));
    world.seen[SERVER].ready = Some(server);
    world.run(Duration::from_millis(1));
    let got = world.seen[SERVER].datagrams;
    assert!(got > 0 && got < 100, "{got}");
    assert_eq!(world.path(SERVER).counters().overflowed, 1_000 - got);
}

#[test]
fn an_idle_path_stays_up_and_is_quiet() {
    let mut world = World::connected(&Options { seed: 3, ..Options::lossy(10, 160) });
    let before = world.path(CLIENT).counters().sent.0;
    world.run(Duration::from_secs(600));
    let sent = world.path(CLIENT).counters().sent.0 - before;
    assert!((60..=600).contains(&sent), "{sent} datagrams in ten minutes");
    assert!(
        world.seen[CLIENT]
            .path_events
            .iter()
            .all(|(_, event)| !matches!(event, PathEvent::Down(_)))
    );
}
