//! Forward through the trellis (add-compare-select): the cheapest path to each state, and the
//! predecessor that it comes from.
//!
//! The stream is cut into windows that are decoded apart: a window's metrics begin alike some steps
//! before it and run on some steps behind it, after which its decisions no longer depend on where
//! they began and end. So windows stand side by side in a register, sixteen states of each in
//! sixteen lanes, and a butterfly needs no lane of another window.
//!
//! Metrics are bytes. They cannot overflow: any state is reached from the cheapest in six steps, so
//! that no metric exceeds the least by more than 6 x 14; in 16 steps between two subtractions of
//! the least it grows by at most 16 x 7 (of the two branches from a state one costs at most 7); and
//! one step adds at most 14: 210.

use super::STATES;
use super::levels::MAX_LEVEL;
use super::trellis::{BUTTERFLIES, PAIRS, Trellis};
use crate::gf::Kernel;
use crate::vector::ways::GROUPS;
use crate::vector::{MAX_LANES, PIECE, Simd, Task};

/// Steps between two subtractions of the least metric.
pub(super) const BATCH: usize = 16;

const _: () = assert!(
    6 * 2 * MAX_LEVEL as usize + BATCH * MAX_LEVEL as usize + 2 * MAX_LEVEL as usize
        <= u8::MAX as usize,
    "metrics fit a byte"
);

/// Most windows that stand side by side.
pub(super) const MAX_WINDOWS: usize = MAX_LANES / PIECE;

/// The steps of a window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    /// Steps before it, without decisions.
    pub before: usize,
    /// Steps whose bits are wanted.
    pub length: usize,
    /// Steps behind it.
    pub behind: usize,
}

impl Span {
    pub const fn steps(self) -> usize {
        self.before + self.length + self.behind
    }

    /// Steps with decisions.
    pub const fn decided(self) -> usize {
        self.length + self.behind
    }
}

/// What the way forward leaves.
#[derive(Debug, Clone, Default)]
pub(super) struct Survivors {
    /// For each step with decisions: a bit for each lane, set where the upper predecessor is no
    /// dearer.
    pub decisions: Vec<[u64; GROUPS]>,
    /// The cheapest state at the end, the lowest of those, for each window.
    pub best: [u8; MAX_WINDOWS],
    /// What the windows' bits cost.
    pub growth: [u32; MAX_WINDOWS],
}

/// Goes through up to [`windows`] windows of `span`, each given by the pairs received.
pub(super) fn forward(
    kernel: Kernel,
    trellis: &Trellis,
    span: Span,
    windows: &[&[u8]],
    survivors: &mut Survivors,
) {
    survivors.decisions.resize(span.decided(), [0; GROUPS]);
    survivors.growth = [0; MAX_WINDOWS];
    if windows.is_empty() {
        return;
    }
    let forward = Forward { trellis, span, windows, survivors };
    if kernel.lanes() == 0 {
        forward.one_by_one();
    } else {
        kernel.run(forward);
    }
}

/// Windows that a kernel takes side by side.
pub(super) fn windows(kernel: Kernel) -> usize {
    (kernel.lanes() / PIECE).max(1)
}

struct Forward<'a> {
    trellis: &'a Trellis,
    span: Span,
    windows: &'a [&'a [u8]],
    survivors: &'a mut Survivors,
}

impl Forward<'_> {
    /// Adds what was subtracted from the metrics, where it is a cost of the window's bits.
    #[inline(always)]
    fn count(&mut self, end: usize, least: impl Fn(usize) -> u8) {
        if end > self.span.before && end <= self.span.before + self.span.length {
            for (window, growth) in self.survivors.growth.iter_mut().enumerate() {
                *growth += u32::from(least(window));
            }
        }
    }

    /// Without vectors: the first window alone.
    fn one_by_one(mut self) {
        let pairs = self.windows[0];
        let mut metrics = [0u8; STATES];
        for (batch, pairs) in pairs[..self.span.steps()].chunks_exact(BATCH).enumerate() {
            for (step, pair) in (BATCH * batch..).zip(pairs) {
                let costs = &self.trellis.costs[usize::from(*pair)];
                let straight = &self.trellis.straight[usize::from(*pair)];
                // Two opposites cost together what both symbols say.
                let decisions = step_one(straight, costs[0] + costs[3], &mut metrics);
                if let Some(step) = step.checked_sub(self.span.before) {
                    self.survivors.decisions[step] = decisions;
                }
            }
            let least = metrics.iter().copied().min().unwrap_or(0);
            metrics.iter_mut().for_each(|metric| *metric -= least);
            self.count(BATCH * (batch + 1), |_| least);
        }
        self.survivors.best[0] = metrics.iter().position(|metric| *metric == 0).unwrap_or(0) as u8;
    }
}

/// One step of one window.
fn step_one(straight: &[u8; BUTTERFLIES], both: u8, metrics: &mut [u8; STATES]) -> [u64; GROUPS] {
    let mut next = [[0; 2]; BUTTERFLIES];
    let (mut zero_bits, mut one_bits) = ([0u8; BUTTERFLIES], [0u8; BUTTERFLIES]);
    for butterfly in 0..BUTTERFLIES {
        let (lower, upper) = (metrics[butterfly], metrics[butterfly + BUTTERFLIES]);
        let straight = straight[butterfly];
        let across = both - straight;
        let (from_lower, from_upper) = (lower + straight, upper + across);
        let zero = from_lower.min(from_upper);
        zero_bits[butterfly] = u8::from(from_upper == zero);
        let (from_lower, from_upper) = (lower + across, upper + straight);
        let one = from_lower.min(from_upper);
        one_bits[butterfly] = u8::from(from_upper == one);
        next[butterfly] = [zero, one];
    }
    metrics.copy_from_slice(next.as_flattened());
    let (zero_bits, one_bits) = (zero_bits.as_chunks().0, one_bits.as_chunks().0);
    [sixteen(zero_bits, 0), sixteen(one_bits, 0), sixteen(zero_bits, 2), sixteen(one_bits, 2)]
}

/// The lowest bits of sixteen bytes, in two chunks from `first` on.
fn sixteen(bits: &[[u8; 8]], first: usize) -> u64 {
    // The product moves the bit of byte i to place 56 + i; no two meet.
    let eight =
        |chunk: [u8; 8]| u64::from_le_bytes(chunk).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    eight(bits[first]) | eight(bits[first + 1]) << 8
}

// Closures over vectors are not sure to be inlined where the compiler knows of the instructions:
// there are none below but those that name what is loaded.
impl Task for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let Self { trellis, span, windows, .. } = self;
        // A window that is not there is the first one again.
        let pairs: [&[u8]; MAX_WINDOWS] = core::array::from_fn(|window| {
            &windows.get(window).unwrap_or(&windows[0])[..span.steps()]
        });
        let branches = Branches::new(simd, trellis);
        let mut metrics = [simd.splat(0); GROUPS];
        // For each step the costs of the pairs, of one window after the other.
        let mut costs = [[0; PIECE]; BATCH];
        let mut ignored = [[0; GROUPS]; BATCH];
        for start in (0..span.steps()).step_by(BATCH) {
            for (window, pairs) in pairs.iter().enumerate().take(S::LANES / PIECE) {
                for (costs, pair) in costs.iter_mut().zip(&pairs[start..]) {
                    costs.as_chunks_mut().0[window] = trellis.costs[usize::from(*pair)];
                }
            }
            let decisions = match start.checked_sub(span.before) {
                None => &mut ignored,
                Some(start) => self.survivors.decisions[start..]
                    .first_chunk_mut()
                    .expect("there is room for each step with decisions"),
            };
            for (costs, decisions) in costs.iter().zip(decisions) {
                *decisions = branches.step(simd, simd.repeat(costs), &mut metrics);
            }
            let least = least(simd, &metrics);
            for metrics in &mut metrics {
                *metrics = simd.minus(*metrics, least);
            }
            let mut lanes = [0; MAX_LANES];
            simd.store(least, &mut lanes, 0);
            self.count(start + BATCH, |window| lanes[PIECE * window]);
        }
        for window in 0..S::LANES / PIECE {
            let mut cheapest = 0;
            for (group, metrics) in metrics.iter().enumerate() {
                let states = simd.zeros(*metrics) >> (PIECE * window) & 0xFFFF;
                cheapest |= states << (PIECE * group);
            }
            self.survivors.best[window] = (cheapest.trailing_zeros() % STATES as u32) as u8;
        }
    }
}

/// What each butterfly of each window sends, as places in the costs of all windows.
struct Branches<R> {
    pairs: [R; 2],
    opposites: [R; 2],
}

impl<R: Copy> Branches<R> {
    #[inline(always)]
    fn new<S: Simd<Register = R>>(simd: S, trellis: &Trellis) -> Self {
        let Trellis { pairs: [low, high], opposites: [low_opposites, high_opposites], .. } =
            trellis;
        let places = |pairs: &[u8; PIECE]| {
            let of_window = |window: usize| pairs.map(|pair| (PAIRS * window) as u8 + pair);
            let places: [[u8; PIECE]; MAX_WINDOWS] = core::array::from_fn(of_window);
            simd.gather(|window| &places[window])
        };
        Self {
            pairs: [places(low), places(high)],
            opposites: [places(low_opposites), places(high_opposites)],
        }
    }

    /// One step of all windows. Register i holds states 16 i to 16 i + 15.
    #[inline(always)]
    fn step<S: Simd<Register = R>>(
        &self,
        simd: S,
        costs: R,
        metrics: &mut [R; GROUPS],
    ) -> [u64; GROUPS] {
        let before = *metrics;
        let mut decisions = [0; GROUPS];
        for half in 0..2 {
            let (lower, upper) = (before[half], before[half + 2]);
            let straight = simd.shuffle(costs, self.pairs[half]);
            let across = simd.shuffle(costs, self.opposites[half]);
            let from_upper = simd.plus(upper, across);
            let zeros = simd.least(simd.plus(lower, straight), from_upper);
            decisions[2 * half] = simd.same(zeros, from_upper);
            let from_upper = simd.plus(upper, straight);
            let ones = simd.least(simd.plus(lower, across), from_upper);
            decisions[2 * half + 1] = simd.same(ones, from_upper);
            (metrics[2 * half], metrics[2 * half + 1]) = simd.interleave(zeros, ones);
        }
        decisions
    }
}

/// The least metric of each window, in all its lanes.
#[inline(always)]
fn least<S: Simd>(simd: S, metrics: &[S::Register; GROUPS]) -> S::Register {
    let [a, b, c, d] = *metrics;
    let mut least = simd.least(simd.least(a, b), simd.least(c, d));
    for places in &ROTATIONS {
        least = simd.least(least, simd.shuffle(least, simd.repeat(places)));
    }
    least
}

/// The places 8, 4, 2 and 1 further on, around sixteen.
static ROTATIONS: [[u8; PIECE]; 4] = {
    let mut rotations = [[0; PIECE]; 4];
    let mut index = 0;
    while index < 4 {
        let mut lane = 0;
        while lane < PIECE {
            rotations[index][lane] = ((lane + (8 >> index)) % PIECE) as u8;
            lane += 1;
        }
        index += 1;
    }
    rotations
};
