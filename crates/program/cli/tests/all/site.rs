//! All traffic between a station and its centre goes through one session: contacts, connections of
//! applications, files and streams at the same time, through real processes and one UDP path.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]
#![allow(
    clippy::disallowed_methods,
    reason = "servers of a test wait on sockets, each on a thread"
)]

mod echo;
mod pair;
mod scan;
mod tree;

use crate::support::patience::until;
use crate::support::ports::free_port;
use echo::{Echo, echoed, pattern};
use pair::Pair;
use rustix::process::Signal;
use scan::Scan;
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use tree::Tree;

/// The folder of the station at the centre.
const FILES: &str = "[peer.files]\nroot = \"files\"\n";
const MIRROR: &str =
    "[[mirror]]\nsource = \"source\"\ninto = \"in\"\ndelete = true\nclass = \"applications\"\n";
/// The sinks that streams of the station may use.
const SINKS: &str = "[peer.streams]\nroot = \"streams\"\n";
/// A busy machine delivers late, but it delivers.
const STREAM: &str = "[[stream]]\nfrom = \"scan.vdif\"\nto = \"{utc}.vdif\"\nlateness = \"60 \
                     s\"\nclass = \"streams\"\n";
const CLASSES: &str = "[[class]]\nname = \"live\"\nguarantee = \"20 Mbit/s\"\npriority = 0\n\
                       [[class]]\nname = \"streams\"\nguarantee = \"10 Mbit/s\"\n\
                       [[class]]\nname = \"applications\"\n";
/// The recording then lasts eight seconds.
const CHANNEL: &str = "rate = \"1 Mbit/s\"\n[[subscription]]\nof = \"contacts\"\nclass = \
                       \"live\"\ndeadline = \"30 s\"\n";

#[test]
fn a_contact_is_unchanged_by_a_mirror_a_stream_and_connections_in_its_session() {
    let alone = Pair::prepare("", "");
    alone.station(&pair::channel(""));
    let _nodes = alone.start_both();
    let expected = alone.products();
    let (there, here, port) = (Echo::start(), Echo::start(), free_port());
    let rules = "allow = [\"127.0.0.1:*\"]\nallow_listen = [\"127.0.0.1:*\"]\n";
    let pair = Pair::prepare(&format!("{rules}{FILES}{SINKS}"), "");
    let source = Tree::make(&pair.folder().join("source"));
    let scan = Scan::make(&pair.folder().join("scan.vdif"), 5);
    let forwards = format!(
        "[[forward]]\nlocal = \"0=centre:{}\"\nclass = \"applications\"\ndeadline = \"1 s\"\n\
         [[forward]]\nremote = \"{port}=centre:{}\"\nclass = \"applications\"\n",
        there.address, here.address
    );
    pair.station(&format!("{CLASSES}{forwards}{MIRROR}{STREAM}{}", pair::channel(CHANNEL)));
    let _nodes = pair.start_both();
    let local = pair.listening();
    // While the contact goes on, connections in both directions carry bytes, large ones and small
    // ones.
    let is_over = AtomicBool::new(false);
    let far = format!("127.0.0.1:{port}");
    std::thread::scope(|scope| {
        until(|| TcpStream::connect(&far).ok(), || pair.state());
        for address in [&local, &far] {
            let is_over = &is_over;
            scope.spawn(move || {
                let mut len = 1;
                while !is_over.load(Ordering::Relaxed) {
                    assert!(echoed(address, len), "{len} bytes through {address}");
                    len = len * 7 % 3_000_017;
                }
            });
        }
        let outcome = pair.products();
        pair.mirrored(&source);
        until(
            || (pair.status("station")["streams"][0]["state"] == "ended").then_some(()),
            || pair.state(),
        );
        assert_eq!(scan.copies(&pair.folder().join("streams")), 1, "{}", pair.state());
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(outcome, expected);
    });
    let (station, centre) = (pair.status("station"), pair.status("centre"));
    assert_eq!(station["destinations"][0]["line"]["connects"], 1, "{station:#}");
    assert_eq!(centre["stations"].as_array().map(Vec::len), Some(1), "{centre:#}");
    assert_eq!(pair.clients(), 1, "one socket at either side");
    assert_eq!(centre["files"][0]["copied"], source.files() as u64, "{centre:#}");
    assert_eq!(centre["files"][0]["failed"], 0, "{centre:#}");
    assert_streamed(&station["streams"][0], &centre["streams"][0], 5 * Scan::FRAMES_PER_SECOND);
    for (status, which) in [(&station, "accepted"), (&station, "connected"), (&centre, "connected")]
    {
        assert!(status["forwards"]["counters"][which].as_u64() > Some(0), "{which}: {status:#}");
    }
    let shown = pair.shown("station");
    assert!(shown.contains("scan.vdif to ") && shown.contains(" has ended\n"), "{shown}");
    assert!(
        pair.shown("centre").contains("  streams  station: none now; 1 ended"),
        "{}",
        pair.shown("centre")
    );
    assert!(
        shown.contains("  forwards ") && shown.contains(&format!("listening on {local}, for ")),
        "{shown}"
    );
}

/// Asserts that each frame arrived in time, by the accounts of both ends.
#[track_caller]
fn assert_streamed(station: &Value, centre: &Value, frames: u64) {
    assert_eq!(station["frames"], frames, "{station:#}");
    assert_eq!(
        (&station["unsent"], &station["late"], &station["lost"]),
        (&0.into(), &0.into(), &0.into())
    );
    assert_eq!((&centre["ended"], &centre["failed"]), (&1.into(), &0.into()), "{centre:#}");
    let in_time = ["received", "repaired"].map(|which| centre[which].as_u64().unwrap());
    assert_eq!(in_time.iter().sum::<u64>(), frames, "{centre:#}");
}

#[test]
fn after_a_kill_of_the_centre_connections_are_reset_and_everything_resumes_in_the_next_session() {
    let there = Echo::start();
    let pair = Pair::prepare(&format!("allow = [\"127.0.0.1:*\"]\n{FILES}{SINKS}"), "");
    let source = Tree::make(&pair.folder().join("source"));
    let scan = Scan::make(&pair.folder().join("scan.vdif"), 20);
    let forward =
        format!("[[forward]]\nlocal = \"0=centre:{}\"\nclass = \"applications\"\n", there.address);
    let mirror = format!("{MIRROR}limit = \"3 Mbit/s\"\n");
    pair.station(&format!("{CLASSES}{forward}{mirror}{STREAM}{}", pair::channel(CHANNEL)));
    let (_station, mut centre) = pair.start_both();
    let local = pair.listening();
    let mut application = TcpStream::connect(&local).unwrap();
    application.write_all(b"before").unwrap();
    application.read_exact(&mut [0; 6]).unwrap();
    // The contact has begun, and the connection is open.
    until(
        || pair.status("centre")["contacts"][0]["frames"].as_u64().filter(|frames| *frames > 0),
        || pair.state(),
    );
    until(
        || pair.status("centre")["files"][0]["copied"].as_u64().filter(|copied| *copied > 2),
        || pair.state(),
    );
    // Before its end on any machine, because it lasts 20 s.
    until(
        || pair.status("centre")["streams"][0]["bytes"].as_u64().filter(|bytes| *bytes > 0),
        || pair.state(),
    );
    centre.kill();
    assert_eq!(scan.copies(&pair.folder().join("streams")), 0);
    let _centre = pair.start("centre");
    let error = application.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    until(|| echoed(&local, 100_000).then_some(()), || pair.state());
    let products = pair.products();
    pair.mirrored(&source);
    // The stream has begun again, in another file.
    until(|| (scan.copies(&pair.folder().join("streams")) == 1).then_some(()), || pair.state());
    // Later changes arrive too, and removed files are removed.
    source.change();
    pair.mirrored(&source);
    let alone = Pair::prepare("", "");
    alone.station(&pair::channel(""));
    let _nodes = alone.start_both();
    assert_eq!(products, alone.products());
}

/// Waits for an alarm of the station: it stands when its condition has lasted for a second.
fn alarm_of(pair: &Pair, part: &str) {
    until(|| pair.shown("station").contains(part).then_some(()), || pair.state());
}

#[test]
fn a_mirror_without_a_folder_at_the_centre_is_refused_with_what_to_do() {
    let pair = Pair::prepare("", "");
    let _source = Tree::make(&pair.folder().join("source"));
    pair.station(&format!("{CLASSES}{MIRROR}{}", pair::channel("")));
    let _nodes = pair.start_both();
    let refused = |status: &Value| {
        let mirror = &status["mirrors"][0];
        (mirror["state"] == "failed").then(|| mirror["reason"].to_string())
    };
    let reason = until(|| refused(&pair.status("station")), || pair.state());
    assert!(reason.contains("add [peer.files] to its [[peer]] there"), "{reason}");
    alarm_of(&pair, "the mirror of ");
    // The contact is not affected.
    pair.products();
}

#[test]
fn a_stream_whose_sink_the_centre_does_not_allow_is_refused_with_what_to_do() {
    let pair = Pair::prepare("[peer.streams]\nallow = [\"null\"]\n", "");
    let _scan = Scan::make(&pair.folder().join("scan.vdif"), 2);
    let two = "[[stream]]\nfrom = \"vdif:1 Mbit/s\"\nto = \"null\"\nlateness = \"60 s\"\n";
    pair.station(&format!("{CLASSES}{STREAM}{two}{}", pair::channel("")));
    let (station, _centre) = pair.start_both();
    let refused = |status: &Value| {
        let stream = &status["streams"][0];
        (stream["state"] == "failed").then(|| stream["reason"].to_string())
    };
    let reason = until(|| refused(&pair.status("station")), || pair.state());
    assert!(reason.contains("`root` in [peer.streams]"), "{reason}");
    alarm_of(&pair, "the stream from ");
    // What is allowed is sent, and ends with the station without a fault.
    let goes =
        || pair.status("centre")["streams"][0]["received"].as_u64().filter(|frames| *frames > 0);
    until(goes, || pair.state());
    pair.products();
    station.signal(Signal::TERM);
    assert_eq!(station.end().code, Some(0));
    let ended = || (pair.status("centre")["streams"][0]["ended"] == 1).then_some(());
    until(ended, || pair.state());
}

#[test]
fn a_centre_lets_a_station_connect_only_where_its_own_peer_table_says() {
    let there = Echo::start();
    let pair = Pair::prepare("allow = [\"127.0.0.1:1\"]\n", "");
    pair.station(&format!(
        "[[forward]]\nlocal = \"0=centre:{}\"\n{}",
        there.address,
        pair::channel("")
    ));
    let _nodes = pair.start_both();
    let mut application = TcpStream::connect(pair.listening()).unwrap();
    // The far end does not connect it, and it is reset at this end.
    let outcome = application.write_all(&pattern(10)).and_then(|()| application.read(&mut [0]));
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::ConnectionReset);
    for node in ["station", "centre"] {
        let refused = |status: &Value| status["forwards"]["counters"]["refused"].as_u64();
        until(|| refused(&pair.status(node)).filter(|count| *count == 1), || pair.state());
    }
    assert_eq!(there.accepted(), 0);
}
