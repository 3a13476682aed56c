//! How streams are carried: class, priority and deadline of their blocks.

use bytes::Bytes;
use skyhaul_transport::{Block, ClassId, ClassTree};
use skyhaul_units::{Duration, FlowId};
use std::collections::BTreeMap;

/// How a stream is carried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carriage {
    /// The class of its blocks at both ends. An empty or unknown name is the default class.
    pub class: String,
    /// 0 is the most important.
    pub priority: u8,
    /// How soon its bytes are wanted at the other end: the sooner ones go first. A datagram that is
    /// later is dropped; for datagrams without a deadline it is [`DATAGRAM_DEADLINE`].
    pub deadline: Option<Duration>,
}

/// The class and priority of a stream's blocks. Streams of one lane take turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lane {
    /// The class.
    pub class: ClassId,
    /// 0 is the most important.
    pub priority: u8,
}

/// The deadline of datagrams that have none of their own: a lost one is retransmitted once on a
/// line with a round trip of 660 ms, and applications ask again after more than that.
pub const DATAGRAM_DEADLINE: Duration = Duration::from_secs(2);

impl Default for Carriage {
    fn default() -> Self {
        Self { class: String::new(), priority: skyhaul_transport::PRIORITY_NORMAL, deadline: None }
    }
}

/// A carriage in the terms of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    pub lane: Lane,
    pub deadline: Option<Duration>,
}

impl Way {
    /// A block of a stream, in order.
    pub fn block(self, flow: FlowId, bytes: Bytes) -> Block {
        let Self { lane: Lane { class, priority }, deadline } = self;
        Block { class, priority, deadline, ..Block::reliable(flow, bytes) }
    }

    /// A datagram of a stream.
    pub fn datagram(self, flow: FlowId, bytes: Bytes) -> Block {
        let Lane { class, priority } = self.lane;
        let deadline = self.deadline.unwrap_or(DATAGRAM_DEADLINE);
        Block { class, priority, ..Block::expendable(flow, deadline, bytes) }
    }
}

/// The classes of a session by their names.
#[derive(Debug)]
pub(crate) struct ClassNames {
    classes: BTreeMap<String, ClassId>,
    default: ClassId,
}

/// Which class of a new tree takes the place of which class of the tree before.
#[derive(Debug)]
pub(crate) struct ClassMap {
    classes: BTreeMap<ClassId, ClassId>,
    default: ClassId,
}

impl ClassNames {
    pub fn new(tree: &ClassTree) -> Self {
        Self {
            classes: tree.leaves().map(|(id, name)| (name.to_owned(), id)).collect(),
            default: tree.default_leaf(),
        }
    }

    /// Changes to another tree: a class goes on as that of the same name, or as the default one.
    pub fn change(&mut self, tree: &ClassTree) -> ClassMap {
        let before = core::mem::replace(self, Self::new(tree)).classes;
        let classes = before.into_iter().map(|(name, id)| (id, self.class(&name))).collect();
        ClassMap { classes, default: self.default }
    }

    fn class(&self, name: &str) -> ClassId {
        self.classes.get(name).copied().unwrap_or(self.default)
    }

    pub fn way(&self, carriage: &Carriage) -> Way {
        let &Carriage { ref class, priority, deadline } = carriage;
        Way { lane: Lane { class: self.class(class), priority }, deadline }
    }

    /// For messages about the streams: windows, and requests to listen.
    pub const fn urgent(&self) -> Way {
        Way { lane: Lane { class: self.default, priority: 0 }, deadline: None }
    }
}

impl ClassMap {
    pub fn of(&self, before: ClassId) -> ClassId {
        self.classes.get(&before).copied().unwrap_or(self.default)
    }
}
