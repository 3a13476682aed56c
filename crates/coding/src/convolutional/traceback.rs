//! Back through the decisions: the bits of the cheapest way.

use super::forward::{GROUPS, Span, Survivors};

/// Where the state stands in the word that holds the way: its six bits are the highest, the newest the lowest of them.
/// Bits already passed move down.
const STATE: u32 = 58;

/// What is traced at a time. A step back waits for a look-up in what the step before found; ways that do not know of
/// each other fill the time.
pub(super) const TOGETHER: usize = 2;

/// Writes the bits of the windows, each `span.length` / 8 bytes, one window after the other, as far as there is room;
/// `SIDE` windows stand side by side.
pub(super) fn trace<const SIDE: usize>(survivors: &[Survivors; TOGETHER], span: Span, out: &mut [u8]) {
    let mut ways = [[0; SIDE]; TOGETHER];
    for (ways, survivors) in ways.iter_mut().zip(survivors) {
        for (way, state) in ways.iter_mut().zip(survivors.best) {
            *way = u64::from(state) << STATE;
        }
    }
    let bytes = span.length / 8;
    let [first, second] = survivors.each_ref().map(|survivors| &survivors.decisions[..span.decided()]);
    for (step, decisions) in first.iter().zip(second).enumerate().rev() {
        back(decisions.0, &mut ways[0]);
        back(decisions.1, &mut ways[1]);
        if step % 8 == 0 && step < span.length {
            // Of the eight steps the last was the first to move down.
            for (window, way) in ways.as_flattened().iter().enumerate() {
                if let Some(byte) = out.get_mut(window * bytes + step / 8) {
                    *byte = (way >> (STATE - 8)) as u8;
                }
            }
        }
    }
}

/// One step back in all windows.
#[inline(always)]
fn back<const SIDE: usize>(decisions: &[u64; GROUPS], ways: &mut [u64; SIDE]) {
    for (window, way) in ways.iter_mut().enumerate() {
        // The butterfly is the state without its newest bit; its lower four bits are the lane.
        let butterfly = *way >> (STATE + 1);
        let group = (butterfly >> 3 & 2 | *way >> STATE & 1) as usize;
        let upper = decisions[group] >> ((butterfly & 15) + 16 * window as u64);
        *way = *way >> 1 | upper << 63;
    }
}
