//! Streams between two processes: what arrives, which losses are reported, and what is refused.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on says so by failing"
)]

mod again;
mod classes;

use crate::python;
use crate::support::patience::until;
use crate::support::ports::free_address;
use crate::support::process::{Running, run, skyhaul, text};
use crate::support::refusal::{assert_misused, assert_refused, assert_told};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A far node with the folder `far` and other sinks, and a folder to send from.
struct Ends {
    folder: tempfile::TempDir,
    address: String,
    serving: Running,
}

impl Ends {
    fn new(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("far")).unwrap();
        let address = free_address().to_string();
        let serving = Self::serve(&folder, &address, flags);
        Self { folder, address, serving }
    }

    fn serve(folder: &tempfile::TempDir, address: &str, flags: &[&str]) -> Running {
        let arguments =
            [&["stream", "serve", "--bind", address, "--insecure-test", "--root", "far"], flags]
                .concat();
        let mut serving = Running::start_logged(&arguments, folder.path());
        assert_eq!(serving.address(), address);
        serving
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn send(&self, words: &[&str]) -> Output {
        let node = format!("far={}", self.address);
        run(&arguments(&node, words), self.folder.path())
    }

    /// Sends with `--json`, which must succeed. Returns the account.
    #[track_caller]
    fn sent(&self, words: &[&str]) -> Value {
        let output = self.send(&[words, &PATIENT, &["--json"]].concat());
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        summary(&text(&output.stdout))
    }
}

/// A busy machine delivers late, but it delivers.
const PATIENT: [&str; 2] = ["--lateness", "60s"];

fn arguments<'a>(node: &'a str, words: &[&'a str]) -> Vec<&'a str> {
    let line = ["--node", node, "--insecure-test", "--cc", "line", "--rate", "400mbit"];
    [&["stream"], words, &line].concat()
}

/// The account. Asserts that every frame has exactly one outcome in it.
#[track_caller]
fn summary(printed: &str) -> Value {
    let last = printed.lines().last().unwrap_or_default();
    let summary: Value =
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {printed}"));
    assert_eq!(summary["event"], "summary", "{printed}");
    let [sent, received, repaired, late, lost] =
        ["sent", "received", "repaired", "late", "lost"].map(|name| count(&summary, name));
    assert_eq!(sent, received + repaired + late + lost, "{summary}");
    summary
}

fn count(summary: &Value, name: &str) -> u64 {
    summary["counters"][name].as_u64().unwrap_or_else(|| panic!("{name} in {summary}"))
}

/// A recording of the shared data. Says so if it is missing.
fn recording(name: &str) -> Option<PathBuf> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data/vlbi").join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("SKIPPED: the recording {name} is not on this machine");
    None
}

/// VDIF of one thread, so many frames of 840 bytes, 200 a second.
fn vdif(frames: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in 0..frames {
        let words = [
            1_000 + number / 200,
            (52 << 24) | (number % 200),
            (1 << 29) | 105,
            (1 << 26) | 0x536B,
            0,
            0,
            0,
            0,
        ];
        words.iter().for_each(|word: &u32| bytes.extend(word.to_le_bytes()));
        bytes.extend((0..808_u32).map(|at| (at * 7 + number) as u8));
    }
    bytes
}

#[test]
fn recordings_arrive_byte_for_byte() {
    let ends = Ends::new(&[]);
    for (name, frames) in [
        ("sample_vlbi.vdif", 16),
        ("sample_mwa.vdif", 10),
        ("sample_arochime.vdif", 10),
        ("sample.m5b", 4),
    ] {
        let Some(path) = recording(name) else { return };
        let to = format!("far:in/{name}");
        let account =
            ends.sent(&["--from", path.to_str().unwrap(), "--to", &to, "--pace", "4mbit"]);
        assert_eq!((count(&account, "sent"), count(&account, "lost")), (frames, 0), "{account}");
        assert_eq!(
            fs::read(ends.path("far/in").join(name)).unwrap(),
            fs::read(path).unwrap(),
            "{name}"
        );
        assert!(!ends.path("far/in").join(format!(".{name}.skyhaul-part")).exists());
    }
}

#[test]
fn a_file_is_played_by_its_frame_times_and_garbage_is_skipped() {
    let ends = Ends::new(&[]);
    let frames = vdif(450);
    fs::write(
        ends.path("x.vdif"),
        [&[7; 1_000], &frames[..840 * 100], &[9; 55], &frames[840 * 100..]].concat(),
    )
    .unwrap();
    let account = ends.sent(&["--from", "x.vdif", "--to", "far:x.vdif"]);
    assert_eq!(
        (count(&account, "sent"), &account["source"]["skipped"]),
        (450, &1_055.into()),
        "{account}"
    );
    // 449 frames lie 2.245 s apart.
    assert!(account["elapsed_s"].as_f64().unwrap() > 2.2, "{account}");
    assert_eq!(fs::read(ends.path("far/x.vdif")).unwrap(), frames);
}

#[test]
fn a_pipe_goes_to_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let address = free_address().to_string();
    let serve = ["stream", "serve", "--bind", &address, "--insecure-test", "--allow", "-"];
    let mut serving = Running::of(
        skyhaul(&serve, folder.path())
            .stdout(fs::File::create(folder.path().join("out")).unwrap())
            .stderr(Stdio::piped()),
    );
    serving.log_until("listening on");
    fs::write(folder.path().join("in"), vdif(300)).unwrap();
    let node = format!("far={address}");
    let words =
        [&["--from", "-", "--to", "far:-", "--pace", "line", "--json"][..], &PATIENT].concat();
    let input = fs::File::open(folder.path().join("in")).unwrap();
    let output = skyhaul(&arguments(&node, &words), folder.path()).stdin(input).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(count(&summary(&text(&output.stdout)), "sent"), 300);
    assert_eq!(fs::read(folder.path().join("out")).unwrap(), vdif(300));
}

#[test]
fn numbered_datagrams_keep_their_numbers_and_earlier_losses_are_reported() {
    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    target.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    let sink = format!("udp://{}", target.local_addr().unwrap());
    let ends = Ends::new(&["--allow", &sink]);
    let source = free_address().to_string();
    let (from, to, node) =
        (format!("udp://{source}"), format!("far:{sink}"), format!("far={}", ends.address));
    let words = [&["--from", &from, "--to", &to, "--json"][..], &PATIENT].concat();
    let mut sending = Running::of(
        skyhaul(&arguments(&node, &words), ends.folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null()),
    );
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.connect(&source).unwrap();
    let frames = vdif(40);
    // Datagrams are refused until it listens.
    let datagram =
        |number: u64| [&number.to_le_bytes()[..], &frames[number as usize * 840..][..840]].concat();
    until(
        || (sender.send(&datagram(0)).is_ok() && sender.send(&datagram(0)).is_ok()).then_some(()),
        || "no listener".to_owned(),
    );
    let mut buffer = [0; 2_000];
    let len = target.recv(&mut buffer).unwrap();
    assert_eq!(
        (len, &buffer[..8], &buffer[8..len]),
        (848, &0_u64.to_le_bytes()[..], &frames[..840])
    );
    for number in (5..20).chain(25..40) {
        sender.send(&datagram(number)).unwrap();
    }
    // Receives the copies of the first datagram, which may have been sent several times, and then
    // the others.
    let mut last = Vec::new();
    while last != frames[39 * 840..] {
        let len = target.recv(&mut buffer).unwrap();
        last = buffer[8..len].to_vec();
    }
    assert!(sending.status().is_none());
    sending.signal(Signal::INT);
    let ended = sending.end();
    assert_eq!(ended.code, Some(0));
    let account = summary(&ended.output);
    assert_eq!(
        (count(&account, "lost"), &account["source"]["source_missing"]),
        (0, &9.into()),
        "{account}"
    );
}

#[test]
fn shared_memory_that_python_writes_arrives() {
    let Ok(python) = Command::new("python3").arg("--version").output() else {
        eprintln!("SKIPPED: there is no python3");
        return;
    };
    if !python.status.success() || !Path::new("/dev/shm").is_dir() {
        eprintln!("SKIPPED: there is no python3, or no /dev/shm");
        return;
    }
    let ends = Ends::new(&[]);
    let name = format!("skyhaul-test-{}", std::process::id());
    fs::write(ends.path("frames"), vdif(500)).unwrap();
    fs::write(ends.path("write.py"), RING).unwrap();
    let ring = format!("/dev/shm/{name}");
    let mut writing = Running::of(
        Command::new("python3").args(["write.py", &ring, "frames"]).current_dir(ends.folder.path()),
    );
    until(|| Path::new(&ring).exists().then_some(()), || "no ring".to_owned());
    let account = ends.sent(&["--from", &format!("shm:/{name}"), "--to", "far:ring.vdif"]);
    until(|| writing.status(), || "python has not ended".to_owned());
    fs::remove_file(&ring).unwrap();
    assert_eq!(count(&account, "sent"), 500, "{account}");
    assert_eq!(fs::read(ends.path("far/ring.vdif")).unwrap(), vdif(500));
}

/// Writes a ring as docs/how-to/streams.md shows it, a frame at a time, and waits for the reader so
/// that nothing is overwritten.
const RING: &str = r#"
import mmap, os, struct, sys, time

path, frames = sys.argv[1], open(sys.argv[2], "rb").read()
size = 100_000
with open(path + ".new", "wb") as file:
    file.write(b"SKYRING1" + struct.pack("<QQQQ", size, 0, 0, 0) + bytes(4096 - 40 + size))
os.rename(path + ".new", path)
with open(path, "r+b") as file:
    ring = mmap.mmap(file.fileno(), 0)
written = 0
for at in range(0, len(frames), 840):
    while written + 840 - struct.unpack_from("<Q", ring, 24)[0] > size * 3 // 4:
        time.sleep(0.001)
    for byte in frames[at : at + 840]:
        ring[4096 + written % size] = byte
        written += 1
    struct.pack_into("<Q", ring, 16, written)
struct.pack_into("<Q", ring, 32, 1)
"#;

#[test]
fn over_a_lossy_line_every_frame_arrives_or_is_invalid_and_the_map_lists_which() {
    let ends = Ends::new(&[]);
    let proxy = ["emulate", "--listen", "127.0.0.1:0", "--to", &ends.address];
    let line = ["--delay", "20ms", "--loss", "1 %", "--rate", "400mbit", "--seed", "5"];
    let mut proxy = Running::start(&[&proxy[..], &line].concat(), ends.folder.path());
    let node = format!("far={}", proxy.address());
    let frames = vdif(6_000);
    fs::write(ends.path("x.vdif"), &frames).unwrap();
    // So late that nothing can be sent again, and that some of it cannot be repaired either.
    let words = ["--from", "x.vdif", "--to", "far:x.vdif", "--pace", "20mbit", "--lateness", "1ms"];
    let words = [&words[..], &["--loss-map", "map", "--json"]].concat();
    let output = run(&arguments(&node, &words), ends.folder.path());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let account = summary(&text(&output.stdout));
    assert_eq!(count(&account, "sent"), 6_000);
    let came = fs::read(ends.path("far/x.vdif")).unwrap();
    assert_eq!(came.len(), frames.len());
    let mut invalid = Vec::new();
    for (number, (came, frame)) in came.chunks(840).zip(frames.chunks(840)).enumerate() {
        if came != frame {
            let mut head = frame[..32].to_vec();
            head[3] |= 0x80;
            assert_eq!(came[..32], head, "{number}");
            invalid.push(number as u64);
        }
    }
    let missing = count(&account, "late") + count(&account, "lost");
    assert_eq!(invalid.len() as u64, missing, "{account}");
    let map = fs::read_to_string(ends.path("map")).unwrap();
    let mut told: Vec<u64> = Vec::new();
    for place in map.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let second = place["second"].as_str().unwrap();
        let second: u64 = second[second.len() - 3..second.len() - 1].parse().unwrap();
        // The recording begins at second 1000 of its half-year: 40 seconds after a full minute.
        let second = (second + 60 - 40) % 60;
        let numbers = place["first"].as_u64().unwrap()..=place["last"].as_u64().unwrap();
        told.extend(numbers.map(|number| second * 200 + number));
    }
    told.sort_unstable();
    assert_eq!(told, invalid);
    let budget = run(
        &arguments(&node, &["--from", "x.vdif", "--to", "far:null", "--pace", "line"]),
        ends.folder.path(),
    );
    assert_refused(&budget, 4, &["the sink null is not allowed there", "--allow null"]);
}

#[test]
fn lost_data_is_repaired_while_there_is_time() {
    let ends = Ends::new(&["--allow", "null"]);
    let proxy = [
        "emulate",
        "--listen",
        "127.0.0.1:0",
        "--to",
        &ends.address,
        "--delay",
        "10ms",
        "--loss",
        "1 %",
    ];
    let mut proxy = Running::start(&proxy, ends.folder.path());
    let node = format!("far={}", proxy.address());
    fs::write(ends.path("x.vdif"), vdif(8_000)).unwrap();
    let words = [
        "--from",
        "x.vdif",
        "--to",
        "far:null",
        "--pace",
        "20mbit",
        "--lateness",
        "60s",
        "--budget",
        "0.1 %",
        "--json",
    ];
    let output = run(&arguments(&node, &words), ends.folder.path());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let account = summary(&text(&output.stdout));
    assert!(count(&account, "repaired") > 0 && count(&account, "lost") == 0, "{account}");
}

#[test]
fn the_source_keeps_its_rate_on_a_line_that_is_too_slow_and_the_budget_is_reported() {
    let ends = Ends::new(&["--allow", "null"]);
    fs::write(ends.path("x.vdif"), vdif(4_000)).unwrap();
    let node = format!("far={}", ends.address);
    let words = [
        "--from",
        "x.vdif",
        "--to",
        "far:null",
        "--pace",
        "20mbit",
        "--lateness",
        "100ms",
        "--budget",
        "1 %",
        "--json",
    ];
    let line = ["--node", &node, "--insecure-test", "--cc", "line", "--rate", "1mbit"];
    let output = run(&[&["stream"], &words[..], &line].concat(), ends.folder.path());
    assert_told(
        &output,
        1,
        &["frames are missing at the sink, above the budget of 1 %", "--lateness"],
    );
    let account = summary(&text(&output.stdout));
    assert!(count(&account, "lost") > 0 && count(&account, "sent") == 4_000, "{account}");
}

#[test]
fn frames_of_another_length_end_the_stream_and_the_frames_before_are_complete() {
    let ends = Ends::new(&[]);
    let mut bytes = vdif(20);
    let mut other = vdif(20);
    for frame in other.chunks_mut(840) {
        // Half as long: the samples of the other half are left out below.
        frame[8] = 53;
    }
    bytes.extend(other.chunks(840).flat_map(|frame| &frame[..424]));
    fs::write(ends.path("x.vdif"), bytes).unwrap();
    let output = ends.send(&["--from", "x.vdif", "--to", "far:x.vdif", "--pace", "line"]);
    assert_told(&output, 1, &["frame size changes to 424 bytes, from 840", "a separate stream"]);
    assert_eq!(fs::read(ends.path("far/x.vdif")).unwrap(), vdif(20));
}

#[test]
fn input_that_is_not_a_stream_is_reported() {
    let ends = Ends::new(&[]);
    fs::write(ends.path("zeros"), vec![0; 50_000]).unwrap();
    let none = ends.send(&["--from", "zeros", "--to", "far:x", "--pace", "line"]);
    assert_told(&none, 1, &["no VDIF or Mark 5B frames", "--format"]);
    assert_told(
        &ends.send(&["--from", "zeros", "--to", "far:x"]),
        2,
        &["neither VDIF nor Mark 5B frames", "skyhaul cp"],
    );
    assert_eq!(fs::read_dir(ends.path("far")).unwrap().count(), 0, "nothing was begun");
    let absent = ends.send(&["--from", "absent", "--to", "far:x", "--pace", "line"]);
    assert_told(&absent, 3, &["the source absent cannot be read", "an existing file"]);
}

#[test]
fn a_sink_that_is_not_allowed_or_exists_already_is_refused() {
    let ends = Ends::new(&["--allow", "udp://127.0.0.1:9"]);
    fs::write(ends.path("x.vdif"), vdif(20)).unwrap();
    fs::write(ends.path("far/there"), "other").unwrap();
    let send = |sink: &str| {
        ends.send(&["--from", "x.vdif", "--to", &format!("far:{sink}"), "--pace", "line"])
    };
    for (sink, part) in [
        ("null", "the sink null is not allowed there"),
        ("udp://127.0.0.1:10", "is not allowed there"),
        ("shm:/x", "--allow shm:/x"),
        ("there", "give another name"),
    ] {
        assert_told(&send(sink), 4, &["the far node `far` refuses the stream", part]);
    }
    assert_eq!(fs::read(ends.path("far/there")).unwrap(), b"other");
    for (sink, part) in [("../x", "is not a sink"), ("udp://9", "is not a sink")] {
        assert_misused(&send(sink), &[part]);
    }
    assert!(!ends.path("x").exists());
}

#[test]
fn an_invalid_command_line_is_reported() {
    let node = ["--node", "far=127.0.0.1:9", "--insecure-test"];
    let stream = |words: &[&str]| run(&[&["stream"], words, &node].concat(), Path::new("."));
    for (words, part) in [
        (&["--from", "udp://2630", "--to", "far:null"][..], "is not a source"),
        (&["--from", "zero:1", "--to", "far:null"], "zero:1gbit"),
        (&["--from", "vdif:1gbit,7", "--to", "far:null"], "no such VDIF is possible"),
        (&["--from", "zero:1mbit", "--to", "null"], "is not a far node with a sink"),
        (&["--from", "zero:1mbit", "--to", "near:null"], "the far node `near` is not known"),
        (
            &["--from", "zero:1mbit", "--to", "far:null", "--format", "x"],
            "write vdif, mark5b or datagrams",
        ),
        (&["--from", "zero:1mbit", "--to", "far:null", "--pace", "x"], "is not a pace"),
        (&["--from", "zero:1mbit", "--to", "far:null", "--group", "1GiB"], "give 1 B to 8 MiB"),
    ] {
        assert_misused(&stream(words), &[part]);
    }
    let serve = |words: &[&str]| {
        run(
            &[&["stream", "serve", "--bind", "127.0.0.1:0", "--insecure-test"], words].concat(),
            Path::new("."),
        )
    };
    assert_refused(&serve(&[]), 2, &["no sink is allowed", "--allow null"]);
    assert_refused(&serve(&["--root", "absent"]), 3, &["cannot be written to", "existing folder"]);
    assert_refused(&serve(&["--allow", "-", "--json"]), 2, &["standard output"]);
}

#[test]
fn a_port_in_use_and_a_node_that_does_not_answer_are_reported() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let from = format!("udp://{address}");
    let words = [
        "stream",
        "--from",
        &from,
        "--to",
        "far:null",
        "--node",
        "far=127.0.0.1:9",
        "--insecure-test",
    ];
    assert_refused(&run(&words, Path::new(".")), 3, &["datagrams cannot be received", "in use"]);
    let serve = ["stream", "serve", "--bind", &address, "--insecure-test", "--allow", "null"];
    assert_refused(&run(&serve, Path::new(".")), 3, &["cannot be bound", "in use"]);
}

#[test]
fn a_sink_that_is_slower_than_the_stream_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let address = free_address().to_string();
    let serve = ["stream", "serve", "--bind", &address, "--insecure-test", "--allow", "-"];
    // Nobody reads its standard output.
    let mut serving = Running::start_logged(&serve, folder.path());
    serving.log_until("listening on");
    let node = format!("far={address}");
    let words = ["--from", "vdif:8mbit,800", "--to", "far:-", "--lateness", "10ms"];
    let output = run(&arguments(&node, &words), folder.path());
    assert_told(&output, 4, &["the sink - is slower than the stream", "s behind"]);
}

#[test]
fn the_python_package_baseband_reads_the_received_frames_and_sees_the_missing_ones() {
    let (Some(vdif), Some(mark5b)) = (recording("sample_vlbi.vdif"), recording("sample.m5b"))
    else {
        return;
    };
    let Some(python) = python::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    // One frame of each is lost on purpose, in a process of its own that drops all but these.
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/readers/read_recordings.py");
    let filled = folder.path().join("filled");
    fs::create_dir(&filled).unwrap();
    for (path, lost) in [(&vdif, 9), (&mark5b, 2)] {
        let name = path.file_name().unwrap();
        fs::write(filled.join(name), lossy(path, lost)).unwrap();
    }
    let output = Command::new(python)
        .arg(script)
        .args([vdif.as_os_str(), filled.join("sample_vlbi.vdif").as_os_str(), "9".as_ref()])
        .args([mark5b.as_os_str(), filled.join("sample.m5b").as_os_str(), "2".as_ref()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(text(&output.stdout), "vdif: 16 frames, 9 invalid\nmark5b: 4 frames, 2 invalid\n");
}

/// What a sink has of a recording whose frame `lost` is missing.
fn lossy(path: &Path, lost: usize) -> Vec<u8> {
    use skyhaul_streams::wire::Message;
    use skyhaul_streams::{Departure, FrameFinder, FrameGrouping, NextBytes, StreamReceiver};
    let (mut finder, now) = (FrameFinder::new(None), skyhaul_units::Instant::ZERO);
    finder.push(&fs::read(path).unwrap());
    finder.end();
    let mut departure =
        Departure::new(now, FrameGrouping { bytes: 1, ..FrameGrouping::default() }, None);
    let (mut parcels, mut format) = (Vec::new(), None);
    while let Some(NextBytes::Frame(head, frame)) = finder.next() {
        format = Some(head.format());
        parcels.extend(departure.frame(now, Some(&head), frame));
    }
    parcels.extend(departure.flush());
    let format = format.unwrap();
    let mut arrival = StreamReceiver::new(format, skyhaul_units::Duration::ZERO, None);
    let kept = parcels.iter().enumerate().filter(|(at, _)| *at != lost).map(|(_, parcel)| parcel);
    for parcel in kept {
        let Ok(Message::Group(group)) = Message::decode(&parcel.bytes, format) else {
            panic!("a group")
        };
        arrival.group(now, group).unwrap();
    }
    let mut bytes = Vec::new();
    while let Some(given) = arrival.poll(now) {
        bytes.extend(given.bytes);
    }
    bytes
}
