//! One delivery: a product on its way to a destination, and what becomes of it.
//!
//! ```text
//!  waiting ──► sending ──► placed ──► recorded ──► accepted
//!   ▲  │ ▲        │           │           ├──────► refused      the consumer's notice
//!   │  │ └────────┴───────────┘           ├──────► unanswered   no notice in time
//!   │  ▼   failure that may pass          └──────► waiting      some files, or all, are sent again
//!  held                                   failure that may not pass: refused; retries over: failed
//! ```
//!
//! The caller makes each state durable before its effect is visible at the destination. So a
//! restart finds `sending` or `placed` only where the destination must be asked what it has.

use crate::disposition::Disposition;
use crate::failure::{DeliveryFailure, FailureKind};
use crate::rules::{DeliveryRules, MissingAnswer};
use crate::{Notice, NoticeContent};
use serde::{Deserialize, Serialize};
use skyhaul_units::{Duration, Utc};
use std::collections::BTreeSet;

/// Where a delivery is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeliveryState {
    /// It has not begun, or waits for its next attempt.
    Waiting,
    /// An operator holds it.
    Held,
    /// Its files are on their way.
    Sending,
    /// All its files are there under their names; the record is not.
    Placed,
    /// The record is there too; the consumer's notice is awaited.
    Recorded,
    /// The destination has it, as the proof says.
    Accepted,
    /// The destination does not take it.
    Refused,
    /// The consumer's notice did not come in time.
    Unanswered,
    /// It was tried for as long as the rules say.
    Failed,
    /// A newer version took its place before it was sent.
    Replaced,
    /// An operator cancelled it.
    Cancelled,
}

/// Why a destination is believed to have a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// Every byte was written there, and was on its disk before the file got its name.
    Written,
    /// The size there is that of the file.
    Size,
    /// The destination computed the digest, and it agrees.
    Digest,
    /// The file was read back from the destination, and its digest agrees.
    ReadBack,
    /// The far node has it on its disk.
    Receipt,
    /// The consumer's notice accepts it.
    Notice,
}

/// One delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Where it is.
    pub state: DeliveryState,
    /// Since when.
    pub since: Utc,
    /// How often its files were placed.
    pub attempts: u32,
    /// Failures since the last success of any kind: the pause grows with them.
    pub failures: u32,
    /// When the first of these failures was.
    pub failing_since: Option<Utc>,
    /// Not before this time.
    pub next: Option<Utc>,
    /// Only these files, where a notice took the others.
    pub only: Option<BTreeSet<String>>,
    /// Why the destination is believed to have it.
    pub proof: Option<Proof>,
    /// Why it is where it is, in a sentence.
    pub reason: Option<String>,
}

/// What happens to a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryInput {
    /// Its files are about to be sent.
    Begin,
    /// All its files are there, with this proof.
    Placed(Proof),
    /// Its record is there.
    Recorded,
    /// The attempt failed. The random number spreads the next attempts of many.
    Failed(DeliveryFailure, u32),
    /// A notice came.
    Noticed(Notice),
    /// Time passed.
    Timeout,
    /// A newer version of the product was published.
    Superseded,
    /// An operator holds it, lets it go on, gives it up, or wants it sent again.
    Ordered(DeliveryOrder),
}

/// What an operator wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryOrder {
    /// Begin no further attempt.
    Hold,
    /// Go on.
    Release,
    /// Give it up.
    Cancel,
    /// Send it again from the beginning, whatever became of it.
    Again,
}

/// What a delivery wants of its caller, beside being made durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryOutput {
    /// Nothing.
    Quiet,
    /// An alarm: the reason of the delivery says why.
    Alarm,
    /// The consumer should be reminded: the record is written again under its name.
    Remind,
    /// The input does not fit the state; the delivery is unchanged.
    Unfitting,
}

impl Proof {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Size => "size",
            Self::Digest => "digest",
            Self::ReadBack => "read-back",
            Self::Receipt => "receipt",
            Self::Notice => "notice",
        }
    }
}

impl DeliveryState {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Waiting,
        Self::Held,
        Self::Sending,
        Self::Placed,
        Self::Recorded,
        Self::Accepted,
        Self::Refused,
        Self::Unanswered,
        Self::Failed,
        Self::Replaced,
        Self::Cancelled,
    ];

    /// Its name, as commands and files write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Held => "held",
            Self::Sending => "sending",
            Self::Placed => "placed",
            Self::Recorded => "recorded",
            Self::Accepted => "accepted",
            Self::Refused => "refused",
            Self::Unanswered => "unanswered",
            Self::Failed => "failed",
            Self::Replaced => "replaced",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing further happens unless an operator orders it.
    pub const fn is_settled(self) -> bool {
        matches!(
            self,
            Self::Accepted
                | Self::Refused
                | Self::Unanswered
                | Self::Failed
                | Self::Replaced
                | Self::Cancelled
        )
    }

    /// Whether the destination has the product.
    pub const fn is_there(self) -> bool {
        matches!(self, Self::Recorded | Self::Accepted | Self::Unanswered)
    }
}

impl core::str::FromStr for DeliveryState {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|state| state.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("`{text}` is no state of a delivery; write one of {names}")
        })
    }
}

impl Delivery {
    /// Whether it was at the destination before, and its consumer wants it again: then what is
    /// there under its names is its own, and is replaced.
    pub const fn is_repeated(&self) -> bool {
        matches!(self.state, DeliveryState::Waiting) && self.attempts > 0
    }

    /// One that has not begun.
    pub const fn offered(now: Utc) -> Self {
        Self {
            state: DeliveryState::Waiting,
            since: now,
            attempts: 0,
            failures: 0,
            failing_since: None,
            next: None,
            only: None,
            proof: None,
            reason: None,
        }
    }

    /// Whether an attempt may begin. A time that lies farther ahead than any pause is from a clock
    /// that was set back, and does not count.
    pub fn is_due(&self, now: Utc, rules: &DeliveryRules) -> bool {
        let is_ripe = self.next.is_none_or(|next| next <= now || next > now + rules.longest());
        matches!(
            self.state,
            DeliveryState::Waiting | DeliveryState::Sending | DeliveryState::Placed
        ) && is_ripe
    }

    /// When [`DeliveryInput::Timeout`] is due.
    pub fn next_timeout(&self, rules: &DeliveryRules) -> Option<Utc> {
        let answer = rules.answer.as_ref()?;
        (self.state == DeliveryState::Recorded).then(|| self.since + answer.within)
    }

    /// Carries out what happened.
    pub fn handle(
        &mut self,
        now: Utc,
        input: DeliveryInput,
        rules: &DeliveryRules,
    ) -> DeliveryOutput {
        use DeliveryState as State;
        match (self.state, input) {
            (State::Waiting | State::Sending | State::Placed, DeliveryInput::Begin) => {
                self.go(now, State::Sending)
            }
            (State::Sending, DeliveryInput::Placed(proof)) => {
                self.attempts += 1;
                (self.proof, self.failures, self.failing_since) = (Some(proof), 0, None);
                (self.next, self.reason) = (None, None);
                self.go(now, State::Placed)
            }
            (State::Placed, DeliveryInput::Recorded) => match rules.answer {
                Some(_) => self.go(now, State::Recorded),
                None => self.go(now, State::Accepted),
            },
            (State::Sending | State::Placed, DeliveryInput::Failed(failure, random)) => {
                self.fail(now, failure, random, rules)
            }
            (state, DeliveryInput::Noticed(notice)) if state.is_there() => {
                self.answer(now, &notice, rules)
            }
            (State::Recorded, DeliveryInput::Timeout) => self.unanswered(now, rules),
            (State::Waiting | State::Held, DeliveryInput::Superseded) if self.attempts == 0 => {
                self.go(now, State::Replaced)
            }
            (_, DeliveryInput::Ordered(order)) => self.obey(now, order),
            _ => DeliveryOutput::Unfitting,
        }
    }

    fn go(&mut self, now: Utc, state: DeliveryState) -> DeliveryOutput {
        (self.state, self.since) = (state, now);
        DeliveryOutput::Quiet
    }

    /// Goes into a state for a reason that an operator should know.
    fn alarm(&mut self, now: Utc, state: DeliveryState, reason: String) -> DeliveryOutput {
        self.reason = Some(reason);
        self.go(now, state);
        DeliveryOutput::Alarm
    }

    fn fail(
        &mut self,
        now: Utc,
        failure: DeliveryFailure,
        random: u32,
        rules: &DeliveryRules,
    ) -> DeliveryOutput {
        if !failure.kind.is_of_destination() {
            return self.alarm(now, DeliveryState::Refused, failure.sentence);
        }
        let since = *self.failing_since.get_or_insert(now);
        let is_over = now.since(since) >= rules.retry.span && failure.kind != FailureKind::Full;
        if is_over {
            let reason = format!("tried for {}: {}", rules.retry.span.in_units(), failure.sentence);
            return self.alarm(now, DeliveryState::Failed, reason);
        }
        self.failures = self.failures.saturating_add(1);
        self.next = Some(now + rules.retry.pause(self.failures, random));
        self.reason = Some(failure.sentence);
        self.go(now, DeliveryState::Waiting);
        match failure.kind {
            FailureKind::Line => DeliveryOutput::Quiet,
            _ => DeliveryOutput::Alarm,
        }
    }

    fn answer(&mut self, now: Utc, notice: &Notice, rules: &DeliveryRules) -> DeliveryOutput {
        let said = notice.failure().unwrap_or_default();
        let failed: Vec<(&str, &str)> = match &notice.answer {
            NoticeContent::Accepted => Vec::new(),
            NoticeContent::Failed(reason) => vec![("", reason.as_str())],
            NoticeContent::Refused(_) => return self.alarm(now, DeliveryState::Refused, said),
            NoticeContent::Files(files) => files
                .iter()
                .filter_map(|file| Some((file.name.as_str(), file.failure.as_deref()?)))
                .collect(),
        };
        let Some(worst) = failed.iter().map(|(_, reason)| Disposition::of(reason)).max() else {
            (self.proof, self.reason, self.only) = (Some(Proof::Notice), None, None);
            return self.go(now, DeliveryState::Accepted);
        };
        if worst == Disposition::Refused || self.attempts >= rules.attempts {
            return self.alarm(now, DeliveryState::Refused, said);
        }
        let names: BTreeSet<String> = failed
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .filter(|name| !name.is_empty())
            .collect();
        self.only = (!names.is_empty()).then_some(names);
        (self.proof, self.reason) = (None, Some(said));
        let pause = match worst {
            Disposition::Wait => rules.retry.most,
            _ => Duration::ZERO,
        };
        self.next = Some(now + pause);
        self.go(now, DeliveryState::Waiting)
    }

    fn unanswered(&mut self, now: Utc, rules: &DeliveryRules) -> DeliveryOutput {
        let Some(answer) = rules.answer.as_ref() else { return DeliveryOutput::Unfitting };
        if now < self.since + answer.within {
            return DeliveryOutput::Unfitting;
        }
        let reason = format!("no notice within {}", answer.within.in_units());
        match answer.missing {
            MissingAnswer::Settle => {
                self.reason = Some(reason);
                self.go(now, DeliveryState::Unanswered)
            }
            MissingAnswer::Remind if self.attempts < rules.attempts => {
                // The span begins anew.
                self.attempts += 1;
                self.reason = Some(reason);
                self.go(now, DeliveryState::Recorded);
                DeliveryOutput::Remind
            }
            MissingAnswer::Again if self.attempts < rules.attempts => {
                (self.reason, self.next, self.only) = (Some(reason), None, None);
                self.go(now, DeliveryState::Waiting)
            }
            MissingAnswer::Remind | MissingAnswer::Again => {
                self.alarm(now, DeliveryState::Unanswered, reason)
            }
        }
    }

    fn obey(&mut self, now: Utc, order: DeliveryOrder) -> DeliveryOutput {
        use DeliveryState as State;
        match (order, self.state) {
            (DeliveryOrder::Hold, State::Waiting | State::Sending | State::Placed) => {
                self.go(now, State::Held)
            }
            (DeliveryOrder::Release, State::Held) => {
                self.next = None;
                self.go(now, State::Waiting)
            }
            (DeliveryOrder::Cancel, state) if !state.is_settled() => self.go(now, State::Cancelled),
            (DeliveryOrder::Again, _) => {
                *self = Self { attempts: self.attempts, ..Self::offered(now) };
                DeliveryOutput::Quiet
            }
            _ => DeliveryOutput::Unfitting,
        }
    }
}

#[cfg(test)]
mod tests;
