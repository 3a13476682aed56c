//! Runs of damaged frames in a two-state channel, as a Markov chain.

use super::gilbert::GilbertFit;

/// What happens to the channel and to a frame's datagrams while it passes: by state before and
/// after.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameMoves {
    /// Nothing of the frame was lost.
    clean: [[f64; 2]; 2],
    /// Something was.
    hurt: [[f64; 2]; 2],
}

impl FrameMoves {
    /// For frames of so many datagrams.
    pub fn new(model: &GilbertFit, datagrams: u32) -> Self {
        let moves = [[1.0 - model.to_bad, model.to_bad], [model.to_good, 1.0 - model.to_good]];
        let keeps = [1.0 - model.loss_good, 1.0 - model.loss_bad];
        let kept = [0, 1].map(|from: usize| [0, 1].map(|to: usize| moves[from][to] * keeps[to]));
        let (clean, all) = (power(kept, datagrams), power(moves, datagrams));
        let hurt =
            [0, 1].map(|from| [0, 1].map(|to| f64::max(all[from][to] - clean[from][to], 0.0)));
        Self { clean, hurt }
    }

    /// Part of the frames of which something was lost.
    #[cfg(test)]
    fn hurt(&self, model: &GilbertFit) -> f64 {
        let bad = model.bad();
        [1.0 - bad, bad].iter().zip(self.hurt).map(|(share, row)| share * (row[0] + row[1])).sum()
    }

    /// How often, per frame, `rule` damaged frames one after the other come; each such run counts
    /// once, and the next begins anew.
    pub fn runs(&self, model: &GilbertFit, rule: u32) -> f64 {
        let rule = rule.clamp(1, RULE_MAX) as usize;
        // Shares by how many damaged frames are behind, and by the channel's state.
        let mut shares = vec![[0.0; 2]; rule];
        shares[0] = [1.0 - model.bad(), model.bad()];
        let mut rate = 0.0;
        let mut settled = 0;
        for _ in 0..STEPS_MAX {
            let mut next = vec![[0.0; 2]; rule];
            let mut ended = 0.0;
            for (behind, share) in shares.iter().enumerate() {
                let ways = [(0, 0), (0, 1), (1, 0), (1, 1)];
                for (from, to) in ways {
                    next[0][to] += share[from] * self.clean[from][to];
                    let hurt = share[from] * self.hurt[from][to];
                    if behind + 1 == rule {
                        ended += hurt;
                        next[0][to] += hurt;
                    } else {
                        next[behind + 1][to] += hurt;
                    }
                }
            }
            shares = next;
            let is_same = (ended - rate).abs() <= 1e-12 * ended.max(f64::MIN_POSITIVE);
            settled = if is_same { settled + 1 } else { 0 };
            rate = ended;
            // Two steps may be the same by chance, all of a run's length are not.
            if settled > 2 * rule {
                break;
            }
        }
        rate
    }
}

fn power(matrix: [[f64; 2]; 2], times: u32) -> [[f64; 2]; 2] {
    let product = |one: [[f64; 2]; 2], other: [[f64; 2]; 2]| {
        [0, 1].map(|row: usize| {
            [0, 1].map(|column: usize| {
                one[row][0] * other[0][column] + one[row][1] * other[1][column]
            })
        })
    };
    let (mut result, mut square, mut left) = ([[1.0, 0.0], [0.0, 1.0]], matrix, times);
    while left > 0 {
        if left & 1 == 1 {
            result = product(result, square);
        }
        square = product(square, square);
        left >>= 1;
    }
    result
}

/// The longest run that a rule may ask for.
pub(super) const RULE_MAX: u32 = 64;
/// A chain settles in about as many frames as a good time lasts; what is slower is given as far as
/// it came.
const STEPS_MAX: usize = 20_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn independent_losses_give_the_geometric_answer() {
        let model =
            GilbertFit { to_bad: 0.5, to_good: 0.5, loss_good: 0.1, loss_bad: 0.1, gain: 0.0 };
        let moves = FrameMoves::new(&model, 3);
        let hurt = 1.0 - 0.9f64.powi(3);
        assert!((moves.hurt(&model) - hurt).abs() < 1e-12);
        // Feller, An Introduction to Probability Theory I, XIII.7: mean recurrence of runs of r is
        // (1 - p^r)/(q p^r).
        let expected = (1.0 - hurt) * hurt.powi(3) / (1.0 - hurt.powi(3));
        assert!(
            (moves.runs(&model, 3) - expected).abs() < 1e-9,
            "{} {expected}",
            moves.runs(&model, 3)
        );
    }
}
