//! Traffic classes: a hierarchical token bucket over the sum of all paths of a session.
//!
//! The semantics are those of the Linux kernel's htb. A class below its guarantee sends in its own
//! right; one above it borrows from the nearest ancestor that is below its own guarantee; one at a
//! ceiling, its own or an ancestor's, is held back. Among the leaves that have data, those that
//! send in their own right come first, then borrowers, the nearest lender first; among equals the
//! lower priority number; among these, turns of one quantum each (deficit round robin).
//!
//! There are two differences from htb. A guarantee is served within the ceilings of all ancestors,
//! so that no ceiling is ever exceeded; the configuration ensures that the guarantees fit. And a
//! turn that a large datagram overdrew is paid back, so that shares follow the quanta whatever the
//! datagrams' sizes.
//!
//! Classes without limits borrow from the root, which lends without bound unless a rate is set: the
//! paths hold back what they cannot carry. Guarantees that the paths cannot carry together are
//! served in the order of priority.
//!
//! A decision takes one comparison and one division for each bucket on the way from leaf to root,
//! and visits each leaf; one class without limits costs nothing.

mod bucket;
mod config;
mod picker;
#[cfg(test)]
mod tests;

pub(crate) use bucket::Bucket;
pub(crate) use picker::ClassPicker;

pub use config::{ClassConfig, ClassError, ClassesConfig, MAX_CLASSES, MAX_LEAVES};

use config::{Leaf, Node, Plan};
use skyhaul_units::{ByteCount, Instant, Rate};

/// A leaf of a class tree: its index among the leaves in the order of the configuration. It is
/// valid only for the tree that returned it, or one of the same configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ClassId(pub u8);

/// What a leaf has sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClassCounters {
    /// All that was charged.
    pub sent: ByteCount,
    /// Of it, what went beyond the leaf's own guarantee.
    pub borrowed: ByteCount,
}

/// Who paid for what a leaf sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Funding {
    /// Its own guarantee.
    Own,
    /// An ancestor that lent.
    Borrowed,
}

/// A class tree at work.
#[derive(Debug, Clone)]
pub struct ClassTree {
    /// Inner nodes, parents first, then one for each leaf.
    nodes: Vec<Node>,
    leaves: Vec<Leaf>,
    turns: Vec<Turns>,
    default: ClassId,
    /// Whether the root's rate is the operator's, not the line's.
    rate_is_configured: bool,
    /// Whether any node has a bucket.
    limited: bool,
    /// The leaf that had the last turn.
    last: usize,
    /// Scratch: the lender of each inner node at the time of a decision.
    standing: Vec<Option<Lender>>,
    /// Scratch: whether any leaf below an inner node has data.
    below_wanted: Vec<bool>,
    /// Scratch: the leaves that come first, among which turns decide.
    group: Vec<usize>,
}

/// A leaf's state in deficit round robin.
#[derive(Debug, Clone)]
struct Turns {
    /// Bytes left of its turn, for each lender by depth: what it sends in its own right does not
    /// count against borrowing.
    left: Vec<i64>,
    counters: ClassCounters,
}

/// The node that pays for what a leaf sends.
#[derive(Debug, Clone, Copy)]
struct Lender {
    depth: usize,
}

/// Which of its accounts a leaf's turn is charged to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Account {
    /// Its own: it sends in its own right.
    Own,
    /// It borrows from the lender at this depth.
    Lender(usize),
}

/// Order of service before turns: smallest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Precedence {
    /// 0 in its own right, 1 by borrowing.
    borrows: u8,
    /// Distance of the lender from the deepest level of the tree.
    far: usize,
    priority: u8,
}

impl Default for ClassTree {
    /// One class without limits.
    fn default() -> Self {
        Self::new(&ClassesConfig::default()).expect("one class without limits contradicts nothing")
    }
}

impl ClassTree {
    /// The tree that `config` describes, every bucket without debt.
    ///
    /// # Errors
    /// The first contradiction in it, and what to do.
    pub fn new(config: &ClassesConfig) -> Result<Self, ClassError> {
        let plan = Plan::new(config)?;
        let inner = plan.nodes.len() - plan.leaves.len();
        let turns = plan.nodes[inner..].iter().map(|node| Turns {
            left: vec![0; node.depth + 1],
            counters: ClassCounters::default(),
        });
        Ok(Self {
            turns: turns.collect(),
            default: id(plan.default),
            rate_is_configured: config.rate.is_some(),
            limited: plan
                .nodes
                .iter()
                .any(|node| node.guarantee.is_some() || node.ceiling.is_some()),
            last: 0,
            standing: vec![None; inner],
            below_wanted: vec![false; inner],
            group: Vec::with_capacity(plan.leaves.len()),
            nodes: plan.nodes,
            leaves: plan.leaves,
        })
    }

    /// The leaf of that name.
    pub fn find(&self, name: &str) -> Option<ClassId> {
        self.leaves.iter().position(|leaf| leaf.name == name).map(id)
    }

    /// The leaf of blocks that name no class.
    pub const fn default_leaf(&self) -> ClassId {
        self.default
    }

    /// The leaves with their names, in the order of the configuration.
    pub fn leaves(&self) -> impl Iterator<Item = (ClassId, &str)> {
        self.leaves.iter().enumerate().map(|(index, leaf)| (id(index), leaf.name.as_str()))
    }

    /// What `leaf` has sent; zero for one of another tree.
    pub fn counters(&self, leaf: ClassId) -> ClassCounters {
        self.turns.get(usize::from(leaf.0)).map_or(ClassCounters::default(), |turns| turns.counters)
    }

    /// The same tree for the names and counters of one session of several, with nothing sent.
    pub(crate) fn for_one_of_several(&self) -> Self {
        let mut tree = self.clone();
        tree.turns.iter_mut().for_each(|turns| turns.counters = ClassCounters::default());
        tree
    }

    /// Counts what was charged to the tree that several sessions share.
    pub(crate) fn count(&mut self, leaf: ClassId, bytes: ByteCount, funding: Funding) {
        let Some(turns) = self.turns.get_mut(usize::from(leaf.0)) else { return };
        turns.counters.sent += bytes;
        if funding == Funding::Borrowed {
            turns.counters.borrowed += bytes;
        }
    }

    /// Makes `rate` the root's ceiling from `now` on, unless the configuration names one; zero
    /// lifts it.
    ///
    /// For a caller whose paths do not hold back what they cannot carry. Do not call it with paths
    /// that pace themselves: a ceiling at their estimated rate would keep that estimate from
    /// growing.
    pub fn set_line_rate(&mut self, now: Instant, rate: Rate) {
        if self.rate_is_configured {
            return;
        }
        match &mut self.nodes[0].ceiling {
            Some(bucket) if rate > Rate::ZERO => bucket.set_rate(now, rate),
            ceiling => *ceiling = Bucket::new(rate, None),
        }
        self.limited =
            self.nodes.iter().any(|node| node.guarantee.is_some() || node.ceiling.is_some());
    }

    /// The leaf to send from at `now`, among those for which `has` is true; `None` when all of them
    /// are held back. It may send one datagram of any size, which must be
    /// [charged](Self::charge) before the next pick.
    pub fn pick(&mut self, now: Instant, mut has: impl FnMut(ClassId) -> bool) -> Option<ClassId> {
        if self.leaves.len() == 1 && !self.limited {
            return has(ClassId(0)).then_some(ClassId(0));
        }
        self.note_wishes(now, &mut has);
        self.survey(now);
        let inner = self.standing.len();
        let deepest = self.nodes.len();
        let mut first = Precedence { borrows: u8::MAX, far: usize::MAX, priority: u8::MAX };
        let mut lender_depth = 0;
        self.group.clear();
        for (index, leaf) in self.leaves.iter().enumerate() {
            let node = &self.nodes[inner + index];
            if !node.wanted {
                continue;
            }
            let Some(lender) = stands(node, self.standing[node.parent], now) else { continue };
            let borrows = u8::from(lender.depth != node.depth);
            let far = if borrows == 0 { 0 } else { deepest - lender.depth };
            let precedence = Precedence { borrows, far, priority: leaf.priority };
            if precedence < first {
                first = precedence;
                lender_depth = lender.depth;
                self.group.clear();
            }
            if precedence == first {
                self.group.push(index);
            }
        }
        let account = if first.borrows == 0 { Account::Own } else { Account::Lender(lender_depth) };
        self.whose_turn(account)
    }

    /// Charges `bytes`, sent at `now`, to `leaf` and its ancestors; returns who paid. Datagrams
    /// sent without a pick, because they must be, are charged too, and are paid for by waiting.
    pub(crate) fn charge_for(&mut self, now: Instant, leaf: ClassId, bytes: ByteCount) -> Funding {
        let index = usize::from(leaf.0);
        if index >= self.turns.len() {
            return Funding::Own;
        }
        let place = self.standing.len() + index;
        let lender = way_up(&self.nodes, place)
            .find(|place| {
                self.nodes[*place].guarantee.as_ref().is_some_and(|bucket| bucket.is_open(now))
            })
            .unwrap_or(0);
        let funding = if lender == place { Funding::Own } else { Funding::Borrowed };
        self.count(leaf, bytes, funding);
        let left = &mut self.turns[index].left[self.nodes[lender].depth];
        *left = left.saturating_sub_unsigned(bytes.as_u64());
        if !self.limited {
            return funding;
        }
        // Borrowing: the guarantees below the lender are not charged.
        let mut lent = false;
        let mut at = place;
        loop {
            lent |= at == lender;
            let node = &mut self.nodes[at];
            if let Some(ceiling) = &mut node.ceiling {
                ceiling.spend(now, bytes);
            }
            if let Some(guarantee) = node.guarantee.as_mut().filter(|_| lent) {
                guarantee.spend(now, bytes);
            }
            if at == 0 {
                return funding;
            }
            at = node.parent;
        }
    }

    /// Charges `bytes`, sent at `now`, to `leaf` and its ancestors. Datagrams sent without a pick,
    /// because they must be, are charged too, and are paid for by waiting.
    pub fn charge(&mut self, now: Instant, leaf: ClassId, bytes: ByteCount) {
        let _ = self.charge_for(now, leaf, bytes);
    }

    /// When the first of the held-back leaves for which `has` is true should be served; `None` when
    /// the tree holds none of them back. This is up to 2 ms after it may send, so that a waiting
    /// sender wakes once a tick; the time counts as credit.
    pub fn next_timeout(
        &self,
        now: Instant,
        mut has: impl FnMut(ClassId) -> bool,
    ) -> Option<Instant> {
        if !self.limited {
            return None;
        }
        let waiting = (0..self.leaves.len()).filter(|index| has(id(*index)));
        let served = waiting.filter_map(|index| {
            let closed = way_up(&self.nodes, self.standing.len() + index)
                .filter_map(|place| self.nodes[place].ceiling.as_ref())
                .filter(|ceiling| !ceiling.is_open(now));
            closed.map(Bucket::serve_at).max()
        });
        served.min()
    }

    /// Notes which leaves have data. Credit that was saved while a node had none is cut to a burst.
    fn note_wishes(&mut self, now: Instant, has: &mut impl FnMut(ClassId) -> bool) {
        let inner = self.standing.len();
        self.below_wanted.fill(false);
        for place in (0..self.nodes.len()).rev() {
            let wanted =
                if place >= inner { has(id(place - inner)) } else { self.below_wanted[place] };
            let node = &mut self.nodes[place];
            self.below_wanted[node.parent] |= wanted;
            if wanted
                && !node.wanted
                && let Some(guarantee) = &mut node.guarantee
            {
                guarantee.wanted(now);
            }
            node.wanted = wanted;
        }
    }

    /// Finds the lender for the children of each inner node at `now`.
    fn survey(&mut self, now: Instant) {
        for place in 0..self.standing.len() {
            let node = &self.nodes[place];
            let outer =
                if place == 0 { Some(Lender { depth: 0 }) } else { self.standing[node.parent] };
            self.standing[place] = stands(node, outer, now);
        }
    }

    /// The next in turn of the group.
    fn whose_turn(&mut self, account: Account) -> Option<ClassId> {
        let inner = self.standing.len();
        let account = |nodes: &[Node], index: usize| match account {
            Account::Own => nodes[inner + index].depth,
            Account::Lender(depth) => depth,
        };
        let left = |tree: &Self, index: usize| tree.turns[index].left[account(&tree.nodes, index)];
        // Start at the last one: those before it had their turn in this round.
        let (before, from) =
            self.group.split_at(self.group.partition_point(|index| *index < self.last));
        if let Some(index) = from.iter().chain(before).find(|index| left(self, **index) > 0) {
            self.last = *index;
            return Some(id(*index));
        }
        // All had their turn: start as many new rounds as it takes until one of them has bytes
        // left.
        let missing = |index: &usize| -left(self, *index) / quantum(&self.leaves[*index]) + 1;
        let rounds = self.group.iter().map(missing).min()?;
        let mut next = None;
        for index in self.group.iter().copied() {
            let account = account(&self.nodes, index);
            let left = &mut self.turns[index].left[account];
            *left = left.saturating_add(quantum(&self.leaves[index]).saturating_mul(rounds));
            if *left > 0 && next.is_none() {
                next = Some(index);
            }
        }
        self.last = next?;
        next.map(id)
    }
}

/// The lender of `node`, which may be itself, where `outer` lends to its parent's children; `None`
/// at a ceiling.
fn stands(node: &Node, outer: Option<Lender>, now: Instant) -> Option<Lender> {
    let open = |bucket: &Option<Bucket>| bucket.as_ref().map(|bucket| bucket.is_open(now));
    match (outer, open(&node.ceiling), open(&node.guarantee)) {
        (None, _, _) | (_, Some(false), _) => None,
        (_, _, Some(true)) => Some(Lender { depth: node.depth }),
        (outer, _, _) => outer,
    }
}

/// The nodes from `place` to the root, both included.
fn way_up(nodes: &[Node], place: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(place), |place| (*place != 0).then(|| nodes[*place].parent))
}

fn quantum(leaf: &Leaf) -> i64 {
    i64::try_from(leaf.quantum.as_u64()).unwrap_or(i64::MAX).max(1)
}

/// A tree has at most [`MAX_LEAVES`] leaves, so each has a number.
fn id(leaf: usize) -> ClassId {
    ClassId(u8::try_from(leaf).unwrap_or(u8::MAX))
}
