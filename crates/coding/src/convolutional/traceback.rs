//! Back through the decisions: the bits of the cheapest way.

use super::forward::{GROUPS, Span, Survivors};

/// Where the state stands in the word that holds the way: its six bits are the highest, the newest the lowest of them.
/// Bits already passed move down.
const STATE: u32 = 58;

/// Writes the bits of the windows, each `span.length` / 8 bytes, one window after the other; `SIDE` windows stand side
/// by side.
pub(super) fn trace<const SIDE: usize>(survivors: &Survivors, span: Span, out: &mut [u8]) {
    let mut ways: [u64; SIDE] = core::array::from_fn(|window| u64::from(survivors.best[window]) << STATE);
    let bytes = span.length / 8;
    let (wanted, behind) = survivors.decisions.split_at(span.length);
    for decisions in behind.iter().rev() {
        step(decisions, &mut ways);
    }
    for (byte, decisions) in wanted.as_chunks::<8>().0.iter().enumerate().rev() {
        decisions.iter().rev().for_each(|decisions| step(decisions, &mut ways));
        // Of the eight steps the last was the first to move down.
        for (way, out) in ways.iter().zip(out.chunks_exact_mut(bytes)) {
            out[byte] = (way >> (STATE - 8)) as u8;
        }
    }
}

/// One step back in all windows.
#[inline(always)]
fn step<const SIDE: usize>(decisions: &[u64; GROUPS], ways: &mut [u64; SIDE]) {
    for (window, way) in ways.iter_mut().enumerate() {
        let state = *way >> STATE;
        // The butterfly is the state without its newest bit; its lower four bits are the lane.
        let group = (state >> 5 << 1 | state & 1) as usize;
        let upper = decisions[group] >> (16 * window as u64 + (state >> 1 & 15)) & 1;
        *way = *way >> 1 | upper << 63;
    }
}
