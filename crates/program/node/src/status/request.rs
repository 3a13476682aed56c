//! What may be asked of a running node over its local socket: one line of JSON each way.

use super::{
    ArchiveEviction, ArchivePage, ArchiveRequest, BackfillAction, BackfillPage, BackfillRequest,
    CataloguePage, ConfigReport, DeliveryAction, DeliveryFilter, DeliveryPage, DeliveryReport,
    DestinationTrial, GapFilter, GapReport, GapsAsked, KeyReport, NodeStatus, OutletStatus,
    ReprocessReport, ReprocessRequest,
};
use crate::fault::{Fault, Responsible};
use crate::journal::EventPage;
use serde::{Deserialize, Serialize};
use skyhaul_config::ConfigTime;
use skyhaul_events::{AlarmKey, AlarmStatus};
use skyhaul_history::{HistoryList, HistoryPage, HistoryQuery};
use skyhaul_units::{Probability, Rate};
use std::path::PathBuf;

/// A question or an order. A client that sends nothing asks for the status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub enum StatusRequest {
    /// The status of the node.
    Status,
    /// The gaps of a centre.
    Gaps,
    /// Request unrecoverable frames again; without a filter, all of them.
    AskGaps(GapFilter),
    /// Deliveries, newest first.
    Deliveries(DeliveryFilter),
    /// One delivery, with all that happened to it.
    Delivery {
        /// Its number.
        id: u64,
    },
    /// Hold, release, cancel or repeat a delivery.
    OrderDelivery {
        /// Its number.
        id: u64,
        /// What to do.
        action: DeliveryAction,
    },
    /// The destinations of products.
    Outlets,
    /// Try a destination that is a folder of another node: the session is the node's.
    TryOutlet {
        /// The destination.
        name: String,
    },
    /// Keep what a trial of a destination found.
    KeepTrial {
        /// The destination.
        name: String,
        /// The trial.
        trial: DestinationTrial,
    },
    /// Products that were published before, of which a subscription takes some.
    Backfill(BackfillRequest),
    /// Items of the catalogue, newest first.
    Items {
        /// A filter as CQL2 text; left out: all.
        filter: Option<String>,
        /// Behind this place, from the page before.
        after: Option<String>,
        /// At most so many; the node gives no more than 10,000 at a time.
        limit: usize,
    },
    /// About the archive.
    Archive {
        /// What.
        order: ArchiveRequest,
    },
    /// Make products again.
    Reprocess {
        /// Which.
        order: ReprocessRequest,
    },
    /// Events behind a number.
    Events {
        /// The number.
        since: u64,
        /// At most so many.
        limit: usize,
    },
    /// The series of the history, or one of them over time.
    History {
        /// What of one; left out: the list of all.
        query: Option<HistoryQuery>,
    },
    /// The alarms that stand.
    Alarms,
    /// Note who works on an alarm.
    AcknowledgeAlarm {
        /// Which.
        alarm: AlarmKey,
        /// Who.
        by: String,
        /// What the person says about it.
        note: String,
    },
    /// The keys of the node, and of others.
    Keys,
    /// How the configuration in force differs from its file.
    Config,
    /// Change the key of the node, or what is known of another one.
    OrderKey {
        /// What to do.
        order: KeyOrder,
    },
    /// Add a path; the keys are those of `[[path]]`, a name among them.
    AddPath {
        /// The keys.
        path: serde_json::Value,
    },
    /// Remove a path.
    RemovePath {
        /// Which.
        name: String,
    },
    /// Take a forecast for a path.
    HintPath {
        /// Which.
        name: String,
        /// The forecast.
        hint: PathHint,
    },
    /// Go on in another process. Answered once that is ready.
    Upgrade {
        /// The program; none: the file that the present one was started from.
        binary: Option<PathBuf>,
        /// Seconds that the new process may take until it is ready, and again until it runs.
        patience_s: u32,
    },
}

impl StatusRequest {
    /// Whether the node may be another one afterwards.
    pub(crate) const fn is_order(&self) -> bool {
        match self {
            Self::Status
            | Self::Gaps
            | Self::Deliveries(_)
            | Self::Delivery { .. }
            | Self::Outlets
            | Self::Items { .. }
            | Self::Events { .. }
            | Self::Keys
            | Self::Config
            | Self::History { .. }
            | Self::Alarms => false,
            Self::AskGaps(_)
            | Self::OrderDelivery { .. }
            | Self::TryOutlet { .. }
            | Self::KeepTrial { .. }
            | Self::Backfill(_)
            | Self::Archive { .. }
            | Self::Reprocess { .. }
            | Self::OrderKey { .. }
            | Self::AddPath { .. }
            | Self::RemovePath { .. }
            | Self::AcknowledgeAlarm { .. }
            | Self::HintPath { .. }
            | Self::Upgrade { .. } => true,
        }
    }

    /// In short, where it changes something.
    pub fn order(&self) -> Option<OrderWords> {
        let words = |sentence: String, subject: String| OrderWords { sentence, subject };
        let path = |name: &str| format!("path {name}");
        Some(match self {
            Self::AskGaps(which) => {
                let station = which.station.as_deref().unwrap_or("all stations");
                words("request missing frames again".to_owned(), station.to_owned())
            }
            Self::OrderDelivery { id, action } => {
                words(format!("delivery {id}: {action:?}"), format!("delivery {id}"))
            }
            Self::KeepTrial { name, .. } => words(
                format!("keep the trial of destination {name}"),
                format!("destination {name}"),
            ),
            Self::Backfill(BackfillRequest {
                subscription, action: BackfillAction::Begin, ..
            }) => words(
                format!("deliver earlier products to subscription {subscription}"),
                format!("subscription {subscription}"),
            ),
            Self::Archive { order } => return archive_words(order),
            Self::Reprocess { order: ReprocessRequest::Order(action) } => words(
                format!("make products of {} again", action.mission),
                action.mission.to_string(),
            ),
            Self::AcknowledgeAlarm { alarm, by, .. } => words(
                format!("acknowledge {} {} by {by}", alarm.kind, alarm.subject),
                format!("alarm {} {}", alarm.kind, alarm.subject),
            ),
            Self::OrderKey { order } => order.words(),
            Self::AddPath { path: entry } => {
                let name = entry["name"].as_str().unwrap_or_default();
                words(format!("add path {name}"), path(name))
            }
            Self::RemovePath { name } => words(format!("remove path {name}"), path(name)),
            Self::Upgrade { binary, .. } => {
                let from = binary.as_ref().map(|file| format!(" from {}", file.display()));
                let sentence = format!("upgrade the node{}", from.unwrap_or_default());
                words(sentence, "the node".to_owned())
            }
            Self::HintPath { name, .. } => words(format!("forecast for path {name}"), path(name)),
            _ => return None,
        })
    }
}

/// An order about keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub enum KeyOrder {
    /// Begin to change the key of the node.
    Rotate,
    /// Take the next step of the change, whoever knows of it.
    Force,
    /// Refuse a key, and end its sessions.
    Revoke {
        /// Its fingerprint.
        key: String,
        /// Why.
        reason: String,
    },
    /// Accept a key again.
    Allow {
        /// Its fingerprint.
        key: String,
    },
}

impl KeyOrder {
    fn words(&self) -> OrderWords {
        let own = || "the key of this node".to_owned();
        let (sentence, subject) = match self {
            Self::Rotate => ("change the key of this node".to_owned(), own()),
            Self::Force => {
                let sentence = "take the next step of the change of the key, whoever knows of it";
                (sentence.to_owned(), own())
            }
            Self::Revoke { key, reason } => {
                let colon = if reason.is_empty() { "" } else { ": " };
                (format!("revoke the key {key}{colon}{reason}"), format!("key {key}"))
            }
            Self::Allow { key } => (format!("allow the key {key}"), format!("key {key}")),
        };
        OrderWords { sentence, subject }
    }
}

/// An order in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderWords {
    /// What is to be done.
    pub sentence: String,
    /// To what.
    pub subject: String,
}

fn archive_words(order: &ArchiveRequest) -> Option<OrderWords> {
    let (sentence, subject) = match order {
        ArchiveRequest::Evict => ("remove what is due".to_owned(), "the archive".to_owned()),
        ArchiveRequest::Hold { name, why } => {
            let sentence = match why {
                Some(why) => format!("hold product {name}: {why}"),
                None => format!("release product {name}"),
            };
            (sentence, format!("product {name}"))
        }
        ArchiveRequest::Restored { .. } => {
            ("take up a product that was restored".to_owned(), "the archive".to_owned())
        }
        _ => return None,
    };
    Some(OrderWords { sentence, subject })
}

/// A forecast for a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathHint {
    /// It is out in this time.
    Outage {
        /// When it goes down.
        from: ConfigTime,
        /// When it is back.
        until: ConfigTime,
    },
    /// It carries this rate from then on.
    Rate {
        /// From when; left out: from now.
        from: Option<ConfigTime>,
        /// Until when it carries no more; left out: until its rate was measured.
        #[serde(default)]
        until: Option<ConfigTime>,
        /// The rate, counted in IP packets.
        rate: Rate,
    },
    /// It loses at least this share of datagrams.
    Loss {
        /// From when; left out: from now.
        from: Option<ConfigTime>,
        /// Until when.
        until: ConfigTime,
        /// The share.
        loss: Probability,
    },
    /// All forecasts are withdrawn.
    Withdraw,
}

/// The reply to an order.
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
    /// To [`StatusRequest::Deliveries`].
    Deliveries(Box<DeliveryPage>),
    /// To [`StatusRequest::Delivery`].
    Delivery(Box<DeliveryReport>),
    /// To [`StatusRequest::Outlets`].
    Outlets(Vec<OutletStatus>),
    /// To [`StatusRequest::TryOutlet`].
    Trial(Box<DestinationTrial>),
    /// To [`StatusRequest::Backfill`].
    Backfill(Box<BackfillPage>),
    /// To [`StatusRequest::Items`].
    Items(Box<CataloguePage>),
    /// To [`ArchiveRequest::Due`] and [`ArchiveRequest::Evict`].
    Eviction(Box<ArchiveEviction>),
    /// To [`ArchiveRequest::List`].
    Archive(Box<ArchivePage>),
    /// To [`StatusRequest::Reprocess`].
    Reprocess(Box<ReprocessReport>),
    /// To [`StatusRequest::Events`].
    Events(Box<EventPage>),
    /// To [`StatusRequest::Keys`].
    Keys(Box<KeyReport>),
    /// To [`StatusRequest::Config`].
    Config(Box<ConfigReport>),
    /// To [`StatusRequest::History`], without a query.
    HistoryList(HistoryList),
    /// To [`StatusRequest::History`].
    HistoryPage(Box<HistoryPage>),
    /// To [`StatusRequest::Alarms`].
    Alarms(Vec<AlarmStatus>),
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
