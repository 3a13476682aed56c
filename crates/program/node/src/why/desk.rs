//! Verdicts on the sessions of this node for those who ask at its page. One observation serves all
//! who ask within some seconds, and no data thread is asked more often than by the command.

use super::subject::{KnowsOutlets, session_of};
use super::{LOOK, judged};
use crate::looks::{Looks, NodeLook};
use crate::status::NodeStatus;
use serde_json::{Value, json};
use skyhaul_net::Clock;
use skyhaul_probe::why::{Evidence, judge};
use skyhaul_serve::ServeAnswer;
use skyhaul_units::{Duration, Instant};
use skyhaul_web::WhyAsked;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// Observes the sessions when somebody asks.
#[derive(Debug)]
pub(crate) struct WhyDesk {
    clock: Clock,
    /// Weak: an observation does not hold up the end of the node.
    looks: OnceLock<Weak<Looks>>,
    /// Held during an observation: others wait for it.
    last: Mutex<Option<Observation>>,
}

/// The verdicts of one observation.
#[derive(Debug)]
struct Observation {
    ended: Instant,
    /// By the node at the other end; none: on the busiest session. A session without a verdict has
    /// the sentence why.
    verdicts: BTreeMap<Option<String>, Result<Value, String>>,
}

/// How long sessions are observed.
const WATCH: Duration = Duration::from_secs(4);
/// Who asks so soon after an observation gets its verdicts.
const FRESH: Duration = Duration::from_secs(5);
/// Sessions that are judged: more nodes than a node has peers and destinations.
const SESSIONS_MAX: usize = 1_024;

impl WhyDesk {
    /// Of a node that is not looked at yet.
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, looks: OnceLock::new(), last: Mutex::default() }
    }

    /// Looks by these from now on.
    pub(crate) fn look_by(&self, looks: &Arc<Looks>) {
        let _ = self.looks.set(Arc::downgrade(looks));
    }

    fn look(&self) -> Option<Arc<NodeLook>> {
        Some(self.looks.get()?.upgrade()?.fresh())
    }

    /// The verdict on what is asked about; it takes four seconds where nobody asked just before.
    pub(crate) fn answer(&self, asked: &WhyAsked, outlets: &dyn KnowsOutlets) -> ServeAnswer {
        let ends = || ServeAnswer::problem(503, "the node ends");
        let Some(look) = self.look() else { return ends() };
        let session = match session_of(asked, &look.status, outlets) {
            Ok(session) => session,
            Err(sentence) => return ServeAnswer::problem(409, &sentence),
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        if last.as_ref().is_none_or(|last| now.since(last.ended) > FRESH) {
            *last = self.observe();
        }
        let Some(observation) = &*last else { return ends() };
        match observation.verdicts.get(&session) {
            Some(Ok(verdict)) => ServeAnswer::json(200, verdict),
            Some(Err(sentence)) => ServeAnswer::problem(409, sentence),
            None => {
                let name = skyhaul_units::printable(session.as_deref().unwrap_or_default(), 64);
                ServeAnswer::problem(409, &format!("there is no session with `{name}`"))
            }
        }
    }

    /// Looks for some seconds, and judges each session; none where the node ends.
    #[allow(clippy::disallowed_methods, reason = "counters are read again after a time")]
    fn observe(&self) -> Option<Observation> {
        let until = self.clock.now() + WATCH;
        let mut looks = vec![self.look()?];
        while self.clock.now() < until {
            std::thread::sleep(LOOK.to_std());
            looks.push(self.look()?);
        }
        let at = looks.last()?.taken.to_string();
        let statuses: Vec<&NodeStatus> = looks.iter().map(|look| &look.status).collect();
        let verdicts = sessions(statuses.last()?).into_iter();
        let verdicts = verdicts.take(SESSIONS_MAX).map(|session| {
            let verdict = verdict(&statuses, session.as_deref(), &at);
            (session, verdict)
        });
        Some(Observation { verdicts: verdicts.collect(), ended: self.clock.now() })
    }
}

/// The nodes with which there are sessions, and none for the busiest.
fn sessions(status: &NodeStatus) -> Vec<Option<String>> {
    let called = status.station.iter().flat_map(|station| &station.destinations);
    let calling = status.centre.iter().flat_map(|centre| &centre.stations);
    let names = called.map(|one| &one.name).chain(calling.map(|one| &one.name));
    std::iter::once(None).chain(names.cloned().map(Some)).collect()
}

/// What `skyhaul why --json` prints of a session, with the time.
fn verdict(looks: &[&NodeStatus], with: Option<&str>, at: &str) -> Result<Value, String> {
    let watched = judged(looks, with).map_err(|fault| format!("{}; {}", fault.what, fault.help))?;
    let found = Evidence { line: None, transfer: Some(watched.transfer) };
    // A verdict is plain data with text keys.
    let mut answer = serde_json::to_value(judge(&found)).unwrap_or_default();
    answer["kind"] = json!("why");
    answer["version"] = json!(env!("CARGO_PKG_VERSION"));
    answer["far"] = Value::Null;
    answer["transfer"] = json!(watched.name);
    answer["found"] = serde_json::to_value(&found).unwrap_or_default();
    answer["at"] = json!(at);
    Ok(answer)
}
