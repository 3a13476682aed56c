//! The branch metrics of a step through the trellis.
//!
//! A state is the encoder's last six bits, the newest the lowest. From states j and j + 32 a bit
//! leads to 2 j or 2 j + 1. Both connection vectors have the oldest and the newest bit, so of the
//! four branches of such a butterfly two send one pair of symbols and the others its opposite.

use super::{Code, STATES, levels};

/// States below 32, from which the first branch of each butterfly starts.
pub(super) const BUTTERFLIES: usize = STATES / 2;

/// Butterflies are kept in pieces of so many.
const PIECE: usize = 16;

/// Pairs of symbols that there are.
pub(super) const PAIRS: usize = 4;

/// What depends on the code alone.
#[derive(Debug, Clone)]
pub(super) struct Trellis {
    /// For each butterfly the pair of symbols that a zero bit from its lower state sends: 0 to 3,
    /// the first the higher bit. The numbers are places in [`Self::costs`].
    pub pairs: [[u8; PIECE]; 2],
    /// The same for a one bit.
    pub opposites: [[u8; PIECE]; 2],
    /// By what was received, the costs of having sent each pair.
    pub costs: Box<[[u8; PAIRS]; 256]>,
    /// By what was received, the costs of what each butterfly sends for a zero from its lower
    /// state.
    pub straight: Box<[[u8; BUTTERFLIES]; 256]>,
}

impl Trellis {
    pub fn new(code: Code) -> Self {
        let pair = |state: usize| {
            let [first, second] = code.outputs((state as u8) << 1);
            u8::from(first) << 1 | u8::from(second)
        };
        let pairs: [[u8; PIECE]; 2] =
            core::array::from_fn(|half| core::array::from_fn(|lane| pair(PIECE * half + lane)));
        let mut costs = Box::new([[0; PAIRS]; 256]);
        for (received, costs) in costs.iter_mut().enumerate() {
            let [first, second] = levels::of(received as u8);
            for (pair, cost) in costs.iter_mut().enumerate() {
                *cost = against(first, pair >> 1) + against(second, pair & 1);
            }
        }
        let mut straight = Box::new([[0; BUTTERFLIES]; 256]);
        for (straight, costs) in straight.iter_mut().zip(&*costs) {
            for (cost, pair) in straight.iter_mut().zip(pairs.as_flattened()) {
                *cost = costs[usize::from(*pair)];
            }
        }
        Self { pairs, opposites: pairs.map(|half| half.map(|pair| pair ^ 3)), costs, straight }
    }
}

/// What a symbol says against its bit having been `bit`.
fn against(level: i8, bit: usize) -> u8 {
    if (level > 0) == (bit == 1) { 0 } else { level.unsigned_abs() }
}
