//! What a restart finds on disk.

use skyhaul_store::{LogError, open_bytes};
use skyhaul_units::ByteCount;

/// A log's segment, however damaged: what is found lies in the file, and opening it again finds the
/// same and changes nothing.
pub fn log_segment(input: &[u8]) {
    let (summary, kept) = match open_bytes(input) {
        Ok(found) => found,
        Err(LogError::OtherVersion { .. }) => return,
        Err(error) => panic!("memory does not refuse: {error}"),
    };
    let end = ByteCount::of(kept.len());
    assert!(summary.flows.iter().all(|span| span.first <= span.last && span.last_at < end));
    assert_eq!(open_bytes(&kept).expect("it opened before"), (summary, kept));
}
