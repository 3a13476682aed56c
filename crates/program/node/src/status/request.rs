//! What may be asked of a running node over its local socket: one line of JSON each way.

use super::{GapFilter, GapReport, GapsAsked, NodeStatus};
use crate::fault::{Fault, Responsible};
use serde::{Deserialize, Serialize};
use skyhaul_config::ConfigTime;
use skyhaul_units::Rate;

/// A question or an order. Who connects and says nothing asks for the status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub enum StatusRequest {
    /// How the node is.
    Status,
    /// What is missing at a centre.
    Gaps,
    /// To ask stations again for what was unrecoverable; a filter that is left out takes
    /// everything.
    AskGaps(GapFilter),
    /// To use one more path; the keys are those of `[[path]]`, a name among them.
    AddPath {
        /// The keys.
        path: serde_json::Value,
    },
    /// To use a path no longer.
    RemovePath {
        /// Which.
        name: String,
    },
    /// To count with what is known of a path beforehand.
    HintPath {
        /// Which.
        name: String,
        /// What is known.
        hint: PathHint,
    },
}

/// What is known of a path beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathHint {
    /// It carries nothing in this time.
    Outage {
        /// When it goes.
        from: ConfigTime,
        /// When it is back.
        until: ConfigTime,
    },
    /// From then on it carries so much.
    Rate {
        /// From when; left out: from now.
        from: Option<ConfigTime>,
        /// How much, counted in IP packets.
        rate: Rate,
    },
    /// What was foretold before is void.
    Withdraw,
}

/// What a node says to an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum OrderResult {
    /// It was done.
    Done {
        /// A sentence about it.
        said: String,
    },
    /// It was not done.
    Refused {
        /// Whether this machine is at fault, not who asked.
        environment: bool,
        /// What is wrong.
        what: String,
        /// Where.
        place: String,
        /// What to do.
        help: String,
    },
}

/// What goes back on the socket.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum StatusReply {
    /// To [`StatusRequest::Status`].
    Status(Box<NodeStatus>),
    /// To [`StatusRequest::Gaps`].
    Gaps(Box<GapReport>),
    /// To [`StatusRequest::AskGaps`].
    Asked(GapsAsked),
    /// To an order.
    Answer(OrderResult),
}

impl From<Result<String, Fault>> for OrderResult {
    fn from(outcome: Result<String, Fault>) -> Self {
        match outcome {
            Ok(said) => Self::Done { said },
            Err(Fault { who, what, place, help }) => {
                Self::Refused { environment: who == Responsible::Environment, what, place, help }
            }
        }
    }
}

impl From<OrderResult> for Result<String, Fault> {
    fn from(answer: OrderResult) -> Self {
        match answer {
            OrderResult::Done { said } => Ok(said),
            OrderResult::Refused { environment: true, what, place, help } => {
                Err(Fault::environment(what, place, help))
            }
            OrderResult::Refused { environment: false, what, place, help } => {
                Err(Fault::configuration(what, place, help))
            }
        }
    }
}
