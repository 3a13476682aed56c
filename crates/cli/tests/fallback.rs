//! A station whose network lets no UDP through: real processes, and a forwarder that takes TCP alone.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]
#![allow(clippy::disallowed_methods, reason = "the forwarder runs beside the processes")]

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A process that is ended when the test ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn skyhaul(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skyhaul"));
    command.args(arguments).current_dir(folder).stderr(Stdio::null());
    command
}

fn printed(arguments: &[&str], folder: &Path) -> String {
    String::from_utf8(skyhaul(arguments, folder).output().unwrap().stdout).unwrap()
}

/// Asks a node until `probe` finds what it looks for; it has as long as asking so often takes.
fn ask_until<T>(node: &str, folder: &Path, probe: impl Fn(&Value) -> Option<T>) -> T {
    for _ in 0..5_000 {
        let answer = printed(&["status", "--config", node, "--json"], folder);
        if let Some(found) = serde_json::from_str(&answer).ok().and_then(|status| probe(&status)) {
            return found;
        }
    }
    panic!("{}", printed(&["status", "--config", node], folder))
}

/// Forwards TCP to `to` from a port where nothing takes UDP; gives its address.
fn forward_tcp_alone(to: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for near in listener.incoming() {
            let (near, far) = (near.unwrap(), TcpStream::connect(&to).unwrap());
            for (mut from, mut into) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
                std::thread::spawn(move || {
                    let mut buffer = [0; 65_536];
                    while let Ok(count @ 1..) = from.read(&mut buffer) {
                        if into.write_all(&buffer[..count]).is_err() {
                            break;
                        }
                    }
                    let _ = into.shutdown(Shutdown::Write);
                });
            }
        }
    });
    address
}

const RECORDING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/cadu/npp_rs_errors.dat");
/// Of the recording's good frames, as expected.json has it.
const DIGEST: &str = "2aef857adfb30acaf1861bbe90379f4ab7dc09117918952fff5a6b1683017f8b";

/// A whole contact of a station with this table, whose way to the centre takes TCP alone; gives the paths as status shows
/// them meanwhile.
fn contact_arrives(path: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let [key, station_key] = ["c.key", "s.key"].map(|key| printed(&["keygen", key], at).trim().to_owned());
    let centre = format!(
        "[node]\nname = \"c\"\nkey = \"c.key\"\nstate = \"state\"\n[listen]\nbind = \"127.0.0.1:0\"\n\
         [products]\ndir = \"products\"\n[[peer]]\nname = \"s\"\nfingerprint = \"{station_key}\"\n"
    );
    std::fs::write(at.join("centre.toml"), centre).unwrap();
    let _centre = Running(skyhaul(&["centre", "--config", "centre.toml"], at).spawn().unwrap());
    let address = ask_until("centre.toml", at, |status| {
        Some(status["address"].as_str()?.to_owned()).filter(|address| !address.is_empty())
    });
    let way = forward_tcp_alone(address);
    let station = format!(
        "[node]\nname = \"s\"\nkey = \"s.key\"\nstate = \"spool\"\n\
         [centre]\nname = \"c\"\naddress = \"{way}\"\nfingerprint = \"{key}\"\n{path}\
         [[channel]]\nname = \"x\"\ninput = \"file:{RECORDING}\"\n"
    );
    std::fs::write(at.join("station.toml"), station).unwrap();
    let _station = Running(skyhaul(&["station", "--config", "station.toml"], at).spawn().unwrap());
    let contact = ask_until("centre.toml", at, |status| {
        Some(status["contacts"][0].clone()).filter(|contact| contact["state"] == "done")
    });
    assert_eq!(contact["frames_sha256"], DIGEST, "as expected.json has it");
    ask_until("station.toml", at, |status| {
        Some(status["line"]["paths"].clone()).filter(|_| status["spool"]["blocks"] == 0)
    })
}

#[test]
fn where_udp_is_blocked_the_contact_arrives_over_tcp_and_status_says_why() {
    let paths = contact_arrives("");
    let [udp, tcp] = paths.as_array().unwrap().as_slice() else { panic!("{paths}") };
    assert_eq!((&udp["over"], &tcp["over"]), (&"udp".into(), &"tcp".into()), "{paths}");
    assert_eq!((&udp["state"], &tcp["state"]), (&"failed".into(), &"active".into()), "{paths}");
    assert!(tcp["reason"].as_str().unwrap().contains("UDP brings no answer"), "{paths}");
}

#[test]
fn a_path_that_is_to_go_over_tcp_does_so_at_once() {
    let paths = contact_arrives("[[path]]\ntransport = \"tcp\"\n");
    let [tcp] = paths.as_array().unwrap().as_slice() else { panic!("{paths}") };
    assert_eq!((&tcp["over"], &tcp["state"]), (&"tcp".into(), &"active".into()), "{paths}");
}
