//! A sender and a receiver with nothing between them but loss.

use super::{
    Assumptions, BlockGap, Design, DesignError, Event, LossCause, OneWayReceiver, OneWaySender,
    ReceiverConfig, SenderConfig,
};
use crate::block::{Block, BlockId, Mode, Outcome, Received};
use bytes::Bytes;
use proptest::prelude::*;
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Probability, Rate, Seq};

fn millis(value: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(value)
}

fn percent(value: u32) -> Probability {
    Probability::from_ppb(value * 10_000_000)
}

fn assumed(loss: u32, burst: u32) -> Assumptions {
    Assumptions { loss: percent(loss), burst, ..Assumptions::over(Rate::from_mbps(20)) }
}

fn block(flow: u32, number: usize, len: usize) -> Block {
    let bytes: Vec<u8> = (0..len).map(|at| (at * 31 + number * 7) as u8).collect();
    Block::reliable(FlowId(flow), bytes.into())
}

/// Both ends; each datagram takes as long as its bytes on the line, and `loses` says by its number
/// which are lost.
struct Line<L> {
    sender: OneWaySender,
    receiver: OneWayReceiver,
    now: Instant,
    sent: u64,
    loses: L,
    received: Vec<Received>,
    gaps: Vec<BlockGap>,
    most_memory: u64,
}

impl<L: FnMut(u64, &[u8]) -> bool> Line<L> {
    fn new(assumptions: &Assumptions, loses: L) -> Self {
        let design = Design::new(assumptions).unwrap();
        let config = SenderConfig { name: "dish".to_owned(), ..SenderConfig::default() };
        Self {
            sender: OneWaySender::new(design, config),
            receiver: OneWayReceiver::new(ReceiverConfig::default()),
            now: Instant::ZERO,
            sent: 0,
            loses,
            received: Vec::new(),
            gaps: Vec::new(),
            most_memory: 0,
        }
    }

    fn run_until(&mut self, end: Instant) {
        while self.now < end {
            if let Some(datagram) = self.sender.poll(self.now) {
                let assumed = *self.sender.design().assumptions();
                assert!(datagram.len() <= assumed.payload);
                self.now += assumed.rate.time_for(ByteCount::of(datagram.len() + assumed.headers));
                self.sent += 1;
                if !(self.loses)(self.sent, &datagram) {
                    self.receiver.datagram(self.now, datagram);
                }
            } else {
                let due = self
                    .sender
                    .next_timeout(self.now)
                    .into_iter()
                    .chain(self.receiver.next_timeout())
                    .min();
                self.now =
                    due.map_or(end, |due| due.max(self.now + Duration::from_nanos(1)).min(end));
                self.receiver.expire(self.now);
            }
            self.take();
        }
    }

    fn take(&mut self) {
        self.most_memory = self.most_memory.max(self.receiver.memory());
        while let Some(event) = self.receiver.poll_event() {
            match event {
                Event::Block(block) => self.received.push(block),
                Event::Gap(gap) => self.gaps.push(gap),
                Event::Announced(_) | Event::Silent => {}
            }
        }
    }

    fn finish(&mut self) {
        self.sender.finish();
        self.run_until(self.now + Duration::from_secs(20));
        assert!(self.sender.is_finished());
        let counters = self.receiver.counters();
        let settled =
            counters.blocks_delivered + counters.blocks_repaired + counters.blocks_dropped;
        assert_eq!(counters.blocks_seen, settled + self.receiver.in_flight());
    }

    fn outcomes(&mut self) -> Vec<(BlockId, Outcome)> {
        std::iter::from_fn(|| self.sender.poll_settled()).collect()
    }
}

fn is_announcement(datagram: &[u8]) -> bool {
    datagram.first() == Some(&3)
}

#[test]
fn without_loss_every_block_arrives_in_order_and_counts_as_sent_only_after_its_repair() {
    let mut line = Line::new(&assumed(5, 8), |_, _| false);
    for number in 0..40 {
        line.sender.send(line.now, block(number as u32 % 2, number, 5_000)).unwrap();
    }
    let first = line.sender.poll(line.now);
    assert!(first.is_some() && line.outcomes().is_empty());
    line.finish();
    assert_eq!((line.received.len(), line.gaps.len()), (40, 0));
    for flow in 0..2 {
        let of_flow = line.received.iter().filter(|block| block.id.flow == FlowId(flow));
        let expected = (0..40).filter(|number| number % 2 == flow as usize);
        for (got, number) in of_flow.zip(expected) {
            assert_eq!(got.bytes, block(flow, number, 5_000).bytes);
        }
    }
    let outcomes = line.outcomes();
    assert!(outcomes.len() == 40 && outcomes.iter().all(|(_, outcome)| *outcome == Outcome::Sent));
    assert!(line.receiver.is_over() && line.receiver.counters().blocks_repaired == 0);
}

#[test]
fn bulk_is_coded_as_well_and_what_a_burst_takes_comes_back() {
    // 24 in a row of every 400: three bursts of the assumed length at once.
    let mut line = Line::new(&assumed(5, 8), |number, _| (number % 400) < 24);
    for number in 0..60 {
        line.sender.send(line.now, block(0, number, 60_000)).unwrap();
    }
    line.finish();
    assert_eq!((line.received.len(), &line.gaps[..]), (60, &[][..]));
    assert!(line.receiver.counters().blocks_repaired >= 6);
    for (number, got) in line.received.iter().enumerate() {
        assert_eq!(got.bytes, block(0, number, 60_000).bytes);
    }
}

#[test]
fn what_is_lost_beyond_repair_is_a_gap_and_the_rest_goes_on() {
    // Everything is lost for a second.
    let mut line = Line::new(&assumed(1, 1), |number, _| (500..2_000).contains(&number));
    for number in 0..200 {
        line.sender.send(line.now, block(0, number, 20_000)).unwrap();
    }
    line.finish();
    let lost: u64 = line.gaps.iter().map(|gap| gap.count).sum();
    assert_eq!(line.received.len() as u64 + lost, 200);
    assert!(
        (80..130).contains(&lost) && line.gaps.iter().all(|gap| gap.cause == LossCause::Lost),
        "{lost}"
    );
    let places: Vec<u64> = line.received.iter().map(|block| block.id.seq.0).collect();
    assert!(places.is_sorted() && places.last() == Some(&199));
    assert!(places.iter().all(|place| {
        !line.gaps.iter().any(|gap| (gap.first.0..gap.first.0 + gap.count).contains(place))
    }));
}

#[test]
fn a_receiver_that_starts_late_joins_in_the_middle() {
    let mut line = Line::new(&assumed(1, 1), |number, _| number < 1_000);
    for number in 0..300 {
        line.sender.send(line.now, block(7, number, 10_000)).unwrap();
    }
    line.finish();
    let first = line.received[0].id.seq;
    assert_eq!(
        line.gaps,
        [BlockGap { flow: FlowId(7), first: Seq(0), count: first.0, cause: LossCause::Lost }]
    );
    assert_eq!(line.received.len() as u64 + first.0, 300);
}

#[test]
fn a_sender_that_falls_silent_leaves_no_block_waiting() {
    let mut line =
        Line::new(&assumed(1, 1), |number, _| (50..60).contains(&number) || number > 150);
    for number in 0..100 {
        line.sender.send(line.now, block(0, number, 5_000)).unwrap();
    }
    line.run_until(millis(15_000));
    assert_eq!(line.receiver.in_flight(), 0);
    assert!(line.received.len() > 20 && !line.gaps.is_empty());
}

#[test]
fn blocks_given_up_are_told_and_not_waited_for() {
    let mut line = Line::new(&assumed(1, 1), |_, _| false);
    let expendable = |number, deadline| Block {
        deadline: Some(Duration::from_millis(deadline)),
        mode: Mode::Expendable,
        ..block(0, number, 50_000)
    };
    // 20 ms each on the line: those that are due within 100 ms can't all go.
    for number in 0..10 {
        line.sender.send(line.now, expendable(number, 100)).unwrap();
    }
    let taken_back = line.sender.send(line.now, block(0, 10, 1_000)).unwrap();
    line.sender.send(line.now, block(0, 11, 1_000)).unwrap();
    assert!(line.sender.cancel(taken_back));
    line.finish();
    // Some were begun: their time is over here before the sender's word comes.
    let missing: u64 = line.gaps.iter().map(|gap| gap.count).sum();
    assert_eq!(line.received.len() as u64 + missing, 12);
    assert!(
        (5..=9).contains(&missing) && !line.gaps.iter().any(|gap| gap.cause == LossCause::Lost)
    );
    assert_eq!(
        line.gaps[0],
        BlockGap { flow: FlowId(0), first: Seq(10), count: 1, cause: LossCause::GivenUp }
    );
    assert_eq!(line.received.last().map(|block| block.id.seq), Some(Seq(11)));
    let expired =
        line.outcomes().iter().filter(|(_, outcome)| *outcome == Outcome::Expired).count() as u64;
    assert_eq!(expired + 1, missing);
}

#[test]
fn repair_of_a_block_with_a_deadline_is_out_in_time() {
    let assumptions = Assumptions { budget: Some(Duration::from_secs(2)), ..assumed(5, 8) };
    // The block itself is lost, all its repair arrives.
    let mut line = Line::new(&assumptions, |_, datagram| datagram.first() == Some(&1));
    let urgent = Block {
        deadline: Some(Duration::from_millis(150)),
        mode: Mode::Expendable,
        ..block(0, 1, 3_000)
    };
    line.sender.send(line.now, urgent.clone()).unwrap();
    line.run_until(millis(400));
    assert_eq!(line.received.len(), 1);
    assert_eq!(line.received[0].bytes, urgent.bytes);
    assert!(line.received[0].timing.delivered <= millis(150));
}

#[test]
fn announcements_go_on_while_nothing_is_sent_and_the_end_is_told_often() {
    let mut announcements = Vec::new();
    let mut line = Line::new(&assumed(1, 1), |number, datagram| {
        announcements.push((number, is_announcement(datagram)));
        false
    });
    line.run_until(millis(5_500));
    assert_eq!(line.sent, 6);
    line.finish();
    assert!(line.receiver.is_over());
    assert_eq!(line.receiver.counters().announcements, 14);
}

#[test]
fn the_window_holds_whatever_comes() {
    let mut line = Line::new(&assumed(1, 1), |number, _| number % 3 == 0);
    line.receiver = OneWayReceiver::new(ReceiverConfig {
        window: ByteCount::kib(256),
        ..ReceiverConfig::default()
    });
    for number in 0..200 {
        line.sender.send(line.now, block(number as u32 % 5, number, 20_000)).unwrap();
    }
    line.finish();
    assert!(
        line.most_memory <= (256 << 10) + crate::repair::DECODER_MAX + (4 << 20),
        "{}",
        line.most_memory
    );
    assert!(line.gaps.iter().any(|gap| gap.cause == LossCause::Crowded));
    let lost: u64 = line.gaps.iter().map(|gap| gap.count).sum();
    assert_eq!(line.received.len() as u64 + lost, 200);
}

#[test]
fn designs_reach_their_target_at_the_least_cost_that_fits() {
    for (loss, burst, at_most) in
        [(1, 1, 0.10), (5, 1, 0.20), (10, 1, 0.35), (1, 8, 0.35), (5, 8, 0.6), (10, 8, 1.0)]
    {
        let design = Design::new(&assumed(loss, burst)).unwrap();
        assert!(design.residual() <= 1e-6, "{loss} %, {burst}: {}", design.residual());
        assert!(design.overhead() <= at_most, "{loss} %, {burst}: {}", design.overhead());
        assert_eq!(design.lanes() > 1, burst > 1);
        assert!(design.block_rate() > Rate::from_mbps(8));
    }
}

#[test]
fn small_groups_are_repaired_as_well_as_full_ones() {
    let design = Design::new(&assumed(5, 8)).unwrap();
    let target = 1e-6;
    for lanes in 1..=design.lanes() {
        assert!(design.failure(lanes, 1, design.repairs_of(lanes, 1)) <= target);
    }
    for sources in 1..=design.sources() {
        let repairs = design.repairs_of(design.lanes(), sources);
        assert!(design.failure(design.lanes(), sources, repairs) <= target, "{sources}");
    }
}

#[test]
fn what_cannot_be_reached_is_refused_with_what_to_do() {
    let short = Assumptions { budget: Some(Duration::from_millis(2)), ..assumed(5, 8) };
    assert!(matches!(Design::new(&short), Err(DesignError::Burst { .. })));
    let hopeless = Assumptions { loss: percent(95), ..assumed(5, 1) };
    let error = Design::new(&hopeless).unwrap_err();
    assert!(error.to_string().contains("; give more time"), "{error}");
    let nothing = Assumptions { rate: Rate::ZERO, ..assumed(5, 1) };
    assert!(matches!(Design::new(&nothing), Err(DesignError::Nothing { .. })));
}

#[test]
fn the_expected_loss_is_summed_over_the_groups_as_sent() {
    let mut line = Line::new(&assumed(5, 1), |_, _| false);
    for number in 0..400 {
        line.sender.send(line.now, block(0, number, 20_000)).unwrap();
    }
    line.finish();
    let counters = *line.sender.counters();
    assert_eq!(counters.blocks_sent, 400);
    assert!(counters.residual() > 1e-12 && counters.residual() <= 1e-6, "{}", counters.residual());
    assert!(
        (counters.overhead() - line.sender.design().overhead()).abs() < 0.03,
        "{}",
        counters.overhead()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// In each set of groups as many datagrams are lost as each group has repairs, wherever they
    /// stand.
    #[test]
    fn any_loss_within_the_codes_reach_is_repaired(
        sizes in prop::collection::vec(1usize..30_000, 1..60),
        salt in any::<u64>(),
        burst in prop::sample::select(vec![1u32, 8]),
    ) {
        let design = Design::new(&assumed(5, burst)).unwrap();
        // The k-th symbol of a lane is lost while the lane has repairs left: pseudo-random, counted
        // by lane and set.
        let mut lost = std::collections::BTreeMap::new();
        let (lanes, full) = (u64::from(design.lanes()),
            u64::from(design.sources()) * u64::from(design.lanes()));
        let least = design.repairs_of(design.lanes(), 1);
        let mut line = Line::new(&assumed(5, burst), |number, datagram| {
            if datagram.first() != Some(&1) {
                return false;
            }
            let sid = u64::from(u32::from_be_bytes([0, datagram[1], datagram[2], datagram[3]]));
            let taken = lost.entry((sid / full, sid % full % lanes)).or_insert(0u8);
            let wants = (number ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60 == 0;
            *taken += u8::from(wants && *taken < least);
            wants && *taken < least
        });
        for (number, size) in sizes.iter().enumerate() {
            line.sender.send(line.now, block(number as u32 % 3, number, *size)).unwrap();
        }
        line.finish();
        prop_assert_eq!(line.gaps.len(), 0);
        prop_assert_eq!(line.received.len(), sizes.len());
        for got in &line.received {
            let number = got.id.seq.0 as usize * 3 + got.id.flow.0 as usize;
            prop_assert_eq!(&got.bytes, &block(got.id.flow.0, number, sizes[number]).bytes);
        }
    }

    /// Whatever is lost, doubled or late: what is given out is what was sent, in order, and every
    /// block is accounted for.
    #[test]
    fn whatever_the_line_does_blocks_are_whole_and_in_order(
        sizes in prop::collection::vec(1usize..20_000, 1..40),
        salt in any::<u64>(),
        share in 0u64..60,
    ) {
        let mut line = Line::new(&assumed(5, 1), |number, _| {
            (number ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & 0x7f < share
        });
        for (number, size) in sizes.iter().enumerate() {
            line.sender.send(line.now, block(number as u32 % 3, number, *size)).unwrap();
        }
        line.finish();
        for flow in 0..3 {
            let places: Vec<u64> =
                line.received.iter().filter(|got| got.id.flow ==
                    FlowId(flow)).map(|got| got.id.seq.0).collect();
            prop_assert!(places.is_sorted());
        }
        for got in &line.received {
            let number = got.id.seq.0 as usize * 3 + got.id.flow.0 as usize;
            prop_assert_eq!(&got.bytes, &block(got.id.flow.0, number, sizes[number]).bytes);
        }
        // What is missing at the end of all flows may have gone with all announcements of it.
        let lost: u64 = line.gaps.iter().map(|gap| gap.count).sum();
        prop_assert!(line.received.len() as u64 + lost <= sizes.len() as u64);
        prop_assert!(line.receiver.in_flight() == 0);
        if share < 40 {
            prop_assert_eq!(line.received.len() as u64 + lost, sizes.len() as u64);
        }
    }

    #[test]
    fn any_datagrams_leave_the_receiver_bounded(
        datagrams in prop::collection::vec((0u8..4, prop::collection::vec(any::<u8>(), 0..60)),
            0..80),
    ) {
        let mut receiver = OneWayReceiver::new(ReceiverConfig { window: ByteCount::kib(64),
            ..ReceiverConfig::default() });
        let mut now = Instant::ZERO;
        for (kind, rest) in datagrams {
            let bytes: Vec<u8> = core::iter::once(kind).chain(rest).collect();
            now += Duration::from_millis(30);
            receiver.datagram(now, Bytes::from(bytes));
            prop_assert!(receiver.memory() <= (64 << 10) + crate::repair::DECODER_MAX + (4 << 20));
        }
    }
}
