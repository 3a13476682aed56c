//! Two nodes that change their keys at any time, over a line that fails, on disks that refuse, and
//! killed at any step: they can always connect, and each change comes to its end.

use super::tests::{Fault, MemoryStore, at, key};
use super::*;

/// What may happen: so many kinds of steps.
#[derive(Debug, Clone, Copy)]
enum Weather {
    /// What a node does by itself.
    Fair = 7,
    /// Also kills, disks that refuse, lines that fail, orders.
    Faults = 12,
}

/// Xorshift64 (Marsaglia 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

struct Node {
    name: &'static str,
    /// The key that the other one's configuration lists.
    listed: Fingerprint,
    store: MemoryStore,
    /// None while it is down.
    keeper: Option<KeyKeeper<MemoryStore>>,
    /// The key that the other one has seen in the session.
    shown: Option<Fingerprint>,
    /// On the way to the other one.
    sent: VecDeque<Vec<u8>>,
    /// What it said last in the session.
    told: Option<KeyTalk>,
    seed: u8,
    changes: u32,
}

impl Node {
    fn new(name: &'static str, seed: u8) -> Self {
        let store = MemoryStore::new(key(seed));
        let keeper = Some(store.open(at(0)));
        let (listed, sent) = (key(seed).fingerprint(), VecDeque::new());
        Self { name, listed, store, keeper, shown: None, sent, told: None, seed, changes: 0 }
    }

    /// Whether it has been killed by its disk.
    fn is_dead(&self) -> bool {
        self.store.0.borrow().fault == Fault::Refused
    }

    fn say(&mut self) {
        let (Some(keeper), Some(_)) = (&self.keeper, self.shown) else { return };
        let talk = keeper.announcement();
        if talk.is_some() && talk != self.told {
            self.sent.extend(talk.map(|talk| talk.encode()));
            self.told = talk;
        }
    }

    fn accepts(&self, other: &Self) -> bool {
        let (Some(own), Some(far)) = (&self.keeper, &other.keeper) else { return false };
        own.record().known.accepted(other.listed).contains(&far.own().fingerprint())
    }
}

struct World {
    nodes: [Node; 2],
    random: Random,
    now: i64,
}

impl World {
    fn end_session(&mut self) {
        for node in &mut self.nodes {
            (node.shown, node.told) = (None, None);
            node.sent.clear();
        }
    }

    fn connect(&mut self) {
        let now = at(self.now);
        let [a, b] = &self.nodes;
        if a.shown.is_some() || a.keeper.is_none() || b.keeper.is_none() {
            return;
        }
        assert!(a.accepts(b) && b.accepts(a), "both are up, and cannot connect");
        for node in &mut self.nodes {
            node.shown = node.keeper.as_ref().map(|keeper| keeper.own().fingerprint());
        }
        let shown = [self.nodes[1].shown, self.nodes[0].shown];
        for (place, shown) in shown.into_iter().enumerate() {
            let peer = self.nodes[1 - place].name;
            if let (Some(keeper), Some(shown)) = (&mut self.nodes[place].keeper, shown) {
                let _ = keeper.seen(peer, shown, now);
            }
        }
    }

    fn deliver(&mut self, to: usize) {
        let now = at(self.now);
        let (peer, shown) = (self.nodes[1 - to].name, self.nodes[1 - to].shown);
        let (Some(body), Some(shown)) = (self.nodes[1 - to].sent.pop_front(), shown) else {
            return;
        };
        let talk = KeyTalk::decode(&body).unwrap();
        let Some(keeper) = &mut self.nodes[to].keeper else { return };
        let reply = match keeper.take(peer, shown, &talk, now) {
            Ok(reply) => reply,
            Err(KeyOrderError::Store(_)) => None,
            Err(error) => panic!("{error}"),
        };
        self.nodes[to].sent.extend(reply.map(|reply| reply.encode()));
    }

    fn step(&mut self, weather: Weather) {
        self.now += 1;
        let now = at(self.now);
        let place = usize::from(self.random.below(2) == 1);
        let choice = self.random.below(weather as u64);
        let peer = BTreeSet::from([self.nodes[1 - place].name.to_owned()]);
        let node = &mut self.nodes[place];
        match choice {
            0..=2 => self.deliver(place),
            3 => self.connect(),
            4 => node.say(),
            5 => node.keeper.iter_mut().for_each(|keeper| keeper.advance(&peer, now)),
            6 if node.keeper.is_none() => {
                node.store.0.borrow_mut().fault = Fault::None;
                node.keeper = Some(node.store.open(now));
            }
            7 => {
                let after = u32::try_from(self.random.below(4)).unwrap();
                let is_done = self.random.below(2) == 1;
                node.store.0.borrow_mut().fault = Fault::Killed { after, is_done };
            }
            8 => node.store.0.borrow_mut().fault = Fault::Killed { after: 0, is_done: false },
            9 => self.end_session(),
            10 if node.changes < 3 => {
                node.changes += 1;
                node.seed += 10;
                let next = key(node.seed);
                let _ = node.keeper.as_mut().map(|keeper| keeper.rotate(next, now));
            }
            _ => {}
        }
        for place in 0..2 {
            // A disk that refuses without a kill, or a kill.
            if self.nodes[place].is_dead() && self.nodes[place].keeper.is_some() {
                if self.random.below(4) == 0 {
                    self.nodes[place].store.0.borrow_mut().fault = Fault::None;
                } else {
                    self.nodes[place].keeper = None;
                    self.end_session();
                }
            }
        }
    }
}

#[test]
fn two_nodes_that_change_their_keys_can_always_connect_and_come_to_the_end() {
    let mut finished = 0;
    for seed in 1..=400_u64 {
        let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut world = World { nodes: [Node::new("a", 1), Node::new("b", 2)], random, now: 0 };
        (0..300).for_each(|_| world.step(Weather::Faults));
        for node in &mut world.nodes {
            // What a disk has after an error is known after a restart.
            node.store.0.borrow_mut().fault = Fault::None;
            node.keeper = Some(node.store.open(at(world.now)));
        }
        // The line may have lost what was said: as a node does, each says it again in a new
        // session.
        world.end_session();
        (0..400).for_each(|_| world.step(Weather::Fair));
        world.end_session();
        (0..400).for_each(|_| world.step(Weather::Fair));
        for node in &mut world.nodes {
            node.keeper = Some(node.store.open(at(world.now)));
        }
        for place in 0..2 {
            let (node, other) = (&world.nodes[place], &world.nodes[1 - place]);
            let keeper = node.keeper.as_ref().expect("up again");
            assert_eq!(keeper.record().rotation, None, "seed {seed}: node {}", node.name);
            let far = other.keeper.as_ref().expect("up again");
            let own = keeper.own().fingerprint();
            let accepted = far.record().known.accepted(node.listed);
            assert_eq!(accepted, [own], "seed {seed}: only the key in use is accepted");
            let disk = node.store.0.borrow();
            assert_eq!(disk.current.fingerprint(), own);
            assert!(disk.next.is_none() && disk.former.is_none(), "seed {seed}");
            finished += u32::from(own != node.listed);
        }
    }
    assert!(finished > 400, "most nodes have another key than at the beginning: {finished}");
}
