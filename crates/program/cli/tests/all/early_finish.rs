//! A centre with a fault: it says that a contact is finished while that goes on. The station is a
//! real process; the faulty centre, and a good one beside it, are real sessions and a few lines.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]
#![allow(clippy::disallowed_methods, reason = "the centres run beside the station")]

use crate::support::node;
use crate::support::patience::until;
use crate::support::process::{Running, run, skyhaul, text};
use crate::support::recordings::{DAMAGED, recording};
use bytes::Bytes;
use serde_json::Value;
use skyhaul_net::{Clock, Driver, Service, SessionManager, Socket, UdpEndpoint};
use skyhaul_quic::{EndpointConfig, Fingerprint, Identity, PathConfig, QuicEndpoint};
use skyhaul_sessions::SessionManagerEvent;
use skyhaul_transport::{Event, Opening, Seq, SessionConfig};
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Rate};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Before each block stands when it was read from the spool, which differs for each destination.
const WHEN_READ: usize = 8;

/// The blocks of each flow, in their order.
type Blocks = BTreeMap<FlowId, Vec<Bytes>>;

/// A centre that keeps blocks in memory, and may call the first contact finished after some.
struct Centre {
    name: &'static str,
    finish_after: Option<usize>,
    blocks: Arc<Mutex<Blocks>>,
}

impl Service for Centre {
    fn event(&mut self, _: Instant, manager: &mut SessionManager, event: SessionManagerEvent) {
        match event {
            SessionManagerEvent::Connected { id, .. } => {
                let session = manager.session(id).unwrap();
                session.open(Opening { name: self.name.to_owned(), ..Opening::default() });
            }
            SessionManagerEvent::Session { id, event: Event::Block(received) } => {
                let session = manager.session(id).unwrap();
                session.release(received.bytes.len());
                let mut blocks = self.blocks.lock().unwrap();
                let is_first = blocks.keys().next().is_none_or(|first| *first == received.id.flow);
                let of = blocks.entry(received.id.flow).or_default();
                of.push(received.bytes.slice(WHEN_READ..));
                let is_over = is_first && self.finish_after.is_some_and(|most| of.len() >= most);
                let next = if is_over { Seq::FINISHED } else { received.id.seq.next() };
                session.control_mut().receipt(received.id.flow, next);
            }
            _ => {}
        }
    }

    fn work(&mut self, now: Instant, _: &mut SessionManager) -> Option<Instant> {
        // The end of the test is noticed this soon.
        Some(now + Duration::from_millis(100))
    }
}

/// A centre at work; it ends with this.
struct Working {
    table: String,
    blocks: Arc<Mutex<Blocks>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Working {
    fn start(name: &'static str, finish_after: Option<usize>, station: Fingerprint) -> Self {
        let (clock, identity) = (Clock::start(), Identity::generate().unwrap());
        let path = PathConfig::over(Rate::from_mbps(100));
        let config = EndpointConfig {
            trusted: [station].into(),
            listen: true,
            ..EndpointConfig::new(identity.clone(), path, clock.std_start())
        };
        let here: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let socket = Socket::bind(here).unwrap();
        let address = socket.local_addr().unwrap();
        let endpoint = UdpEndpoint::new(QuicEndpoint::new(config).unwrap(), socket);
        let session = SessionConfig {
            receive_window: ByteCount::mib(16),
            utc_at_zero: clock.utc_at_start(),
            ..SessionConfig::default()
        };
        let mut driver = Driver::new(SessionManager::new(endpoint.into(), session), clock).unwrap();
        let (stop, blocks) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let mut centre = Centre { name, finish_after, blocks: Arc::clone(&blocks) };
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || driver.run(&mut centre, &stopped).unwrap());
        let table = format!(
            "[[peer]]\nname = \"{name}\"\naddresses = [\"{address}\"]\nfingerprints = [\"{}\"]\n\
             [[destination]]\nto = \"node:{name}\"\n",
            identity.fingerprint()
        );
        Self { table, blocks, stop, thread: Some(thread) }
    }

    fn blocks(&self) -> Vec<Vec<Bytes>> {
        self.blocks.lock().unwrap().values().cloned().collect()
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[test]
fn a_centre_that_finishes_a_contact_too_early_gets_the_rest_as_another_one_and_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let key = node::make_key("s", at);
    let wrong = Working::start("wrong", Some(3), key);
    let right = Working::start("right", None, key);
    let config = format!(
        "{}{}{}[[channel]]\nname = \"x\"\ninput = \"stdin\"\nsilence = \"600 s\"\n",
        node::table("s", Path::new("state")),
        wrong.table,
        right.table
    );
    std::fs::write(at.join("s.toml"), config).unwrap();
    let (input, mut downlink) = std::io::pipe().unwrap();
    let mut command = skyhaul(&["run", "--end-with-parent", "s.toml"], at);
    let station = Running::of(command.stdin(input).stdout(Stdio::null()).stderr(Stdio::null()));
    let status = || node::part("s.toml", at).unwrap_or_default();
    let shown = || text(&run(&["status", "--config", "s.toml"], at).stdout);
    let bytes = std::fs::read(recording(DAMAGED)).unwrap();
    // A block ends with the piece, as the channel pauses.
    let pieces: Vec<&[u8]> = bytes.chunks(bytes.len().div_ceil(8)).collect();
    for (nth, piece) in pieces.iter().enumerate() {
        downlink.write_all(piece).unwrap();
        let has_more = || (right.blocks().first()?.len() > nth).then_some(());
        until(has_more, shown);
    }
    drop(downlink);
    let is_there = || {
        let status = status();
        let all = status["destinations"].as_array()?;
        let ended = status["contacts"][0]["state"] != "open";
        let has_all = |one: &Value| one["backlog"]["blocks"] == 0 || one["name"] == "wrong";
        let is_empty = all.iter().all(has_all);
        (ended && is_empty).then_some(status)
    };
    let status = until(is_there, shown);
    let alarms = status["alarms"].to_string();
    assert!(alarms.contains("for wrong: it finished the contact before its end"), "{alarms}");
    let [whole] = &right.blocks()[..] else { panic!("{} contacts", right.blocks().len()) };
    let has_rest = || {
        let [before, after] = &wrong.blocks()[..] else { return None };
        (after.last() == whole.last()).then(|| (before.clone(), after.clone()))
    };
    let lengths = |blocks: &[Vec<Bytes>]| -> Vec<Vec<usize>> {
        blocks.iter().map(|of| of.iter().map(Bytes::len).collect()).collect()
    };
    let state = || format!("{:?} of {:?}", lengths(&wrong.blocks()), lengths(&right.blocks()));
    let (before, after) = until(has_rest, state);
    // Its first contact has the beginning; the second one says what it is of, and has the rest.
    assert_eq!(before, whole[..before.len()]);
    assert_eq!(after[0], whole[0]);
    let rest = &after[1..];
    assert_eq!(rest, &whole[whole.len() - rest.len()..]);
    assert!(before.len() + rest.len() >= whole.len(), "{} and {}", before.len(), rest.len());
    assert!(before.len() < whole.len(), "it was not sent what it does not want");
    drop(station);
}
