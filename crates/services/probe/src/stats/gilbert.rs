//! Two-state models of loss: a channel that is good or bad, and changes between datagrams (Gilbert
//! 1960, Elliott 1963).

use serde::Serialize;

/// A Gilbert-Elliott model fitted to a sequence of losses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GilbertFit {
    /// Probability per datagram that a good channel becomes bad.
    pub to_bad: f64,
    /// Probability per datagram that a bad channel becomes good; a bad time is `1/to_good`
    /// datagrams long on average.
    pub to_good: f64,
    /// Probability that a datagram is lost in the good state.
    pub loss_good: f64,
    /// Probability that a datagram is lost in the bad state.
    pub loss_bad: f64,
    /// By how much the logarithm of the probability of what was seen exceeds that of independent
    /// loss.
    pub gain: f64,
}

impl GilbertFit {
    /// Part of the datagrams that the model loses.
    pub fn loss(&self) -> f64 {
        let bad = self.bad();
        bad * self.loss_bad + (1.0 - bad) * self.loss_good
    }

    /// Part of the datagrams that meet a bad channel.
    pub fn bad(&self) -> f64 {
        let sum = self.to_bad + self.to_good;
        if sum > 0.0 { self.to_bad / sum } else { 0.0 }
    }

    /// Whether two states explain the losses better than one, by the Bayesian information
    /// criterion: three parameters more.
    pub fn is_needed(&self, count: usize) -> bool {
        2.0 * self.gain > 3.0 * (count.max(2) as f64).ln()
    }
}

/// Fits a model to a sequence of losses by expectation maximisation (Baum and Welch), from two
/// beginnings, the better of which is taken. Of more than 400,000 datagrams the first are taken.
/// `None` where nothing or everything was lost.
pub fn gilbert_fit(lost: &[bool]) -> Option<GilbertFit> {
    let lost = &lost[..lost.len().min(LENGTH_MAX)];
    let losses = lost.iter().filter(|lost| **lost).count();
    if losses == 0 || losses == lost.len() {
        return None;
    }
    let share = losses as f64 / lost.len() as f64;
    let pairs = lost.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64;
    let again = (pairs / losses as f64).clamp(0.05, 0.95);
    // Bursts in which all is lost, and long bad times in which much is.
    let short = GilbertFit {
        to_bad: (share * (1.0 - again)).clamp(1e-7, 0.5),
        to_good: 1.0 - again,
        loss_good: share * 0.1,
        loss_bad: 0.95,
        gain: 0.0,
    };
    let long = GilbertFit {
        to_bad: 0.005,
        to_good: 0.02,
        loss_good: share * 0.3,
        loss_bad: (share * 3.0).min(0.9),
        gain: 0.0,
    };
    let independent = lost.len() as f64 * (share * share.ln() + (1.0 - share) * (1.0 - share).ln());
    let fitted = [short, long].map(|model| improved(model, lost, independent));
    fitted.into_iter().max_by(|one, other| one.gain.total_cmp(&other.gain)).map(ordered)
}

/// The bad state is the one that loses more.
fn ordered(model: GilbertFit) -> GilbertFit {
    if model.loss_bad >= model.loss_good {
        return model;
    }
    let GilbertFit { to_bad, to_good, loss_good, loss_bad, gain } = model;
    GilbertFit { to_bad: to_good, to_good: to_bad, loss_good: loss_bad, loss_bad: loss_good, gain }
}

fn improved(mut model: GilbertFit, lost: &[bool], independent: f64) -> GilbertFit {
    let mut scratch = vec![[0.0; 2]; lost.len()];
    let mut before = f64::NEG_INFINITY;
    for _ in 0..ROUNDS_MAX {
        let (better, likelihood) = round(&model, lost, &mut scratch);
        model.gain = likelihood - independent;
        if likelihood - before < GAIN_MIN {
            break;
        }
        before = likelihood;
        model = GilbertFit { gain: model.gain, ..better };
    }
    model
}

/// One round: the expectations under `model`, and the model that they make most probable. `forward`
/// is scratch.
fn round(model: &GilbertFit, lost: &[bool], forward: &mut [[f64; 2]]) -> (GilbertFit, f64) {
    let moves = [[1.0 - model.to_bad, model.to_bad], [model.to_good, 1.0 - model.to_good]];
    let emits = |lost: bool| {
        let of = |loss: f64| if lost { loss } else { 1.0 - loss }.max(TINY);
        [of(model.loss_good), of(model.loss_bad)]
    };
    let mut likelihood = 0.0;
    let mut state = [1.0 - model.bad(), model.bad()];
    for (place, lost) in forward.iter_mut().zip(lost) {
        let emit = emits(*lost);
        let both = [state[0] * emit[0], state[1] * emit[1]];
        let sum = (both[0] + both[1]).max(TINY);
        likelihood += sum.ln();
        *place = both.map(|part| part / sum);
        state = [
            place[0] * moves[0][0] + place[1] * moves[1][0],
            place[0] * moves[0][1] + place[1] * moves[1][1],
        ];
    }
    // Backwards, with the sums of what was expected.
    let mut moved = [[0.0; 2]; 2];
    let (mut met, mut met_lost) = ([0.0; 2], [0.0; 2]);
    let mut backward = [1.0; 2];
    for index in (0..lost.len()).rev() {
        let here = forward[index];
        let weight = [here[0] * backward[0], here[1] * backward[1]];
        let sum = (weight[0] + weight[1]).max(TINY);
        for state in 0..2 {
            met[state] += weight[state] / sum;
            met_lost[state] += if lost[index] { weight[state] / sum } else { 0.0 };
        }
        let Some(before) = index.checked_sub(1).map(|index| forward[index]) else { break };
        let emit = emits(lost[index]);
        let ahead = [emit[0] * backward[0], emit[1] * backward[1]];
        let joint = |from: usize, to: usize| before[from] * moves[from][to] * ahead[to];
        let all = (joint(0, 0) + joint(0, 1) + joint(1, 0) + joint(1, 1)).max(TINY);
        for (from, to) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            moved[from][to] += joint(from, to) / all;
        }
        let next = [0, 1].map(|from| moves[from][0] * ahead[0] + moves[from][1] * ahead[1]);
        let scale = (next[0] + next[1]).max(TINY);
        backward = next.map(|part| part / scale);
    }
    let part = |of: f64, all: f64| (of / all.max(TINY)).clamp(1e-9, 1.0 - 1e-9);
    let better = GilbertFit {
        to_bad: part(moved[0][1], moved[0][0] + moved[0][1]),
        to_good: part(moved[1][0], moved[1][0] + moved[1][1]),
        loss_good: (met_lost[0] / met[0].max(TINY)).clamp(0.0, 1.0),
        loss_bad: (met_lost[1] / met[1].max(TINY)).clamp(0.0, 1.0),
        gain: 0.0,
    };
    (better, likelihood)
}

/// Datagrams that a fit looks at: a second's work.
pub const LENGTH_MAX: usize = 400_000;
/// Rounds of improvement; most fits need some tens.
const ROUNDS_MAX: usize = 200;
/// A round that adds less to the logarithm of the probability is the last.
const GAIN_MIN: f64 = 1e-3;
/// Instead of zero, where it is divided by or its logarithm taken.
const TINY: f64 = 1e-300;

#[cfg(test)]
mod tests {
    use super::super::exponential::uniform;
    use super::*;

    /// Losses of a known model.
    fn losses(model: &GilbertFit, count: u64, seed: u64) -> Vec<bool> {
        let mut is_bad = false;
        (0..count)
            .map(|n| {
                let draw = |which: u64| uniform(seed.wrapping_mul(1 << 40) + n * 2 + which);
                is_bad = if is_bad { draw(0) >= model.to_good } else { draw(0) < model.to_bad };
                draw(1) < if is_bad { model.loss_bad } else { model.loss_good }
            })
            .collect()
    }

    #[test]
    fn a_known_model_is_found_again() {
        for (to_bad, to_good, loss_good, loss_bad) in
            [(0.002, 0.1, 0.0, 1.0), (0.001, 0.02, 0.002, 0.5), (0.01, 0.25, 0.0, 0.8)]
        {
            let model = GilbertFit { to_bad, to_good, loss_good, loss_bad, gain: 0.0 };
            let lost = losses(&model, 100_000, 7);
            let fit = gilbert_fit(&lost).unwrap();
            let near = |found: f64, set: f64| (found - set).abs() < set.mul_add(0.2, 0.0005);
            assert!(
                near(fit.to_bad, to_bad)
                    && near(fit.to_good, to_good)
                    && near(fit.loss_good, loss_good)
                    && near(fit.loss_bad, loss_bad),
                "{fit:?} of {model:?}"
            );
            assert!(fit.is_needed(lost.len()));
            let share = lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64;
            assert!((fit.loss() - share).abs() < 0.03 * share, "{} {share}", fit.loss());
        }
    }

    #[test]
    fn independent_losses_need_no_two_states() {
        for seed in 0..6 {
            let lost: Vec<bool> =
                (0..20_000).map(|n| uniform(seed * 1_000_000 + n) < 0.02).collect();
            let fit = gilbert_fit(&lost).unwrap();
            assert!(!fit.is_needed(lost.len()), "{fit:?}");
        }
    }

    #[test]
    fn nothing_and_everything_lost_have_no_model() {
        assert_eq!(gilbert_fit(&[false; 100]), None);
        assert_eq!(gilbert_fit(&[true; 100]), None);
        assert_eq!(gilbert_fit(&[]), None);
        assert!(gilbert_fit(&[true, false]).is_some_and(|fit| fit.loss().is_finite()));
    }
}
