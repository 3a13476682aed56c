use super::*;
use crate::wire::Message;
use crate::{Departure, FrameGrouping, FrameRole, MediaTime, Parcel, Synthesis};
use proptest::prelude::*;

/// A stream in groups of three frames, one each millisecond; and its frames.
fn stream(
    order: impl Fn(&mut Vec<Vec<u8>>),
    threads: u16,
    frames: usize,
) -> (Vec<Parcel>, Message, Vec<Vec<u8>>) {
    let mut synthesis = Synthesis::new(80, threads, 20).unwrap();
    let mut made = Vec::new();
    for _ in 0..frames {
        let mut frame = Vec::new();
        synthesis.frame(&mut frame);
        made.push(frame);
    }
    order(&mut made);
    let packing = FrameGrouping { bytes: 3 * 112 + 400, wait: ms(1) };
    let mut departure = Departure::new(Instant::ZERO, packing, None);
    let mut parcels = Vec::new();
    for (at, frame) in made.iter().enumerate() {
        let now = Instant::ZERO + ms(at as u64 / 3);
        let head = FrameHead::read(StreamFormat::Vdif, frame).unwrap();
        if at % 3 == 0 {
            parcels.extend(departure.flush());
        }
        parcels.extend(departure.frame(now, Some(&head), frame));
    }
    parcels.extend(departure.flush());
    let end = departure.end(0);
    (parcels, end, made)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn group(parcel: &Parcel) -> FrameGroup {
    match Message::decode(&parcel.bytes, StreamFormat::Vdif) {
        Ok(Message::Group(group)) => group,
        other => panic!("{other:?}"),
    }
}

/// When a group of the test comes, and how; `None` is never.
type Fate = Option<(u64, bool)>;

/// Plays the groups with their fates, and gives what came out of each frame.
fn play(
    arrival: &mut StreamReceiver,
    parcels: &[Parcel],
    end: &Message,
    fates: &[Fate],
) -> Vec<SinkFrames> {
    let Message::End(end) = end else { panic!("an end") };
    let (mut given, mut coming) = (Vec::new(), Vec::new());
    for (at, (parcel, fate)) in parcels.iter().zip(fates).enumerate() {
        if let Some((delay, repaired)) = fate {
            coming.push((at as u64 + 100 + delay, at, parcel, *repaired));
        }
    }
    coming.sort_by_key(|(time, at, ..)| (*time, *at));
    let mut coming = coming.into_iter().peekable();
    for time in 0..parcels.len() as u64 + 1_000 {
        let now = Instant::ZERO + ms(time);
        while let Some((_, _, parcel, repaired)) = coming.next_if(|(due, ..)| *due <= time) {
            let came = match repaired {
                false => arrival.group(now, group(parcel)),
                true => arrival.repaired_group(now, group(parcel)),
            };
            came.unwrap();
        }
        if time == parcels.len() as u64 + 300 {
            arrival.end(now, end).unwrap();
        }
        given.extend(std::iter::from_fn(|| arrival.poll(now)));
    }
    assert!(arrival.is_over());
    given
}

/// Asserts that `given` are the frames in their order, invalid ones where `missing`.
fn assert_frames(given: &[SinkFrames], made: &[Vec<u8>]) -> Vec<usize> {
    let (mut at, mut missing) = (0, Vec::new());
    for given in given {
        assert_eq!((given.first, given.bytes.len() as u64), (at as u64, 112 * given.count));
        for frame in given.bytes.chunks(112) {
            if given.missing {
                let mut head = made[at][..32].to_vec();
                head[3] |= 0x80;
                assert_eq!(&frame[..32], head, "frame {at}");
                assert!(frame[32..].chunks(4).all(|word| word == [0x44, 0x33, 0x22, 0x11]));
                missing.push(at);
            } else {
                assert_eq!(frame, made[at], "frame {at}");
            }
            at += 1;
        }
    }
    assert_eq!(at, made.len());
    missing
}

#[test]
fn a_stream_without_loss_goes_through_unchanged_and_at_once() {
    let (parcels, end, made) = stream(|_| {}, 4, 300);
    let mut arrival = StreamReceiver::new(StreamFormat::Vdif, ms(20), None);
    for parcel in &parcels {
        arrival.group(Instant::ZERO + ms(100), group(parcel)).unwrap();
        assert!(arrival.poll(Instant::ZERO + ms(100)).is_some());
    }
    let mut arrival = StreamReceiver::new(StreamFormat::Vdif, ms(20), None);
    let fates = vec![Some((0, false)); parcels.len()];
    let given = play(&mut arrival, &parcels, &end, &fates);
    assert_eq!(assert_frames(&given, &made), []);
    let (counters, map) = arrival.into_map();
    assert_eq!((counters.received, counters.sent, counters.missing()), (300, 300, 0));
    assert_eq!(map.finish(), (Vec::new(), 0));
}

/// Groups are on their way side by side: which of them is whole first says nothing of the line.
#[test]
fn groups_that_are_whole_a_little_before_earlier_ones_are_not_reordered() {
    let (parcels, end, made) = stream(|_| {}, 4, 300);
    let mut fates = vec![Some((0, false)); parcels.len()];
    for at in (0..parcels.len()).step_by(3) {
        fates[at] = Some((2, false));
    }
    let mut arrival = StreamReceiver::new(StreamFormat::Vdif, ms(20), None);
    let given = play(&mut arrival, &parcels, &end, &fates);
    assert_eq!(assert_frames(&given, &made), []);
    assert_eq!((arrival.counters().received, arrival.counters().reordered), (300, 0));
    fates[30] = Some((8, false));
    let mut arrival = StreamReceiver::new(StreamFormat::Vdif, ms(20), None);
    play(&mut arrival, &parcels, &end, &fates);
    assert_eq!((arrival.counters().reordered, arrival.counters().reordered_by), (3, 24));
}

#[test]
fn what_is_not_there_in_time_becomes_invalid_frames_and_comes_late() {
    let (parcels, end, made) = stream(|_| {}, 2, 30);
    let mut fates = vec![Some((0, false)); parcels.len()];
    fates[3] = Some((19, true));
    fates[4] = Some((60, true));
    fates[6] = None;
    fates[9] = None;
    let mut arrival = StreamReceiver::new(StreamFormat::Vdif, ms(20), None);
    let given = play(&mut arrival, &parcels, &end, &fates);
    assert_eq!(assert_frames(&given, &made), [12, 13, 14, 18, 19, 20, 27, 28, 29]);
    let (counters, _) = arrival.into_map();
    let fates = (counters.received, counters.repaired, counters.late, counters.lost);
    assert_eq!((fates, counters.guessed), ((18, 3, 3, 6), 0));
    assert_eq!(counters.runs.0[..4], [0, 0, 3, 0]);
    assert!(counters.balances() && counters.reordered == 6, "{counters:?}");
}

#[test]
fn the_end_may_be_lost_with_all_behind_a_place() {
    let (parcels, end, made) = stream(|_| {}, 2, 120);
    let fates: Vec<Fate> = (0..parcels.len()).map(|at| (at < 10).then_some((0, false))).collect();
    let mut arrival = StreamReceiver::new(StreamFormat::Vdif, ms(20), Some(20));
    let given = play(&mut arrival, &parcels, &end, &fates);
    assert_eq!(assert_frames(&given, &made).len(), 90);
    let (counters, map) = arrival.into_map();
    assert_eq!((counters.lost, counters.runs.0[7]), (90, 1));
    // Two threads, in seconds of 20 frames each.
    assert_eq!(map.finish().0.len(), 6);
}

#[test]
fn a_piece_of_a_group_that_was_given_up_is_late_and_the_rest_lost() {
    let (parcels, end, _) = stream(|_| {}, 1, 9);
    let Message::End(end) = end else { panic!("an end") };
    let mut arrival = StreamReceiver::new(StreamFormat::Vdif, ms(20), None);
    let at = |millis| Instant::ZERO + ms(millis);
    arrival.group(at(0), group(&parcels[0])).unwrap();
    assert!(arrival.poll(at(0)).is_some_and(|given| given.count == 3));
    arrival.group(at(2), group(&parcels[2])).unwrap();
    arrival.end(at(2), &end).unwrap();
    assert_eq!(arrival.next_timeout(), Some(at(22)));
    let given: Vec<SinkFrames> = std::iter::from_fn(|| arrival.poll(at(22))).collect();
    assert_eq!(given.iter().map(|given| given.count).sum::<u64>(), 6);
    arrival.repaired_group(at(23), group(&parcels[1])).unwrap();
    assert_eq!((arrival.counters().late, arrival.counters().lost), (3, 0));
    assert!(arrival.counters().balances());
}

#[test]
fn lost_datagrams_are_filled_to_the_length_of_those_before() {
    let mut departure =
        Departure::new(Instant::ZERO, FrameGrouping { bytes: 1, wait: ms(1) }, None);
    let mut parcels = Vec::new();
    for number in 0..4_u8 {
        parcels.extend(departure.frame(Instant::ZERO, None, &[number; 10]));
    }
    let mut arrival = StreamReceiver::new(StreamFormat::Datagrams, ms(5), None);
    for at in [0, 2] {
        let Ok(Message::Group(group)) =
            Message::decode(&parcels[at].bytes, StreamFormat::Datagrams)
        else {
            panic!()
        };
        arrival.group(Instant::ZERO, group).unwrap();
    }
    let given: Vec<SinkFrames> =
        std::iter::from_fn(|| arrival.poll(Instant::ZERO + ms(5))).collect();
    let bytes: Vec<u8> = given.iter().flat_map(|given| given.bytes.clone()).collect();
    let fill = [0x44, 0x33, 0x22, 0x11, 0x44, 0x33, 0x22, 0x11, 0, 0];
    assert_eq!(bytes, [[0; 10], fill, [2; 10]].concat());
}

/// The frames of an RTP stream, 40 ms apart, as groups.
fn video(count: u64) -> Vec<FrameGroup> {
    let mut departure = Departure::new(Instant::ZERO, FrameGrouping::default(), None);
    let group = |number: u64| {
        let time = MediaTime { stamp: ms(40 * number), since: Instant::ZERO + ms(40 * number) };
        let content = vec![number as u8; 10 + number as usize];
        let parcel = departure.single(time, FrameRole::default(), &content);
        match Message::decode(&parcel.bytes, StreamFormat::Rtp) {
            Ok(Message::Group(group)) => group,
            other => panic!("{other:?}"),
        }
    };
    (0..count).map(group).collect()
}

/// When each frame of an RTP stream goes out, where each comes so long after its stamp.
fn played(delays: &[Option<u64>]) -> (Vec<(u64, u64)>, Counters) {
    let mut arrival = StreamReceiver::new(StreamFormat::Rtp, ms(100), None);
    let (frames, mut given) = (video(delays.len() as u64), Vec::new());
    for time in 0..40 * delays.len() as u64 + 1_000 {
        let now = Instant::ZERO + ms(time);
        for (frame, delay) in frames.iter().zip(delays) {
            if delay.is_some_and(|delay| 40 * frame.first + delay == time) {
                arrival.group(now, frame.clone()).unwrap();
            }
        }
        while let Some(frame) = arrival.poll(now) {
            assert_eq!(frame.bytes.is_empty(), frame.missing);
            if !frame.missing {
                given.push((frame.first, time));
            }
        }
    }
    (given, *arrival.counters())
}

#[test]
fn frames_of_rtp_go_out_as_far_apart_as_their_stamps_and_missing_ones_leave_a_gap() {
    let delays = [Some(15), Some(10), Some(60), Some(12), None, Some(10), Some(180), Some(10)];
    let (given, counters) = played(&delays);
    // The first goes out before a faster one shows how fast the line is only if it is due by then.
    assert_eq!(given, [(0, 110), (1, 150), (2, 190), (3, 230), (5, 310), (7, 390)]);
    assert_eq!((counters.received, counters.late, counters.lost), (6, 1, 1));
}

proptest! {
    /// Whatever is lost, late, repaired or out of order: each frame goes out once, in its order, as
    /// it was or as an invalid one with its own header; and everything is counted once. Threads may
    /// come in any order where not more is lost in a row than is told.
    #[test]
    fn each_frame_goes_out_in_order_as_it_was_or_with_its_own_header(
        fates in proptest::collection::vec((0..100_u64, 0..60_u64, any::<bool>()), 60),
        swaps in proptest::collection::vec(0..176_usize, 0..60),
        threads in 1..5_u16,
    ) {
        let swap = |made: &mut Vec<Vec<u8>>| swaps.iter().for_each(|at| {
            let place = |frame: &[u8]| FrameHead::read(StreamFormat::Vdif,
                frame).unwrap().place().thread;
            if place(&made[*at]) != place(&made[at + 1]) {
                made.swap(*at, at + 1);
            }
        });
        let (parcels, end, made) = stream(swap, threads, 180);
        let fates: Vec<Fate> = fates
            .iter()
            .map(|(kind, delay, repaired)| match kind {
                0..20 => None,
                20..50 => Some((*delay, *repaired)),
                _ => Some((0, *repaired)),
            })
            .collect();
        let mut arrival = StreamReceiver::new(StreamFormat::Vdif, ms(20), None);
        let given = play(&mut arrival, &parcels, &end, &fates);
        let missing = assert_frames(&given, &made);
        let (counters, map) = arrival.into_map();
        prop_assert!(counters.balances(), "{counters:?}");
        prop_assert_eq!(counters.missing(), missing.len() as u64);
        prop_assert_eq!((counters.guessed, counters.unmarked), (0, 0));
        let (map, _) = map.finish();
        let place = |at: &usize| FrameHead::read(StreamFormat::Vdif, &made[*at]).unwrap().place();
        let mut places: Vec<FrameTime> = missing.iter().map(place).collect();
        let each = |missing: &crate::Missing| {
            let place = missing.place;
            (place.number..=missing.last).map(move |number| FrameTime { number, ..place })
        };
        let mut told: Vec<FrameTime> = map.iter().flat_map(each).collect();
        places.sort();
        told.sort();
        prop_assert_eq!(places, told);
    }
}
