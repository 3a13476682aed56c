//! The parts of a node as those who ask and order see them: over the status socket, and over the
//! page.

use crate::alarms::Alarms;
use crate::audit::AuditLog;
use crate::blocks::BlockService;
use crate::centre::{self, CentreShared};
use crate::config_desk::ConfigDesk;
use crate::fault::{Fault, Responsible};
use crate::history::HistoryDesk;
use crate::host_users::HostUsers;
use crate::journal::EventSink;
use crate::keys::NodeKeys;
use crate::looks::Looks;
use crate::passes::PassWatch;
use crate::reports::ReportDesk;
use crate::serve::ServeService;
use crate::station::{self, StationShared};
use crate::status::{KeyOrder, NodeStatus, SocketAccess, StatusReply, StatusRequest, StatusServer};
use crate::upgrade::UpgradeDesk;
use crate::why::{KnowsOutlets, WhyDesk};
use skyhaul_events::{AlarmKey, AuditMeans, AuditWho};
use skyhaul_history::HistoryQuery;
use skyhaul_identity::Fingerprint;
use skyhaul_units::Duration;
use std::path::PathBuf;
use std::sync::Arc;

/// Answers on the status socket.
pub fn answer(
    node: &skyhaul_config::Node,
    access: SocketAccess,
    looks: Arc<Looks>,
    parts: Arc<Parts>,
) -> Result<StatusServer, Fault> {
    StatusServer::start(&node.status_socket(), access, move |uid, request| {
        let is_order = request.is_order();
        let reply = match request {
            StatusRequest::Status => StatusReply::Status(Box::new(looks.fresh().status.clone())),
            request => {
                let who = || AuditWho::new(AuditMeans::Socket, HostUsers::read().shown(uid), "");
                parts.carry_out(who, request)
            }
        };
        if is_order {
            looks.expire();
        }
        reply
    })
}

impl KnowsOutlets for Parts {
    fn node_of(&self, destination: &str) -> Option<String> {
        let outlets = self.centre.as_ref()?.deliveries().outlets();
        let found = outlets.destinations.iter().find(|one| one.name.as_str() == destination)?;
        found.node().map(|folder| folder.node.to_string())
    }
}

/// What the status socket and the page answer from.
pub struct Parts {
    pub blocks: Option<Arc<BlockService>>,
    pub serve: Option<Arc<ServeService>>,
    pub station: Option<Arc<StationShared>>,
    pub centre: Option<Arc<CentreShared>>,
    pub events: EventSink,
    pub audit: Arc<AuditLog>,
    pub keys: Arc<NodeKeys>,
    pub config: Arc<ConfigDesk>,
    pub why: WhyDesk,
    /// The state folder.
    pub state: PathBuf,
    pub passes: Option<Arc<PassWatch>>,
    pub upgrade: Arc<UpgradeDesk>,
    pub history: Option<Arc<HistoryDesk>>,
    pub reports: Arc<ReportDesk>,
}

impl Parts {
    /// The status now. It takes locks of the data threads: the thread of looks alone calls it.
    pub fn status(&self) -> NodeStatus {
        let mut status = NodeStatus {
            station: self.station.as_ref().map(|shared| shared.status()),
            centre: self.centre.as_ref().map(|shared| shared.status()),
            blocks: self.blocks.as_ref().map(|blocks| blocks.status()),
            serve: self.serve.as_ref().map(|serve| serve.status()),
            web: None,
            passes: Vec::new(),
            nodes: Vec::new(),
        };
        status.passes = self.passes.as_ref().map_or_else(Vec::new, |passes| passes.look(&status));
        status
    }

    /// The alarms of what sends, then of what receives.
    pub fn alarms(&self) -> impl Iterator<Item = &Alarms> {
        let station = self.station.as_ref().map(|shared| &*shared.alarms);
        station.into_iter().chain(self.centre.as_ref().map(|shared| &*shared.alarms))
    }

    fn events(&self, since: u64, limit: usize) -> StatusReply {
        match self.events.page(since, limit) {
            Ok(page) => StatusReply::Events(Box::new(page)),
            Err(error) => {
                let what = format!("the event log cannot be read ({error})");
                let help = "check the disk of the state folder";
                StatusReply::Answer(Err(Fault::environment(what, "the state folder", help)).into())
            }
        }
    }

    fn history(&self, query: Option<&HistoryQuery>) -> StatusReply {
        let refused = |what: String, help: &str| {
            StatusReply::Answer(Err(Fault::configuration(what, "the history", help)).into())
        };
        let Some(history) = &self.history else {
            let what = "this node keeps no history".to_owned();
            return refused(what, "write a table [history] into its file, and start it again");
        };
        match query {
            None => StatusReply::HistoryList(history.list()),
            Some(query) => match history.page(query) {
                Ok(page) => StatusReply::HistoryPage(Box::new(page)),
                Err(error) => refused(error.to_string(), "see `skyhaul history` without a series"),
            },
        }
    }

    /// Answers a request; an order is written down before it is carried out, and its outcome after.
    pub fn carry_out(&self, who: impl FnOnce() -> AuditWho, request: StatusRequest) -> StatusReply {
        let Some(words) = request.order() else { return self.reply(request) };
        let order = serde_json::to_value(&request).unwrap_or_default();
        match self.audit.order(who(), words, order) {
            Ok(written) => {
                let reply = self.reply(request);
                self.audit.outcome(written, &reply);
                reply
            }
            Err(fault) => StatusReply::Answer(Err(fault).into()),
        }
    }

    fn acknowledge(&self, alarm: &AlarmKey, by: &str, note: &str) -> Result<String, Fault> {
        let acknowledge =
            |alarms: &Alarms| alarms.acknowledge(alarm, by.to_owned(), note.to_owned());
        let outcomes: Vec<Result<(), Fault>> = self.alarms().map(acknowledge).collect();
        // A part that does not have it says less than one whose disk refuses.
        let is_known = |outcome: &&Result<(), Fault>| {
            outcome.as_ref().map_or_else(|fault| fault.who == Responsible::Environment, |()| true)
        };
        let said = outcomes.iter().find(is_known).or_else(|| outcomes.first());
        said.cloned().unwrap_or(Ok(()))?;
        Ok(format!("{} {}: acknowledged by {by}", alarm.kind, alarm.subject))
    }

    fn order_key(&self, order: &KeyOrder) -> Result<String, Fault> {
        let key = |text: &str| {
            text.parse::<Fingerprint>().map_err(|error| {
                let help = "copy the fingerprint from `skyhaul key show`";
                Fault::configuration(error.to_string(), "the order", help)
            })
        };
        let outcome = match order {
            KeyOrder::Rotate => self.keys.rotate(),
            KeyOrder::Force => self.keys.force(),
            KeyOrder::Revoke { key: text, reason } => self.keys.revoke(key(text)?, reason),
            KeyOrder::Allow { key: text } => self.keys.allow(key(text)?),
        };
        // Sessions of a revoked key end at once.
        let station = self.station.as_ref().map(|shared| &shared.shutdown);
        let centre = self.centre.as_ref().map(|shared| &shared.shutdown);
        station.into_iter().chain(centre).for_each(|shutdown| shutdown.wake_line());
        outcome
    }

    fn reply(&self, request: StatusRequest) -> StatusReply {
        let refused = |what: &str, help: &str| {
            StatusReply::Answer(Err(Fault::configuration(what, "the status socket", help)).into())
        };
        match request {
            StatusRequest::Events { since, limit } => self.events(since, limit),
            StatusRequest::History { query } => self.history(query.as_ref()),
            StatusRequest::Status => StatusReply::Status(Box::new(self.status())),
            StatusRequest::Alarms => {
                StatusReply::Alarms(self.alarms().flat_map(|alarms| alarms.status()).collect())
            }
            StatusRequest::Keys => StatusReply::Keys(Box::new(self.keys.report())),
            StatusRequest::Config => StatusReply::Config(Box::new(self.config.report())),
            StatusRequest::OrderKey { order } => StatusReply::Answer(self.order_key(&order).into()),
            StatusRequest::AcknowledgeAlarm { alarm, by, note } => {
                StatusReply::Answer(self.acknowledge(&alarm, &by, &note).into())
            }
            StatusRequest::Upgrade { binary, patience_s } => {
                let patience = Duration::from_secs(u64::from(patience_s));
                StatusReply::Answer(self.upgrade.give(binary, patience).into())
            }
            StatusRequest::Gaps
            | StatusRequest::AskGaps(_)
            | StatusRequest::Deliveries(_)
            | StatusRequest::Delivery { .. }
            | StatusRequest::OrderDelivery { .. }
            | StatusRequest::Outlets
            | StatusRequest::TryOutlet { .. }
            | StatusRequest::KeepTrial { .. }
            | StatusRequest::Backfill(_)
            | StatusRequest::Items { .. }
            | StatusRequest::Archive { .. }
            | StatusRequest::Reprocess { .. } => match &self.centre {
                Some(shared) => centre::answer(shared, request),
                None => refused(
                    "a node that receives nothing has no gaps, products or deliveries",
                    "ask the node that the contacts go to",
                ),
            },
            StatusRequest::AddPath { .. } | StatusRequest::RemovePath { .. } => {
                match &self.station {
                    Some(shared) => station::obey(shared, request),
                    None => refused(
                        "a node without a destination makes no paths",
                        "send the command to the node that connects to this one",
                    ),
                }
            }
            StatusRequest::HintPath { ref name, hint } => match (&self.station, &self.centre) {
                // A path of the configuration comes first; `NAME/0` is always one of a peer.
                (Some(shared), Some(_)) if station::has_path(shared, name) => {
                    station::obey(shared, request)
                }
                (_, Some(shared)) => centre::hint(shared, name.clone(), hint),
                (Some(shared), None) => station::obey(shared, request),
                (None, None) => refused(
                    "a node that neither sends nor receives has no paths",
                    "send the command to another node",
                ),
            },
        }
    }
}
