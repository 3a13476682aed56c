//! The synchroniser's states.
//!
//! ```text
//!            candidate              confirmed
//!  ┌──────┐ ──────────► ┌───────┐ ───────────► ┌──────┐ ◄─┐
//!  │Search│             │ Check │              │ Lock │ ──┘ confirmed
//!  └──────┘ ◄────────── └───────┘              └──────┘
//!     ▲      rejected                 confirmed ▲   │ missed
//!     │                limit         ┌──────────┐   │
//!     └───────────────────────────── │ Flywheel │ ◄─┘
//!                                    └──────────┘ candidate, rejected, missed: stays
//! ```

/// Where the synchroniser is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Searches every bit for a marker.
    Search,
    /// Has a marker that is not proven yet.
    Check,
    /// Knows where the next marker is.
    Lock,
    /// Found no marker where one was due; continues at that position, and searches around it.
    Flywheel,
}

/// An event in a state that has no transition for it: a mistake in the synchroniser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no transition from {state:?} on {event}")]
pub(super) struct IllegalEvent {
    state: State,
    event: &'static str,
}

impl State {
    /// A marker was seen where none was predicted.
    pub fn candidate(self) -> Result<Self, IllegalEvent> {
        match self {
            Self::Search => Ok(Self::Check),
            Self::Flywheel => Ok(Self::Flywheel),
            Self::Check | Self::Lock => Err(self.illegal("candidate")),
        }
    }
    /// A frame is proved: by error control, or by the markers after it, or by its marker where one
    /// was due.
    pub fn confirmed(self) -> Result<Self, IllegalEvent> {
        match self {
            Self::Check | Self::Lock | Self::Flywheel => Ok(Self::Lock),
            Self::Search => Err(self.illegal("confirmed")),
        }
    }
    /// A candidate was rejected.
    pub fn rejected(self) -> Result<Self, IllegalEvent> {
        match self {
            Self::Check => Ok(Self::Search),
            Self::Flywheel => Ok(Self::Flywheel),
            Self::Search | Self::Lock => Err(self.illegal("rejected")),
        }
    }
    /// No marker where one was due.
    pub fn missed(self) -> Result<Self, IllegalEvent> {
        match self {
            Self::Lock | Self::Flywheel => Ok(Self::Flywheel),
            Self::Search | Self::Check => Err(self.illegal("missed")),
        }
    }
    /// Nothing was found within the limit of the flywheel.
    pub fn limit(self) -> Result<Self, IllegalEvent> {
        match self {
            Self::Flywheel => Ok(Self::Search),
            Self::Search | Self::Check | Self::Lock => Err(self.illegal("limit")),
        }
    }

    const fn illegal(self, event: &'static str) -> IllegalEvent {
        IllegalEvent { state: self, event }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::fmt::Write;

    #[test]
    fn every_event_in_every_state() {
        type Event = fn(State) -> Result<State, IllegalEvent>;
        let events: [(&str, Event); 5] = [
            ("candidate", State::candidate),
            ("confirmed", State::confirmed),
            ("rejected", State::rejected),
            ("missed", State::missed),
            ("limit", State::limit),
        ];
        let mut matrix = String::new();
        for state in [State::Search, State::Check, State::Lock, State::Flywheel] {
            for (name, event) in events {
                let outcome = event(state).map_or("-".to_owned(), |next| format!("{next:?}"));
                writeln!(matrix, "{state:?} {name} {outcome}").unwrap();
            }
        }
        let expected = "\
Search candidate Check
Search confirmed -
Search rejected -
Search missed -
Search limit -
Check candidate -
Check confirmed Lock
Check rejected Search
Check missed -
Check limit -
Lock candidate -
Lock confirmed Lock
Lock rejected -
Lock missed Flywheel
Lock limit -
Flywheel candidate Flywheel
Flywheel confirmed Lock
Flywheel rejected Flywheel
Flywheel missed Flywheel
Flywheel limit Search
";
        assert_eq!(matrix, expected);
        let error = State::Search.limit().unwrap_err();
        assert_eq!(error.to_string(), "no transition from Search on limit");
    }
}
