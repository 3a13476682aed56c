//! Choice of blocks and their outcomes, without paths.

use super::*;
use crate::block::{Mode, cost};
use crate::classes::{ClassTree, ClassesConfig};
use crate::path::PathId;
use crate::schedule::{Policy, Strict, Urgency, UrgencyConfig};
use crate::stats::SentStats;
use crate::wire::FlowReport;
use bytes::Bytes;
use skyhaul_units::{Rate, Utc};

/// An outbox with a class tree and counters.
struct Sender {
    outbox: Outbox,
    tree: ClassTree,
    stats: SentStats,
}

const LINE: LineEstimate =
    LineEstimate { rate: Rate::from_mbps(100), one_way_delay: Duration::from_millis(50) };
const PAYLOAD: usize = 1_400;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn block(flow: u32, priority: u8, len: usize) -> Block {
    Block { priority, ..Block::reliable(FlowId(flow), Bytes::from(vec![1; len])) }
}

impl Sender {
    fn new(limit: u64) -> Self {
        let mut outbox = Outbox::default();
        outbox.window.raise_limit(limit);
        Self {
            outbox,
            tree: ClassTree::new(&ClassesConfig::default()).unwrap(),
            stats: SentStats::default(),
        }
    }

    fn push(&mut self, block: Block) -> BlockId {
        self.outbox.push(at(0), block)
    }

    /// Sends all that may go; the blocks that were begun, in their order.
    fn send_all(&mut self, millis: u64) -> Vec<BlockId> {
        let mut begun: Vec<BlockId> = Vec::new();
        while let Some(symbol) = self.send(millis) {
            let name = BlockId { flow: symbol.slice.flow, seq: symbol.slice.seq };
            if !begun.contains(&name) {
                begun.push(name);
            }
        }
        begun
    }

    fn send(&mut self, millis: u64) -> Option<Outsymbol> {
        self.send_by(&Strict, millis, (LINE, 0))
    }

    /// A symbol over `line`, with so many bytes left to faster paths.
    fn send_by(
        &mut self,
        policy: &dyn Policy,
        millis: u64,
        (line, lead): (LineEstimate, u64),
    ) -> Option<Outsymbol> {
        let (now, flight) = (at(millis), line.one_way_delay);
        let at = Now { now, utc: Utc::default(), flight, flow_base: FlowId(0) };
        let offer = Offer {
            at,
            path: PathId(0),
            payload: PAYLOAD,
            lead,
            only_late_for: None,
            line,
            coded: (Duration::ZERO, PAYLOAD),
            tail: 0,
            also_late: false,
            perishable_only: false,
        };
        self.outbox.next_symbol(&offer, &mut self.tree, policy)
    }

    fn report(&mut self, millis: u64, flow: u32, next: u64) {
        let report = FlowReport { flow: FlowId(flow), next, ..FlowReport::default() };
        self.outbox.report(at(millis), &report, Some(Duration::ZERO), &mut self.stats);
    }

    fn settled(&mut self) -> Vec<(BlockId, Outcome)> {
        core::iter::from_fn(|| self.outbox.poll_settled()).collect()
    }
}

#[test]
fn a_block_begun_before_one_ahead_of_it_leaves_room_for_that_one() {
    // The window takes two of the three; the last in its flow is the most important.
    let mut sender = Sender::new(2 * cost(10_000));
    let [first, second, third] = [2, 1, 0].map(|priority| sender.push(block(0, priority, 10_000)));
    assert_eq!(
        sender.send_all(0),
        [second, first],
        "with the third begun, the first would find no room"
    );
    assert!(sender.outbox.is_held_back());
    sender.report(100, 0, 2);
    assert_eq!(sender.settled(), [(first, Outcome::Delivered), (second, Outcome::Delivered)]);
    sender.outbox.window.raise_limit(3 * cost(10_000));
    assert_eq!(sender.send_all(101), [third]);
    sender.report(200, 0, 3);
    assert_eq!(sender.outbox.backlog.flows.held(), 0);
}

#[test]
fn dependents_of_an_expired_block_expire_with_it_unless_useful_alone() {
    let mut sender = Sender::new(1_000_000);
    let span = Duration::from_millis(60);
    let expendable =
        |len| Block { mode: Mode::Expendable, deadline: Some(span), ..block(0, 1, len) };
    let first = sender.push(expendable(100_000));
    let next = sender.push(Block { depends_on: Some(first), ..block(1, 1, 1_000) });
    let alone =
        sender.push(Block { depends_on: Some(first), useful_alone: true, ..block(1, 1, 1_000) });
    let last = sender.push(Block { depends_on: Some(next), ..block(2, 1, 1_000) });
    assert!(sender.send(0).is_some());
    assert_eq!(sender.outbox.expiry_due(&LINE), Some(at(10)));
    sender.outbox.expire(at(10), &LINE, Duration::from_millis(300));
    let expired = [first, next, last].map(|name| (name, Outcome::Expired));
    assert_eq!(sender.settled(), expired);
    let later = sender.push(Block { depends_on: Some(last), ..block(3, 1, 1_000) });
    assert_eq!(sender.settled(), [(later, Outcome::Expired)], "one that comes later, too");
    assert_eq!(sender.send_all(11), [alone]);
    let notice = sender.outbox.abandoned.notice(at(11), Duration::from_millis(300)).unwrap();
    let costs: Vec<_> =
        notice.given_up.iter().map(|(flow, seq, cost)| (flow.0, *seq, *cost)).collect();
    assert_eq!(
        costs,
        [(0, 0, cost(100_000)), (1, 0, 0), (2, 0, 0), (3, 0, 0)],
        "only the first was begun"
    );
    assert_eq!(sender.outbox.abandoned.notice(at(12), Duration::from_millis(300)), None);
    assert_eq!(sender.outbox.abandoned.notice_due(Duration::from_millis(300)), Some(at(311)));
}

#[test]
fn a_late_block_in_flight_whole_is_given_up_only_when_its_report_is_overdue() {
    let mut sender = Sender::new(1_000_000);
    let deadline = Some(Duration::from_millis(60));
    let name = sender.push(Block { mode: Mode::Expendable, deadline, ..block(0, 1, 1_000) });
    assert_eq!(sender.send_all(0), [name]);
    let news = Duration::from_millis(300);
    sender.outbox.expire(at(60), &LINE, news);
    assert_eq!(sender.settled(), []);
    sender.outbox.expire(at(359), &LINE, news);
    assert_eq!(sender.settled(), []);
    // It is looked at again a little later than that.
    sender.outbox.expire(at(420), &LINE, news);
    assert_eq!(sender.settled(), [(name, Outcome::Expired)]);
}

#[test]
fn a_resolved_block_keeps_only_its_entry() {
    let mut sender = Sender::new(100_000_000);
    let waits = sender.push(block(0, 1, 1_000));
    let hour = Some(Duration::from_secs(3_600));
    for _ in 0..500 {
        let name = sender.push(Block {
            mode: Mode::Expendable,
            deadline: hour,
            depends_on: Some(waits),
            ..block(0, 1, 1_000)
        });
        assert!(sender.outbox.give_up(name, Outcome::Cancelled));
    }
    assert_eq!(
        sender.outbox.backlog.flows.held(),
        cost(1_000) + 500 * cost(0),
        "the first block is open: the places stay"
    );
    assert!(sender.outbox.checks.is_empty());
    assert_eq!(sender.outbox.dependents.len(), 0);
    sender.send_all(0);
    sender.report(100, 0, 501);
    assert_eq!((sender.outbox.backlog.flows.held(), sender.outbox.abandoned.len()), (0, 0));
}

/// A group of frames handed over at once: the first of 60 kB, and ten of 6 kB that need it.
fn frames(sender: &mut Sender, life: u64) -> Vec<BlockId> {
    let frame = |len| Block {
        mode: Mode::Expendable,
        deadline: Some(Duration::from_millis(life)),
        ..block(0, 2, len)
    };
    let first = sender.push(frame(60_000));
    let rest = |_| sender.push(Block { depends_on: Some(first), ..frame(6_000) });
    core::iter::once(first).chain((0..10).map(rest).collect::<Vec<_>>()).collect()
}

#[test]
fn frames_of_a_begun_group_go_before_the_next_group() {
    let mut sender = Sender::new(10_000_000);
    let one = frames(&mut sender, 3_000);
    let other = frames(&mut sender, 2_900);
    let policy = Urgency::new(UrgencyConfig::BEST);
    let mut begun = Vec::new();
    while let Some(symbol) = sender.send_by(&policy, 0, (LINE, 0)) {
        begun.push(BlockId { flow: symbol.slice.flow, seq: symbol.slice.seq });
    }
    begun.dedup();
    let order: Vec<BlockId> = other.into_iter().chain(one).collect();
    assert_eq!(begun, order, "the more urgent group whole, then the other");
}

#[test]
fn a_group_that_cannot_be_in_time_does_not_go_before_one_that_can() {
    let mut sender = Sender::new(10_000_000);
    // 60 kB take 240 ms at 2 Mbit/s, and 50 on the way.
    let hopeless = frames(&mut sender, 250);
    let other = frames(&mut sender, 1_000);
    let line = LineEstimate { rate: Rate::from_mbps(2), ..LINE };
    let policy = Urgency::new(UrgencyConfig::BEST);
    let first = sender.send_by(&policy, 0, (line, 0)).unwrap();
    assert_eq!(first.slice.seq, other[0].seq);
    assert!(
        sender
            .outbox
            .backlog
            .flows
            .block(hopeless[0])
            .is_some_and(|block| block.stage == BlockStage::Waiting)
    );
}

#[test]
fn a_slow_path_takes_its_part_of_a_block_that_faster_ones_do_not_finish_in_time() {
    let lead = 15_000;
    let send = |sender: &mut Sender| {
        sender.send_by(&Strict, 0, (LINE, lead)).map(|symbol| symbol.slice.seq)
    };
    let mut sender = Sender::new(10_000_000);
    let name = sender.push(block(0, 1, 60_000));
    let mut count = 0;
    while let Some(seq) = send(&mut sender) {
        assert_eq!(seq, name.seq);
        count += 1;
    }
    // 60 kB less 15 in symbols of 1.39 kB.
    assert_eq!(count, 33);
    let next = sender.push(block(0, 1, 60_000));
    assert_eq!(
        send(&mut sender),
        Some(next.seq),
        "and what lies behind it, which the lead does not reach"
    );
}

#[test]
fn the_queues_of_a_flow_are_bounded() {
    let mut sender = Sender::new(100_000_000);
    let second = |sender: &mut Sender| {
        let expendable = |len| Block {
            mode: Mode::Expendable,
            deadline: Some(Duration::from_secs(60)),
            ..block(0, 1, len)
        };
        let first = sender.push(expendable(1_000));
        let chain = sender.push(Block { depends_on: Some(first), ..expendable(1_000) });
        [first, chain, sender.push(Block { depends_on: Some(chain), ..expendable(1_000) })]
    };
    let names: Vec<BlockId> = (0..100).flat_map(|_| second(&mut sender)).collect();
    assert_eq!(sender.outbox.backlog.queues.heads().count(), 33, "32, and the flow's own");
    let mut begun = sender.send_all(0);
    begun.sort_unstable();
    assert_eq!(begun, names, "all go nevertheless");
}

/// A path with small datagrams takes the start of a copy, whose arrival must not count for all of
/// it.
#[test]
fn a_copy_too_long_for_its_path_is_sent_in_parts() {
    let mut sender = Sender::new(1 << 20);
    sender.push(block(0, 0, 2_000));
    sender.send_all(0);
    let whole = Slice { flow: FlowId(0), seq: Seq(0), start: 0, end: 2_000 };
    sender.outbox.retransmitted(at(10), whole, 2, Duration::from_millis(5));
    let [first, rest] = [(); 2].map(|()| sender.send(15).unwrap().slice);
    assert_eq!((first.start, first.end, rest.end), (0, rest.start, 2_000));
    assert!(sender.send(15).is_none());
    assert!(!sender.outbox.backlog.retransmit(whole, at(160)), "its parts are under way");
    sender.outbox.backlog.arrived(at(60), first);
    assert!(sender.outbox.backlog.retransmit(rest, at(160)), "the last that was under way");
}
