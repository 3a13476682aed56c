//! What a plain path promises: its rate, its losses, its truth about itself.

use super::*;
use bytes::Bytes;
use skyhaul_transport::{Path, PathEvent, Token};

const SECOND: Duration = Duration::from_secs(1);

/// Sends as fast as the path takes it until `until`. What the far end gets, and what is told, with
/// their times.
fn flood(path: &mut PlainPath, until: Instant) -> (Vec<Instant>, Vec<(Instant, PathEvent)>) {
    let (mut got, mut told) = (Vec::new(), Vec::new());
    let (mut now, mut next) = (Instant::ZERO, 0);
    while now < until {
        for end in &mut path.ends {
            while let Some(event) = end.poll(now) {
                match event {
                    PathEvent::Datagram(_) => got.push(now),
                    PathEvent::Up { .. } => {}
                    news => told.push((now, news)),
                }
            }
        }
        while path.ends[0].room(now) > 0 {
            path.ends[0].send(now, Some(Token(next)), Bytes::from(vec![0; 1438]));
            next += 1;
        }
        path.exchange();
        let next =
            path.ends.iter().filter_map(PlainEnd::next_event).chain([path.ends[0].free_at()]).min();
        now = next.unwrap().max(now + Duration::from_nanos(1)).min(until);
    }
    (got, told)
}

fn at(time: Duration) -> Instant {
    Instant::ZERO + time
}

#[test]
fn datagrams_leave_at_the_rate_and_news_take_a_round_trip() {
    let line = PlainLine { rate: Rate::from_mbps(12), ..PlainLine::default() };
    let (got, told) = flood(&mut PlainPath::new(line, 1), at(SECOND * 2));
    // 1,000 packets a second, the first after 1 ms and 80 ms on the way.
    assert_eq!(
        (got[0], got[999]),
        (at(Duration::from_millis(81)), at(Duration::from_millis(1_080)))
    );
    assert_eq!(told[0], (at(Duration::from_millis(161)), PathEvent::Acked(Token(0))));
    assert!(
        told.iter()
            .enumerate()
            .all(|(place, (_, news))| *news == PathEvent::Acked(Token(place as u64)))
    );
}

#[test]
fn losses_have_their_share_and_their_bursts() {
    for burst in [1, 8] {
        let (loss, mean_burst) = (Probability::of(5, 100), NonZeroU32::new(burst).unwrap());
        let line = PlainLine { loss, mean_burst, ..PlainLine::default() };
        let (_, mut told) = flood(&mut PlainPath::new(line, 3), at(SECOND * 20));
        told.sort_by_key(|(_, news)| match news {
            PathEvent::Acked(token) | PathEvent::Lost(token) => token.0,
            other => panic!("{other:?}"),
        });
        let lost: Vec<bool> =
            told.iter().map(|(_, news)| matches!(news, PathEvent::Lost(_))).collect();
        let share = lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64;
        let runs = lost.chunk_by(|a, b| a == b).filter(|run| run[0]).count() as f64;
        let mean = share * lost.len() as f64 / runs;
        assert!((0.045..0.055).contains(&share), "{burst}: {share}");
        assert!((0.9..1.1).contains(&(mean / f64::from(burst.max(1)))), "{burst}: {mean}");
    }
}

#[test]
fn acknowledgements_come_in_batches() {
    let line = PlainLine { acknowledging: Acknowledging::Batches, ..PlainLine::default() };
    let mut path = PlainPath::new(line, 1);
    let (_, told) = flood(&mut path, at(SECOND));
    assert!(told.chunk_by(|a, b| a.0 == b.0).all(|batch| batch.len() == 10));
    let slow = PlainLine { rate: Rate::from_bps(240_000), ..line };
    let (_, told) = flood(&mut PlainPath::new(slow, 1), at(SECOND));
    // 50 ms a packet: each is acknowledged alone, 25 ms late.
    assert_eq!(told[0], (at(Duration::from_millis(50 + 160 + 25)), PathEvent::Acked(Token(0))));
}

#[test]
fn a_hole_swallows_what_is_sent_into_it_and_the_sender_stops_at_two_round_trips() {
    let mut path = PlainPath::new(PlainLine::default(), 1);
    path.change(at(SECOND), PlainChange::Hole(SECOND * 3));
    let (got, told) = flood(&mut path, at(SECOND * 6));
    let (from, until) = (at(SECOND), at(SECOND * 4));
    let way = Duration::from_millis(80);
    assert!(got.iter().all(|then| *then < from + way || *then >= until + way));
    assert!(told.iter().all(|(then, _)| *then < from + way || *then >= until + way));
    let lost = told.iter().filter(|(_, news)| matches!(news, PathEvent::Lost(_))).count();
    // Two round trips and 60 ms of 93 Mbit/s, less what was under way.
    assert!((1_700..3_000).contains(&lost), "{lost}");
}

#[test]
fn a_line_becomes_slower_and_longer() {
    let mut path =
        PlainPath::new(PlainLine { rate: Rate::from_mbps(12), ..PlainLine::default() }, 1);
    path.change(at(SECOND), PlainChange::Rate(Rate::from_mbps(6)));
    path.change(at(SECOND), PlainChange::OneWayDelay(Duration::from_millis(200)));
    let (got, _) = flood(&mut path, at(SECOND * 4));
    let within = |from: u64, to: u64| {
        got.iter().filter(|then| (at(SECOND * from)..at(SECOND * to)).contains(then)).count()
    };
    assert!((915..=921).contains(&within(0, 1)), "{}", within(0, 1));
    assert!((498..=502).contains(&within(2, 3)), "{}", within(2, 3));
    let estimate = path.ends[0].estimate();
    assert_eq!((estimate.rtt, estimate.rate), (Duration::from_millis(400), Rate::from_mbps(6)));
}

/// How long after they would have come at once acknowledgements come, the longest and on average;
/// and how many datagrams that arrived count as lost.
fn lateness(
    line: PlainLine,
    back: PlainLine,
    span: Duration,
) -> (Duration, Duration, usize, usize) {
    let mut path = PlainPath::between([line, back], 3);
    let (got, mut told) = flood(&mut path, at(span));
    told.sort_by_key(|(then, _)| *then);
    let round_trip = line.one_way_delay + back.one_way_delay;
    let late: Vec<Duration> = told
        .iter()
        .filter_map(|(then, news)| match news {
            // Datagrams of equal size leave one after the other from the start.
            PathEvent::Acked(token) => {
                let left =
                    at(line.rate.time_for(skyhaul_units::ByteCount::new(1500)) * (token.0 + 1));
                Some(then.since(left + round_trip))
            }
            _ => None,
        })
        .collect();
    let lost = told.iter().filter(|(_, news)| matches!(news, PathEvent::Lost(_))).count();
    let mean = late.iter().fold(Duration::ZERO, |sum, late| sum + *late) / late.len() as u64;
    (late.iter().copied().max().unwrap(), mean, lost, got.len())
}

#[test]
fn an_acknowledgement_that_is_lost_is_made_good_by_the_next() {
    let line = PlainLine {
        rate: Rate::from_mbps(12),
        acknowledging: Acknowledging::Batches,
        ..PlainLine::default()
    };
    let back = PlainLine { loss: Probability::of(60, 100), ..line };
    let span = SECOND * 20;
    let (longest, mean, lost, got) = lateness(line, line, span);
    assert!(
        longest < Duration::from_millis(10) && mean < Duration::from_millis(5),
        "{longest} {mean}"
    );
    assert_eq!(lost, 0);
    // Ten datagrams take 10 ms; at 60 % loss one and a half acknowledgements in a row are lost on
    // average.
    let (longest, lossy, none, _) = lateness(line, back, span);
    assert!(
        (Duration::from_millis(16)..Duration::from_millis(24)).contains(&lossy),
        "{lossy}, the longest {longest}"
    );
    assert!(longest > Duration::from_millis(60));
    assert_eq!(none, 0, "one range spans all that arrived");
    assert!(got > 19_000);
}

#[test]
fn an_acknowledgement_spans_64_ranges_and_no_more() {
    let loss = Probability::of(60, 100);
    let line = PlainLine { loss, acknowledging: Acknowledging::Batches, ..PlainLine::default() };
    let lost = |back: PlainLine| {
        let mut path = PlainPath::between([line, back], 5);
        let (got, told) = flood(&mut path, at(SECOND * 30));
        let acked = told.iter().filter(|(_, news)| matches!(news, PathEvent::Acked(_))).count();
        (got.len(), acked)
    };
    let (got, acked) = lost(PlainLine { loss: Probability::ZERO, ..line });
    assert!(got - acked < 800, "but for those under way all are told of: {got} {acked}");
    // Ten arrivals make six ranges at 60 % loss: ten acknowledgements in a row would have to be
    // lost.
    let (got, acked) = lost(line);
    let untold = (got - acked) as f64 / got as f64;
    assert!((0.003..0.03).contains(&untold), "{untold}");
}

#[test]
fn the_last_datagrams_are_asked_for_until_news_come() {
    let loss = Probability::of(90, 100);
    let back = PlainLine { loss, ..PlainLine::default() };
    for seed in 0..20 {
        let mut path = PlainPath::between([PlainLine::default(), back], seed);
        let [near, _] = &mut path.ends;
        assert!(near.poll(at(Duration::ZERO)).is_some());
        near.send(at(Duration::ZERO), Some(Token(0)), Bytes::from(vec![0; 100]));
        let mut asked = 0;
        let news = loop {
            let next = near.next_event().unwrap();
            asked += 1;
            assert!(asked < 200, "time goes on");
            if let Some(news) = near.poll(next) {
                break (next, news);
            }
        };
        assert_eq!(news.1, PathEvent::Acked(Token(0)));
        assert!(news.0 < at(SECOND * 600), "seed {seed}: {}", news.0);
    }
}
