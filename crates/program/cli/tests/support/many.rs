//! The page of a node that does not exist, with so many stations, contacts and alarms that no test
//! can have them for real: the page's own server, over rows that are computed.

use bytes::Bytes;
use core::ops::ControlFlow;
use serde_json::{Value, json};
use skyhaul_history::HistoryQuery;
use skyhaul_net::Clock;
use skyhaul_serve::ServeAnswer;
use skyhaul_units::{Duration, Utc};
use skyhaul_web::access::{WebOrder, WebRole};
use skyhaul_web::{
    EventsAsked, ExpositionForm, RowVisit, WebLack, WebList, WebQuestion, WebSource,
};
use skyhaul_web_io::{
    AccessNews, EventsFound, FoundEvent, OrderGiver, WebDesk, WebFiles, WebServer, WebSetup,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// How much there is.
pub const STATIONS: usize = 1_000;
/// Of contacts.
pub const CONTACTS: usize = 20_000;

/// A page that is looked at anew each second.
pub struct ManyPage {
    pub address: String,
    ends: Arc<AtomicBool>,
    looks: Option<JoinHandle<()>>,
}

impl ManyPage {
    #[allow(clippy::disallowed_methods, reason = "the thread stands for the looks of a node")]
    pub fn start() -> Self {
        let clock = Clock::start();
        let setup = WebSetup {
            bind: "127.0.0.1:0".parse().unwrap(),
            hosts: Vec::new(),
            look: Arc::new(ManyLook::new(1, clock.utc())),
            clock,
            anonymous: Some(WebRole::Viewer),
            session_idle: Duration::from_secs(600),
            uses: BTreeMap::new(),
            desk: Arc::new(ManyDesk),
        };
        let server = WebServer::start(setup, &WebFiles::default()).unwrap();
        let address = format!("http://{}/", server.address());
        let ends = Arc::new(AtomicBool::new(false));
        let is_over = ends.clone();
        let looks = std::thread::spawn(move || {
            let mut number = 2;
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(std::time::Duration::from_secs(1));
                server.show(Arc::new(ManyLook::new(number, clock.utc())));
                number += 1;
            }
        });
        Self { address, ends, looks: Some(looks) }
    }
}

impl Drop for ManyPage {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let _ = self.looks.take().map(JoinHandle::join);
    }
}

/// One look. Its figures grow with its number.
struct ManyLook {
    number: u64,
    taken: Utc,
    summary: String,
}

impl ManyLook {
    fn new(number: u64, taken: Utc) -> Self {
        let at = taken.to_string();
        let contacts: Vec<Value> = (0..40).map(|nth| contact(nth, number, &at)).collect();
        let stations = (0..200).map(|nth| {
            json!({"id": station(nth), "name": station(nth), "bytes_delivered": number * 1_000_000,
                   "blocks_delivered": number, "paths": 4})
        });
        let alarms: Vec<Value> = (0..200).map(|nth| alarm(nth, &at)).collect();
        let summary = json!({
            "number": number,
            "at": at,
            "node": {"name": "many", "version": "0", "sends": false, "receives": true,
                     "uptime_s": number, "rss_bytes": 1_000_000},
            "verdict": {"level": "alarm", "text": "station-0 is silent (and 999 more)"},
            "alarms": alarms,
            "alarm_count": STATIONS,
            "channels": [],
            "destinations": [],
            "stations": stations.collect::<Vec<_>>(),
            "nodes": {"ok": 400, "alarm": 400, "stale": 100, "unheard": 100},
            "contacts": contacts,
            "passes": [],
            "spool": null,
            "store": {"state": "ok", "disk_bytes": 1_000_000, "blocks": 7},
            "gaps": {"missing_frames": 7, "open": 1, "requested": 2, "filled": 3,
                     "unrecoverable": 4, "overflow": 0, "unfollowed": 0},
            "deliveries": {"waiting": 1, "late": 0, "failed": 0, "there": 7},
            "rates": {"received_bps": 1e8},
        });
        Self { number, taken, summary: summary.to_string() }
    }
}

fn station(nth: usize) -> String {
    format!("station-{}", nth % STATIONS)
}

fn contact(nth: usize, number: u64, at: &str) -> Value {
    json!({"id": format!("{}-{nth}", station(nth)), "side": "received", "station": station(nth),
           "flow": nth, "channel": "x-band", "mission": "suomi-npp", "scid": 157, "state": "done",
           "opened": at, "closed": at, "frames": 1_000 + number, "set_aside": 0, "missing": 0,
           "unaccounted": 0, "damaged_blocks": 0, "corrected_symbols": 3, "products": [],
           "last_bit_to_product_s": 1.5})
}

fn alarm(nth: usize, at: &str) -> Value {
    json!({"id": format!("peer-silent.node {}", station(nth)), "kind": "peer-silent",
           "subject": format!("node {}", station(nth)), "reason": "no session with it",
           "sentence": format!("node {} is silent: no session with it", station(nth)),
           "severity": "critical", "since": at, "caused_by": null, "acknowledged": null})
}

/// A node that reports an alarm.
fn reported(id: String, name: String, at: &str) -> Value {
    let alarm = json!({"severity": "major", "kind": "path-down",
                       "sentence": "path a to many is down: nothing came"});
    let report = json!({"version": "0", "sends": true, "receives": false, "up_s": 7, "every_s": 10,
        "alarms": {"critical": 0, "major": 1, "minor": 2}, "worst": [alarm], "contacts": 1,
        "under_way": ["x-band suomi-npp"], "spool": {"state": "ok", "blocks": 3, "bytes": 7_000,
        "disk_bytes": 9_000, "oldest_s": 4}});
    json!({"id": id, "name": name, "state": "alarm", "connected": true, "heard": at, "age_s": 1.5,
           "started": at, "wrong_reports": 0, "report": report})
}

/// A row of a list of which there are many.
fn row(list: WebList, nth: usize, number: u64, at: &str) -> Value {
    let (id, node) = (format!("r-{nth}"), station(nth));
    match list {
        WebList::Contacts => contact(nth, number, at),
        WebList::Nodes => reported(id, node, at),
        WebList::Alarms => alarm(nth, at),
        WebList::Paths => {
            json!({"id": id, "node": node, "name": format!("path-{nth}"), "over": "udp",
                   "state": "active", "reason": null, "rate_bps": 1e8, "declared_bps": 1e8,
                   "rtt_s": 0.5, "min_rtt_s": 0.4, "loss": 0.01, "bytes_sent": number * 1_000_000,
                   "repair_used": 1, "repair_wasted": 1, "stalls": 0, "controller": "adaptive",
                   "hints": []})
        }
        WebList::Queues => {
            json!({"id": id, "kind": "stream", "name": node, "to": null, "state": "streaming",
                   "done": number, "lost": 0, "why": null})
        }
        WebList::Passes => {
            json!({"id": id, "name": format!("pass {nth}"), "mission": "suomi-npp",
                   "station": node, "channel": "x-band", "start": at, "end": at, "state": "came",
                   "contacts": [], "locked": null})
        }
        WebList::Gaps => {
            json!({"id": id, "contact": format!("{node}-{nth}"), "state": "requested",
                   "why": null, "apid": null, "vcids": [1], "first": nth, "missed": 3,
                   "missing": 3, "asked": 1, "from": at, "to": at})
        }
        WebList::Products => {
            json!({"id": id, "name": format!("P157{nth:08}"), "state": "made", "mission": "npp",
                   "contact": format!("{node}-{nth}"), "from": at, "to": at, "packets": 7,
                   "gaps": 0, "version": 1, "path": "p", "sha256": "0".repeat(64)})
        }
        WebList::Deliveries => {
            json!({"id": nth, "destination": "archive", "subscription": "all", "deadline": null,
                   "is_late": false, "product": "pds", "name": format!("P157{nth:08}"),
                   "version": 1, "state": "accepted", "since": at, "attempts": 1, "next": null,
                   "proof": "receipt", "reason": null})
        }
        _ => json!({"id": id, "name": node}),
    }
}

impl WebSource for ManyLook {
    fn number(&self) -> u64 {
        self.number
    }

    fn taken(&self) -> Utc {
        self.taken
    }

    fn summary(&self) -> &str {
        &self.summary
    }

    fn rows(&self, list: WebList, visit: &mut RowVisit<'_>) {
        let count = match list {
            WebList::Contacts | WebList::Gaps | WebList::Products => CONTACTS,
            WebList::Paths => 4 * STATIONS,
            WebList::Latency => 0,
            _ => STATIONS,
        };
        let at = self.taken.to_string();
        for nth in 0..count {
            let id = match list {
                WebList::Contacts => format!("{}-{nth}", station(nth)),
                WebList::Alarms => format!("peer-silent.node {}", station(nth)),
                _ => format!("r-{nth}"),
            };
            let flow = visit(&id, &|| row(list, nth, self.number, &at));
            if let ControlFlow::Break(()) = flow {
                return;
            }
        }
    }

    fn metrics(&self, _: ExpositionForm) -> Bytes {
        Bytes::new()
    }

    fn lacks(&self) -> Vec<WebLack> {
        Vec::new()
    }

    fn is_alive(&self) -> bool {
        true
    }
}

/// Has 5,000 events, and takes no orders.
struct ManyDesk;

const EVENTS: u64 = 5_000;

impl WebDesk for ManyDesk {
    fn give(&self, _: WebOrder, _: &OrderGiver) -> ServeAnswer {
        ServeAnswer::problem(409, "no orders")
    }

    fn ask(&self, _: &WebQuestion) -> ServeAnswer {
        ServeAnswer::problem(409, "nothing is known")
    }

    fn history(&self, _: Option<HistoryQuery>) -> ServeAnswer {
        ServeAnswer::json(200, &json!({"series": [], "left_out": 0, "kept_s": 0, "rows": []}))
    }

    fn events(&self, asked: &EventsAsked) -> Result<EventsFound, ServeAnswer> {
        let event = |number| {
            let json = json!({"number": number, "time": "2026-11-26T21:00:00.000000Z",
                "node": "many", "kind": "path.down", "severity": "minor", "subject": "path a",
                "sentence": "path a to station-0 is down: nothing came",
                "cause": {"number": number - 1, "kind": "path.stalled", "subject": "path a"}});
            FoundEvent { number, json: json.to_string() }
        };
        let rows: Vec<FoundEvent> = (2..=EVENTS).rev().take(asked.limit).map(event).collect();
        Ok(EventsFound { rows, holes: Vec::new(), next: None, last: EVENTS })
    }

    fn last_event(&self) -> u64 {
        EVENTS
    }

    fn note(&self, _: AccessNews) {}

    fn keep_uses(&self, _: &BTreeMap<String, Utc>) {}
}
