//! Files over a session: the messages of the two ends, and the verification of files.
//!
//! The sending end offers [`Entry`]s, many in one block. The receiving end answers which of them it
//! wants, and from which chunk on. Contents follow, many small ones in one block. Names are bytes
//! ([`RelPath`]) and never lead out of their folder. A file is identified by its BLAKE3 hash, which
//! is computed piece by piece ([`FileHasher`]). The state of the chunks on disk is kept in a
//! [`map`], from which a transfer resumes. Sans-IO: no file is
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

pub mod drop_folder;
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
