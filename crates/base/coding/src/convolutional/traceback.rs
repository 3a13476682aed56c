//! Traces back through the decisions: the bits of the cheapest path.

use super::forward::{MAX_WINDOWS, Span, Survivors};
use crate::gf::Kernel;
use crate::vector::ways::{self, STATE};
use crate::vector::{Simd, Task};

/// What is traced at a time. A step back waits for a look-up in what the step before found; ways
/// that do not know of each other fill the time.
pub(super) const TOGETHER: usize = 4;

/// Writes the bits of the windows, each `span.length` / 8 bytes, one window after the other, as far
/// as there is room; `side` windows stand side by side.
pub(super) fn trace(
    kernel: Kernel,
    survivors: &[Survivors; TOGETHER],
    side: usize,
    span: Span,
    out: &mut [u8],
) {
    match side {
        1 => trace_few::<1>(survivors, span, out),
        2 => trace_few::<2>(survivors, span, out),
        _ => {
            kernel.run(Wide { survivors, span, out });
        }
    }
}

fn trace_few<const SIDE: usize>(survivors: &[Survivors; TOGETHER], span: Span, out: &mut [u8]) {
    let mut ways = [[0; SIDE]; TOGETHER];
    for (ways, survivors) in ways.iter_mut().zip(survivors) {
        for (way, state) in ways.iter_mut().zip(survivors.best) {
            *way = u64::from(state) << STATE;
        }
    }
    let decisions = survivors.each_ref().map(|survivors| &survivors.decisions[..span.decided()]);
    for step in (0..span.decided()).rev() {
        for (ways, decisions) in ways.iter_mut().zip(decisions) {
            for (way, window) in ways.iter_mut().zip(0..) {
                *way = ways::back(&decisions[step], window, *way);
            }
        }
        if step % 8 == 0 && step < span.length {
            write(ways.as_flattened(), span, step, out);
        }
    }
}

/// Eight ways in a register, and two registers that do not wait for each other.
struct Wide<'a> {
    survivors: &'a [Survivors; TOGETHER],
    span: Span,
    out: &'a mut [u8],
}

impl Task for Wide<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { survivors, span, out } = self;
        let mut ways = [[0; 2 * MAX_WINDOWS]; 2];
        for (ways, survivors) in
            ways.as_flattened_mut().chunks_exact_mut(MAX_WINDOWS).zip(survivors)
        {
            for (way, state) in ways.iter_mut().zip(survivors.best) {
                *way = u64::from(state) << STATE;
            }
        }
        let [a, b, c, d] =
            survivors.each_ref().map(|survivors| &survivors.decisions[..span.decided()]);
        for step in (0..span.decided()).rev() {
            simd.back([&a[step], &b[step]], &mut ways[0]);
            simd.back([&c[step], &d[step]], &mut ways[1]);
            if step % 8 == 0 && step < span.length {
                write(ways.as_flattened(), span, step, out);
            }
        }
    }
}

/// Writes the bits of the eight steps from `step` on. Of these the last was the first to move down.
#[inline(always)]
fn write(ways: &[u64], span: Span, step: usize, out: &mut [u8]) {
    let bytes = span.length / 8;
    for (window, way) in ways.iter().enumerate() {
        if let Some(byte) = out.get_mut(window * bytes + step / 8) {
            *byte = (way >> (STATE - 8)) as u8;
        }
    }
}
