//! Files over a session: what the two ends say to each other, and how each knows that a file is
//! whole.
//!
//! The sending end offers [`Entry`]s, many in one block; the receiving end answers what it wants of
//! each, and from where; contents follow, small ones many in one block. Names are bytes
//! ([`RelPath`]) and never lead out of the folder that they belong in. A file is known by its
//! BLAKE3 hash, which is computed as it goes by, piece after piece ([`FileHasher`]); what is known
//! of the pieces on disk stands in a [`map`], from which a transfer goes on. Sans-IO: no file is
//! opened here.
//!
//! ```
//! use skyhaul_files::FileHasher;
//! let bytes = vec![7; 600_000];
//! let mut hasher = FileHasher::new(600_000);
//! hasher.update(&bytes);
//! // The hash is that of the bytes, whatever the pieces.
//! let whole = blake3::hash(&bytes).to_string();
//! assert_eq!(hasher.finish().map(|hash| hash.to_string()), Some(whole));
//! ```

mod entry;
mod fields;
mod hash;
pub mod map;
mod pace;
mod path;
mod reason;
mod receipt;
mod select;
pub mod wire;

pub use entry::{Entry, SourceStamp, TreeEntryKind};
pub use hash::{Chain, Chunk, FileHasher, Hash};
pub use pace::Pace;
pub use path::{PathError, RelPath, is_pattern, shown};
pub use reason::{RefusalReason, RefusedBy, SENTENCE_MAX, TransferRefusal};
pub use receipt::{FileContent, FileReceipt};
pub use select::{PathKind, Rule, Selection, SelectionError, pattern};
