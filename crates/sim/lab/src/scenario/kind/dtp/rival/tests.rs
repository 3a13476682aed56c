//! One subflow alone against published models of it, then each rule by itself.

use super::subflow::{Piece, Subflow};
use super::timeout::Timeout;
use super::*;
use crate::scenario::kind::dtp::{PAYLOAD, VIDEO_LIFE, applications};
use crate::scenario::kind::medium::Medium;
use crate::workload::{Lifetime, Pattern, StreamConfig};
use skyhaul_congestion::{ControllerConfig, RenoConfig};
use skyhaul_transport::{ClassId, Mode};
use skyhaul_units::{ByteCount, FlowId, Probability};

/// What one subflow did with a stream that never ends.
struct Course {
    /// Bytes of the stream in order, in full segments a second.
    goodput: f64,
    /// Segments sent a second, lost ones included.
    sent: f64,
    time_outs: u32,
}

const RTT: Duration = Duration::from_millis(100);

fn cell(bandwidth: Rate, loss: f64, seconds: u64, rtts: &[Duration]) -> Cell {
    let loss = Probability::from_ppb((loss * 1e9) as u32);
    let duration = Duration::from_secs(seconds);
    Cell { rtts: rtts.to_vec(), bandwidth, loss, duration, over: Medium::Plain }
}

/// One block so large that it never ends.
fn endless(duration: Duration) -> StreamConfig {
    StreamConfig {
        flow: FlowId(0),
        class: ClassId::default(),
        priority: 0,
        lifetime: None,
        mode: Mode::Expendable,
        pattern: Pattern::Periodic { size: ByteCount::new(10_000_000_000), period: duration * 2 },
        start: Instant::ZERO,
        stop: Instant::ZERO + duration,
    }
}

fn alone(loss: f64, seconds: u64, rtts: &[Duration]) -> Course {
    with_losses([loss; 2], seconds, rtts)
}

/// `losses` of segments and of acknowledgements.
fn with_losses([loss, back]: [f64; 2], seconds: u64, rtts: &[Duration]) -> Course {
    let cell = cell(Rate::from_mbps(1_000), loss, seconds, rtts);
    let mut rivals = Rivals::new(&cell, vec![BlockStream::new(endless(cell.duration), 1)], 1);
    rivals.losses[BACK] = (back * 1e9) as u64;
    let (mut arrived, mut time_outs, mut in_order) = (0_u64, 0, 0);
    while let Some((now, event)) = rivals.next(Instant::ZERO + cell.duration) {
        match event {
            Event::Arrived { .. } => arrived += 1,
            Event::Acknowledged { acknowledgement, .. } => {
                in_order = in_order.max(acknowledgement.stream);
            }
            Event::Overdue { .. } => time_outs += 1,
            _ => {}
        }
        rivals.handle(now, event);
    }
    let seconds = seconds as f64;
    Course {
        goodput: in_order as f64 / PAYLOAD as f64 / seconds,
        sent: arrived as f64 / (1.0 - loss) / seconds,
        time_outs,
    }
}

/// Padhye, Firoiu, Towsley, Kurose 1998, the full model, with an acknowledgement for each segment:
/// segments sent a second.
fn padhye(loss: f64, rtt: f64, time_out: f64) -> f64 {
    let kept = 1.0 - loss;
    let window = 1.0 + (8.0 * kept / (3.0 * loss) + 1.0).sqrt();
    let ends_in_time_out = ((1.0 - kept.powi(3))
        * (1.0 + kept.powi(3) * (1.0 - kept.powf(window - 3.0)))
        / (1.0 - kept.powf(window)))
    .min(1.0);
    let backing_off =
        1.0 + (0..6).map(|power| f64::from(1 << power) * loss.powi(power + 1)).sum::<f64>();
    (kept / loss + window + ends_in_time_out / kept)
        / (rtt * (window / 2.0 + 1.0) + ends_in_time_out * time_out * backing_off / kept)
}

#[test]
fn light_loss_leaves_the_published_response_of_new_reno() {
    for (loss, seconds) in [(0.001, 1_000), (0.003, 1_000), (0.01, 1_000)] {
        let published = 1.22 / (RTT.as_secs_f64() * f64::sqrt(loss));
        let ratio = alone(loss, seconds, &[RTT]).goodput / published;
        println!("{loss}: {ratio:.2} of 1.22 / (RTT sqrt p)");
        assert!((1.0 / 1.5..=1.5).contains(&ratio), "{loss}: {ratio}");
    }
}

#[test]
fn heavy_loss_brings_time_outs_as_published() {
    for loss in [0.05, 0.1, 0.2] {
        // The model's acknowledgements always arrive.
        for (back, within) in [(0.0, 1.25), (loss, 2.0)] {
            let course = with_losses([loss, back], 2_000, &[RTT]);
            let ratio = course.sent / padhye(loss, 0.1, 0.3);
            println!(
                "{loss}, {back} back: {ratio:.2} of the full model, {} time-outs",
                course.time_outs
            );
            assert!((1.0 / within..=within).contains(&ratio), "{loss}, {back} back: {ratio}");
            assert!(course.time_outs > 200, "{loss}, {back} back: {}", course.time_outs);
        }
    }
}

#[test]
fn two_subflows_bring_more_than_one() {
    let one = alone(0.01, 200, &[RTT]).goodput;
    let both = alone(0.01, 200, &[RTT, RTT]).goodput;
    assert!(both > 1.6 * one, "{both} {one}");
}

#[test]
fn without_loss_a_stream_fills_the_window_of_its_host() {
    // 4 MiB in 100 ms are 2,933 segments of 1,430 bytes; slow start takes the first second.
    let goodput = alone(0.0, 20, &[RTT]).goodput;
    assert!((26_000.0..29_331.0).contains(&goodput), "{goodput}");
}

/// A full segment as an IP packet.
const FULL: ByteCount = ByteCount::new(1_500);

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// A subflow that has sent its first window, ten segments, at time zero.
fn with_ten_under_way() -> Subflow {
    let mut subflow = Subflow::new(ControllerConfig::Reno(RenoConfig::default()).build(None));
    assert!(!subflow.has_room(FULL), "not before its handshake");
    subflow.open(RTT);
    assert_eq!(fill(&mut subflow, at(0)), 10);
    subflow
}

/// Sends new segments for as long as there is room; how many.
fn fill(subflow: &mut Subflow, now: Instant) -> u64 {
    (0..).take_while(|_| take_one(subflow, now)).count() as u64
}

fn take_one(subflow: &mut Subflow, now: Instant) -> bool {
    let has_room = subflow.has_room(FULL);
    if has_room {
        subflow.take(now, Piece { start: 0, end: PAYLOAD, tried: 1 }, FULL);
    }
    has_room
}

#[test]
fn the_third_duplicate_repeats_one_segment_and_each_partial_acknowledgement_the_next() {
    let mut subflow = with_ten_under_way();
    // The first and the fifth are lost: eight duplicates.
    for _ in 0..2 {
        assert_eq!(subflow.acknowledge(at(100), 0, at(0)), None);
        assert_eq!(fill(&mut subflow, at(100)), 1, "limited transmit");
    }
    assert_eq!(subflow.acknowledge(at(100), 0, at(0)), Some(0));
    // Five and three are allowed, twelve are under way; each further duplicate allows one more.
    for allowed in 9..=13 {
        assert_eq!(subflow.acknowledge(at(100), 0, at(0)), None);
        assert_eq!(fill(&mut subflow, at(100)), u64::from(allowed > 12));
    }
    assert_eq!(subflow.acknowledge(at(200), 4, at(100)), Some(4));
    assert_eq!(subflow.acknowledge(at(300), 13, at(200)), None);
    assert_eq!(fill(&mut subflow, at(300)), 5, "half of ten");
}

#[test]
fn a_time_out_leaves_one_segment_doubles_the_wait_and_is_passed_on_once() {
    let mut subflow = with_ten_under_way();
    // RFC 6298 2.2: 100 ms + 4 × 50 ms.
    assert_eq!(subflow.due(), Some(at(300)));
    assert_eq!(subflow.overdue(at(300)).len(), 10);
    assert_eq!((subflow.repeat(at(300)), subflow.repeat(at(300))), (Some(0), None));
    assert!(!subflow.has_room(FULL), "nothing new before what was lost");
    assert_eq!(subflow.due(), Some(at(900)));
    assert_eq!(subflow.overdue(at(900)).len(), 0);
    assert_eq!((subflow.repeat(at(900)), subflow.repeat(at(900))), (Some(0), None));
    assert_eq!(subflow.due(), Some(at(2_100)));
    // Slow start from there, and the wait is as it was.
    assert_eq!(subflow.acknowledge(at(1_000), 1, at(900)), None);
    assert_eq!(
        (subflow.repeat(at(1_000)), subflow.repeat(at(1_000)), subflow.repeat(at(1_000))),
        (Some(1), Some(2), None)
    );
    assert_eq!(subflow.due(), Some(at(1_300)));
    // Five, half of ten, is where it ends; all that was lost is there by then.
    assert_eq!(subflow.acknowledge(at(1_100), 10, at(1_000)), None);
    assert_eq!(fill(&mut subflow, at(1_100)), 3);
}

#[test]
fn the_wait_is_200_ms_beyond_the_round_trip_at_least_and_a_minute_at_most() {
    let mut timeout = Timeout::default();
    assert_eq!(timeout.span(), Duration::from_secs(1));
    (0..100).for_each(|_| timeout.sample(RTT));
    assert_eq!(timeout.span(), Duration::from_millis(300));
    (0..100).for_each(|_| timeout.double());
    assert_eq!(timeout.span(), Duration::from_secs(60));
    timeout.sample(RTT);
    assert_eq!(timeout.span(), Duration::from_millis(300));
}

/// A connection over an open path of 100 ms and one of 600, and an application that has written
/// `blocks` of a segment each, due within a second.
fn written(blocks: u64) -> Connection {
    let config = StreamConfig {
        lifetime: Some(Lifetime { fixed: Duration::from_secs(1), filled_at: None }),
        pattern: Pattern::Periodic {
            size: ByteCount::new(PAYLOAD),
            period: Duration::from_nanos(1),
        },
        ..endless(Duration::from_secs(1))
    };
    let mut connection = Connection::new(BlockStream::new(config, 1), 2);
    for (subflow, millis) in connection.subflows.iter_mut().zip([100, 600]) {
        subflow.open(Duration::from_millis(millis));
    }
    for _ in 0..blocks {
        let due = connection.stream.step();
        connection.write(&due);
    }
    connection
}

fn sent(connection: &mut Connection, now: Instant) -> Vec<usize> {
    core::iter::from_fn(|| connection.send(now)).map(|(path, _)| path).collect()
}

#[test]
fn the_shortest_round_trip_with_room_comes_first() {
    let mut connection = written(13);
    assert_eq!(sent(&mut connection, at(0)), [[0; 10].as_slice(), &[1; 3]].concat());
}

#[test]
fn what_a_time_out_brings_back_goes_over_the_other_path_once() {
    let mut connection = written(3);
    assert_eq!(sent(&mut connection, at(0)), [0; 3]);
    connection.overdue(at(300), 0);
    assert_eq!(sent(&mut connection, at(300)), [1; 3]);
    connection.overdue(at(2_000), 1);
    assert_eq!(sent(&mut connection, at(2_000)), [0; 0]);
}

#[test]
fn what_is_behind_a_gap_is_in_time_only_when_the_gap_is_filled_in_time() {
    for (filled, blocks_in_time) in [(at(900), 2), (at(1_500), 0)] {
        let mut connection = written(2);
        let segment = |number: u64| {
            let start = number * PAYLOAD;
            Segment { number, piece: Piece { start, end: start + PAYLOAD, tried: 1 }, sent: at(0) }
        };
        assert_eq!(connection.arrived(at(500), 0, segment(1)).stream, 0);
        assert_eq!(connection.arrived(filled, 0, segment(0)).stream, 2 * PAYLOAD);
        assert_eq!(connection.worth(), 3.0 * f64::from(blocks_in_time));
    }
}

#[test]
fn the_first_path_takes_one_round_trip_to_open_and_the_other_two_of_its_own_after_that() {
    let cell = cell(Rate::from_mbps(1), 0.0, 10, &[RTT, RTT * 6]);
    let mut rivals = Rivals::new(&cell, vec![BlockStream::new(endless(cell.duration), 1)], 1);
    let mut opened = Vec::new();
    while let Some((now, event)) = rivals.next(at(5_000)) {
        if let Event::Opened { path, .. } = event {
            opened.push((path, now));
        }
        rivals.handle(now, event);
    }
    assert_eq!(opened, [(0, at(100)), (1, at(1_300))]);
}

#[test]
fn where_there_is_room_and_no_loss_all_is_in_time() {
    let cell = cell(Rate::from_mbps(4), 0.0, 60, &[RTT, RTT * 6]);
    let (start, stop) = cell.interval();
    let streams = applications(start, stop).map(|config| BlockStream::new(config, 1)).to_vec();
    // Text 20 a second, audio 50, video 30.
    let all = 60.0 * (20.0 * 3.0 + 50.0 * 2.0 + 30.0);
    let worth = Rivals::new(&cell, streams, 1).worth_in_time(stop + VIDEO_LIFE);
    assert!((worth / all - 1.0).abs() < 0.001, "{worth} of {all}");
}

#[test]
fn lost_acknowledgements_sharpen_the_fall_at_heavy_loss() {
    let cell = cell(Rate::from_mbps(2), 0.2, 300, &[RTT, RTT * 6]);
    let (start, stop) = cell.interval();
    let score = |seed, back| {
        let streams =
            applications(start, stop).map(|config| BlockStream::new(config, seed)).to_vec();
        let mut rivals = Rivals::new(&cell, streams, seed);
        rivals.losses[BACK] = (back * 1e9) as u64;
        rivals.worth_in_time(stop + VIDEO_LIFE) / (300.0 * 190.0)
    };
    for seed in 1..=4 {
        let (with, without) = (score(seed, 0.2), score(seed, 0.0));
        println!("seed {seed}: {with:.3} with acknowledgements lost, {without:.3} with none lost");
        assert!(with < 0.05 && (0.1..0.25).contains(&without), "{with} {without}");
    }
}
