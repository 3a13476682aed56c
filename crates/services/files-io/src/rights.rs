//! What is said where a folder's rights do not allow something.

use skyhaul_files::{RefusalReason, TransferRefusal};

/// The peer may write nothing there.
pub(crate) fn unwritable() -> TransferRefusal {
    not_allowed(
        "be written to; start the far end with --write, or set `write = true` in its [peer.files]",
    )
}

/// The peer may read nothing there.
pub(crate) fn unreadable() -> TransferRefusal {
    not_allowed(
        "be read from; start the far end without --write-only, or set `read = true` in its \
         [peer.files]",
    )
}

fn not_allowed(what: &str) -> TransferRefusal {
    TransferRefusal::new(RefusalReason::NotAllowed, &format!("its folder may not {what}"))
}
