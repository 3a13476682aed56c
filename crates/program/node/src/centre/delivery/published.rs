//! The contents of a published file, before they go to another node.

use sha2::{Digest, Sha256};
use skyhaul_dispatch::{DeliveryFailure, FailureKind};
use skyhaul_files::{FileHasher, Hash};
use skyhaul_remote::{GoOn, OutgoingFile};
use skyhaul_units::ByteCount;
use std::fs::File;
use std::io::Read;

/// The hash by which a transfer names the contents of a file, after they were found to be those
/// that were published; none where `watch` stops it.
///
/// # Errors
/// The file cannot be read, or has other contents than it was published with.
pub fn published_hash(
    of: &OutgoingFile,
    watch: &mut dyn FnMut(ByteCount) -> GoOn,
) -> Result<Option<Hash>, DeliveryFailure> {
    let failed = |kind, what: &str| {
        let sentence = format!("the published file {} {what}", of.path.display());
        DeliveryFailure::new(kind, sentence)
    };
    let unread = |error: std::io::Error| {
        failed(FailureKind::Line, &format!("cannot be read: {error}; repair the folder"))
    };
    let mut file = File::open(&of.path).map_err(unread)?;
    let (mut sha256, mut hasher) = (Sha256::new(), FileHasher::new(of.size.as_u64()));
    let (mut bytes, mut read) = (vec![0; PIECE], 0);
    while read < of.size.as_u64() {
        let left = usize::try_from(of.size.as_u64() - read).unwrap_or(usize::MAX);
        let length = file.read(&mut bytes[..left.min(PIECE)]).map_err(unread)?;
        if length == 0 {
            break;
        }
        sha256.update(&bytes[..length]);
        hasher.update(&bytes[..length]);
        read += length as u64;
        if watch(ByteCount::new(0)) == GoOn::Stop {
            return Ok(None);
        }
    }
    let is_at_end = file.read(&mut bytes[..1]).map_err(unread)? == 0;
    let digest: [u8; 32] = sha256.finalize().into();
    match hasher.finish() {
        Some(hash) if is_at_end && digest == of.sha256 => Ok(Some(hash)),
        _ => {
            let what =
                "has other contents than it was published with; restore it, or publish it anew";
            Err(failed(FailureKind::Source, what))
        }
    }
}

/// 4 MiB: a stop is seen within milliseconds, and the ledger is not asked more often.
const PIECE: usize = 4 << 20;
