//! Orders of people and programs who come to the page, as the node carries them out.

use super::events;
use super::words::{segment, word};
use crate::alarms::Alarms;
use crate::audit::check;
use crate::journal::EventNote;
use crate::looks::Looks;
use crate::node::Parts;
use crate::status::{DeliveryAction, KeyOrder, OrderResult, StatusReply, StatusRequest};
use serde_json::{Value, json};
use skyhaul_events::{
    AlarmKey, AlarmKind, AuditEntry, AuditLine, AuditMeans, AuditOutcome, AuditWho, EventKind,
};
use skyhaul_history::{HistoryQuery, HistoryRefusal};
use skyhaul_serve::ServeAnswer;
use skyhaul_store::Disk;
use skyhaul_units::{ByteCount, Utc};
use skyhaul_web::access::{WebDeliveryOrder, WebOrder, WebOwner};
use skyhaul_web::{EventsAsked, WebQuestion};
use skyhaul_web_io::{AccessNews, EventsFound, OrderGiver, WebDesk};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, OnceLock, Weak};

/// Takes orders of the page.
pub(crate) struct WebOrders {
    parts: Arc<Parts>,
    disk: Arc<dyn Disk>,
    /// What is shown after an order is looked at anew. Not owned: the page is shown by the looks.
    looks: OnceLock<Weak<Looks>>,
}

/// When tokens were last used, in the state folder.
pub const USES_FILE: &str = "web-tokens.json";
/// A thousand tokens take less.
const USES_MAX: u64 = 256 << 10;

impl WebOrders {
    /// For the parts of a node, and its state folder.
    pub fn new(parts: Arc<Parts>, disk: Arc<dyn Disk>) -> Self {
        Self { parts, disk, looks: OnceLock::new() }
    }

    /// Looks at the node again after an order.
    pub fn look_again(&self, looks: &Arc<Looks>) {
        let _ = self.looks.set(Arc::downgrade(looks));
        self.parts.why.look_by(looks);
    }

    /// When tokens were used before the node started. A file that is damaged says nothing.
    pub fn kept_uses(&self) -> BTreeMap<String, Utc> {
        let read = || {
            let file = self.disk.open(USES_FILE).ok()?;
            let size = file.size().ok()?.as_u64().min(USES_MAX);
            let mut text = vec![0; usize::try_from(size).ok()?];
            let read = file.read_at(&mut text, ByteCount::ZERO).ok()?;
            serde_json::from_slice::<BTreeMap<String, String>>(text.get(..read)?).ok()
        };
        let times = read().unwrap_or_default().into_iter();
        times.filter_map(|(name, time)| Some((name, Utc::from_rfc3339(&time)?))).collect()
    }

    fn write_uses(&self, uses: &BTreeMap<String, Utc>) -> io::Result<()> {
        let times: BTreeMap<&String, String> =
            uses.iter().map(|(name, time)| (name, time.to_string())).collect();
        let text = serde_json::to_vec(&times).map_err(io::Error::other)?;
        let new = "web-tokens.new";
        let file = self.disk.create(new)?;
        file.append(&text)?;
        file.sync()?;
        self.disk.rename(new, USES_FILE)
    }

    /// The newest orders with their outcomes.
    fn orders(&self) -> ServeAnswer {
        match self.parts.audit.newest() {
            Ok(lines) => ServeAnswer::json(200, &json!({"rows": order_rows(&lines)})),
            Err(error) => {
                let what = format!("the audit log cannot be read ({error}); check the disk");
                ServeAnswer::problem(503, &what)
            }
        }
    }

    /// The request of an order; a refusal where there is no such alarm.
    fn request(&self, order: WebOrder, giver: &OrderGiver) -> Result<StatusRequest, ServeAnswer> {
        match order {
            WebOrder::Acknowledge { alarm: id, note } => {
                let all = self.parts.alarms().flat_map(Alarms::status);
                let mut keys =
                    all.map(|alarm| AlarmKey { kind: alarm.kind, subject: alarm.subject });
                let alarm = keys.find(|key| alarm_id(key.kind, &key.subject) == id);
                let alarm = alarm.ok_or_else(|| {
                    ServeAnswer::problem(404, "no such alarm stands; it may have been cleared")
                })?;
                let by = giver.owner.name().to_owned();
                Ok(StatusRequest::AcknowledgeAlarm { alarm, by, note })
            }
            WebOrder::Delivery { id, action } => {
                let action = match action {
                    WebDeliveryOrder::Hold => DeliveryAction::Hold,
                    WebDeliveryOrder::Release => DeliveryAction::Release,
                    WebDeliveryOrder::Cancel => DeliveryAction::Cancel,
                    WebDeliveryOrder::Again => DeliveryAction::Again,
                };
                Ok(StatusRequest::OrderDelivery { id, action })
            }
            WebOrder::RotateKey => Ok(StatusRequest::OrderKey { order: KeyOrder::Rotate }),
            WebOrder::RevokeKey { key, reason } => {
                Ok(StatusRequest::OrderKey { order: KeyOrder::Revoke { key, reason } })
            }
        }
    }
}

/// What names an alarm in the lists of the page.
pub(super) fn alarm_id(kind: AlarmKind, subject: &str) -> String {
    segment(&format!("{}.{subject}", word(&kind)))
}

impl WebDesk for WebOrders {
    fn give(&self, order: WebOrder, giver: &OrderGiver) -> ServeAnswer {
        let request = match self.request(order, giver) {
            Ok(request) => request,
            Err(refused) => return refused,
        };
        let means = match giver.owner {
            WebOwner::Token(_) => AuditMeans::Token,
            WebOwner::User(_) | WebOwner::Nobody => AuditMeans::Web,
        };
        let who = || AuditWho::new(means, giver.owner.name(), giver.address.to_string());
        let reply = self.parts.carry_out(who, request);
        if let Some(looks) = self.looks.get().and_then(Weak::upgrade) {
            looks.expire();
        }
        answer(reply)
    }

    fn ask(&self, question: &WebQuestion) -> ServeAnswer {
        let plain = |value: Result<Value, _>| ServeAnswer::json(200, &value.unwrap_or_default());
        let answer = match question {
            WebQuestion::Orders => self.orders(),
            WebQuestion::AuditCheck => match check(&self.parts.state, None) {
                Ok(report) => plain(serde_json::to_value(report)),
                Err(unread) => ServeAnswer::problem(503, &unread.to_string()),
            },
            WebQuestion::Keys => plain(serde_json::to_value(self.parts.keys.report())),
            WebQuestion::Config => plain(serde_json::to_value(self.parts.config.report())),
            WebQuestion::Why(asked) => self.parts.why.answer(asked, &*self.parts),
        };
        answer.header("cache-control", "no-store")
    }

    fn history(&self, query: Option<HistoryQuery>) -> ServeAnswer {
        let Some(history) = &self.parts.history else {
            return ServeAnswer::problem(404, "this node keeps no history: see [history]");
        };
        let answer = match query {
            None => {
                ServeAnswer::json(200, &serde_json::to_value(history.list()).unwrap_or_default())
            }
            Some(query) => match history.page(&query) {
                Ok(page) => ServeAnswer::json(200, &serde_json::to_value(page).unwrap_or_default()),
                Err(refused @ HistoryRefusal::Unknown(_)) => {
                    ServeAnswer::problem(404, &refused.to_string())
                }
                Err(refused) => ServeAnswer::problem(400, &refused.to_string()),
            },
        };
        answer.header("cache-control", "no-store")
    }

    fn events(&self, asked: &EventsAsked) -> Result<EventsFound, ServeAnswer> {
        events::find(&self.parts.events, asked)
    }

    fn last_event(&self) -> u64 {
        self.parts.events.last()
    }

    fn note(&self, news: AccessNews) {
        let (kind, user, address, sentence) = match news {
            AccessNews::LoggedIn { user, address } => {
                let sentence = format!("{user} has logged in from {address}");
                (EventKind::AccessGranted, user, address, sentence)
            }
            AccessNews::Shut { user, address } => {
                let user = skyhaul_units::printable(&user, 64);
                let sentence = format!(
                    "too many logins have failed, the last as {user} from {address}: the next \
                     ones have to wait"
                );
                tracing::warn!("{sentence}");
                (EventKind::AccessShut, user, address, sentence)
            }
        };
        let note = EventNote::new(kind, user, sentence);
        self.parts.events.note(note.with("address", address.to_string()));
    }

    fn keep_uses(&self, uses: &BTreeMap<String, Utc>) {
        if let Err(error) = self.write_uses(uses) {
            tracing::warn!("when tokens were used cannot be written to {USES_FILE} ({error})");
        }
    }
}

/// Orders with their outcomes, newest first.
fn order_rows(lines: &[AuditLine]) -> Vec<Value> {
    let mut outcomes: BTreeMap<u64, (AuditOutcome, &str)> = BTreeMap::new();
    let mut rows = Vec::new();
    for line in lines.iter().rev() {
        let AuditWho { by, name, address } = &line.who;
        match &line.entry {
            AuditEntry::Outcome { of, outcome, said } => {
                outcomes.insert(*of, (*outcome, said));
            }
            AuditEntry::Order { sentence, subject, .. } => {
                let outcome = outcomes.remove(&line.number);
                rows.push(json!({
                    "id": line.number.to_string(),
                    "at": line.time,
                    "by": by,
                    "name": name,
                    "address": address,
                    "sentence": sentence,
                    "subject": subject,
                    "outcome": outcome.map(|(outcome, _)| outcome),
                    "said": outcome.map(|(_, said)| said),
                }));
            }
        }
    }
    rows
}

fn answer(reply: StatusReply) -> ServeAnswer {
    let answer = match reply {
        StatusReply::Answer(OrderResult::Done { said }) => {
            ServeAnswer::json(200, &json!({"said": said}))
        }
        StatusReply::Answer(OrderResult::Refused { environment, what, help, .. }) => {
            let status = if environment { 503 } else { 409 };
            ServeAnswer::problem(status, &format!("{what}; {help}"))
        }
        other => ServeAnswer::json(200, &serde_json::to_value(other).unwrap_or_default()),
    };
    answer.header("cache-control", "no-store")
}
