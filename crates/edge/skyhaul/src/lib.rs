//! Blocks with deadlines, priorities and dependencies between two nodes, over one or several paths.
//!
//! A [`Node`] is this host's end: a key, sockets, and the keys that it trusts. A [`Session`] joins
//! it with another node over one or several [`Path`]s, and carries [`Block`]s both ways. A block
//! arrives whole or not at all:
//!
//! - [`Block::reliable`] arrives in the order of its flow, however long that takes;
//! - [`Block::expendable`] is useful until its deadline, arrives out of order, and is not sent
//!   after its deadline;
//! - `priority`, `depends_on`, `class` and `redundant` set what goes first, which other block it
//!   needs to be useful, which class of the line it uses, and whether it goes over all paths.
//!
//! All calls that wait are futures, for any executor. Programs without one call [`Wait::wait`] on
//! them.
//!
//! ```
//! use skyhaul::{Block, Duration, FlowId, Identity, Node, Outcome, Path, Wait};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Each end has a key, and knows the other's fingerprint.
//! let (station, centre) = (Identity::generate()?, Identity::generate()?);
//! let keys = (station.fingerprint(), centre.fingerprint());
//! let called = Node::named("centre", centre).bind("127.0.0.1:0".parse()?).trust(keys.0).start()?;
//! let calling = Node::named("station", station).start()?;
//!
//! let session = calling.connect([Path::to(called.addresses()[0])], keys.1).wait()?;
//! let key_frame = Block::expendable(FlowId(1), Duration::from_secs(3), vec![7; 60_000].into());
//! let key_frame = session.send(key_frame).wait()?;
//! // Useless without the other block: it is not sent if that one is too late.
//! let next = Block::expendable(FlowId(1), Duration::from_secs(3), vec![8; 6_000].into());
//! let next = session.send(Block { depends_on: key_frame.name().wait(), ..next }).wait()?;
//!
//! let far = called.accept().wait().ok_or("the node has stopped")?;
//! let first = far.recv().wait().ok_or("the session has ended")?;
//! assert_eq!(first.bytes.len(), 60_000);
//! assert_eq!(key_frame.wait(), Some(Outcome::Delivered));
//! assert_eq!(next.wait(), Some(Outcome::Delivered));
//! # Ok(())
//! # }
//! ```
//!
//! A program on the host of a node may leave the line to that node: a [`LocalNode`] has sessions
//! with the same calls, which go through the node's block service.
//!
//! `examples/` has three programs: text, audio and video of a conference, each with its own
//! deadline.

mod node;
mod wait;

pub use node::{Node, NodeBuilder, Path};
pub use wait::Wait;

#[doc(inline)]
pub use skyhaul_blocks_io::{LocalError, LocalNode};
#[doc(inline)]
pub use skyhaul_channels_io::{
    AppChannel as Session, AppChannelError as SessionError, ClientStartError as StartError,
    HintError, IncomingBlock, Sent,
};
#[doc(inline)]
pub use skyhaul_quic::{Fingerprint, FingerprintError, Identity, IdentityError};
#[doc(inline)]
pub use skyhaul_transport::{
    Block, BlockId, BlockTiming, ClassConfig, ClassError, ClassId, ClassTree, ClassesConfig,
    MAX_BLOCK, Mode, Outcome, PRIORITY_NORMAL, PathId, PathOptions, PathState, PathStatus,
    Received, SessionConfig, Stats,
};
#[doc(inline)]
pub use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Probability, Rate, Seq, Utc};

/// The page of the library, whose example is tested with these.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/how-to/library.md")]
struct Page;
