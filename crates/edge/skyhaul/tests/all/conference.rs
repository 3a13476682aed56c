//! The examples as programs, over two emulated paths. Needs root, network namespaces and TUN
//! devices; skipped without.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "what cannot go on fails; what is skipped is said"
)]
#![allow(clippy::disallowed_methods, reason = "the links carry packets while programs run")]

use skyhaul_emulator::{Emulation, LabDescription, LinkEnd, Namespace};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// As in the evaluation of deadline-aware transports: 600 and 100 ms, here at 2 Mbit/s and 1 %
/// loss.
const LINE: &str = "
seed = 7
[[link]]
name = \"far\"
both = { rate = \"2 Mbit/s\", one_way_delay = \"300 ms\", queue = \"150 kB\", loss = { kind = \
\"independent\", probability = \"1 %\" } }
[[link]]
name = \"near\"
both = { rate = \"2 Mbit/s\", one_way_delay = \"50 ms\", queue = \"25 kB\", loss = { kind = \
\"independent\", probability = \"1 %\" } }
";

const LAB: &str = "t-conference";

/// Ended, by its identifier, however the test ends.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An example, built beside this test.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().join("examples").join(name)
}

fn start(place: LinkEnd, name: &str, words: &[String]) -> Program {
    let mut command = Command::new("ip");
    command
        .args(["netns", "exec", Namespace::new(LAB, place).name()])
        .arg(example(name))
        .args(words);
    Program(command.stdout(Stdio::piped()).spawn().unwrap())
}

/// A receiver that listens at a port of each link's far end.
fn receiver(name: &str, port: u16) -> (Program, BufReader<ChildStdout>, Vec<String>) {
    let at: Vec<String> = (0..2).map(|link| format!("{}:{port}", LinkEnd::B.ipv4(link))).collect();
    let mut program = start(LinkEnd::B, name, &[&["receive".to_owned()], &at[..]].concat());
    let mut said = BufReader::new(program.0.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("waits at"), "{name} said `{line}`");
    (program, said, at)
}

/// How many of how many were in time.
fn counts(said: &str) -> (f64, f64) {
    let mut numbers = said.split_whitespace().filter_map(|word| word.parse().ok());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

#[test]
fn text_audio_and_video_are_in_time_over_two_thin_paths() {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/net/tun").exists() {
        return eprintln!("SKIPPED: emulated links need root and /dev/net/tun");
    }
    let line = LabDescription::from_toml(LINE).unwrap_or_else(|error| panic!("{}", error.what));
    let mut emulation = Emulation::set_up(LAB, &line).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&stop);
    let carrying = std::thread::spawn(move || {
        let ran = emulation.run(&until);
        ran.and(emulation.take_down())
    });
    let conference = std::panic::catch_unwind(|| {
        let receivers = [("text", 4710), ("audio", 4711), ("video", 4712)]
            .map(|(name, port)| (name, receiver(name, port)));
        let senders: Vec<Program> = receivers
            .iter()
            .map(|(name, (_, _, at))| {
                start(LinkEnd::A, name, &[&["send".to_owned(), "6".to_owned()], &at[..]].concat())
            })
            .collect();
        for mut sender in senders {
            assert!(sender.0.wait().unwrap().success());
        }
        receivers.map(|(name, (mut program, mut said, _))| {
            let mut result = String::new();
            said.read_to_string(&mut result).unwrap();
            assert!(program.0.wait().unwrap().success(), "{result}");
            (name, result)
        })
    });
    stop.store(true, Ordering::Relaxed);
    carrying.join().unwrap().unwrap();
    for (name, result) in conference.unwrap() {
        eprintln!("{}", result.trim());
        let (of_use, all) = counts(&result);
        let due = if name == "video" { 0.5 } else { 0.8 };
        assert!(of_use >= all * due && all > 0.0, "{result}");
    }
}
