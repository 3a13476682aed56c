//! Two nodes that get a node's products, of which one is away for a day, in virtual time: the
//! queues of destinations, the sessions with both nodes, their class tree and their one line are
//! those of the program.
//!
//! Asserted are times of the line, which the same seed repeats; `--nocapture` prints them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::rung::is_all;
use core::cell::Cell;
use skyhaul_dispatch::{
    Delivery, DeliveryFailure, DeliveryInput, DeliveryOrdering, DeliveryOutput, DeliveryRules,
    DeliveryState, DestinationQueue, FailureKind, Proof, QueueLane, QueuedDelivery,
};
use skyhaul_lab::PlainLine;
use skyhaul_lab::workload::{Arrivals, Pattern, StreamConfig, Traffic};
use skyhaul_lab::world::{User, World, WorldConfig, WorldPath};
use skyhaul_transport::{
    Block, BlockId, ClassConfig, ClassId, ClassTree, ClassesConfig, Event, LineShare, Mode,
    Outcome, PathId, Session, SessionConfig, cost,
};
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Probability, Rate, Utc};
use std::collections::BTreeMap;

/// A product each minute: 1,440 a day, 377 MB.
const EACH: Duration = Duration::from_secs(60);
const PRODUCT: usize = 256 << 10;
/// The bytes of a file in one block of a transfer.
const PIECE: usize = 128 << 10;
/// Deliveries of a destination at a time.
const CONNECTIONS: usize = 4;
const DAY: Duration = Duration::from_secs(86_400);
/// Long enough for all of the backlog; the last product is published ten seconds before.
const LAST: Duration = Duration::from_secs(670);
/// The other node is watched from then on before the return.
const BEFORE: Duration = Duration::from_secs(3_600);
/// The line of the node to both others.
const LINE: Rate = Rate::from_mbps(24);
const ROUND_TRIP: Duration = Duration::from_millis(160);
/// A pass of five minutes begins when the backlog is under way, with two thirds of the line.
const PASS: Rate = Rate::from_mbps(16);
const PASS_FROM: Duration = Duration::from_secs(90);
const PASS_SPAN: Duration = Duration::from_secs(300);
/// Of contacts and of products, as the program sends them.
const PRIORITY_CONTACT: u8 = 1;
const PRIORITY_PRODUCTS: u8 = 7;
/// A flow of contacts, and those of deliveries, one for each connection.
const CONTACT: FlowId = FlowId(1);
const FIRST_DELIVERY: u32 = 1 << 16;

/// How the products stand to the pass in the class tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Classes {
    /// One class for all: only priorities tell them apart.
    One,
    /// The pass has a guarantee, the products a class of their own behind it.
    Two,
}

/// The products that a node published, and a pass to one of the others.
struct Deliverer {
    queue: DestinationQueue,
    rules: DeliveryRules,
    deliveries: BTreeMap<u64, Delivery>,
    /// When the next product is published; the number of a product is its second.
    next: Instant,
    class: ClassId,
    /// By connection.
    running: [Option<Running>; CONNECTIONS],
    /// When each product was placed, in the order in which they were.
    placed: Vec<(u64, Instant)>,
    failed: usize,
    /// Whether the session has opened.
    is_met: bool,
    pass: Traffic,
}

/// A delivery under way.
struct Running {
    id: u64,
    unsent: usize,
    unsettled: usize,
}

fn utc(at: Instant) -> Utc {
    Utc::from_day(20_783, at.since(Instant::ZERO))
}

impl Deliverer {
    fn new(class: ClassId, pass: Option<StreamConfig>) -> Self {
        let rules = DeliveryRules::default();
        let lane = QueueLane { ordering: DeliveryOrdering::Newest, rules };
        Self {
            queue: DestinationQueue::new(vec![lane], CONNECTIONS),
            rules,
            deliveries: BTreeMap::new(),
            next: Instant::ZERO,
            class,
            running: Default::default(),
            placed: Vec::new(),
            failed: 0,
            is_met: false,
            pass: Traffic::new(pass, 1),
        }
    }

    /// Publishes what is due.
    fn publish(&mut self, now: Instant) {
        while self.next <= now && self.next.since(Instant::ZERO) < DAY + LAST {
            let id = self.next.since(Instant::ZERO).as_millis() / 1_000;
            self.deliveries.insert(id, Delivery::offered(utc(self.next)));
            self.put(id);
            self.next += EACH;
        }
    }

    fn put(&mut self, id: u64) {
        let published = utc(Instant::ZERO + Duration::from_secs(id));
        let Delivery { next, failures, .. } = self.deliveries[&id];
        let has_failed = failures > 0;
        self.queue.put(QueuedDelivery { id, lane: 0, published, deadline: None, next, has_failed });
    }

    fn handle(&mut self, now: Instant, id: u64, input: DeliveryInput) {
        let delivery = self.deliveries.get_mut(&id).unwrap();
        let output = delivery.handle(utc(now), input, &self.rules);
        assert_eq!(output, DeliveryOutput::Quiet, "{id} at {now}: {delivery:?}");
    }

    /// What the threads of a destination do while there is no session.
    fn fail(&mut self, now: Instant) {
        self.publish(now);
        while let Some(id) = self.queue.poll(utc(now)) {
            self.failed += 1;
            self.handle(now, id, DeliveryInput::Begin);
            let failure = DeliveryFailure::new(FailureKind::Line, "there is no session with it");
            self.handle(now, id, DeliveryInput::Failed(failure.clone(), 0));
            self.queue.ended(utc(now), id, Some(&failure), 0);
            self.put(id);
        }
    }

    /// Begins deliveries, and hands over their blocks as far as the session has room.
    fn deliver(&mut self, now: Instant, session: &mut Session) {
        for connection in 0..CONNECTIONS {
            if self.running[connection].is_none() {
                let Some(id) = self.queue.poll(utc(now)) else { break };
                self.handle(now, id, DeliveryInput::Begin);
                let pieces = PRODUCT.div_ceil(PIECE);
                self.running[connection] = Some(Running { id, unsent: pieces, unsettled: pieces });
            }
            let Some(running) = &mut self.running[connection] else { continue };
            while running.unsent > 0 && session.room().as_u64() >= cost(PIECE) {
                let flow = FlowId(FIRST_DELIVERY + connection as u32);
                let block = Block {
                    class: self.class,
                    priority: PRIORITY_PRODUCTS,
                    ..Block::reliable(flow, vec![0x5a; PIECE].into())
                };
                session.send(now, block).unwrap();
                running.unsent -= 1;
            }
        }
    }

    /// The far end has a block.
    fn settled(&mut self, now: Instant, id: BlockId) {
        let Some(connection) = id.flow.0.checked_sub(FIRST_DELIVERY) else { return };
        let place = &mut self.running[connection as usize];
        let running = place.as_mut().unwrap();
        running.unsettled -= 1;
        if running.unsettled > 0 {
            return;
        }
        let id = place.take().unwrap().id;
        self.handle(now, id, DeliveryInput::Placed(Proof::Receipt));
        self.handle(now, id, DeliveryInput::Recorded);
        self.queue.ended(utc(now), id, None, 0);
        self.placed.push((id, now));
    }

    /// The longest time from publication to the place, of products published from `from` on.
    fn slowest(&self, from: Duration) -> Duration {
        let late = |(id, at): &(u64, Instant)| {
            let published = Duration::from_secs(*id);
            (published >= from).then(|| at.since(Instant::ZERO + published))
        };
        self.placed.iter().filter_map(late).max().unwrap()
    }

    #[track_caller]
    fn assert_all_there(&self) {
        let is_there = |delivery: &Delivery| delivery.state == DeliveryState::Accepted;
        assert!(self.deliveries.values().all(is_there));
        let mut once: Vec<u64> = self.placed.iter().map(|(id, _)| *id).collect();
        once.sort_unstable();
        assert!(once.iter().eq(self.deliveries.keys()), "each once, and no other");
    }
}

impl User for Deliverer {
    fn event(&mut self, now: Instant, session: &mut Session, event: Event) {
        if let Event::Settled { id, outcome } = &event {
            assert_eq!(*outcome, Outcome::Delivered, "{id:?}");
            self.settled(now, *id);
        }
        self.pass.event(now, session, event);
    }

    fn work(&mut self, now: Instant, session: &mut Session) -> Option<Instant> {
        if !session.is_open() {
            return None;
        }
        if !self.is_met {
            self.is_met = true;
            self.queue.wake(utc(now));
        }
        self.publish(now);
        let pass = self.pass.work(now, session);
        self.deliver(now, session);
        pass.into_iter().chain([self.next]).min()
    }
}

type Way = World<Deliverer, Arrivals>;

/// What a run came to.
struct Day {
    near: Deliverer,
    away: Deliverer,
    /// From the first block of the pass to the last one's arrival.
    pass: Duration,
    /// Of its blocks from hand-over to arrival: the median, the 99th of 100, and the longest.
    latencies: [Duration; 3],
}

fn tree(classes: Classes) -> ClassTree {
    let class = |name: &str, guarantee, priority| ClassConfig {
        name: name.to_owned(),
        guarantee,
        priority: Some(priority),
        ..ClassConfig::default()
    };
    let of_two = vec![class("contacts", Some(Rate::from_mbps(18)), 0), class("products", None, 5)];
    let classes = if classes == Classes::Two { of_two } else { Vec::new() };
    ClassTree::new(&ClassesConfig { classes, ..ClassesConfig::default() }).unwrap()
}

/// The way to a node: its own session, over the line that both share.
fn way(line: &LineShare, tree: &ClassTree, pass: Option<StreamConfig>, seed: u64) -> Way {
    let leaf = |name: &str| tree.find(name).unwrap_or(tree.default_leaf());
    let pass = pass.map(|pass| StreamConfig { class: leaf("contacts"), ..pass });
    let config = SessionConfig { classes: tree.clone(), ..SessionConfig::default() };
    let plain = PlainLine {
        rate: LINE,
        one_way_delay: ROUND_TRIP / 2,
        loss: Probability::of(1, 1_000),
        ..PlainLine::default()
    };
    let outlet = Deliverer::new(leaf("products"), pass);
    let world = WorldConfig { tick: Duration::from_millis(2), ..WorldConfig::alike(config) };
    let paths = [WorldPath::new(plain)];
    let mut way = World::new(world, &paths, seed, outlet, Arrivals::default());
    way.near.session.sender_mut().set_line(Some(line)).unwrap();
    way.near.session.sender_mut().sharing_mut().set_path(PathId(0), "line").unwrap();
    way
}

/// An hour with the one node, and then with both; `away` for how long the other one is not there.
/// `seed` says which packets are lost.
fn run(classes: Classes, away: Duration, seed: u64) -> Day {
    let tree = tree(classes);
    let line = LineShare::new(tree.clone());
    line.declare(Instant::ZERO, "line", Some(LINE)).unwrap();
    let begin = Instant::ZERO + DAY;
    let pass = StreamConfig {
        flow: CONTACT,
        class: ClassId::default(),
        priority: PRIORITY_CONTACT,
        lifetime: None,
        mode: Mode::Reliable,
        pattern: Pattern::Steady {
            rate: PASS,
            least: ByteCount::kib(64),
            most: ByteCount::kib(64),
        },
        start: begin + PASS_FROM,
        stop: begin + PASS_FROM + PASS_SPAN,
    };
    let (mut near, mut far) = (way(&line, &tree, None, seed), way(&line, &tree, Some(pass), seed));
    near.run_until(begin - BEFORE, |_| false);
    near.near.user.next = begin - BEFORE;
    assert!(near.open());
    near.run_until(begin, |_| false);
    // Products that are published before the absence are there.
    far.near.user.next = begin - away;
    let mut second = far.near.user.next;
    while second < begin {
        far.near.user.fail(second);
        second += Duration::from_secs(1);
    }
    // The sessions that share the line keep step.
    let shared = Cell::new(begin);
    far.run_until(begin, |_| false);
    far.near.session.open(skyhaul_transport::Opening::default());
    far.far.session.open(skyhaul_transport::Opening::default());
    far.touch();
    while shared.get() < begin + LAST {
        shared.set(shared.get() + Duration::from_millis(2));
        near.run_until(shared.get(), |_| false);
        far.run_until(shared.get(), |_| false);
    }
    let (arrivals, away) = (far.far.user, far.near.user);
    let mut ledger = away.pass.ledger;
    ledger.settle(&arrivals);
    let blocks = ledger.of(CONTACT);
    let last = blocks.iter().map(|block| block.arrived.unwrap()).max().unwrap();
    let mut latencies: Vec<Duration> = blocks.iter().filter_map(|block| block.latency()).collect();
    latencies.sort_unstable();
    let latencies = [50, 99, 100].map(|share| latencies[(latencies.len() - 1) * share / 100]);
    let pass = last.since(blocks[0].at);
    let away = Deliverer { pass: Traffic::new(None, 1), ..away };
    Day { near: near.near.user, away, pass, latencies }
}

#[allow(clippy::print_stdout, reason = "the figures are for whoever wants to know them")]
fn told(what: &str, day: &Day) {
    let [median, most, worst] = day.latencies.map(|latency| latency.as_millis());
    println!(
        "{what}: the pass took {:.3} s, its blocks {median} ms (median), {most} ms (99 %), {worst} \
         ms (worst); at the other node a product took {:.2} s at most",
        day.pass.as_secs_f64(),
        day.near.slowest(DAY).as_secs_f64()
    );
}

#[test]
#[allow(clippy::print_stdout, reason = "the figures are for whoever wants to know them")]
fn a_node_that_was_away_for_a_day_catches_up_newest_first_and_slows_no_pass() {
    let [alone, one, two] =
        [(Classes::One, Duration::ZERO), (Classes::One, DAY), (Classes::Two, DAY)]
            .map(|(classes, away)| run(classes, away, 7));
    told("without a backlog", &alone);
    told("with one, one class", &one);
    told("with one, products in a class of their own", &two);
    // The worst is a single block, and which losses it has differs from run to run.
    let seeds = if is_all() { 8..10 } else { 8..9 };
    let others: Vec<Day> = seeds.map(|seed| run(Classes::One, Duration::ZERO, seed)).collect();
    others.iter().for_each(|other| told("without a backlog, other losses", other));
    let worst = others.iter().chain([&alone]).map(|day| day.latencies[2]);
    let worst = worst.max().unwrap_or_default();
    for day in [&alone, &one, &two] {
        // At the other node each product is there at once, before and after the return.
        day.near.assert_all_there();
        let slowest = day.near.slowest(Duration::ZERO);
        assert!(slowest < Duration::from_secs(5), "{slowest:?}");
        day.away.assert_all_there();
    }
    for day in [&one, &two] {
        let share = day.pass.as_secs_f64() / alone.pass.as_secs_f64();
        assert!(share <= 1.05, "the pass took {share} of its time");
        // The 99th of 100 is left out: a loss is repaired sooner where the line is not full.
        for (place, usual) in [(0, alone.latencies[0]), (2, worst)] {
            let share = day.latencies[place].as_secs_f64() / usual.as_secs_f64();
            assert!(share <= 1.05, "blocks of the pass took {share} of their time");
        }
        let slower = day.near.slowest(DAY).as_secs_f64() / alone.near.slowest(DAY).as_secs_f64();
        println!("a product to the other node took {slower:.2} times as long at most");
        let backlog: Vec<(u64, Instant)> =
            day.away.placed.iter().copied().filter(|(id, _)| *id < 86_400).collect();
        let (_, first) = backlog[0];
        let (_, last) = *backlog.last().unwrap();
        let wrong = backlog.windows(2).filter(|pair| pair[0].0 < pair[1].0).count();
        println!(
            "{} products of the backlog: the first {:.1} s after the return, the last {:.1} s; \
             {wrong} of them before a newer one; {} attempts failed before",
            backlog.len(),
            first.since(Instant::ZERO + DAY).as_secs_f64(),
            last.since(Instant::ZERO + DAY).as_secs_f64(),
            day.away.failed
        );
        assert_eq!(backlog.len(), 1_440);
        // The pause after the last failure, half an hour, ended with the absence.
        assert!(first.since(Instant::ZERO + DAY) < Duration::from_secs(5), "{first:?}");
        // Those that go at a time may overtake each other.
        assert!(wrong <= backlog.len() / 10, "{wrong}");
        let far_apart = |pair: &[(u64, Instant)]| pair[1].0 > pair[0].0 + 8 * 60;
        assert!(!backlog.windows(2).any(far_apart), "much newer ones came behind older ones");
        // New ones go before what is left of the backlog.
        let slowest = day.away.slowest(DAY);
        println!("a new product took {:.2} s at most there", slowest.as_secs_f64());
        assert!(slowest < Duration::from_secs(10), "{slowest:?}");
        // The line is used: with the pass and what is new, the backlog takes little longer than the
        // line needs.
        let bytes = (backlog.len() * PRODUCT) as u64;
        let needs = LINE.time_for(ByteCount::new(bytes)) + PASS_SPAN * 2 / 3;
        let took = last.since(first);
        assert!(took < needs * 5 / 4, "{took:?} of {needs:?}");
    }
}
