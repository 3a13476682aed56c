//! Two ends of the protocol over flows that keep their own order and no other, under random use.

#![allow(clippy::unwrap_used, reason = "test support")]

use bytes::Bytes;
use proptest::prelude::*;
use skyhaul_channels::{ChannelKey, SessionEnd};
use skyhaul_forward::{Carriage, ConnectRefusal, Event, ForwardStreams, INITIAL_CREDIT};
use skyhaul_transport::{ClassConfig, ClassTree, ClassesConfig, Mode};
use skyhaul_units::{ByteCount, Duration, FlowId, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const RTT: Duration = Duration::from_millis(160);
const BUDGET: ByteCount = ByteCount::kib(256);

/// What a test application does at one end.
#[derive(Debug, Clone, Copy)]
enum Act {
    Open,
    Answer { accepts: bool },
    Send { pick: usize, len: usize },
    Finish { pick: usize },
    Reset { pick: usize },
    Take { pick: usize },
    Deliver { pick: usize },
}

fn act() -> impl Strategy<Value = (usize, Act)> {
    let pick = 0usize..64;
    let act = prop_oneof![
        2 => Just(Act::Open),
        3 => any::<bool>().prop_map(|no| Act::Answer { accepts: !no }),
        6 => (pick.clone(), 1usize..40_000).prop_map(|(pick, len)| Act::Send { pick, len }),
        2 => pick.clone().prop_map(|pick| Act::Finish { pick }),
        1 => pick.clone().prop_map(|pick| Act::Reset { pick }),
        6 => pick.clone().prop_map(|pick| Act::Take { pick }),
        12 => pick.prop_map(|pick| Act::Deliver { pick }),
    ];
    (0usize..2, act)
}

/// One end of a stream, as its application sees it.
#[derive(Debug, Default)]
struct Side {
    sent: u64,
    got: u64,
    untaken: usize,
    finished: bool,
    got_finish: bool,
}

struct End {
    mux: ForwardStreams,
    sides: BTreeMap<ChannelKey, Side>,
    asked: VecDeque<ChannelKey>,
    /// All that it ever had.
    known: BTreeSet<ChannelKey>,
    /// Blocks on their way to the other end, in order within their flow.
    out: BTreeMap<FlowId, VecDeque<Bytes>>,
}

struct Pair {
    ends: [End; 2],
    now: Instant,
}

/// The bytes of a stream from some place on, so that any that is lost, doubled or another stream's
/// shows.
fn bytes_of(id: ChannelKey, place: u64) -> impl Iterator<Item = u8> {
    let own = format!("{id:?}").bytes().fold(7u8, |sum, byte| sum.wrapping_mul(31) ^ byte);
    (place..).map(move |place| (place % 251) as u8 ^ own)
}

impl Pair {
    fn new() -> Self {
        let end = |end| End {
            mux: ForwardStreams::new(end, &ClassTree::default(), BUDGET),
            sides: BTreeMap::new(),
            asked: VecDeque::new(),
            known: BTreeSet::new(),
            out: BTreeMap::new(),
        };
        Self { ends: [end(SessionEnd::Calling), end(SessionEnd::Called)], now: Instant::ZERO }
    }

    fn act(&mut self, end: usize, act: Act) {
        self.now += Duration::from_millis(1);
        let now = self.now;
        let this = &mut self.ends[end];
        let nth = |pick: usize| this.sides.keys().nth(pick % this.sides.len().max(1)).copied();
        match act {
            Act::Open => {
                let id = this.mux.open(now, "a:1".parse().unwrap(), &Carriage::default()).unwrap();
                this.sides.insert(id, Side::default());
                assert!(this.known.insert(id), "no two streams have one name");
            }
            Act::Answer { accepts } => {
                if let Some(id) = this.asked.pop_front() {
                    match accepts {
                        true => this.mux.accept(now, id),
                        false => {
                            this.mux.refuse(
                                id,
                                ConnectRefusal::ConnectionRefused,
                                "nobody listens",
                            );
                            this.sides.remove(&id);
                        }
                    }
                }
            }
            Act::Send { pick, len } => {
                if let Some(id) = nth(pick) {
                    this.send(id, len);
                }
            }
            Act::Finish { pick } => {
                if let Some(id) = nth(pick).filter(|id| !this.asked.contains(id)) {
                    this.mux.finish(id);
                    this.sides.get_mut(&id).unwrap().finished = true;
                    this.drop_done(id);
                }
            }
            Act::Reset { pick } => {
                if let Some(id) = nth(pick) {
                    this.mux.reset(id);
                    this.sides.remove(&id);
                    this.asked.retain(|asked| *asked != id);
                }
            }
            Act::Take { pick } => {
                if let Some(id) = nth(pick) {
                    let len = std::mem::take(&mut this.sides.get_mut(&id).unwrap().untaken);
                    this.mux.taken(now, RTT, id, len);
                    this.drop_done(id);
                }
            }
            Act::Deliver { pick } => self.deliver(end, pick),
        }
        self.ends.iter_mut().for_each(End::flush);
        for end in &self.ends {
            let untaken: usize = end.sides.values().map(|side| side.untaken).sum();
            let most = BUDGET.as_u64() + end.sides.len() as u64 * INITIAL_CREDIT;
            assert!(untaken as u64 <= most, "{untaken} bytes wait for applications");
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
    fn send(&mut self, id: ChannelKey, len: usize) {
        let Some(side) = self.sides.get_mut(&id).filter(|_| !self.asked.contains(&id)) else {
            return;
        };
        let len = len.min(self.mux.credit(id));
        if side.finished || len == 0 {
            return;
        }
        let bytes: Vec<u8> = bytes_of(id, side.sent).take(len).collect();
        side.sent += len as u64;
        self.mux.data(id, &bytes);
    }

    fn flush(&mut self) {
        while let Some(block) = self.mux.poll_block() {
            self.out.entry(block.flow).or_default().push_back(block.bytes);
        }
    }

    fn receive(&mut self, now: Instant, flow: FlowId, block: &Bytes) {
        self.mux.receive(now, flow, block).unwrap();
        while let Some(event) = self.mux.poll_event() {
            match event {
                Event::Opened { id, .. } => {
                    self.sides.insert(id, Side::default());
                    assert!(self.known.insert(id), "no two streams have one name");
                    self.asked.push_back(id);
                }
                Event::Data(id, bytes) => {
                    let side = self.sides.get_mut(&id).unwrap();
                    assert!(!side.got_finish);
                    assert!(bytes.iter().copied().eq(bytes_of(id, side.got).take(bytes.len())));
                    side.got += bytes.len() as u64;
                    side.untaken += bytes.len();
                }
                Event::Finished(id) => {
                    self.sides.get_mut(&id).unwrap().got_finish = true;
                    self.drop_done(id);
                }
                Event::Refused { id, .. } | Event::Reset(id) => {
                    self.sides.remove(&id).unwrap();
                    self.asked.retain(|asked| *asked != id);
                }
                Event::Accepted(id) | Event::Credit(id) => assert!(self.sides.contains_key(&id)),
                other => panic!("nobody asked for {other:?}"),
            }
        }
    }

    fn drop_done(&mut self, id: ChannelKey) {
        let side = &self.sides[&id];
        if side.finished && side.got_finish && side.untaken == 0 {
            self.sides.remove(&id);
        }
    }
}

fn run(acts: &[(usize, Act)]) {
    let mut pair = Pair::new();
    acts.iter().for_each(|(end, act)| pair.act(*end, *act));
    // Everybody comes to an end: nothing is left of any stream at either end.
    for _ in 0..4 {
        pair.deliver_all();
        for end in 0..2 {
            while !pair.ends[end].asked.is_empty() {
                pair.act(end, Act::Answer { accepts: true });
            }
            for pick in 0..pair.ends[end].sides.len() {
                pair.act(end, Act::Take { pick: pick.min(pair.ends[end].sides.len()) });
            }
            for pick in (0..pair.ends[end].sides.len()).rev() {
                pair.act(end, Act::Finish { pick });
            }
            while !pair.ends[end].sides.is_empty()
                && pair.ends[end].sides.values().all(|side| side.got_finish)
            {
                pair.act(end, Act::Take { pick: 0 });
            }
        }
    }
    pair.deliver_all();
    for end in &pair.ends {
        assert_eq!(
            (end.sides.len(), end.mux.streams(), end.mux.granted()),
            (0, 0, ByteCount::ZERO)
        );
        assert!(end.mux.is_quiet());
        assert!(end.known.iter().all(|id| end.mux.lane(*id).is_none()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn every_stream_is_whole_and_in_order_and_leaves_nothing_behind(
        acts in proptest::collection::vec(act(), 0..400)
    ) {
        run(&acts);
    }

    #[test]
    fn no_peer_brings_an_end_down(blocks in proptest::collection::vec((0u32..6, 0u8..20, 0u32..3,
        proptest::collection::vec(any::<u8>(), 0..24)), 0..200)) {
        let mut mux = ForwardStreams::new(SessionEnd::Called, &ClassTree::default(), BUDGET);
        let _ = mux.open(Instant::ZERO, "a:1".parse().unwrap(), &Carriage::default());
        for (flow, kind, stream, rest) in blocks {
            let head = [kind].into_iter().chain(stream.to_be_bytes());
            let block: Vec<u8> = head.chain(rest).collect();
            let _ = mux.receive(Instant::ZERO, FlowId(flow), &block.into());
            prop_assert!(mux.streams() <= 7);
        }
    }
}

#[test]
fn a_stream_whose_reader_is_slow_stops_and_others_go_on() {
    let mut pair = Pair::new();
    for _ in 0..2 {
        pair.act(0, Act::Open);
    }
    pair.deliver_all();
    (0..2).for_each(|_| pair.act(1, Act::Answer { accepts: true }));
    pair.deliver_all();
    let mut ids = pair.ends[0].sides.keys().copied().collect::<Vec<_>>().into_iter();
    let (slow, quick) = (ids.next().unwrap(), ids.next().unwrap());
    for round in 0..200 {
        for id in [slow, quick] {
            pair.ends[0].send(id, 30_000);
        }
        pair.deliver_all();
        pair.act(1, Act::Take { pick: 1 });
        pair.deliver_all();
        assert!(round < 100 || pair.ends[0].mux.credit(slow) == 0);
    }
    assert!(pair.ends[1].sides[&quick].got >= 200 * 16_000);
    assert!(pair.ends[1].sides[&slow].got <= 2 * BUDGET.as_u64());
}

#[test]
fn a_flow_is_used_again_and_what_came_late_for_the_stream_before_is_dropped() {
    let mut pair = Pair::new();
    let open = |pair: &mut Pair| {
        pair.act(0, Act::Open);
        pair.deliver_all();
        pair.act(1, Act::Answer { accepts: true });
        pair.deliver_all();
        *pair.ends[0].sides.keys().last().unwrap()
    };
    let first = open(&mut pair);
    // Both end it, and the called end resets it besides: that arrives after the flow has its next
    // stream.
    pair.ends[1].mux.finish(first);
    pair.ends[1].mux.reset(first);
    pair.ends[0].mux.finish(first);
    pair.ends[0].mux.taken(Instant::ZERO, RTT, first, 0);
    pair.ends.iter_mut().for_each(End::flush);
    let (finish, reset) = {
        let queue = pair.ends[1].out.values_mut().next().unwrap();
        (queue.pop_front().unwrap(), queue.pop_front().unwrap())
    };
    pair.ends[1].out.clear();
    let flow = *pair.ends[0].out.keys().next().unwrap();
    pair.ends[0].receive(Instant::ZERO, flow, &finish);
    pair.ends[0].sides.clear();
    pair.act(0, Act::Open);
    let second = *pair.ends[0].sides.keys().next().unwrap();
    assert_ne!(first, second);
    pair.ends[0].receive(Instant::ZERO, flow, &reset);
    assert!(pair.ends[0].mux.credit(second) > 0, "the reset was for the stream before");
}

fn events(mux: &mut ForwardStreams) -> Vec<Event> {
    std::iter::from_fn(|| mux.poll_event()).collect()
}

#[test]
fn datagrams_are_delivered_as_they_come_and_wait_only_for_their_stream_to_open() {
    let mut near = ForwardStreams::new(SessionEnd::Calling, &ClassTree::default(), BUDGET);
    let mut far = ForwardStreams::new(SessionEnd::Called, &ClassTree::default(), BUDGET);
    let carriage = Carriage { deadline: Some(Duration::from_millis(300)), ..Carriage::default() };
    let target: skyhaul_forward::Target = "udp:10.0.0.5:53".parse().unwrap();
    let id = near.open(Instant::ZERO, target.clone(), &carriage).unwrap();
    for byte in 1..=3 {
        near.datagram(id, &[byte]);
    }
    let blocks: Vec<_> = std::iter::from_fn(|| near.poll_block()).collect();
    assert_eq!((near.credit(id), near.granted()), (0, ByteCount::ZERO));
    let modes: Vec<_> = blocks.iter().map(|block| (block.mode, block.deadline)).collect();
    assert_eq!(modes[0], (Mode::Reliable, carriage.deadline));
    assert!(modes[1..].iter().all(|mode| *mode == (Mode::Expendable, carriage.deadline)));
    // The third datagram comes before the wish, the first is lost.
    let mut got = Vec::new();
    for place in [3, 0, 2] {
        far.receive(Instant::ZERO, blocks[place].flow, &blocks[place].bytes).unwrap();
        got.extend(events(&mut far));
    }
    let datagram = |byte| Event::Datagram(id, Bytes::copy_from_slice(&[byte]));
    assert_eq!(got, [Event::Opened { id, target }, datagram(3), datagram(2)]);
    // Both directions end together; what comes behind that is for nobody.
    far.accept(Instant::ZERO, id);
    near.reset(id);
    for _ in 0..4 {
        while let Some(block) = near.poll_block() {
            far.receive(Instant::ZERO, block.flow, &block.bytes).unwrap();
        }
        while let Some(block) = far.poll_block() {
            near.receive(Instant::ZERO, block.flow, &block.bytes).unwrap();
        }
    }
    assert_eq!(events(&mut far), [Event::Reset(id)]);
    far.receive(Instant::ZERO, blocks[1].flow, &blocks[1].bytes).unwrap();
    assert_eq!((events(&mut far), near.streams(), far.streams()), (vec![], 0, 0));
    assert_eq!(far.datagrams_dropped(), 1);
}

#[test]
fn few_datagrams_are_kept_for_a_stream_that_is_not_open() {
    let mut far = ForwardStreams::new(SessionEnd::Called, &ClassTree::default(), BUDGET);
    let mut near = ForwardStreams::new(SessionEnd::Calling, &ClassTree::default(), BUDGET);
    let id = near.open(Instant::ZERO, "udp:a:1".parse().unwrap(), &Carriage::default()).unwrap();
    for _ in 0..1_000 {
        near.datagram(id, &[7; 1_000]);
    }
    let blocks: Vec<_> = std::iter::from_fn(|| near.poll_block()).collect();
    for block in blocks[1..].iter().chain(&blocks[..1]) {
        far.receive(Instant::ZERO, block.flow, &block.bytes).unwrap();
    }
    assert_eq!(events(&mut far).len(), 1 + 64);
}

#[test]
fn a_request_to_listen_and_its_answers_arrive() {
    let mut near = ForwardStreams::new(SessionEnd::Calling, &ClassTree::default(), BUDGET);
    let mut far = ForwardStreams::new(SessionEnd::Called, &ClassTree::default(), BUDGET);
    let listen = skyhaul_forward::Listen {
        at: "127.0.0.1:0".parse().unwrap(),
        target: "10.0.0.5:80".parse().unwrap(),
        carriage: Carriage::default(),
        idle: None,
    };
    let at: skyhaul_forward::Local = "127.0.0.1:8080".parse().unwrap();
    near.listens.ask(7, listen.clone());
    let block = near.poll_block().unwrap();
    far.receive(Instant::ZERO, block.flow, &block.bytes).unwrap();
    assert_eq!(events(&mut far), [Event::ListenAsked { number: 7, listen }]);
    far.listens.grant(7, at.clone());
    far.listens.refuse(8, ConnectRefusal::InUse, "taken");
    while let Some(block) = far.poll_block() {
        near.receive(Instant::ZERO, block.flow, &block.bytes).unwrap();
    }
    let refused = Event::NotListening {
        number: 8,
        reason: ConnectRefusal::InUse,
        sentence: "taken".to_owned(),
    };
    assert_eq!(events(&mut near), [Event::Listening { number: 7, at }, refused]);
}

#[test]
fn streams_keep_their_class_by_name_when_the_class_tree_changes() {
    let tree = |names: &[&str]| {
        let class =
            |name: &&str| ClassConfig { name: (*name).to_owned(), ..ClassConfig::default() };
        let classes = names.iter().map(class).collect();
        ClassTree::new(&ClassesConfig { classes, ..ClassesConfig::default() }).unwrap()
    };
    let mut mux =
        ForwardStreams::new(SessionEnd::Calling, &tree(&["a", "b", "c"]), ByteCount::mib(1));
    let mut open = |class: &str| {
        let carriage = Carriage { class: class.to_owned(), ..Carriage::default() };
        mux.open(Instant::ZERO, "h:1".parse().unwrap(), &carriage).unwrap()
    };
    let [b, c] = ["b", "c"].map(&mut open);
    let after = tree(&["x", "c", "d"]);
    mux.share(&after);
    assert_eq!(mux.lane(c).map(|lane| lane.class), after.find("c"));
    // One that is gone is the default one; of blocks that wait as of streams.
    assert_eq!(mux.lane(b).map(|lane| lane.class), Some(after.default_leaf()));
    let waiting: Vec<_> =
        std::iter::from_fn(|| mux.poll_block()).map(|block| block.class).collect();
    assert_eq!(waiting, [after.default_leaf(), after.find("c").unwrap()]);
}
