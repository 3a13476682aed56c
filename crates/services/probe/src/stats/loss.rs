//! What kind of process loses datagrams: one by one at random, in bursts, or regularly.

use super::exponential::{ExponentialFit, exponential_fit};
use super::gilbert::{GilbertFit, gilbert_fit};
use serde::Serialize;

/// Lags of the autocorrelation that are looked at.
pub const LAGS: usize = 20;

/// What a sequence of losses looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Character {
    /// Nothing was lost.
    None,
    /// Too few losses to tell.
    TooFew,
    /// Independent losses, as of a Poisson process.
    Random,
    /// Losses follow losses.
    Bursts,
    /// Losses keep apart more than chance would have them, as of something that counts.
    Regular,
}

impl Character {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::None => "no loss",
            Self::TooFew => "too few losses to tell bursts from chance",
            Self::Random => "random: each datagram by itself (Poisson)",
            Self::Bursts => "in bursts",
            Self::Regular => "more regular than chance",
        }
    }
}

/// The process behind a sequence of losses.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LossProcess {
    /// Datagrams.
    pub sent: u64,
    /// Of these, lost.
    pub lost: u64,
    /// The part lost.
    pub loss: f64,
    /// The interval that holds the true loss with 95 % where losses are independent (Wilson 1927).
    pub loss_95: [f64; 2],
    /// How many runs of so many lost datagrams one after the other there were: length and number.
    pub runs: Vec<(u64, u64)>,
    /// Mean length of these runs.
    pub run_mean: f64,
    /// Probability that a datagram is lost when the one before was.
    pub again: f64,
    /// An exponential distribution fitted to the intervals between losses, in datagrams.
    pub intervals: Option<ExponentialFit>,
    /// A Gilbert-Elliott model.
    pub gilbert: Option<GilbertFit>,
    /// Whether that explains the losses better than independent loss does.
    pub needs_two_states: bool,
    /// Correlation of a datagram's loss with that of the first, second, … before it.
    pub autocorrelation: Vec<f64>,
    /// Correlations beyond this, either way, are one in twenty where losses are independent.
    pub autocorrelation_95: f64,
    /// What all this says.
    pub character: Character,
}

impl LossProcess {
    /// Of a sequence that says of each datagram whether it was lost.
    pub fn of(lost: &[bool]) -> Self {
        let (sent, count) = (lost.len() as u64, lost.iter().filter(|lost| **lost).count() as u64);
        let runs = runs(lost);
        let all_runs: u64 = runs.iter().map(|(_, number)| number).sum();
        let followed = lost.iter().rev().skip(1).filter(|lost| **lost).count() as f64;
        let pairs = lost.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64;
        let gilbert = gilbert_fit(lost);
        let mut process = Self {
            sent,
            lost: count,
            loss: part(count as f64, sent as f64),
            loss_95: wilson(count as f64, sent as f64),
            run_mean: part(count as f64, all_runs as f64),
            runs,
            again: part(pairs, followed),
            intervals: exponential_fit(&intervals(lost)),
            needs_two_states: gilbert.is_some_and(|fit| fit.is_needed(lost.len())),
            gilbert,
            autocorrelation: autocorrelation(lost),
            autocorrelation_95: 1.96 / (sent.max(1) as f64).sqrt(),
            character: Character::None,
        };
        process.character = process.judged();
        process
    }

    /// A model that loses as this does: the fitted one where two states are needed, one of
    /// independent losses otherwise. `None` where nothing was lost.
    pub fn model(&self) -> Option<GilbertFit> {
        let alike = GilbertFit {
            to_bad: 0.5,
            to_good: 0.5,
            loss_good: self.loss,
            loss_bad: self.loss,
            gain: 0.0,
        };
        match self.gilbert.filter(|_| self.needs_two_states) {
            Some(fit) => Some(fit),
            None => (self.lost > 0).then_some(alike),
        }
    }

    fn judged(&self) -> Character {
        if self.lost == 0 {
            return Character::None;
        }
        let runs: u64 = self.runs.iter().map(|(_, number)| number).sum();
        // One long gap is a burst, however few runs there are: chance loses eight in a row of 10 %
        // once in 10^8.
        let longest = self.runs.last().map_or(0, |(length, _)| *length);
        let odds = self.loss.min(0.5).powf(longest as f64 - 1.0) * self.sent as f64;
        if longest >= 3 && odds < 1e-6 {
            return Character::Bursts;
        }
        if self.needs_two_states
            && self.run_mean * (1.0 - self.loss) > 1.0 + 1.0 / (runs as f64).sqrt()
        {
            return Character::Bursts;
        }
        let Some(fit) = self.intervals else { return Character::TooFew };
        // Ljung and Box 1978: of independent losses once in a hundred beyond the critical value.
        let count = self.sent as f64;
        let sum = |lags: &[f64]| {
            let of = |(lag, r): (usize, &f64)| r * r / (count - (lag + 1) as f64);
            count * (count + 2.0) * lags.iter().enumerate().map(of).sum::<f64>()
        };
        let is_correlated = self.needs_two_states
            || (sum(&self.autocorrelation[..self.autocorrelation.len().min(10)]) > CHI_SQUARE_10
                && self
                    .autocorrelation
                    .first()
                    .is_some_and(|first| *first > 2.0 * self.autocorrelation_95));
        match (fit.probability >= 0.01, is_correlated) {
            (_, true) if self.mean_excess() => Character::Bursts,
            (true, _) => Character::Random,
            (false, _) if self.dispersion_is_low(fit) => Character::Regular,
            (false, _) => Character::Bursts,
        }
    }

    /// Whether losses follow losses more than their share.
    fn mean_excess(&self) -> bool {
        self.again > self.loss || self.autocorrelation.iter().sum::<f64>() > 0.0
    }

    /// Whether intervals vary less than exponential ones: the distance is where short intervals are
    /// missing.
    fn dispersion_is_low(&self, fit: ExponentialFit) -> bool {
        self.again < self.loss
            && fit.distance > fit.critical
            && self.run_mean < 1.0 + 2.0 * self.loss
    }
}

/// Lengths of runs of losses, and how many there are of each, by length.
fn runs(lost: &[bool]) -> Vec<(u64, u64)> {
    let mut runs = std::collections::BTreeMap::new();
    for run in lost.chunk_by(|one, other| one == other).filter(|run| run[0]) {
        *runs.entry(run.len() as u64).or_insert(0u64) += 1;
    }
    runs.into_iter().collect()
}

/// Intervals from each loss to the next in datagrams, and how many of each there were, the shortest
/// first.
pub fn interval_counts(lost: &[bool]) -> Vec<(u64, u64)> {
    let mut counts = std::collections::BTreeMap::new();
    for interval in intervals(lost) {
        *counts.entry(interval).or_insert(0u64) += 1;
    }
    counts.into_iter().collect()
}

/// From each loss to the next, in datagrams.
fn intervals(lost: &[bool]) -> Vec<u64> {
    let places: Vec<usize> =
        lost.iter().enumerate().filter(|(_, lost)| **lost).map(|(place, _)| place).collect();
    places.windows(2).map(|pair| (pair[1] - pair[0]) as u64).collect()
}

fn autocorrelation(lost: &[bool]) -> Vec<f64> {
    let count = lost.len();
    let losses = lost.iter().filter(|lost| **lost).count();
    if losses == 0 || losses == count {
        return Vec::new();
    }
    let mean = losses as f64 / count as f64;
    let variance = mean * (1.0 - mean) * count as f64;
    (1..=LAGS.min(count - 1))
        .map(|lag| {
            let both =
                lost[lag..].iter().zip(lost).filter(|(late, early)| **late && **early).count()
                    as f64;
            let early = lost[..count - lag].iter().filter(|lost| **lost).count() as f64;
            let late = lost[lag..].iter().filter(|lost| **lost).count() as f64;
            (both - mean * (early + late) + mean * mean * (count - lag) as f64) / variance
        })
        .collect()
}

/// Wilson's interval for a probability, 95 %.
fn wilson(count: f64, of: f64) -> [f64; 2] {
    if of == 0.0 {
        return [0.0, 1.0];
    }
    let (z, share) = (1.959_964, count / of);
    let middle = share + z * z / (2.0 * of);
    let half = z * (share * (1.0 - share) / of + z * z / (4.0 * of * of)).sqrt();
    let scale = 1.0 + z * z / of;
    [((middle - half) / scale).max(0.0), ((middle + half) / scale).min(1.0)]
}

fn part(of: f64, all: f64) -> f64 {
    if all > 0.0 { of / all } else { 0.0 }
}

/// One in a hundred of chi-square with ten degrees of freedom is greater.
const CHI_SQUARE_10: f64 = 23.209;

#[cfg(test)]
mod tests {
    use super::super::exponential::uniform;
    use super::*;

    fn random(seed: u64, count: u64, loss: f64) -> Vec<bool> {
        (0..count).map(|n| uniform(seed * 10_000_000 + n) < loss).collect()
    }

    fn bursts(seed: u64, count: u64, to_bad: f64, to_good: f64) -> Vec<bool> {
        let mut is_bad = false;
        (0..count)
            .map(|n| {
                let draw = uniform(seed * 10_000_000 + n);
                is_bad = if is_bad { draw >= to_good } else { draw < to_bad };
                is_bad
            })
            .collect()
    }

    #[test]
    fn chance_and_bursts_are_told_apart_on_many_seeds() {
        let mut wrong = Vec::new();
        for seed in 0..3 {
            for loss in [0.002, 0.01, 0.1] {
                let found = LossProcess::of(&random(seed, 20_000, loss)).character;
                if found != Character::Random {
                    wrong.push((seed, loss, found));
                }
            }
            for (to_bad, to_good) in [(0.001, 0.2), (0.005, 0.5), (0.02, 0.1)] {
                let found = LossProcess::of(&bursts(seed, 20_000, to_bad, to_good)).character;
                if found != Character::Bursts {
                    wrong.push((seed, to_bad, found));
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    #[test]
    fn one_in_every_hundred_is_regular_and_few_are_too_few() {
        let regular: Vec<bool> = (0..20_000).map(|n| n % 100 == 7).collect();
        assert_eq!(LossProcess::of(&regular).character, Character::Regular);
        let few: Vec<bool> = (0..1_000).map(|n| n % 300 == 7).collect();
        assert_eq!(LossProcess::of(&few).character, Character::TooFew);
        assert_eq!(LossProcess::of(&[false; 9]).character, Character::None);
        assert_eq!(LossProcess::of(&[]).character, Character::None);
        let outage: Vec<bool> = (0..20_000).map(|n| (900..1_000).contains(&n)).collect();
        assert_eq!(LossProcess::of(&outage).character, Character::Bursts);
    }

    #[test]
    fn counts_are_as_counted_by_hand() {
        let lost = [0, 1, 1, 0, 0, 1, 0, 1, 1, 0].map(|bit| bit == 1);
        let process = LossProcess::of(&lost);
        assert_eq!((process.sent, process.lost), (10, 5));
        assert_eq!(process.runs, [(1, 1), (2, 2)]);
        assert!(
            (process.run_mean - 5.0 / 3.0).abs() < 1e-12 && (process.again - 0.4).abs() < 1e-12
        );
        assert_eq!(intervals(&lost), [1, 3, 2, 1]);
        assert_eq!(interval_counts(&lost), [(1, 2), (2, 1), (3, 1)]);
        // (sum of (x_i - m)(x_{i+1} - m)) / (n m (1 - m)) with m = 1/2: (2 + 1 of equal pairs - 6
        // others) / 4 / 2.5.
        assert!((process.autocorrelation[0] - -0.3).abs() < 1e-12, "{:?}", process.autocorrelation);
    }

    #[test]
    fn the_interval_of_the_loss_is_wilsons() {
        // Brown, Cai, DasGupta 2001: 0 of 10 gives 0 to 0.2775.
        let [low, high] = wilson(0.0, 10.0);
        assert!(low == 0.0 && (high - 0.2775).abs() < 1e-4, "{high}");
    }
}
