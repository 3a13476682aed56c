//! The configuration, events and errors of a session.

use crate::block::{BlockId, Outcome, Received};
use crate::classes::ClassTree;
use crate::path::{DownReason, PathId};
use crate::repair::Goal;
use crate::schedule::PolicyConfig;
use crate::wire::{Custody, PROTOCOL_VERSION};
use skyhaul_units::{ByteCount, FlowId, Seq, SpoolIdentity, Utc};

/// The configuration of a session.
#[derive(Debug, Clone)]
pub struct SessionConfig {
    /// The protocol version that the handshake agreed on.
    pub version: u16,
    /// The receive window: bytes of blocks received and not yet released by the application. At 300
    /// Mbit/s and 160 ms a round trip is 6 MB; a symbol that is lost five times in a row holds back
    /// five of them.
    pub receive_window: ByteCount,
    /// The send buffer: bytes of blocks taken from the application and not yet reported whole.
    pub send_buffer: ByteCount,
    /// UTC at zero of the session's clock, for time stamps that the far end reads.
    pub utc_at_zero: Utc,
    /// The classes that share the line.
    pub classes: ClassTree,
    /// The policy that chooses the next block of a class.
    pub policy: PolicyConfig,
    /// The goal of FEC repair; none for no FEC.
    pub repair: Option<Goal>,
}

impl Default for SessionConfig {
    fn default() -> Self {
        let window = ByteCount::mib(64);
        Self {
            version: PROTOCOL_VERSION,
            receive_window: window,
            send_buffer: window,
            utc_at_zero: Utc::default(),
            classes: ClassTree::default(),
            policy: PolicyConfig::default(),
            repair: Some(Goal::default()),
        }
    }
}

/// What an end says in its hello.
#[derive(Debug, Clone, Default)]
pub struct Opening {
    /// The node's name.
    pub name: String,
    /// The spool from which its flows come; the default is none.
    pub spool: SpoolIdentity,
    /// What it has in custody of the far end's flows, by spool: the far end uses the entry of its
    /// own spool. At most [`crate::wire::SPOOLS_MAX`] are sent.
    pub custody: Vec<Custody>,
    /// The lowest number of the flows that it sends: the first 64 from there have the shortest
    /// headers.
    pub flow_base: FlowId,
}

/// An event for the application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The far end's hello has arrived. Blocks can be sent from now on.
    Greeted {
        /// The far end's node name, as it says; its identity is proved by the path.
        name: String,
        /// Which spool its flows come from.
        spool: SpoolIdentity,
        /// What it has in custody of this end's spool; none where it never took anything of it.
        custody: Option<Custody>,
    },
    /// A block has arrived whole. Return its memory with [`crate::Session::release`].
    Block(Received),
    /// The outcome of a block that was sent.
    Settled {
        /// The block.
        id: BlockId,
        /// Its outcome.
        outcome: Outcome,
    },
    /// A custody receipt: the far end has all blocks of `flow` below `next` on disk. A receipt that
    /// took a slower path may come after a higher one.
    Custody {
        /// The flow.
        flow: FlowId,
        /// The first sequence number not in custody.
        next: Seq,
    },
    /// A message of the far end's application. If a path fails just after it was sent, it may come
    /// twice or not at all.
    Application {
        /// At most [`crate::wire::APPLICATION_MAX`] bytes.
        body: bytes::Bytes,
    },
    /// A path carries symbols now.
    PathUp(PathId),
    /// A path stopped answering, or delivers no symbols. Its data goes on the other paths, or waits
    /// if there is none. [`crate::PathState`] tells the cause.
    PathStalled(PathId),
    /// A stalled path works again.
    PathBack(PathId),
    /// The datagram size of a path has changed: larger ones are lost, or arrive again.
    PathResized(PathId),
    /// A path ended; the session continues over the others.
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
