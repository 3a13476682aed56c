//! Forward through the trellis: the cheapest way to each state, and which of its two predecessors that comes from.
//!
//! The stream is cut into windows that are decoded apart: a window's metrics begin alike some steps before it and run on
//! some steps behind it, after which its decisions no longer depend on where they began and end. So windows stand side by
//! side in a register, sixteen states of each in sixteen lanes, and a butterfly needs no lane of another window.
//!
//! Metrics are bytes. They cannot overflow: any state is reached from the cheapest in six steps, so that no metric
//! exceeds the least by more than 6 x 14; in 16 steps between two subtractions of the least it grows by at most 16 x 7 (of
//! the two branches from a state one costs at most 7); and one step adds at most 14: 210.

use super::STATES;
use super::levels::MAX_LEVEL;
use super::trellis::{BUTTERFLIES, Trellis};
use crate::gf::Kernel;
use crate::vector::{MAX_LANES, PIECE, Simd, Task};

/// Steps between two subtractions of the least metric.
pub(super) const BATCH: usize = 16;

const _: () = assert!(
    6 * 2 * MAX_LEVEL as usize + BATCH * MAX_LEVEL as usize + 2 * MAX_LEVEL as usize <= u8::MAX as usize,
    "metrics fit a byte"
);

/// Most windows that stand side by side.
pub(super) const MAX_WINDOWS: usize = MAX_LANES / PIECE;

/// Groups of lanes that hold the decisions of one step: butterflies 0 to 15 for a zero and for a one, then 16 to 31.
pub(super) const GROUPS: usize = 4;

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
    /// For each step with decisions: a bit for each lane, set where the upper predecessor is no dearer.
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
                let decisions = step_one(self.trellis, costs, &mut metrics);
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
fn step_one(trellis: &Trellis, costs: &[u8; PIECE], metrics: &mut [u8; STATES]) -> [u64; GROUPS] {
    let (lower, upper) = metrics.split_at(BUTTERFLIES);
    let mut next = [0; STATES];
    let mut decisions = [0; GROUPS];
    for half in 0..2 {
        let (mut zeros, mut ones) = ([0u8; PIECE], [0u8; PIECE]);
        let (mut zero_bits, mut one_bits) = ([0u8; PIECE], [0u8; PIECE]);
        for lane in 0..PIECE {
            let (lower, upper) = (lower[PIECE * half + lane], upper[PIECE * half + lane]);
            let straight = costs[usize::from(trellis.pairs[half][lane] & 3)];
            let across = costs[usize::from(trellis.opposites[half][lane] & 3)];
            zeros[lane] = (lower + straight).min(upper + across);
            zero_bits[lane] = u8::from(upper + across <= lower + straight);
            ones[lane] = (lower + across).min(upper + straight);
            one_bits[lane] = u8::from(upper + straight <= lower + across);
        }
        let mask = |bits: [u8; PIECE]| {
            bits.iter().enumerate().fold(0, |mask, (lane, bit)| mask | u64::from(*bit) << lane)
        };
        decisions[2 * half] = mask(zero_bits);
        decisions[2 * half + 1] = mask(one_bits);
        for lane in 0..PIECE {
            next[2 * (PIECE * half + lane)] = zeros[lane];
            next[2 * (PIECE * half + lane) + 1] = ones[lane];
        }
    }
    *metrics = next;
    decisions
}

impl Task for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let Self { trellis, span, windows, .. } = self;
        // A window that is not there is the first one again.
        let pairs: [&[u8]; MAX_WINDOWS] =
            core::array::from_fn(|window| &windows.get(window).unwrap_or(&windows[0])[..span.steps()]);
        let branches = Branches::new(simd, trellis);
        let mut metrics = [simd.splat(0); GROUPS];
        let mut batch = [[0; BATCH]; MAX_WINDOWS];
        for start in (0..span.steps()).step_by(BATCH) {
            for (batch, pairs) in batch.iter_mut().zip(pairs).take(S::LANES / PIECE) {
                batch.copy_from_slice(&pairs[start..start + BATCH]);
            }
            let costs = |step: usize| simd.gather(|window| &trellis.costs[usize::from(batch[window][step])]);
            match start.checked_sub(span.before) {
                None => (0..BATCH).for_each(|step| {
                    branches.step(simd, costs(step), &mut metrics);
                }),
                Some(start) => {
                    let decisions = &mut self.survivors.decisions[start..start + BATCH];
                    for (step, decisions) in decisions.iter_mut().enumerate() {
                        *decisions = branches.step(simd, costs(step), &mut metrics);
                    }
                }
            }
            let least = least(simd, &metrics);
            metrics = metrics.map(|metrics| simd.minus(metrics, least));
            let mut lanes = [0; MAX_LANES];
            simd.store(least, &mut lanes, 0);
            self.count(start + BATCH, |window| lanes[PIECE * window]);
        }
        let zero = simd.splat(0);
        let ends = metrics.map(|metrics| simd.same(metrics, zero));
        for (window, best) in self.survivors.best.iter_mut().enumerate().take(S::LANES / PIECE) {
            let of_window =
                |(group, mask): (usize, u64)| (mask >> (PIECE * window) & 0xFFFF) << (PIECE * group);
            let states = ends.into_iter().enumerate().map(of_window).fold(0, |all, states| all | states);
            *best = (states.trailing_zeros() % STATES as u32) as u8;
        }
    }
}

/// What each butterfly sends, as places in the costs.
struct Branches<R> {
    pairs: [R; 2],
    opposites: [R; 2],
}

impl<R: Copy> Branches<R> {
    #[inline(always)]
    fn new<S: Simd<Register = R>>(simd: S, trellis: &Trellis) -> Self {
        let register = |half: &[u8; PIECE]| simd.gather(|_| half);
        Self {
            pairs: [register(&trellis.pairs[0]), register(&trellis.pairs[1])],
            opposites: [register(&trellis.opposites[0]), register(&trellis.opposites[1])],
        }
    }

    /// One step of all windows. Register i holds states 16 i to 16 i + 15.
    #[inline(always)]
    fn step<S: Simd<Register = R>>(&self, simd: S, costs: R, metrics: &mut [R; GROUPS]) -> [u64; GROUPS] {
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
    let least = simd.least(simd.least(a, b), simd.least(c, d));
    ROTATIONS
        .iter()
        .fold(least, |least, places| simd.least(least, simd.shuffle(least, simd.gather(|_| places))))
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
