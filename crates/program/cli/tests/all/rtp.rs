//! RTP streams between two processes: packets come out as they went in, at the times of their
//! stamps, and what is not of the stream stays out.

mod video;

use crate::support::patience::{PATIENCE, now};
use crate::support::ports::free_address;
use crate::support::process::{Running, run, skyhaul, text};
use crate::support::refusal::{assert_misused, assert_refused, assert_told};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// Long enough for a busy machine, short enough to be waited for.
const LATENESS: Duration = Duration::from_secs(3);

/// Two ends of a stream: from `source`, to `target`.
struct Ends {
    source: String,
    near: Running,
    _far: Running,
    _folder: tempfile::TempDir,
}

impl Ends {
    /// A stream to `target`, which the far end has accepted. `query` is of the source.
    fn to(target: SocketAddr, query: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (address, sink) = (free_address().to_string(), format!("rtp://{target}"));
        let serve =
            ["stream", "serve", "--bind", &address, "--insecure-test", "--allow", &sink, "--json"];
        let mut far = Running::start(&serve, folder.path());
        let source = pair_of_ports().to_string();
        let (from, to) = (format!("rtp:{source}{query}"), format!("far:{sink}"));
        let (node, lateness) = (format!("far={address}"), format!("{}s", LATENESS.as_secs()));
        let words = ["stream", "--from", &from, "--to", &to, "--node", &node, "--insecure-test"];
        let line = ["--lateness", &lateness, "--cc", "line", "--rate", "100mbit", "--json"];
        let mut command = skyhaul(&[&words[..], &line].concat(), folder.path());
        // The far end may not listen yet: the near end calls until it does.
        let near = Running::of(command.stdout(Stdio::piped()).stderr(Stdio::null()));
        event(&mut far, |event| event["event"] == "begun");
        Self { source, near, _far: far, _folder: folder }
    }

    /// Ends the stream. Returns the account.
    fn end(self) -> Value {
        self.near.signal(Signal::INT);
        let ended = self.near.end();
        assert_eq!(ended.code, Some(0), "{}", ended.output);
        let last = ended.output.lines().last().unwrap_or_default();
        let account: Value = serde_json::from_str(last).unwrap();
        let [sent, received, repaired, late, lost] =
            ["sent", "received", "repaired", "late", "lost"]
                .map(|name| account["counters"][name].as_u64().unwrap());
        assert_eq!(sent, received + repaired + late + lost, "{account}");
        assert_eq!((&account["event"], &account["format"]), (&"summary".into(), &"rtp".into()));
        account
    }
}

/// Reads printed lines up to the one that `is` wanted.
fn event(process: &mut Running, is: impl Fn(&Value) -> bool) -> Value {
    loop {
        let line = process.line();
        let event = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        if is(&event) {
            return event;
        }
    }
}

/// A free port for packets; no other test gets the next one, which is that of RTCP.
fn pair_of_ports() -> SocketAddr {
    let mut first = free_address();
    loop {
        let next = free_address();
        if first.port().is_multiple_of(2) && next.port() == first.port() + 1 {
            return first;
        }
        first = next;
    }
}

/// The clock of the sender: time stamps count from `began`.
struct Sender {
    socket: UdpSocket,
    began: Instant,
    number: AtomicU16,
}

impl Sender {
    fn to(source: &str) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(source).unwrap();
        Self { socket, began: now(), number: AtomicU16::new(65_500) }
    }

    /// The three packets of the frame of `millis`.
    fn frame(&self, millis: u64) -> Vec<Vec<u8>> {
        let packet = |place: u8| {
            let number = self.number.fetch_add(1, Ordering::Relaxed);
            let mut packet = vec![0x80, if place == 2 { 0xe0 } else { 0x60 }];
            packet.extend(number.to_be_bytes());
            packet
                .extend((millis as u32).wrapping_mul(90).wrapping_add(4_294_000_000).to_be_bytes());
            packet.extend([1, 2, 3, 4]);
            packet.extend((0..200 + u64::from(place)).map(|at| (at * 7 + millis) as u8));
            packet
        };
        (0..3).map(packet).collect()
    }

    fn wait_until(&self, millis: u64) {
        while self.began.elapsed() < Duration::from_millis(millis) {
            std::thread::park_timeout(Duration::from_millis(millis) - self.began.elapsed());
        }
    }

    /// Nobody may listen.
    fn send(&self, packets: &[Vec<u8>]) {
        packets.iter().for_each(|packet| drop(self.socket.send(packet)));
    }

    fn millis(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    /// Sends a frame each 20 ms until the near end has taken one.
    fn warm_up(&self, near: &mut Running) {
        let taken = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !taken.load(Ordering::Relaxed) {
                    let millis = self.millis() / 20 * 20 + 20;
                    let frame = self.frame(millis);
                    self.wait_until(millis);
                    self.send(&frame);
                }
            });
            event(near, |event| event["source"]["frames"].as_u64() > Some(0));
            taken.store(true, Ordering::Relaxed);
        });
    }
}

/// A target that received nothing yet.
fn target() -> UdpSocket {
    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    target.set_read_timeout(Some(PATIENCE)).unwrap();
    target
}

/// Receives up to the packet `last`: each with when it came.
fn received(target: &UdpSocket, last: &[u8]) -> Vec<(Instant, Vec<u8>)> {
    let (mut all, mut buffer) = (Vec::new(), [0; 2_000]);
    while all.last().is_none_or(|(_, packet): &(Instant, Vec<u8>)| packet != last) {
        let len = target.recv(&mut buffer).unwrap();
        all.push((now(), buffer[..len].to_vec()));
    }
    all
}

#[test]
fn packets_come_out_as_they_went_in_and_not_before_their_time() {
    let target = target();
    let mut ends = Ends::to(target.local_addr().unwrap(), "?codec=h264&clock=90000");
    let sender = Sender::to(&ends.source);
    sender.warm_up(&mut ends.near);
    let (mut packets, mut times) = (Vec::new(), BTreeMap::new());
    let first = sender.millis() + 100;
    for pair in 0..10 {
        // The first of two frames comes 100 ms late into the entrance.
        let stamps = [first + pair * 200, first + pair * 200 + 100];
        sender.wait_until(stamps[1]);
        for stamp in stamps {
            let frame = sender.frame(stamp);
            times.extend(frame.iter().map(|packet| (packet.clone(), stamp)));
            sender.send(&frame);
            packets.extend(frame);
        }
    }
    let came = received(&target, packets.last().unwrap());
    // Before them are packets of the warming up.
    let bytes: Vec<&Vec<u8>> = came.iter().map(|(_, packet)| packet).collect();
    let begin = bytes.len() - packets.len();
    assert!(bytes[begin..].iter().zip(&packets).all(|(came, sent)| *came == sent));
    for (at, packet) in &came[begin..] {
        // A busy machine delays packets, and makes none early.
        let due = sender.began + Duration::from_millis(times[packet]) + LATENESS;
        assert!(*at + Duration::from_millis(5) >= due, "{:?} early", due - *at);
    }
    let account = ends.end();
    assert_eq!(account["counters"]["lost"], 0, "{account}");
    assert_eq!(account["source"]["source_missing"], 0, "{account}");
}

#[test]
fn what_is_not_of_the_stream_stays_out_and_is_counted() {
    let target = target();
    let mut ends = Ends::to(target.local_addr().unwrap(), "");
    let sender = Sender::to(&ends.source);
    sender.warm_up(&mut ends.near);
    let mut others: Vec<Vec<u8>> = vec![Vec::new(), vec![0x80], vec![0xff; 1_400], vec![7; 65_000]];
    // A sender's report of RTCP, and a packet whose extension goes beyond its end.
    others.push([&[0x80, 200, 0, 6][..], &[0; 24]].concat());
    others.push([&[0x90, 96][..], &[0; 10], &[0, 0, 0xff, 0xff]].concat());
    let mut packets = Vec::new();
    for _ in 0..20 {
        let frame = sender.frame(sender.millis());
        // The same, from another source.
        let mut foreign = frame.clone();
        foreign.iter_mut().for_each(|packet| packet[11] = 9);
        sender.send(&frame[..2]);
        sender.send(&others);
        sender.send(&foreign);
        sender.send(&frame[2..]);
        packets.extend(frame);
        sender.wait_until(sender.millis() + 20);
    }
    let came = received(&target, packets.last().unwrap());
    let begin = came.len() - packets.len();
    assert!(came[begin..].iter().zip(&packets).all(|((_, came), sent)| came == sent));
    let account = ends.end();
    assert!(account["source"]["skipped"].as_u64() > Some(20 * 66_000), "{account}");
}

#[test]
fn a_stream_that_begins_anew_says_so_in_its_account() {
    let target = target();
    let mut ends = Ends::to(target.local_addr().unwrap(), "");
    let sender = Sender::to(&ends.source);
    sender.warm_up(&mut ends.near);
    // Numbers far from those before: the encoder was started again.
    sender.number.fetch_add(10_000, Ordering::Relaxed);
    sender.warm_up(&mut ends.near);
    event(&mut ends.near, |event| event["source"]["source_restarts"] == 1);
    let account = ends.end();
    assert_eq!(account["source"]["source_restarts"], 1, "{account}");
}

#[test]
fn rtp_goes_only_to_a_sink_of_rtp_that_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let address = free_address().to_string();
    let serve = ["stream", "serve", "--bind", &address, "--insecure-test", "--allow", "null"];
    let mut serving = Running::start(&serve, folder.path());
    serving.address();
    let (node, source) = (format!("far={address}"), format!("rtp://{}", pair_of_ports()));
    let send = |words: &[&str]| {
        let node = ["--node", &node, "--insecure-test"];
        run(&[&["stream"], words, &node].concat(), folder.path())
    };
    let from = |sink| ["--from", &source, "--to", sink];
    for sink in ["far:null", "far:x.h264", "far:udp://127.0.0.1:9?plain"] {
        assert_refused(&send(&from(sink)), 2, &["goes to rtp:// only", "write the sink like"]);
    }
    let other = ["--from", "zero:1mbit", "--to", "far:rtp://127.0.0.1:9"];
    assert_refused(&send(&other), 2, &["takes only a stream from rtp://", "?plain"]);
    for flag in [["--format", "datagrams"], ["--pace", "line"]] {
        let words = [&from("far:rtp://127.0.0.1:9")[..], &flag].concat();
        assert_refused(&send(&words), 2, &["its own format", "leave out"]);
    }
    for query in ["?codec=av1", "?clock=0", "?x=1", "?codec"] {
        let source = format!("{source}{query}");
        let words = ["--from", &source, "--to", "far:rtp://127.0.0.1:9"];
        assert_misused(&send(&words), &["is not a source", "?codec=h264"]);
    }
    let refused = send(&from("far:rtp://127.0.0.1:9"));
    assert_told(
        &refused,
        4,
        &["the far node `far` refuses the stream", "--allow rtp://127.0.0.1:9"],
    );
    // A port that another program uses.
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let source = format!("rtp://{}", taken.local_addr().unwrap());
    let words = ["--from", &source, "--to", "far:rtp://127.0.0.1:9"];
    assert_told(&send(&words), 3, &["packets cannot be received", "in use"]);
    let shown = run(&["stream", "--help"], folder.path());
    assert!(text(&shown.stdout).contains("rtp://HOST:PORT"));
}
