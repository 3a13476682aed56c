//! What each timer of a session is for.

/// What a session waits for. The next time-out is the earliest of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timer {
    /// Look for blocks whose last symbols the far end never acknowledged.
    Probe,
    /// A block to be sent can no longer arrive before its deadline.
    SendExpiry,
    /// A block in reassembly has passed its deadline.
    ReceiveExpiry,
    /// A report to the far end.
    Report,
    /// A notice of abandoned blocks, for the first time or again.
    AbandonedNotice,
    /// A further copy of a retransmitted slice.
    FurtherCopy,
    /// The rate of a class lets its next symbol go.
    ClassRate,
    /// The declared rate of a path that several sessions share lets the next datagram go.
    LineRate,
    /// A datagram under way on a path counts as lost.
    Loss,
    /// An open group of a path closes, or its next FEC repair symbol goes out.
    RepairGroup,
    /// A path's last symbols get FEC repair ahead of any loss.
    RepairTail,
    /// A path may be silent: what was retransmitted there goes on another too.
    SilenceDoubted,
    /// A path counts as stalled, silent or as a black hole.
    Stall,
    /// A stalled path is tried again.
    StalledPathTry,
    /// An outage, a rate or a loss that was foretold of a path begins or ends.
    HintChange,
    /// The rate that a hint gives as a path's most lets the next symbol go.
    HintRate,
    /// A path's new datagram size has stayed for long enough to be reported.
    PathResize,
}
