//! Ways back through a trellis of 64 states, each in a word: its six highest bits are the state,
//! the newest the lowest of them; bits already passed move down.

/// Where the state stands.
pub(crate) const STATE: u32 = 58;

/// Groups of lanes that hold the decisions of a step: butterflies 0 to 15 for a zero and for a one,
/// then 16 to 31. Each group has 16 lanes for each of four windows.
pub(crate) const GROUPS: usize = 4;

/// One step back of the way in a window.
#[inline(always)]
pub(crate) fn back(decisions: &[u64; GROUPS], window: u32, way: u64) -> u64 {
    // The butterfly is the state without its newest bit; its lower four bits are the lane.
    let group = (way >> 62 & 2 | way >> STATE & 1) as usize;
    let upper = decisions[group] >> ((way >> (STATE + 1) & 15) + 16 * u64::from(window));
    way >> 1 | upper << 63
}
