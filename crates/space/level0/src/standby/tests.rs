//! The gate alone, and a pass of two stations in virtual time: whatever happens to the first one,
//! the centre gets every frame, and few of them twice.

use super::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use skyhaul_units::{FlowId, Instant};
use std::collections::{BTreeMap, BTreeSet};

const BEGIN: Utc = Utc::from_micros(1_730_000_000_000_000);
const FLOW: FlowId = FlowId(7);
const MISSION: &str = "aqua";

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}

/// The frame of this time.
fn frame(millis: u64) -> EdgeFrame {
    EdgeFrame { received: BEGIN + ms(millis), mark: FrameMark(millis + 1) }
}

fn frames(from: u64, to: u64) -> BlockFrames {
    BlockFrames { first: frame(from), last: frame(to) }
}

fn delivered(from: u64, to: u64, idle: u64) -> DeliveredContact {
    DeliveredContact {
        name: "station-1-3".to_owned(),
        mission: MISSION.to_owned(),
        channel: "x-band".to_owned(),
        first: frame(from),
        last: frame(to),
        is_ended: false,
        idle: ms(idle),
        lacks: Vec::new(),
    }
}

fn told(contacts: &[DeliveredContact]) -> StandbyReport {
    StandbyReport {
        of: "station-1".to_owned(),
        is_known: true,
        is_whole: true,
        contacts: contacts.to_vec(),
    }
}

/// A gate of a standby that has captured frames up to `to`.
fn gate(to: u64) -> StandbyGate {
    let mut gate = StandbyGate::new("station-1".to_owned(), ms(1_250), ChannelMatch::Mission);
    gate.connected(Instant::ZERO);
    gate.open(FLOW, MISSION, "x", FlowSource::Feed);
    gate.spooled(FLOW, frames(0, to));
    gate
}

/// Looks every 100 ms from `from` to `to`, with a report of the same contact each time, whose last
/// frame came at `came`. Returns what was settled.
fn watch(
    gate: &mut StandbyGate,
    from: u64,
    to: u64,
    contact: impl Fn(u64) -> DeliveredContact,
) -> Vec<FlowId> {
    let mut settled = Vec::new();
    for time in (from..to).step_by(100) {
        gate.report(at(time), told(&[contact(time)]));
        settled.extend(gate.look(at(time), BEGIN + ms(time)));
    }
    settled
}

#[test]
fn nothing_is_sent_while_the_first_delivers_and_what_it_has_delivered_is_settled() {
    let mut gate = gate(0);
    for time in (0..60_000).step_by(100) {
        gate.spooled(FLOW, frames(time, time + 80));
        if time >= 300 {
            gate.report(at(time), told(&[delivered(0, time - 300, 20)]));
        }
        assert!(gate.look(at(time), BEGIN + ms(time)).is_empty());
        assert!(!gate.is_released(FLOW), "at {time} ms");
    }
    assert_eq!(gate.state(), StandbyState::StandingBy);
    gate.closed(FLOW);
    let last = |now| DeliveredContact { is_ended: true, ..delivered(0, 59_980, now - 60_000) };
    assert_eq!(watch(&mut gate, 60_100, 60_300, last), [FLOW]);
}

#[test]
fn a_silent_first_is_replaced_within_two_seconds_and_from_where_it_stopped() {
    let mut gate = gate(10_000);
    watch(&mut gate, 10_000, 11_100, |now| delivered(0, 10_000, now - 10_000));
    assert!(!gate.is_released(FLOW), "too early");
    gate.spooled(FLOW, frames(10_020, 11_600));
    watch(&mut gate, 11_100, 12_600, |now| delivered(0, 10_000, now - 10_000));
    assert!(gate.is_released(FLOW));
    assert!(matches!(gate.state(), StandbyState::TakingOver(_)));
    let now = BEGIN + ms(12_600);
    let mut verdict = |block, place| gate.verdict(FLOW, Some(block), place, now);
    assert_eq!(verdict(frames(0, 80), BlockPlace::Opening), BlockVerdict::Send);
    assert_eq!(verdict(frames(100, 9_000), BlockPlace::Middle), BlockVerdict::KeepBack);
    assert_eq!(verdict(frames(9_400, 9_600), BlockPlace::Middle), BlockVerdict::Send);
}

#[test]
fn one_that_returns_delivers_alone_again_after_a_while_and_no_block_is_sent_twice_meanwhile() {
    let mut gate = gate(10_000);
    watch(&mut gate, 10_000, 13_000, |now| delivered(0, 5_000, now - 5_000));
    assert!(gate.is_released(FLOW));
    gate.verdict(FLOW, Some(frames(0, 80)), BlockPlace::Opening, BEGIN);
    gate.verdict(FLOW, Some(frames(100, 9_980)), BlockPlace::Middle, BEGIN + ms(13_000));
    // It returns and is 300 ms behind.
    for time in (13_000..18_500).step_by(100) {
        gate.spooled(FLOW, frames(time, time + 80));
        watch(&mut gate, time, time + 100, |time| delivered(0, time - 300, 20));
        let block = frames(time, time + 80);
        let fresh = gate.verdict(FLOW, Some(block), BlockPlace::Middle, BEGIN + ms(time + 100));
        if gate.is_released(FLOW) {
            assert_eq!(fresh, BlockVerdict::Wait, "at {time} ms");
        }
    }
    assert!(!gate.is_released(FLOW), "it delivers again without a pause");
    assert_eq!(gate.state(), StandbyState::StandingBy);
}

#[test]
fn where_the_first_delivers_with_gaps_only_what_lacks_is_sent() {
    let mut gate = gate(20_000);
    let lacks = LackingTime { from: BEGIN + ms(8_000), to: BEGIN + ms(9_000) };
    let contact = |_| DeliveredContact { lacks: vec![lacks], ..delivered(0, 20_000, 20) };
    watch(&mut gate, 20_000, 22_000, contact);
    assert!(gate.is_released(FLOW));
    let now = BEGIN + ms(22_000);
    let mut verdict =
        |from, to| gate.verdict(FLOW, Some(frames(from, to)), BlockPlace::Middle, now);
    assert_eq!(verdict(7_000, 7_400), BlockVerdict::KeepBack);
    assert_eq!(verdict(8_100, 8_200), BlockVerdict::Send);
    assert_eq!(verdict(9_600, 9_700), BlockVerdict::KeepBack);
}

#[test]
fn a_centre_that_does_not_answer_or_knows_no_such_station_gets_everything() {
    let mut unanswered = gate(1_000);
    unanswered.look(at(9_900), BEGIN);
    assert!(!unanswered.is_released(FLOW));
    unanswered.look(at(10_000), BEGIN);
    assert_eq!(unanswered.state(), StandbyState::Unanswered);
    let sent = unanswered.verdict(FLOW, Some(frames(0, 80)), BlockPlace::Middle, BEGIN);
    assert_eq!(sent, BlockVerdict::Send);
    let mut unknown = gate(1_000);
    for time in [100, 800, 1_600] {
        unknown.report(at(time), StandbyReport { is_known: false, ..told(&[]) });
        unknown.look(at(time), BEGIN);
    }
    assert_eq!(unknown.state(), StandbyState::Unknown);
    assert!(unknown.is_released(FLOW));
}

#[test]
fn a_contact_that_began_or_ended_with_other_frames_is_not_taken_for_the_same() {
    // The first station locked a second later.
    let mut late = gate(10_000);
    watch(&mut late, 10_000, 12_000, |_| delivered(1_000, 10_000, 20));
    assert!(late.is_released(FLOW));
    // It ended with the same frame, or with an earlier one.
    for (last, is_sent) in [(10_000, false), (9_980, true)] {
        let mut gate = gate(10_000);
        gate.closed(FLOW);
        let ended = |_| DeliveredContact { is_ended: true, ..delivered(0, last, 20) };
        let settled = watch(&mut gate, 10_000, 12_000, ended);
        assert_eq!((gate.is_released(FLOW), settled.is_empty()), (is_sent, is_sent), "{last}");
    }
}

/// Regression: a frame that the first station had last, and that came again later with the same
/// bytes, hid everything between the two.
#[test]
fn the_same_bytes_of_another_time_and_idle_frames_are_not_the_end_of_what_the_first_has() {
    let mut again = gate(5_000);
    let repeated = EdgeFrame { mark: frame(5_000).mark, ..frame(9_000) };
    again.spooled(FLOW, BlockFrames { first: frame(5_020), last: repeated });
    watch(&mut again, 9_000, 11_000, |now| delivered(0, 5_000, now - 5_000));
    assert!(again.is_released(FLOW));
    let now = BEGIN + ms(11_000);
    let sent = again.verdict(FLOW, Some(frames(7_000, 7_100)), BlockPlace::Middle, now);
    assert_eq!(sent, BlockVerdict::Send);
    // Idle frames at the end lack nowhere.
    let mut idle = gate(10_000);
    let unmarked = EdgeFrame { mark: FrameMark::default(), ..frame(12_000) };
    idle.spooled(FLOW, BlockFrames { first: unmarked, last: unmarked });
    idle.closed(FLOW);
    let ended = |_| DeliveredContact { is_ended: true, ..delivered(0, 10_000, 20) };
    assert_eq!(watch(&mut idle, 12_000, 12_200, ended), [FLOW]);
}

#[test]
fn frames_of_another_channel_of_the_mission_are_not_taken_for_those_of_the_feed() {
    let ended = |channel: &str| DeliveredContact {
        channel: channel.to_owned(),
        name: channel.to_owned(),
        is_ended: true,
        ..delivered(0, 10_000, 20)
    };
    for (channels, there, is_settled) in [
        (ChannelMatch::Mission, &["x-band"][..], true),
        (ChannelMatch::Mission, &["left", "right"], false),
        (ChannelMatch::Mission, &["left", "x"], true),
        (ChannelMatch::Name, &["x-band"], false),
        (ChannelMatch::Name, &["x"], true),
    ] {
        let mut gate = StandbyGate::new("station-1".to_owned(), ms(1_250), channels);
        gate.connected(Instant::ZERO);
        gate.open(FLOW, MISSION, "x", FlowSource::Feed);
        gate.spooled(FLOW, frames(0, 10_000));
        gate.closed(FLOW);
        let contacts: Vec<_> = there.iter().map(|channel| ended(channel)).collect();
        gate.report(at(0), told(&contacts));
        let settled = gate.look(at(0), BEGIN);
        assert_eq!(settled == [FLOW], is_settled, "{channels:?} {there:?}");
    }
}

#[test]
fn what_is_not_of_the_feed_is_sent_at_once() {
    let mut gate = StandbyGate::new("station-1".to_owned(), ms(1_250), ChannelMatch::Mission);
    gate.connected(Instant::ZERO);
    gate.open(FLOW, MISSION, "x", FlowSource::Asked);
    gate.spooled(FLOW, frames(0, 100));
    gate.report(at(0), told(&[delivered(0, 100, 20)]));
    assert!(gate.look(at(0), BEGIN).is_empty());
    assert!(gate.is_released(FLOW));
    let verdict = gate.verdict(FLOW, Some(frames(0, 100)), BlockPlace::Middle, BEGIN);
    assert_eq!(verdict, BlockVerdict::Send);
}

#[test]
fn a_contact_without_a_good_frame_is_sent_when_it_has_ended() {
    let mut gate = StandbyGate::new("station-1".to_owned(), ms(1_250), ChannelMatch::Mission);
    gate.connected(Instant::ZERO);
    gate.open(FLOW, MISSION, "x", FlowSource::Feed);
    for is_closed in [false, true] {
        if is_closed {
            gate.closed(FLOW);
        }
        gate.report(at(0), told(&[]));
        assert!(gate.look(at(0), BEGIN).is_empty());
        assert_eq!(gate.is_released(FLOW), is_closed);
    }
    let verdict = gate.verdict(FLOW, None, BlockPlace::Closing, BEGIN);
    assert_eq!(verdict, BlockVerdict::Send);
}

#[test]
fn times_that_are_closest_together_become_one() {
    let time = |from, to| LackingTime { from: BEGIN + ms(from), to: BEGIN + ms(to) };
    let all = [time(0, 10), time(5, 20), time(30, 40), time(90, 95), time(100, 110)];
    assert_eq!(
        joined(all.into_iter(), 9),
        [time(0, 20), time(30, 40), time(90, 95), time(100, 110)]
    );
    assert_eq!(joined(all.into_iter(), 2), [time(0, 40), time(90, 110)]);
    assert_eq!(joined(all.into_iter(), 1), [time(0, 110)]);
}

/// Milliseconds between two frames, and between two blocks.
const FRAME: u64 = 20;
const BLOCK: u64 = 100;
/// Passes with different fates of the first station.
const SEEDS: u64 = 200;
/// One way of either line.
const WAY: u64 = 60;

/// The first station: its contacts, and what of each the centre has.
#[derive(Default)]
struct First {
    /// Frames by contact, in the order of capture; the first ones are at the centre.
    contacts: Vec<(Vec<u64>, usize)>,
    is_dead: bool,
    is_deaf: bool,
    is_cut: bool,
    /// When its newest frame came to the centre.
    came: u64,
}

/// A pass over two stations.
struct Pass {
    first: First,
    gate: StandbyGate,
    /// Frames of each block of the standby's contact.
    blocks: Vec<Vec<u64>>,
    /// Blocks that the standby has given.
    given: usize,
    centre: BTreeSet<u64>,
    captured: BTreeSet<u64>,
    /// Frames that the standby sent although the centre had them.
    extra: u64,
    /// Reports on their way: when they arrive.
    reports: BTreeMap<u64, StandbyReport>,
    is_settled: bool,
}

impl Pass {
    fn new() -> Self {
        let mut gate = StandbyGate::new("station-1".to_owned(), ms(1_250), ChannelMatch::Mission);
        gate.connected(Instant::ZERO);
        Self {
            first: First::default(),
            gate,
            blocks: Vec::new(),
            given: 0,
            centre: BTreeSet::new(),
            captured: BTreeSet::new(),
            extra: 0,
            reports: BTreeMap::new(),
            is_settled: false,
        }
    }

    fn capture(&mut self, now: u64) {
        let new: Vec<u64> = (now..now + BLOCK).step_by(FRAME as usize).collect();
        let first = &mut self.first;
        if !first.is_dead && !first.is_deaf {
            if first.contacts.is_empty() {
                first.contacts.push((Vec::new(), 0));
            }
            if let Some((frames, _)) = first.contacts.last_mut() {
                frames.extend(&new);
            }
        }
        if self.blocks.is_empty() {
            self.gate.open(FLOW, MISSION, "x", FlowSource::Feed);
        }
        self.gate.spooled(FLOW, frames(new[0], new[new.len() - 1]));
        self.captured.extend(&new);
        self.blocks.push(new);
    }

    /// The first delivers, at five times the rate of capture at the most.
    fn deliver(&mut self, now: u64) {
        if self.first.is_dead || self.first.is_cut {
            return;
        }
        let mut room = 5 * BLOCK / FRAME;
        for (frames, there) in &mut self.first.contacts {
            while *there < frames.len() && room > 0 && frames[*there] + BLOCK + WAY <= now {
                self.centre.insert(frames[*there]);
                (*there, room, self.first.came) = (*there + 1, room - 1, now);
            }
        }
    }

    fn tell(&mut self, now: u64, is_over: bool) {
        let count = self.first.contacts.len();
        let contact = |(nth, (frames, there)): (usize, &(Vec<u64>, usize))| {
            let last = *frames[..*there].last()?;
            let is_ended = (is_over || nth + 1 < count) && *there == frames.len();
            let name = format!("station-1-{nth}");
            let idle = now - self.first.came;
            let gaps = frames[..*there].windows(2).filter(|pair| pair[0] + FRAME < pair[1]);
            let lacks =
                gaps.map(|gap| LackingTime { from: BEGIN + ms(gap[0]), to: BEGIN + ms(gap[1]) });
            let lacks = joined(lacks, LACKS_MAX);
            Some(DeliveredContact { name, is_ended, lacks, ..delivered(frames[0], last, idle) })
        };
        let contacts: Vec<_> = self.first.contacts.iter().enumerate().filter_map(contact).collect();
        self.reports.insert(now + WAY, told(&contacts));
    }

    fn send(&mut self, now: u64, is_over: bool) {
        while self.gate.is_released(FLOW) && self.given < self.blocks.len() {
            let block = &self.blocks[self.given];
            let place = match self.given {
                0 => BlockPlace::Opening,
                last if is_over && last + 1 == self.blocks.len() => BlockPlace::Closing,
                _ => BlockPlace::Middle,
            };
            let edges = frames(block[0], block[block.len() - 1]);
            match self.gate.verdict(FLOW, Some(edges), place, BEGIN + ms(now)) {
                BlockVerdict::Wait => return,
                BlockVerdict::KeepBack => {}
                BlockVerdict::Send => {
                    let had = block.iter().filter(|frame| self.centre.contains(frame)).count();
                    self.extra += had as u64;
                    self.centre.extend(block);
                }
            }
            self.given += 1;
        }
    }

    fn step(&mut self, now: u64, is_over: bool) {
        self.deliver(now);
        if now.is_multiple_of(200) {
            self.tell(now, is_over);
        }
        while let Some(report) = self.reports.first_entry().filter(|entry| *entry.key() <= now) {
            self.gate.report(at(now), report.remove());
        }
        if now.is_multiple_of(200) {
            self.is_settled |= !self.gate.look(at(now), BEGIN + ms(now)).is_empty();
        }
        self.send(now, is_over);
    }
}

/// What happens to the first station. Returns whether it is a kill or a cut: the standby may send
/// two seconds twice.
fn happens(first: &mut First, rng: &mut impl Rng) {
    match rng.random_range(0..6) {
        0 => first.is_dead = true,
        1 if first.is_dead => {
            first.is_dead = false;
            first.contacts.push((Vec::new(), 0));
        }
        2 => first.is_cut = true,
        3 => first.is_cut = false,
        4 => first.is_deaf = true,
        _ => first.is_deaf = false,
    }
}

#[test]
fn whatever_happens_to_the_first_station_no_frame_is_missing_and_few_come_twice() {
    for seed in 0..SEEDS {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut pass = Pass::new();
        let (mut events, length) = (1, 30_000);
        for time in (0..length).step_by(BLOCK as usize) {
            pass.capture(time);
            if rng.random_range(0..40) == 0 {
                happens(&mut pass.first, &mut rng);
                events += 1;
            }
            pass.step(time + BLOCK, false);
        }
        pass.gate.closed(FLOW);
        for time in (length + BLOCK..length + 20_000).step_by(BLOCK as usize) {
            pass.step(time, true);
        }
        let missing: Vec<u64> = pass.captured.difference(&pass.centre).copied().collect();
        assert!(missing.is_empty(), "seed {seed}: {} missing, {:?}", missing.len(), &missing[..1]);
        let two_seconds = 2_000 / FRAME;
        assert!(pass.extra <= events * two_seconds, "seed {seed}: {} extra", pass.extra);
        assert_eq!(pass.is_settled, pass.given == 0, "seed {seed}");
        assert!(pass.is_settled || pass.given == pass.blocks.len(), "seed {seed}: not ended");
    }
}
