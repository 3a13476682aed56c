//! The rules of a subscription's deliveries.

use skyhaul_units::Duration;

/// The rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryRules {
    /// When a failed attempt is repeated.
    pub retry: RetryRules,
    /// The consumer's notice, where one is awaited.
    pub answer: Option<AnswerRules>,
    /// The most attempts where the consumer says that it could not take the product.
    pub attempts: u32,
    /// How long a delivery may wait for a better version before it begins.
    pub patience: Duration,
}

impl DeliveryRules {
    /// The longest time for which a delivery waits for its next attempt.
    pub fn longest(&self) -> Duration {
        self.retry.longest().max(self.patience)
    }
}

/// When failed attempts are repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryRules {
    /// The pause after the first failure; each further failure doubles it.
    pub first: Duration,
    /// The longest pause.
    pub most: Duration,
    /// How long failures in a row are borne.
    pub span: Duration,
}

/// What is done about notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerRules {
    /// How long one is awaited.
    pub within: Duration,
    /// And if none comes.
    pub missing: MissingAnswer,
}

/// What is done if no notice comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingAnswer {
    /// The delivery is settled without.
    Settle,
    /// The record is written again.
    Remind,
    /// All is sent again.
    Again,
}

/// Which versions of a product a subscription wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionRule {
    /// The latest: an earlier one that has not begun is replaced.
    Latest,
    /// Each of them.
    All,
    /// The first one only.
    First,
}

/// When the promise of a subscription is kept that has several destinations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromiseRule {
    /// Each destination has the product in time.
    All,
    /// One of them has.
    Any,
    /// The first one has.
    First,
}

impl PromiseRule {
    /// Whether the destination at `place` breaks it after the deadline, where `is_there` says which
    /// of the destinations, in their order, have the product.
    pub fn is_broken_by(self, place: usize, is_there: &[bool]) -> bool {
        let lacks = |place: usize| is_there.get(place) == Some(&false);
        match self {
            Self::All => lacks(place),
            Self::Any => lacks(place) && !is_there.contains(&true),
            Self::First => place == 0 && lacks(0),
        }
    }
}

impl RetryRules {
    /// The pause after this many failures in a row: doubled with each, at most `most`, and up to a
    /// fifth longer by the random number.
    pub fn pause(&self, failures: u32, random: u32) -> Duration {
        let doubled = 1u64 << failures.saturating_sub(1).min(32);
        let pause = self.first.as_nanos().saturating_mul(doubled).min(self.most.as_nanos());
        let spread = u128::from(pause / 5) * u128::from(random) / u128::from(u32::MAX);
        Duration::from_nanos(pause.saturating_add(u64::try_from(spread).unwrap_or(u64::MAX)))
    }

    /// The longest pause that [`RetryRules::pause`] gives.
    pub fn longest(&self) -> Duration {
        self.pause(u32::MAX, u32::MAX)
    }
}

impl Default for DeliveryRules {
    fn default() -> Self {
        Self { retry: RetryRules::default(), answer: None, attempts: 3, patience: Duration::ZERO }
    }
}

impl Default for RetryRules {
    /// Ten seconds to half an hour, for three days: a consumer's long weekend.
    fn default() -> Self {
        Self {
            first: Duration::from_secs(10),
            most: Duration::from_secs(1_800),
            span: Duration::from_secs(3 * 86_400),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_is_broken_by_those_that_it_needs() {
        let broken = |rule: PromiseRule, there: [bool; 2]| {
            [0, 1].map(|place| rule.is_broken_by(place, &there))
        };
        for (rule, there, wanted) in [
            (PromiseRule::All, [true, false], [false, true]),
            (PromiseRule::All, [false, false], [true, true]),
            (PromiseRule::Any, [false, true], [false, false]),
            (PromiseRule::Any, [false, false], [true, true]),
            (PromiseRule::First, [false, true], [true, false]),
            (PromiseRule::First, [true, false], [false, false]),
        ] {
            assert_eq!(broken(rule, there), wanted, "{rule:?} {there:?}");
        }
    }
}
