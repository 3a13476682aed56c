use super::*;
use crate::{Change, Outage, Policer};
use core::num::NonZeroU32;
use proptest::prelude::*;
use skyhaul_units::{Probability, Rate};

fn at_ms(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn packet() -> ByteCount {
    ByteCount::new(1500)
}

/// 1500 bytes take 1 ms.
fn twelve_megabit() -> LinkConfig {
    LinkConfig { rate: Some(Rate::from_mbps(12)), ..LinkConfig::default() }
}

/// Runs the link empty and tells what arrived when.
fn drain<T>(link: &mut Link<T>) -> Vec<(Instant, T)> {
    let mut arrived = Vec::new();
    while let Some(at) = link.next_event() {
        while let Some(item) = link.poll(at) {
            arrived.push((at, item));
        }
    }
    arrived
}

/// Offers `count` packets at once, at the clock's start.
fn offer(link: &mut Link<u64>, count: u64) {
    for number in 0..count {
        link.send(Instant::ZERO, packet(), number);
    }
}

/// Offers one packet every `spacing`, polls at each event, and tells what arrived when.
fn offer_spaced(link: &mut Link<u64>, count: u64, spacing: Duration) -> Vec<(Instant, u64)> {
    let mut arrived = Vec::new();
    for number in 0..count {
        let now = Instant::ZERO + spacing * number;
        while let Some(at) = link.next_event().filter(|at| *at <= now) {
            while let Some(item) = link.poll(at) {
                arrived.push((at, item));
            }
        }
        link.send(now, packet(), number);
    }
    arrived.extend(drain(link));
    arrived
}

#[test]
fn larger_packets_vanish_without_a_word_until_the_link_is_set_otherwise() {
    let config = LinkConfig { largest: Some(ByteCount::new(1_400)), ..twelve_megabit() };
    let mut link = Link::new(config, 1);
    for (number, size) in [1_400, 1_401, 60, 1_500].into_iter().enumerate() {
        link.send(Instant::ZERO, ByteCount::new(size), number);
    }
    let numbers = |arrived: Vec<(Instant, usize)>| {
        arrived.into_iter().map(|(_, number)| number).collect::<Vec<_>>()
    };
    assert_eq!(numbers(drain(&mut link)), [0, 2]);
    link.reconfigure(at_ms(10), twelve_megabit());
    link.send(at_ms(11), packet(), 4);
    assert_eq!(numbers(drain(&mut link)), [4]);
    let LinkCounters { offered, forwarded, oversized, .. } = *link.counters();
    assert_eq!((offered, forwarded, oversized, link.counters().dropped()), (5, 3, 2, 2));
}

#[test]
fn what_a_packet_would_wait_is_what_it_waits() {
    let mut link = Link::new(twelve_megabit(), 1);
    assert_eq!(link.wait(Instant::ZERO), Duration::ZERO);
    offer(&mut link, 3);
    assert_eq!(link.wait(Instant::ZERO), Duration::from_millis(3));
    assert_eq!(link.wait(at_ms(1) + Duration::from_micros(500)), Duration::from_micros(1_500));
    link.reconfigure(at_ms(2), LinkConfig { rate: Some(Rate::ZERO), ..LinkConfig::default() });
    link.send(at_ms(2), packet(), 3);
    assert_eq!(link.wait(at_ms(2)), Duration::MAX);
    assert_eq!(Link::<u64>::new(LinkConfig::default(), 1).wait(at_ms(1)), Duration::ZERO);
}

#[test]
fn a_policed_link_drops_at_the_entrance_without_queue() {
    let policer = Policer { rate: Rate::from_mbps(6), burst: ByteCount::new(3_000) };
    let mut link = Link::new(LinkConfig { policer: Some(policer), ..twelve_megabit() }, 1);
    let arrived = offer_spaced(&mut link, 1_000, Duration::from_millis(1));
    let counted = *link.counters();
    assert_eq!((counted.offered, counted.policed), (1_000, 1_000 - arrived.len() as u64));
    assert!(arrived.len().abs_diff(501) <= 1, "{}", arrived.len());
    assert_eq!(counted.queue_delay.max, Duration::ZERO);
    // Another policer starts with a full bucket; none lets everything pass.
    link.reconfigure(at_ms(2_000), twelve_megabit());
    (0..10).for_each(|number| link.send(at_ms(2_000), packet(), number));
    assert_eq!(link.counters().policed, counted.policed);
}

#[test]
fn arrivals_are_transmission_plus_one_way_delay() {
    let mut link =
        Link::new(LinkConfig { one_way_delay: Duration::from_millis(80), ..twelve_megabit() }, 1);
    offer(&mut link, 3);
    assert_eq!(drain(&mut link), [(at_ms(81), 0), (at_ms(82), 1), (at_ms(83), 2)]);
    assert_eq!(link.next_event(), None);
    let waited = link.counters().queue_delay;
    assert_eq!(
        (waited.samples, waited.max, waited.mean()),
        (3, Duration::from_millis(2), Duration::from_millis(1))
    );
}

#[test]
fn nothing_arrives_early() {
    let mut link =
        Link::new(LinkConfig { one_way_delay: Duration::from_millis(80), ..twelve_megabit() }, 1);
    link.send(Instant::ZERO, packet(), ());
    assert_eq!(link.poll(at_ms(81) - Duration::from_nanos(1)), None);
    assert_eq!(link.poll(at_ms(81)), Some(()));
}

#[test]
fn the_rate_is_exact_over_a_long_run() {
    let rate = Rate::from_bps(92_999_999);
    let mut link = Link::new(
        LinkConfig { rate: Some(rate), queue: ByteCount::mib(200), ..LinkConfig::default() },
        1,
    );
    offer(&mut link, 100_000);
    let (last, _) = *drain(&mut link).last().unwrap();
    let exact = (100_000u128 * 12_000 * 1_000_000_000).div_ceil(92_999_999);
    assert_eq!(u128::from(last.as_nanos()), exact);
}

#[test]
fn the_queue_takes_its_limit_and_no_more() {
    let mut link = Link::new(LinkConfig { queue: ByteCount::new(3 * 1500), ..twelve_megabit() }, 1);
    offer(&mut link, 10);
    assert_eq!(link.queued(), ByteCount::new(4500));
    assert_eq!(link.counters().queue_dropped, 6);
    let numbers: Vec<u64> = drain(&mut link).into_iter().map(|(_, number)| number).collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    // A slot is free again the instant the line takes the next one.
    link.send(at_ms(100), packet(), 0);
    assert_eq!(drain(&mut link), [(at_ms(101), 0)]);
}

#[test]
fn loss_comes_after_the_queue_and_takes_line_time() {
    let config = LinkConfig { loss: Loss::Independent(Probability::ONE), ..twelve_megabit() };
    let mut link = Link::new(
        LinkConfig {
            changes: vec![Change {
                at: Duration::from_micros(2500),
                loss: Some(Loss::None),
                ..Change::default()
            }],
            ..config
        },
        1,
    );
    offer(&mut link, 3);
    assert_eq!(drain(&mut link), [(at_ms(3), 2)]);
    assert_eq!(link.counters().lost, 2);
}

#[test]
fn bursts_reach_the_far_end_as_configured() {
    let mean = Probability::from_ppb(20_000_000);
    let chain = crate::GilbertElliott::with_bursts(mean, NonZeroU32::new(10).unwrap()).unwrap();
    let mut link =
        Link::new(LinkConfig { loss: Loss::GilbertElliott(chain), ..LinkConfig::default() }, 9);
    let arrived = offer_spaced(&mut link, 500_000, Duration::from_micros(1));
    let holes: Vec<u64> =
        arrived.windows(2).map(|w| w[1].1 - w[0].1 - 1).filter(|hole| *hole > 0).collect();
    let mean_hole = holes.iter().sum::<u64>() as f64 / holes.len() as f64;
    assert!((9.0..11.0).contains(&mean_hole), "{mean_hole}");
}

#[test]
fn jitter_keeps_the_order_and_its_range() {
    let config = LinkConfig {
        one_way_delay: Duration::from_millis(50),
        jitter: Duration::from_millis(10),
        ..LinkConfig::default()
    };
    let mut link = Link::new(config, 4);
    let spacing = Duration::from_millis(30);
    let arrived = offer_spaced(&mut link, 2_000, spacing);
    let delays: Vec<u64> =
        arrived.iter().map(|(at, n)| at.since(Instant::ZERO + spacing * *n).as_nanos()).collect();
    let (least, most) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
    assert!(
        (40_000_000..40_100_000).contains(least) && (59_900_000..=60_000_000).contains(most),
        "{least} {most}"
    );

    let mut dense = Link::new(
        LinkConfig {
            one_way_delay: Duration::from_millis(50),
            jitter: Duration::from_millis(10),
            ..LinkConfig::default()
        },
        4,
    );
    let arrived = offer_spaced(&mut dense, 2_000, Duration::from_micros(10));
    assert!(arrived.is_sorted_by_key(|(_, number)| *number));
}

#[test]
fn only_packets_picked_for_it_fall_behind() {
    let reordering = Reordering {
        probability: Probability::from_ppb(100_000_000),
        extra_delay: Duration::from_millis(5),
    };
    let mut link = Link::new(LinkConfig { reordering: Some(reordering), ..twelve_megabit() }, 2);
    let arrived = offer_spaced(&mut link, 1_000, Duration::from_millis(1));
    let late: Vec<_> = arrived.iter().filter(|(at, n)| *at != at_ms(n + 1)).collect();
    assert_eq!(late.len() as u64, link.counters().reordered);
    assert!((60..140).contains(&late.len()), "{}", late.len());
    assert!(late.iter().all(|(at, n)| *at == at_ms(n + 6)));
}

#[test]
fn an_outage_drops_what_ends_its_transmission_in_it() {
    let outages =
        vec![Outage { start: Duration::from_millis(3), length: Duration::from_millis(4) }];
    let mut link = Link::new(
        LinkConfig { outages, one_way_delay: Duration::from_millis(2), ..twelve_megabit() },
        1,
    );
    offer(&mut link, 10);
    let numbers: Vec<u64> = drain(&mut link).into_iter().map(|(_, number)| number).collect();
    assert_eq!(numbers, [0, 1, 6, 7, 8, 9]);
    assert_eq!(link.counters().outage_dropped, 4);
}

#[test]
fn scheduled_changes_take_effect_at_their_instant() {
    let slower = Change {
        at: Duration::from_micros(1_500),
        rate: Some(Rate::from_mbps(6)),
        ..Change::default()
    };
    let longer = Change {
        at: Duration::from_millis(20),
        one_way_delay: Some(Duration::from_millis(7)),
        ..Change::default()
    };
    let mut link = Link::new(LinkConfig { changes: vec![longer, slower], ..twelve_megabit() }, 1);
    let arrived = offer_spaced(&mut link, 31, Duration::from_micros(1_000));
    let left_line = |number: u64| match number {
        0 => Duration::from_millis(1),
        later => Duration::from_micros(500 + 2_000 * later),
    };
    assert_eq!(arrived.len(), 31);
    for (at, number) in arrived {
        let left = left_line(number);
        let delay = if left < Duration::from_millis(20) {
            Duration::ZERO
        } else {
            Duration::from_millis(7)
        };
        assert_eq!(at, Instant::ZERO + left + delay, "{number}");
    }
}

#[test]
fn a_coming_shorter_delay_is_foreseen() {
    let changes = vec![Change {
        at: Duration::from_micros(500),
        one_way_delay: Some(Duration::from_millis(1)),
        ..Change::default()
    }];
    let mut link = Link::new(
        LinkConfig { one_way_delay: Duration::from_millis(100), changes, ..twelve_megabit() },
        1,
    );
    offer(&mut link, 1);
    assert_eq!(drain(&mut link), [(at_ms(2), 0)]);
}

#[test]
fn what_falls_behind_falls_behind_its_own_place() {
    let mut link =
        Link::new(LinkConfig { one_way_delay: Duration::from_millis(100), ..twelve_megabit() }, 1);
    offer(&mut link, 1);
    let reordering =
        Some(Reordering { probability: Probability::ONE, extra_delay: Duration::from_millis(5) });
    link.reconfigure(at_ms(1), LinkConfig { reordering, ..twelve_megabit() });
    link.send(at_ms(1), packet(), 1);
    assert_eq!(drain(&mut link), [(at_ms(101), 0), (at_ms(106), 1)]);
}

#[test]
fn a_line_that_stands_still_waits_for_its_change() {
    let stopped = LinkConfig { rate: Some(Rate::ZERO), ..LinkConfig::default() };
    let mut dead = Link::new(stopped.clone(), 1);
    dead.send(Instant::ZERO, packet(), ());
    assert_eq!(dead.next_event(), None);
    assert_eq!(dead.in_flight(), 1);

    let changes = vec![Change {
        at: Duration::from_secs(5),
        rate: Some(Rate::from_mbps(12)),
        ..Change::default()
    }];
    let mut link = Link::new(LinkConfig { changes, ..stopped }, 1);
    link.send(Instant::ZERO, packet(), ());
    assert_eq!(drain(&mut link), [(at_ms(5_001), ())]);
}

#[test]
fn reconfiguring_counts_times_anew_and_keeps_what_waits() {
    let mut link = Link::new(twelve_megabit(), 1);
    offer(&mut link, 3);
    let outages =
        vec![Outage { start: Duration::from_millis(10), length: Duration::from_millis(10) }];
    link.reconfigure(at_ms(1), LinkConfig { outages, ..twelve_megabit() });
    assert_eq!(drain(&mut link).len(), 3);
    for number in 10..13 {
        link.send(at_ms(number * 2 - 10), packet(), number);
    }
    assert_eq!(drain(&mut link).len(), 0);
    assert_eq!(link.counters().outage_dropped, 3);
    link.send(at_ms(20), packet(), 99);
    assert_eq!(drain(&mut link), [(at_ms(21), 99)]);
}

#[test]
fn items_without_size_are_bounded_in_number() {
    let mut link = Link::new(LinkConfig { rate: Some(Rate::ZERO), ..LinkConfig::default() }, 1);
    link.send(Instant::ZERO, packet(), ());
    for _ in 0..MAX_ITEMS + 5 {
        link.send(Instant::ZERO, ByteCount::ZERO, ());
    }
    assert_eq!(link.in_flight(), MAX_ITEMS);
    assert_eq!(link.counters().overflow_dropped, 6);
}

#[test]
fn the_ends_of_the_range_do_not_overflow() {
    let huge = Duration::MAX;
    let outages = vec![
        Outage { start: huge, length: huge },
        Outage { start: Duration::from_secs(1), length: huge },
    ];
    let changes =
        vec![Change { at: huge, rate: Some(Rate::from_bps(u64::MAX)), ..Change::default() }];
    let reordering = Some(Reordering { probability: Probability::ONE, extra_delay: huge });
    for rate in [None, Some(Rate::from_bps(1)), Some(Rate::from_bps(u64::MAX))] {
        let config = LinkConfig {
            rate,
            policer: Some(Policer {
                rate: Rate::from_bps(u64::MAX),
                burst: ByteCount::new(u64::MAX),
            }),
            largest: Some(ByteCount::new(u64::MAX)),
            queue: ByteCount::new(u64::MAX),
            one_way_delay: huge,
            jitter: huge,
            reordering,
            loss: Loss::None,
            outages: outages.clone(),
            changes: changes.clone(),
        };
        let mut link = Link::new(config.clone(), u64::MAX);
        link.send(Instant::ZERO, ByteCount::new(u64::MAX), 0);
        link.send(Instant::ZERO, ByteCount::ZERO, 1);
        link.reconfigure(Instant::from_nanos(5), config);
        let arrived = drain(&mut link).len() as u64;
        assert_eq!(arrived + link.counters().outage_dropped, 2, "{rate:?}");
    }
}

prop_compose! {
    fn any_loss()(kind in 0u8..3, p in 0u32..400_000_000, burst in 1u32..20) -> Loss {
        let p = Probability::from_ppb(p);
        match kind {
            0 => Loss::None,
            1 => Loss::Independent(p),
            _ => Loss::GilbertElliott(crate::GilbertElliott::with_bursts(p,
                NonZeroU32::new(burst).unwrap()).unwrap()),
        }
    }
}

prop_compose! {
    fn any_config()(
        kbps in prop::option::of(0u64..200_000),
        policer in prop::option::of((0u64..200_000, 0u64..20_000)),
        queue in 0u64..20_000,
        delay_us in 0u64..5_000,
        jitter_us in 0u64..5_000,
        reorder in prop::option::of((0u32..1_000_000_000, 0u64..3_000)),
        loss in any_loss(),
        largest in prop::option::of(100u64..3_000),
        outages in prop::collection::vec((0u64..20_000, 0u64..5_000), 0..3),
        changes in prop::collection::vec((0u64..20_000, prop::option::of(0u64..200_000),
            prop::option::of(0u64..5_000)), 0..3),
    ) -> LinkConfig {
        LinkConfig {
            rate: kbps.map(|kbps| Rate::from_bps(kbps * 1_000)),
            policer: policer.map(|(kbps, burst)| Policer {
                rate: Rate::from_bps(kbps * 1_000),
                burst: ByteCount::new(burst),
            }),
            largest: largest.map(ByteCount::new),
            queue: ByteCount::new(queue),
            one_way_delay: Duration::from_micros(delay_us),
            jitter: Duration::from_micros(jitter_us),
            reordering: reorder.map(|(ppb, us)| Reordering {
                probability: Probability::from_ppb(ppb),
                extra_delay: Duration::from_micros(us),
            }),
            loss,
            outages: outages.into_iter().map(|(start, length)| Outage {
                start: Duration::from_micros(start),
                length: Duration::from_micros(length),
            }).collect(),
            changes: changes.into_iter().map(|(at, kbps, delay)| Change {
                at: Duration::from_micros(at),
                rate: kbps.map(|kbps| Rate::from_bps(kbps * 1_000)),
                one_way_delay: delay.map(Duration::from_micros),
                loss: None,
            }).collect(),
        }
    }
}

/// Plays `sends` (gap in µs, size); polls at each event when `prompt`, else only at the end.
fn play(
    config: &LinkConfig,
    seed: u64,
    sends: &[(u64, u64)],
    prompt: bool,
) -> (Link<usize>, Vec<usize>) {
    let mut link = Link::new(config.clone(), seed);
    let mut arrived = Vec::new();
    let mut now = Instant::ZERO;
    for (number, (gap, size)) in sends.iter().enumerate() {
        let next = now + Duration::from_micros(*gap);
        while prompt && link.next_event().is_some_and(|at| at <= next) {
            let at = link.next_event().unwrap();
            assert!(at >= now, "events do not go back");
            let before = Instant::from_nanos(at.as_nanos().saturating_sub(1));
            if before > now {
                assert_eq!(link.poll(before), None, "nothing arrives before the next event");
            }
            while let Some(item) = link.poll(at) {
                arrived.push(item);
            }
            let counted = link.counters();
            assert_eq!(
                counted.offered,
                counted.forwarded + counted.dropped() + link.in_flight() as u64
            );
            now = at;
        }
        now = next;
        link.send(now, ByteCount::new(*size), number);
    }
    while let Some(at) = link.next_event() {
        while let Some(item) = link.poll(at) {
            arrived.push(item);
        }
    }
    (link, arrived)
}

proptest! {
    #[test]
    fn everything_offered_is_accounted_for(
        config in any_config(),
        seed: u64,
        sends in prop::collection::vec((0u64..500, 0u64..3_000), 1..200),
    ) {
        let (link, arrived) = play(&config, seed, &sends, true);
        let counted = *link.counters();
        prop_assert_eq!(counted.offered, sends.len() as u64);
        prop_assert_eq!(counted.forwarded, arrived.len() as u64);
        prop_assert_eq!(counted.offered, counted.forwarded + counted.dropped()
            + link.in_flight() as u64);
        if config.reordering.is_none() {
            prop_assert!(arrived.is_sorted());
        }
        // A caller that comes late gets the same items in the same order; so does one that runs it
        // again.
        let (late, arrived_late) = play(&config, seed, &sends, false);
        prop_assert_eq!(&arrived_late, &arrived);
        prop_assert_eq!(late.counters(), &counted);
    }
}
