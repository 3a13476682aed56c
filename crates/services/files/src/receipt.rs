//! The receipt of a file that is complete and on disk at the receiving end.

use crate::hash::Hash;
use crate::path::{RelPath, shown};
use serde::Serialize;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileContent {
    /// Its length.
    pub bytes: u64,
    /// Its hash.
    pub hash: Hash,
}

/// A line of a file of receipts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileReceipt {
    /// When the receiving end's word came, nanoseconds since 1970.
    pub utc_ns: i64,
    /// `sent` or `received`, seen from the end that keeps this.
    pub what: &'static str,
    /// The other end's key.
    pub peer: String,
    /// Where it is at the receiving end, below the folder that was named. Bytes that are no UTF-8
    /// stand as `\xe9`.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// Its hash, as `b3sum` prints it.
    pub blake3: String,
}

impl FileReceipt {
    /// Of a file.
    pub fn new(
        utc_ns: i64,
        what: &'static str,
        peer: &str,
        path: &RelPath,
        content: FileContent,
    ) -> Self {
        let (peer, path) = (peer.to_owned(), shown(path.as_bytes()));
        let FileContent { bytes, hash } = content;
        Self { utc_ns, what, peer, path, bytes, blake3: hash.to_string() }
    }
}
