//! What a session is told once, and what it tells.

use crate::block::{BlockId, Outcome, Received};
use crate::classes::ClassTree;
use crate::path::{DownReason, PathId};
use crate::repair::Goal;
use crate::schedule::PolicyConfig;
use crate::wire::Custody;
use skyhaul_units::{ByteCount, FlowId, Seq, SpoolIdentity, Utc};

/// What a session is told once.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// Blocks received and not yet given back by the application, at most. At 300 Mbit/s and 160 ms
    /// a round trip is 6 MB; losses repeated five times in a row hold back five of them.
    pub receive_window: ByteCount,
    /// Blocks taken from the application and not yet reported whole, at most.
    pub send_buffer: ByteCount,
    /// Calendar time at the session clock's zero, for stamps that cross to the far end.
    pub utc_at_zero: Utc,
    /// How the line is shared.
    pub classes: ClassTree,
    /// Which block goes next within a class.
    pub policy: PolicyConfig,
    /// Whether and how well losses are repaired by coding.
    pub repair: Option<Goal>,
}

impl Default for SessionConfig {
    fn default() -> Self {
        let window = ByteCount::mib(64);
        Self {
            receive_window: window,
            send_buffer: window,
            utc_at_zero: Utc::default(),
            classes: ClassTree::default(),
            policy: PolicyConfig::default(),
            repair: Some(Goal::default()),
        }
    }
}

/// How an end introduces itself.
#[derive(Debug, Clone, Default)]
pub struct Opening {
    /// Its node name.
    pub name: String,
    /// Which spool its flows come from; the default is none.
    pub spool: SpoolIdentity,
    /// What it has in custody of the far end's flows, by the spool that they come from: the far end
    /// takes what is said of its own. At most [`crate::wire::SPOOLS_MAX`] are told.
    pub custody: Vec<Custody>,
    /// The lowest number among the flows that it will send: the headers of the first 64 from there
    /// are shortest.
    pub flow_base: FlowId,
}

/// What the application learns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The far end introduced itself: its name, its spool, and what it has in custody. Blocks may
    /// be sent from there on.
    Greeted {
        /// The far end's node name. Its identity is the path's to prove.
        name: String,
        /// Which spool its flows come from.
        spool: SpoolIdentity,
        /// What it has in custody of this end's spool; none where it never took anything of it.
        custody: Option<Custody>,
    },
    /// A block arrived whole. Give it back with [`crate::Session::release`].
    Block(Received),
    /// What became of a block that was sent.
    Settled {
        /// The block.
        id: BlockId,
        /// Its fate.
        outcome: Outcome,
    },
    /// The far end has all blocks of `flow` below `next` on disk. One that took a slower path may
    /// come after a higher one.
    Custody {
        /// The flow.
        flow: FlowId,
        /// The first place not in custody.
        next: Seq,
    },
    /// The far end's application says something. Said just before a path failed, it may come twice,
    /// or not at all.
    Application {
        /// At most [`crate::wire::APPLICATION_MAX`] bytes.
        body: bytes::Bytes,
    },
    /// A path carries symbols now.
    PathUp(PathId),
    /// A path stopped answering, or brings no symbols over; what was under way there goes on the
    /// others, or waits where there is none. Which it is says [`crate::PathState`].
    PathStalled(PathId),
    /// A path that had stopped answering is back.
    PathBack(PathId),
    /// A path carries datagrams of another size from now on: larger ones vanished, or arrive again.
    PathResized(PathId),
    /// A path ended; the session goes on over the others.
    PathDown(PathId, DownReason),
    /// The session is over.
    Closed(CloseReason),
}

/// Why a session ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    /// The last path under it ended.
    #[error("the path ended: {0}")]
    Path(DownReason),
    /// The far end refused and said why.
    #[error("the far end refused: {0}")]
    Refused(String),
    /// The far end keeps another node that has the same key.
    #[error("the far end refused: {0}")]
    Replaced(String),
    /// The far end sent what no node of this version sends.
    #[error("the far end broke the protocol: {0}")]
    Peer(String),
    /// This end ended it.
    #[error("closed here: {0}")]
    Here(String),
}

/// Why a block, or what an application says, was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Wait until [`crate::Session::room`] has grown.
    #[error("the send buffer has room for {room} now; wait for reports")]
    Full {
        /// What it takes now.
        room: ByteCount,
    },
    /// Blocks have 1 to [`crate::MAX_BLOCK`] bytes, and fit into the far end's window whole.
    #[error("a block of {len} bytes cannot be sent; blocks have 1 to {max} bytes")]
    Length {
        /// Its length.
        len: usize,
        /// The longest that can be sent in this session.
        max: usize,
    },
    /// A session tells so many flows apart.
    #[error("the session has 65,536 flows, and {flow:?} would be one more; use flows again")]
    Flows {
        /// The flow that is one too many.
        flow: FlowId,
    },
    /// Expendable blocks need a deadline: it says when they are given up.
    #[error("an expendable block of {flow:?} has no deadline; give it one, or send it as reliable")]
    NoDeadline {
        /// Its flow.
        flow: FlowId,
    },
    /// Applications say so much at once.
    #[error("{len} bytes cannot be said at once; at most {} can", crate::wire::APPLICATION_MAX)]
    TooLong {
        /// Its length.
        len: usize,
    },
    /// The far end has not introduced itself, or the session is over.
    #[error("the session is not open")]
    NotOpen,
}
