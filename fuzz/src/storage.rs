//! What a restart finds on disk.

/// A log's segment, however damaged: what is kept lies in the file, and reading it again finds no more than that.
pub fn log_segment(input: &[u8]) {
    let (summary, end) = skyhaul_store::scan_bytes(input);
    let kept = input.get(..end.as_usize()).expect("no more is kept than there is");
    assert!(summary.flows.iter().all(|span| span.first <= span.last && span.last_at < end));
    let (again, end_again) = skyhaul_store::scan_bytes(kept);
    assert!(end_again <= end && again.flows.len() <= summary.flows.len());
}
