//! Two ends of channels of blocks, over flows that keep their own order and no other, under random
//! use.

#![allow(clippy::unwrap_used, reason = "test support")]

use bytes::Bytes;
use proptest::prelude::*;
use skyhaul_channels::{
    BLOCK_WINDOW, BlockChannels, BlockEvent, CHANNELS_MAX, ChannelKey, SessionEnd,
};
use skyhaul_transport::{Block, cost};
use skyhaul_units::{Duration, FlowId, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const FIRST: FlowId = FlowId(0x0001_0000);
const RTT: Duration = Duration::from_millis(160);

/// What a test program does at one end.
#[derive(Debug, Clone, Copy)]
enum Act {
    Open,
    Send { pick: usize, flow: u32, len: usize },
    SendExpendable { pick: usize },
    Take { pick: usize },
    End { pick: usize },
    Deliver { pick: usize },
}

fn act() -> impl Strategy<Value = (usize, Act)> {
    let pick = 0usize..64;
    // A few large blocks fill the windows.
    let len = prop_oneof![3 => 16usize..40_000, 1 => 1usize << 20..6 << 20];
    let act = prop_oneof![
        2 => Just(Act::Open),
        6 => (pick.clone(), 0u32..4, len).prop_map(|(pick, flow, len)| {
            Act::Send { pick, flow, len }
        }),
        1 => pick.clone().prop_map(|pick| Act::SendExpendable { pick }),
        4 => pick.clone().prop_map(|pick| Act::Take { pick }),
        1 => pick.clone().prop_map(|pick| Act::End { pick }),
        16 => pick.prop_map(|pick| Act::Deliver { pick }),
    ];
    (0usize..2, act)
}

/// One end of a channel, as its program sees it.
#[derive(Debug, Default)]
struct Side {
    /// Blocks sent and received, by flow.
    sent: BTreeMap<FlowId, u32>,
    got: BTreeMap<FlowId, u32>,
    untaken: VecDeque<usize>,
}

struct End {
    channels: BlockChannels,
    sides: BTreeMap<ChannelKey, Side>,
    /// All that were ever open here.
    known: BTreeSet<ChannelKey>,
    /// Blocks on their way to the other end, in order within their flow.
    out: BTreeMap<FlowId, VecDeque<Bytes>>,
}

struct Pair {
    ends: [End; 2],
    now: Instant,
}

/// The first bytes of a block, so that any that is lost, doubled or another channel's shows.
fn mark(key: ChannelKey, flow: FlowId, place: u32) -> Vec<u8> {
    format!("{key} {flow:?} {place};").into_bytes()
}

impl Pair {
    fn new() -> Self {
        let end = |end| End {
            channels: BlockChannels::new(end, FIRST),
            sides: BTreeMap::new(),
            known: BTreeSet::new(),
            out: BTreeMap::new(),
        };
        Self { ends: [end(SessionEnd::Calling), end(SessionEnd::Called)], now: Instant::ZERO }
    }

    fn act(&mut self, end: usize, act: Act) {
        self.now += Duration::from_millis(1);
        let this = &mut self.ends[end];
        let nth = |pick: usize| this.sides.keys().nth(pick % this.sides.len().max(1)).copied();
        match act {
            Act::Open => this.open(self.now),
            Act::Send { pick, flow, len } => {
                if let Some(key) = nth(pick) {
                    this.send(key, FlowId(FIRST.0 + flow), len);
                }
            }
            Act::SendExpendable { pick } => {
                if let Some(key) = nth(pick) {
                    let flow = FlowId(FIRST.0 + 9);
                    let bytes = mark(key, flow, 0).into();
                    let block = Block::expendable(flow, Duration::from_secs(1), bytes);
                    let block = this.channels.data(key, block).unwrap();
                    this.out.entry(block.flow).or_default().push_back(block.bytes);
                }
            }
            Act::Take { pick } => {
                if let Some(key) = nth(pick) {
                    this.take(self.now, key);
                }
            }
            Act::End { pick } => {
                if let Some(key) = nth(pick) {
                    this.channels.end(key);
                    this.sides.remove(&key);
                }
            }
            Act::Deliver { pick } => self.deliver(end, pick),
        }
        self.ends.iter_mut().for_each(End::flush);
        for end in &self.ends {
            assert!(end.sides.len() <= 2 * CHANNELS_MAX as usize);
            for side in end.sides.values() {
                let untaken: u64 = side.untaken.iter().map(|len| cost(*len)).sum();
                assert!(untaken <= BLOCK_WINDOW.as_u64(), "{untaken} bytes wait for a program");
            }
        }
    }

    /// The next block of some flow arrives at the other end.
    fn deliver(&mut self, from: usize, pick: usize) {
        let out = &mut self.ends[from].out;
        let Some(flow) = out.keys().nth(pick % out.len().max(1)).copied() else { return };
        let queue = out.get_mut(&flow).unwrap();
        let block = queue.pop_front().unwrap();
        if queue.is_empty() {
            out.remove(&flow);
        }
        self.ends[1 - from].receive(self.now, flow, &block);
    }

    fn deliver_all(&mut self) {
        for _ in 0..1_000_000 {
            self.ends.iter_mut().for_each(End::flush);
            match self.ends.iter().position(|end| !end.out.is_empty()) {
                Some(from) => self.deliver(from, 0),
                None => return,
            }
        }
        panic!("the ends never stop talking");
    }
}

impl End {
    fn open(&mut self, now: Instant) {
        if let Some(key) = self.channels.begin(now) {
            assert!(self.known.insert(key), "no two channels have one name");
            self.sides.insert(key, Side::default());
        }
    }

    fn send(&mut self, key: ChannelKey, flow: FlowId, len: usize) {
        let place = self.sides[&key].sent.get(&flow).copied().unwrap_or(0);
        let mut bytes = mark(key, flow, place);
        bytes.resize(bytes.len().max(len), 0);
        let block = Block::reliable(flow, bytes.into());
        if self.channels.may_send(key, &block) {
            let block = self.channels.data(key, block).unwrap();
            self.out.entry(block.flow).or_default().push_back(block.bytes);
            self.sides.get_mut(&key).unwrap().sent.insert(flow, place + 1);
        }
    }

    fn take(&mut self, now: Instant, key: ChannelKey) {
        let untaken = std::mem::take(&mut self.sides.get_mut(&key).unwrap().untaken);
        untaken.into_iter().for_each(|len| self.channels.taken(now, RTT, key, len));
    }

    fn flush(&mut self) {
        while let Some(block) = self.channels.poll_block() {
            self.out.entry(block.flow).or_default().push_back(block.bytes);
        }
    }

    fn receive(&mut self, now: Instant, flow: FlowId, block: &Bytes) {
        for event in self.channels.receive(now, flow, block).unwrap() {
            match event {
                BlockEvent::Begun(key) => {
                    assert!(self.known.insert(key), "no two channels have one name");
                    self.sides.insert(key, Side::default());
                }
                BlockEvent::Data(key, flow, bytes) => {
                    let side = self.sides.get_mut(&key).unwrap();
                    let place = side.got.entry(flow).or_default();
                    assert!(bytes.starts_with(&mark(key, flow, *place)), "{key} {flow:?} {place}");
                    *place += 1;
                    side.untaken.push_back(bytes.len());
                }
                BlockEvent::Expendable(key, flow, bytes) => {
                    assert!(self.sides.contains_key(&key));
                    assert_eq!(bytes, mark(key, flow, 0));
                }
                BlockEvent::Credit(key) => assert!(self.sides.contains_key(&key)),
                BlockEvent::Ended(key) => assert!(self.sides.remove(&key).is_some()),
                BlockEvent::Asked(..) | BlockEvent::Accepted(_) | BlockEvent::Refused(..) => {
                    panic!("nobody asks: {event:?}")
                }
            }
        }
    }
}

fn run(acts: &[(usize, Act)]) {
    let mut pair = Pair::new();
    acts.iter().for_each(|(end, act)| pair.act(*end, *act));
    pair.deliver_all();
    // Both ends know the same channels, and everything sent on them has come in its order.
    let [near, far] = &pair.ends;
    assert_eq!(near.known, far.known);
    assert!(near.sides.keys().eq(far.sides.keys()));
    for (key, here) in &near.sides {
        let there = &far.sides[key];
        assert_eq!((&here.sent, &here.got), (&there.got, &there.sent), "{key}");
    }
    // When all is taken, the largest block finds room in each.
    for end in &mut pair.ends {
        let keys: Vec<_> = end.sides.keys().copied().collect();
        keys.into_iter().for_each(|key| end.take(pair.now, key));
    }
    pair.deliver_all();
    let largest = skyhaul_transport::MAX_BLOCK - skyhaul_channels::wire::HEAD;
    let largest = Block::reliable(FIRST, vec![0; largest].into());
    for end in &pair.ends {
        assert!(end.sides.keys().all(|key| end.channels.may_send(*key, &largest)));
    }
    // When all have ended, all slots are free again.
    while let Some(key) = pair.ends[0].sides.keys().next().copied() {
        pair.ends[0].channels.end(key);
        pair.ends[0].sides.remove(&key);
    }
    pair.deliver_all();
    for end in &mut pair.ends {
        assert!(end.sides.is_empty());
        let free = std::iter::from_fn(|| end.channels.begin(pair.now)).count();
        assert_eq!(free, CHANNELS_MAX as usize);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn every_channel_is_whole_and_in_order_and_leaves_nothing_behind(
        acts in proptest::collection::vec(act(), 0..300)
    ) {
        run(&acts);
    }
}
