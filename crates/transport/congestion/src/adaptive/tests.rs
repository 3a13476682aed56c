//! The controller on a simulated bottleneck, packet by packet. Whole lines are tested in the lab.

use super::*;
use crate::Sender;
use proptest::prelude::*;
use std::collections::VecDeque;

const PACKET: ByteCount = ByteCount::new(1_500);
const RTT: Duration = Duration::from_millis(160);
const RATE: Rate = Rate::from_mbps(93);

/// A line with a queue, and the far end that acknowledges ten packets at a time.
struct Line {
    sender: Sender<()>,
    rate: Rate,
    queue: Duration,
    /// One packet of so many is lost.
    lost_every: Option<u64>,
    /// Packets that wait longer than this are marked.
    marked_above: Duration,
    /// Delay of the far end's processor before it acknowledges the second half of each 40 packets.
    answers_late: Duration,
    free_at: Instant,
    now: Instant,
    number: u64,
    arrivals: VecDeque<(Instant, u64, bool)>,
    lost: VecDeque<(Instant, u64)>,
    batch: Vec<(u64, bool)>,
    carried: u64,
}

impl Line {
    fn new(rate: Rate) -> Self {
        Self {
            sender: Sender::new(Instant::ZERO, Box::new(Adaptive::new(None)), PACKET, 10),
            rate,
            queue: RTT,
            lost_every: None,
            marked_above: Duration::MAX,
            answers_late: Duration::ZERO,
            free_at: Instant::ZERO,
            now: Instant::ZERO,
            number: 0,
            arrivals: VecDeque::new(),
            lost: VecDeque::new(),
            batch: Vec::new(),
            carried: 0,
        }
    }

    /// Runs for `span` in steps of half a millisecond, with an application that has at most
    /// `offered`.
    fn run_offering(&mut self, span: Duration, offered: Rate) -> Rate {
        let (end, carried) = (self.now + span, self.carried);
        let mut credit = ByteCount::ZERO;
        while self.now < end {
            self.now += STEP;
            credit = (credit + offered * STEP).min(offered * RTT);
            self.acknowledge();
            if self.sender.wake().is_some_and(|at| at <= self.now) {
                self.sender.woken(self.now);
            }
            let room = self.sender.room(self.now) as u64;
            for _ in 0..room.min(credit.as_u64() / PACKET.as_u64()) {
                credit = credit - PACKET;
                self.send();
            }
        }
        Rate::over(ByteCount::new((self.carried - carried) * PACKET.as_u64()), span)
    }

    fn run(&mut self, span: Duration) -> Rate {
        self.run_offering(span, Rate::from_mbps(100_000))
    }

    fn send(&mut self) {
        let number = self.number;
        self.number += 1;
        self.sender.sent(self.now, number, PACKET);
        self.sender.spend(self.now, PACKET);
        let wait = self.free_at.since(self.now);
        let is_lost = self.lost_every.is_some_and(|every| number % every == every - 1);
        if wait > self.queue {
            self.lost.push_back((self.now + RTT.scaled(5, 4) + wait, number));
            return;
        }
        self.free_at = self.free_at.max(self.now) + self.rate.time_for(PACKET);
        if is_lost {
            self.lost.push_back((self.free_at + RTT.scaled(5, 4), number));
        } else {
            let late = if number % 40 < 20 { Duration::ZERO } else { self.answers_late };
            self.arrivals.push_back((self.free_at + RTT + late, number, wait > self.marked_above));
        }
    }

    fn acknowledge(&mut self) {
        while let Some((_, number, marked)) = self.arrivals.pop_front_if(|(at, ..)| *at <= self.now)
        {
            self.batch.push((number, marked));
            self.carried += 1;
            if self.batch.len() == 10 || self.number < 10 {
                for (number, marked) in core::mem::take(&mut self.batch) {
                    let _ = self.sender.acked(self.now, number);
                    self.sender.marked(u64::from(marked));
                }
                self.sender.end_of_acks(self.now);
            }
        }
        while let Some((_, number)) = self.lost.pop_front_if(|(at, _)| *at <= self.now) {
            let _ = self.sender.lost(self.now, number);
        }
    }

    fn wait(&self) -> Duration {
        self.free_at.since(self.now)
    }
}

const STEP: Duration = Duration::from_micros(500);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn the_line_is_found_within_eight_round_trips_and_filled_with_a_short_queue() {
    let mut line = Line::new(RATE);
    line.run(RTT * 8);
    assert!(line.run(RTT) >= RATE.scaled(9, 10), "{:?}", line.sender.status());
    line.run(seconds(3));
    assert!(line.run(seconds(5)) >= RATE.scaled(99, 100), "{:?}", line.sender.status());
    assert!(line.wait() < Duration::from_millis(20), "{}", line.wait());
}

#[test]
fn loss_that_sending_less_would_not_change_changes_nothing() {
    for every in [1_000, 100, 20, 7, 3] {
        let mut line = Line::new(RATE);
        line.run(seconds(4));
        line.lost_every = Some(every);
        line.run(seconds(3));
        let limit = RATE.scaled(every - 1, every);
        let carried = line.run(seconds(5));
        assert!(
            carried >= limit.scaled(97, 100),
            "one in {every}: {carried} {:?}",
            line.sender.status()
        );
    }
}

#[test]
fn marks_keep_the_queue_below_where_they_begin() {
    let mut line = Line::new(RATE);
    line.marked_above = Duration::from_millis(5);
    line.run(seconds(10));
    let carried = line.run(seconds(60));
    assert!(carried >= RATE.scaled(80, 100), "{carried} {:?}", line.sender.status());
    assert!(line.wait() < Duration::from_millis(10), "{}", line.wait());
}

#[test]
fn an_application_that_sends_less_than_the_line_carries_is_not_held_back_and_may_grow_at_once() {
    let mut line = Line::new(RATE);
    let offered = RATE.scaled(1, 3);
    line.run_offering(seconds(5), offered);
    let used = line.run_offering(seconds(20), offered);
    assert!(used >= offered.scaled(99, 100), "{used} {:?}", line.sender.status());
    let allowed = line.sender.status().rate;
    assert!(allowed >= offered && allowed <= RATE.scaled(2, 1), "{allowed}");
    line.run(seconds(2));
    let used = line.run(seconds(2));
    assert!(used >= RATE.scaled(95, 100), "{used} {:?}", line.sender.status());
}

#[test]
fn a_session_that_stands_idle_at_first_finds_nothing() {
    let mut adaptive = Adaptive::new(None);
    let mut now = Instant::ZERO;
    for n in 0..200 {
        adaptive.on_sent(now, PACKET, PACKET);
        // A packet for itself is answered when the far end's timer is over, those of a handshake at
        // once.
        let rtt = RTT + Duration::from_millis(if n < 2 { 0 } else { 25 });
        adaptive.on_arrived(now, 1);
        let ack = Ack {
            bytes: PACKET,
            packets: 1,
            sent: now,
            rtt: Some(rtt),
            smoothed: rtt,
            ..Ack::default()
        };
        adaptive.on_ack(now + rtt, &ack);
        now += RTT * 2;
    }
    let status = adaptive.status();
    assert_eq!(status.phase, Phase::Starting, "{status:?}");
    assert!(status.rate >= Rate::from_mbps(2), "{status:?}");
}

#[test]
fn what_was_found_is_kept_while_an_application_uses_little_of_it() {
    for (every, late) in [(None, 0), (Some(10), 0), (None, 6), (Some(10), 6)] {
        let mut line = Line::new(RATE);
        line.lost_every = every;
        line.run(seconds(5));
        line.answers_late = Duration::from_millis(late);
        line.run_offering(seconds(10), RATE.scaled(1, 30));
        line.answers_late = Duration::ZERO;
        line.run(RTT);
        let used = line.run(RTT * 3);
        let carried = RATE.scaled(every.unwrap_or(100) - 1, every.unwrap_or(100));
        assert!(
            used >= carried.scaled(85, 100),
            "{every:?} {late} ms: {used} {:?}",
            line.sender.status()
        );
    }
}

/// Beside thousands of connections on one host, answers came late for two seconds, which looked
/// like traffic of others; of the 5 Gbit/s before, 6 kbit/s were left afterwards.
#[test]
fn an_application_that_sends_little_keeps_the_rate_when_others_have_left_the_line() {
    let mut adaptive = Adaptive::new(None);
    adaptive.settle(Instant::ZERO, RATE);
    adaptive.mode = Mode::Competing(CubicWindow::new(Instant::ZERO, RATE * RTT));
    let mut now = Instant::ZERO;
    while matches!(adaptive.mode, Mode::Competing(_)) {
        assert!(now < Instant::ZERO + seconds(60), "the queue is empty");
        for _ in 0..4 {
            adaptive.on_sent(now, PACKET, PACKET);
            adaptive.on_arrived(now, 1);
        }
        let (bytes, rtt) = (ByteCount::new(6_000), Some(RTT));
        let ack = Ack { bytes, packets: 4, sent: now, rtt, smoothed: RTT, ..Ack::default() };
        adaptive.on_ack(now + RTT, &ack);
        now += RTT * 2;
    }
    assert!(adaptive.pacing_rate() >= RATE.scaled(9, 10), "{:?}", adaptive.status());
}

#[test]
fn what_is_allowed_stays_near_what_a_small_application_uses() {
    let mut line = Line::new(Rate::from_mbps(2_000));
    line.run_offering(seconds(60), Rate::from_mbps(5));
    let allowed = line.sender.status().rate;
    assert!(allowed <= Rate::from_mbps(40), "{allowed}");
}

#[test]
fn what_is_remembered_is_what_the_line_carries() {
    let mut line = Line::new(RATE);
    assert_eq!(line.sender.memory(), None);
    line.run(seconds(5));
    let memory = line.sender.memory().unwrap();
    assert!(
        memory.rate >= RATE.scaled(95, 100) && memory.rate <= RATE.scaled(105, 100),
        "{}",
        memory.rate
    );
    assert!(memory.rtt >= RTT && memory.rtt <= RTT + Duration::from_millis(2), "{}", memory.rtt);
}

#[test]
fn an_acknowledgement_out_of_the_blue_is_taken_as_it_is() {
    let mut adaptive = Adaptive::new(None);
    adaptive.on_ack(Instant::from_nanos(5), &Ack::default());
    adaptive.on_loss(Instant::from_nanos(6), &LossEvent::default());
    assert!(adaptive.pacing_rate() > Rate::ZERO && adaptive.window() >= WINDOW_MIN);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_sequence_of_events_stops_the_sender(
        events in proptest::collection::vec((0u8..8, 0u64..2_000_000_000, 1u32..5_000), 1..400),
        remembered in proptest::option::of((1u64..u64::MAX, 0u64..u64::MAX)),
    ) {
        let memory = remembered.map(|(rate, rtt)| Memory {
            rate: Rate::from_bps(rate),
            rtt: Duration::from_nanos(rtt),
        });
        let mut adaptive = Adaptive::new(memory);
        let mut now = Instant::ZERO;
        for (kind, span, packets) in events {
            now += Duration::from_nanos(if kind < 6 { span / 1_000 } else { span });
            let sent = Instant::from_nanos(now.as_nanos().saturating_sub(span));
            let bytes = ByteCount::new(u64::from(packets) * 1_500);
            match kind {
                0..3 => (0..packets.min(64)).for_each(|_| adaptive.on_sent(now, PACKET, bytes)),
                3 => adaptive.on_loss(now,
                    &LossEvent { bytes: PACKET, sent, continues: packets % 2 == 0,
                        ..LossEvent::default() }),
                _ => adaptive.on_ack(now, &Ack {
                    bytes,
                    packets,
                    sent,
                    rtt: (packets % 5 > 0).then(|| now.since(sent)),
                    smoothed: Duration::from_nanos(span),
                    prompt: packets % 3 > 0,
                    marked: u64::from(packets % 7 == 0),
                    ..Ack::default()
                }),
            }
            prop_assert!(adaptive.pacing_rate() >= SLOWEST);
            prop_assert!(adaptive.window() >= ByteCount::new(1_500));
        }
    }
}
