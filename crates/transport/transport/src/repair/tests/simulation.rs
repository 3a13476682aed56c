//! A flow with deadlines over a lossy line in virtual time: planner, meter, coder and decoder
//! together.
//!
//! Datagrams have a few bytes here and the size on the line that the plan says, so that millions
//! pass in seconds.

#![allow(clippy::unwrap_used, reason = "a simulation that breaks its own rules is a failed test")]

use crate::repair::*;
use skyhaul_units::{Duration, Instant, Probability, Rate};
use std::collections::VecDeque;

/// One run.
struct Trial {
    flow: Rate,
    line: Rate,
    rtt: Duration,
    /// Time left beyond the one-way delay and the block's own time at the flow's rate.
    slack: Duration,
    loss: Probability,
    after_loss: Probability,
    /// From then on nothing is lost.
    clean_from: Instant,
    length: Duration,
}

#[derive(Debug, Default)]
struct Outcome {
    blocks: u64,
    failed: u64,
    datagrams: u64,
    /// Bytes of source and repair datagrams in each second of the run.
    seconds: Vec<(u64, u64)>,
    last_plan: RepairPlan,
}

impl Outcome {
    fn overhead(&self, from: usize, to: usize) -> f64 {
        let (source, repair) = self.seconds[from..to]
            .iter()
            .fold((0, 0), |sum, second| (sum.0 + second.0, sum.1 + second.1));
        repair as f64 / source as f64
    }
}

struct Sender {
    trial: Trial,
    random: Random,
    coder: Coder,
    meter: LossMeter,
    planner: Planner,
    waiting: VecDeque<Block>,
    next_block: Instant,
    blocks: u64,
}

struct Block {
    number: u64,
    left: usize,
    due: Instant,
    /// Bytes of the last part.
    last: usize,
}

enum Sent {
    /// With the bytes that the content stands for.
    Source(Sid, Bytes, usize),
    Repair(RepairSymbol),
}

/// Blocks of the receiving end: parts still missing and by when.
#[derive(Default)]
struct Receiver {
    decoder: RepairDecoder,
    first: u64,
    open: VecDeque<(u32, Instant)>,
    failed: u64,
}

impl Receiver {
    fn receive(&mut self, now: Instant, sent: Sent) {
        match sent {
            Sent::Source(sid, content, _) => {
                self.part(now, &content);
                self.decoder.source(sid, content);
            }
            Sent::Repair(symbol) => self.decoder.repair(symbol),
        }
        while let Some((_, content)) = self.decoder.poll() {
            self.part(now, &content);
        }
    }

    fn part(&mut self, now: Instant, content: &[u8]) {
        let number = u64::from_be_bytes(content[..8].try_into().unwrap());
        let at = number.checked_sub(self.first).and_then(|at| self.open.get_mut(at as usize));
        if let Some((left, deadline)) = at
            && now <= *deadline
        {
            *left -= 1;
        }
    }

    fn expire(&mut self, now: Instant) {
        while self.open.front().is_some_and(|(_, deadline)| *deadline < now) {
            let (left, _) = self.open.pop_front().unwrap();
            self.first += 1;
            self.failed += u64::from(left > 0);
        }
    }
}

impl Sender {
    fn take_blocks(&mut self, now: Instant, receiver: &mut Receiver) {
        while self.next_block <= now {
            let taken = self.next_block;
            let size = 1_000 + self.random.below(99_001);
            let time = self.trial.flow.time_for(skyhaul_units::ByteCount::new(size));
            let due = taken + time + self.trial.slack;
            let left = (size as usize).div_ceil(self.content_len());
            let last = size as usize - (left - 1) * self.content_len();
            self.waiting.push_back(Block { number: self.blocks, left, due, last });
            receiver.open.push_back((left as u32, due + self.trial.rtt / 2));
            self.blocks += 1;
            self.next_block = taken + time;
        }
    }

    fn content_len(&self) -> usize {
        Coder::content_max(self.coder.plan().payload)
    }

    /// What goes out next: repair before sources.
    fn next(&mut self, now: Instant) -> Option<Sent> {
        if let Some(symbol) = self.coder.poll(now) {
            return Some(Sent::Repair(symbol));
        }
        let block = self.waiting.front_mut()?;
        let (number, due) = (block.number, block.due);
        block.left -= 1;
        let len = if block.left == 0 {
            block.last
        } else {
            Coder::content_max(self.coder.plan().payload)
        };
        let content = Bytes::copy_from_slice(
            &[number.to_be_bytes(), (block.left as u64).to_be_bytes()].concat(),
        );
        if block.left == 0 {
            self.waiting.pop_front();
        }
        let sid = self.coder.protect(now, &content, Some(due));
        Some(Sent::Source(sid, content, len))
    }

    fn replan(&mut self) {
        let situation = Situation {
            loss: self.meter.estimate(),
            rtt: Some(self.trial.rtt),
            slack: self.trial.slack,
            flow: self.trial.flow,
            spare: Rate::from_bps(self.trial.line.as_bps() - self.trial.flow.as_bps()),
            payload: 1_430,
        };
        self.coder.adopt(self.planner.plan(&situation));
    }
}

fn run(trial: Trial, seed: u64) -> Outcome {
    let (length, one_way, rtt, line) = (trial.length, trial.rtt / 2, trial.rtt, trial.line);
    let mut outcome =
        Outcome { seconds: vec![(0, 0); length.as_secs_f64() as usize + 2], ..Outcome::default() };
    let mut receiver = Receiver::default();
    let mut sender = Sender {
        random: Random(seed),
        coder: Coder::new(),
        meter: LossMeter::new(),
        planner: Planner::default(),
        waiting: VecDeque::new(),
        next_block: Instant::ZERO,
        blocks: 0,
        trial,
    };
    let mut on_the_way: VecDeque<(Instant, Option<Sent>)> = VecDeque::new();
    let mut fates: VecDeque<(Instant, bool)> = VecDeque::new();
    let (mut now, mut plan_at, mut lost) = (Instant::ZERO, Instant::ZERO, false);
    while now < Instant::ZERO + length {
        while fates.front().is_some_and(|(at, _)| *at <= now) {
            let (at, lost) = fates.pop_front().unwrap();
            sender.meter.fate(at, if lost { DatagramFate::Lost } else { DatagramFate::Arrived });
        }
        if plan_at <= now {
            sender.replan();
            plan_at = now + Duration::from_millis(100);
        }
        sender.take_blocks(now, &mut receiver);
        let Some(sent) = sender.next(now) else {
            let closing = sender.coder.next_timeout().unwrap_or(Instant::FAR_FUTURE);
            now = sender.next_block.min(closing).max(now + Duration::from_micros(1));
            continue;
        };
        let size = match &sent {
            Sent::Source(_, _, len) => SOURCE_HEADER + len,
            Sent::Repair(_) => sender.coder.plan().payload,
        };
        let second = &mut outcome.seconds[now.since(Instant::ZERO).as_secs_f64() as usize];
        match sent {
            Sent::Source(..) => second.0 += size as u64,
            Sent::Repair(_) => second.1 += size as u64,
        }
        let chance = if lost { sender.trial.after_loss } else { before_loss(&sender.trial) };
        lost = now < sender.trial.clean_from && sender.random.happens(chance);
        now += line.time_for(skyhaul_units::ByteCount::of(size + HEADERS));
        fates.push_back((now + rtt, lost));
        on_the_way.push_back((now + one_way, (!lost).then_some(sent)));
        while on_the_way.front().is_some_and(|(at, _)| *at <= now) {
            let (at, sent) = on_the_way.pop_front().unwrap();
            if let Some(sent) = sent {
                receiver.receive(at, sent);
            }
            receiver.expire(at);
        }
        outcome.datagrams += 1;
    }
    outcome.blocks = receiver.first;
    outcome.failed = receiver.failed;
    outcome.last_plan = sender.coder.plan().clone();
    outcome
}

/// The chance of a loss right behind an arrival, in the long run's balance.
fn before_loss(trial: &Trial) -> Probability {
    let lost = u64::from(trial.loss.as_ppb());
    Probability::of(
        lost * u64::from(trial.after_loss.complement().as_ppb()) / 1_000_000_000,
        1_000_000_000 - lost,
    )
}

/// SplitMix64 (G. L. Steele and others, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn happens(&mut self, probability: Probability) -> bool {
        self.below(1_000_000_000) < u64::from(probability.as_ppb())
    }
}

/// 20 Mbit/s in blocks of 1-100 KB over a geostationary line, due 1.2 one-way delays after their
/// own time.
fn geostationary() -> Trial {
    let loss = Probability::from_ppb(50_000_000);
    Trial {
        flow: Rate::from_mbps(20),
        line: Rate::from_mbps(40),
        rtt: Duration::from_millis(600),
        slack: Duration::from_millis(60),
        loss,
        after_loss: loss,
        clean_from: Instant::FAR_FUTURE,
        length: Duration::from_secs(300),
    }
}

#[test]
fn five_per_cent_independent_loss_is_repaired_within_the_slack_for_a_seventh_of_the_bytes() {
    let outcome = run(geostationary(), 1);
    assert!(outcome.datagrams > 1_000_000 && outcome.blocks > 14_500);
    assert_eq!(outcome.failed, 0, "of {}", outcome.blocks);
    let overhead = outcome.overhead(WARM_UP as usize, 299);
    assert!(overhead < 0.15, "{overhead}");
    let plan = outcome.last_plan;
    assert!(plan.expected >= 200 && plan.residual <= Probability::from_ppb(1_000), "{plan:?}");
}

#[test]
fn bursts_of_eight_cost_more_and_are_repaired_where_there_is_room() {
    let length = Duration::from_secs(200);
    let trial = Trial { after_loss: Probability::from_ppb(875_000_000), length, ..geostationary() };
    let outcome = run(trial, 2);
    assert!(outcome.datagrams > 1_000_000, "{}", outcome.datagrams);
    // Four orders of magnitude below the loss; what is left is the uncertainty of the burst length.
    assert!(outcome.failed * 2_000 < outcome.blocks, "{} of {}", outcome.failed, outcome.blocks);
    let overhead = outcome.overhead(WARM_UP as usize, 199);
    assert!((0.15..0.75).contains(&overhead), "{overhead}");
}

#[test]
fn a_path_that_becomes_clean_costs_nothing_within_five_seconds() {
    let trial = Trial {
        clean_from: Instant::ZERO + Duration::from_secs(20),
        length: Duration::from_secs(30),
        ..geostationary()
    };
    let outcome = run(trial, 3);
    assert!(outcome.overhead(10, 20) > 0.1);
    assert!(outcome.overhead(22, 30) < 0.005, "{:?}", &outcome.seconds[20..]);
    assert_eq!(outcome.failed, 0);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let short = || Trial { length: Duration::from_secs(8), ..geostationary() };
    assert_eq!(run(short(), 4).seconds, run(short(), 4).seconds);
    assert_ne!(run(short(), 4).seconds, run(short(), 5).seconds);
}

/// What a source carries beside its content: its number.
const SOURCE_HEADER: usize = 3;

/// Headers of IP, UDP and QUIC.
const HEADERS: usize = 62;

/// Seconds until the meter knows the path.
const WARM_UP: u64 = 5;
