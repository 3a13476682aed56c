//! Pairing of two users with real processes: what each has in its address book afterwards, and who
//! gets nowhere.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::ports::free_address;
use crate::support::process::{Ended, Running, text};
use crate::support::refusal::assert_told;
use crate::support::user::User;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

/// A user who waits, and what the command shows.
struct Waiting {
    process: Running,
    address: String,
    code: String,
}

impl Waiting {
    fn of(user: &User, words: &[&str]) -> Self {
        let all = [&["pair", "--bind", "127.0.0.1:0"], words].concat();
        let mut process =
            Running::of(user.command(&all).stdout(Stdio::piped()).stderr(Stdio::piped()));
        let address = process.address();
        let code = code(&mut process, &address);
        Self { process, address, code }
    }

    /// A code of the same form that is not this one.
    fn wrong(&self) -> String {
        let (rest, last) = self.code.rsplit_once('-').unwrap();
        format!("{rest}-{}", if last == "zebra" { "river" } else { "zebra" })
    }

    /// The next code that it shows.
    fn renewed(&mut self) -> String {
        self.code = code(&mut self.process, &self.address);
        self.code.clone()
    }
}

fn code(process: &mut Running, address: &str) -> String {
    assert!(process.line().contains("within 10 minutes"));
    let line = process.line();
    let shown = line.trim().strip_prefix(&format!("skyhaul pair {address} "));
    shown.unwrap_or_else(|| panic!("no command in `{line}`")).to_owned()
}

fn nodes(user: &User) -> Value {
    serde_json::from_str(&user.done(&["node", "list", "--json"])).unwrap()
}

#[test]
fn two_users_type_one_code_and_then_copy_by_name() {
    let (near, far) = (User::new(), User::new());
    let waiting = Waiting::of(&far, &["--own-name", "observatory"]);
    let words = ["pair", &waiting.address, &waiting.code, "--own-name", "laptop", "--name", "far"];
    let said = near.done(&words);
    let Ended { code, output, log } = waiting.process.end();
    assert_eq!(code, Some(0), "{log}");
    // Each shows the other's fingerprint and its own.
    for (said, name, theirs, own) in [(&said, "far", &far, &near), (&output, "laptop", &near, &far)]
    {
        assert!(said.contains(&format!("paired with {name}\n")), "{said}");
        assert!(said.contains(&format!("its fingerprint        {}\n", theirs.fingerprint())));
        assert!(said.contains(&format!("this node's fingerprint  {}\n", own.fingerprint())));
    }
    let (known, back) = (nodes(&near), nodes(&far));
    assert_eq!(known[0]["name"], "far");
    assert_eq!(known[0]["fingerprints"][0], far.fingerprint());
    assert_eq!(known[0]["addresses"][0], waiting.address);
    assert_eq!(back[0]["name"], "laptop");
    assert_eq!(back[0]["fingerprints"][0], near.fingerprint());
    assert_eq!(back[0]["addresses"], serde_json::json!([]));

    // The port of the pairing, over UDP, is where the far end serves.
    fs::create_dir(far.path("in")).unwrap();
    let serve = ["files", "serve", "--bind", &waiting.address, "--root", "in", "--write"];
    let mut serving = Running::of(far.command(&serve).stdout(Stdio::piped()).stderr(Stdio::null()));
    serving.address();
    fs::write(near.path("pass.dat"), "frames").unwrap();
    near.done(&["cp", "pass.dat", "far:today/"]);
    assert_eq!(fs::read_to_string(far.path("in/today/pass.dat")).unwrap(), "frames");
}

#[test]
fn a_wrong_code_is_void_and_the_new_one_works_and_none_works_twice() {
    let (near, far) = (User::new(), User::new());
    let mut waiting = Waiting::of(&far, &[]);
    let first = waiting.code.clone();
    let wrong = near.run(&["pair", &waiting.address, &waiting.wrong()]);
    assert_told(&wrong, 4, &["the code is wrong", "a new one", &waiting.address]);
    let second = waiting.renewed();
    assert_ne!(first, second);
    let log = waiting.process.log_until("wrong code");
    assert!(log.contains("127.0.0.1 gave a wrong code: it is void, 4 tries are left"), "{log}");
    let old = near.run(&["pair", &waiting.address, &first]);
    assert_told(&old, 4, &["the code was used, replaced or has expired"]);
    // Typed with capitals and spaces.
    let spoken = second.to_uppercase();
    let words: Vec<&str> = spoken.split('-').collect();
    near.done(&[&["pair", &waiting.address], &words[..]].concat());
    assert_eq!(waiting.process.end().code, Some(0));
    let reused = near.run(&["pair", &waiting.address, &second]);
    assert_told(&reused, 4, &["nobody waits at this address", "skyhaul pair"]);
    assert_eq!(nodes(&near).as_array().map(Vec::len), Some(1));
}

#[test]
fn a_guesser_ends_the_command_and_is_in_no_book() {
    let (near, far) = (User::new(), User::new());
    let mut waiting = Waiting::of(&far, &[]);
    for left in (0..5).rev() {
        let wrong = near.run(&["pair", &waiting.address, &waiting.wrong()]);
        assert_told(&wrong, 4, &["the code is wrong"]);
        if left > 0 {
            waiting.renewed();
        }
    }
    let Ended { code, log, .. } = waiting.process.end();
    assert_eq!(code, Some(4), "{log}");
    assert!(log.contains("5 wrong codes were tried") && log.contains("; help: "), "{log}");
    assert!(!far.path("config/skyhaul/nodes.toml").exists());
    assert!(!near.path("config/skyhaul/nodes.toml").exists());
}

#[test]
fn strangers_who_are_silent_or_speak_another_protocol_are_in_nobodys_way() {
    let (near, far) = (User::new(), User::new());
    let waiting = Waiting::of(&far, &[]);
    let connect = || TcpStream::connect(&waiting.address).unwrap();
    let silent: Vec<TcpStream> = (0..40).map(|_| connect()).collect();
    let mut web = connect();
    web.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    // A reset is an end too.
    let _ = web.read_to_end(&mut answer);
    assert!(answer.is_empty(), "{answer:?}");
    // A part of a message, and nothing more.
    connect().write_all(&[1, 0]).unwrap();
    near.done(&["pair", &waiting.address, &waiting.code, "--name", "far"]);
    assert_eq!(waiting.process.end().code, Some(0));
    drop(silent);
}

#[test]
fn what_was_typed_wrong_costs_no_try() {
    let (near, far) = (User::new(), User::new());
    let waiting = Waiting::of(&far, &[]);
    let typed = waiting.code.rsplit_once('-').unwrap().0.to_owned() + "-zebro";
    let wrong = near.run(&["pair", &waiting.address, &typed]);
    assert_told(&wrong, 2, &["`zebro` is not a word of a pairing code", "may show `zebra`"]);
    let short = near.run(&["pair", &waiting.address, "7-zebra"]);
    assert_told(&short, 2, &["`7-zebra` is not a pairing code"]);
    let address = near.run(&["pair", "nowhere.invalid", &waiting.code]);
    assert_told(&address, 2, &["`nowhere.invalid:4740` is not found"]);
    let closed = free_address().to_string();
    let nobody = near.run(&["pair", &closed, &waiting.code]);
    assert_told(&nobody, 4, &["nobody waits at this address", &closed]);
    near.done(&["pair", &waiting.address, &waiting.code]);
    assert_eq!(waiting.process.end().code, Some(0));
}

#[test]
fn a_name_that_is_taken_gets_a_number_and_a_known_key_stays_one_node() {
    let (near, far, third) = (User::new(), User::new(), User::new());
    for (user, name) in [(&far, "far"), (&third, "far-2"), (&far, "far")] {
        let waiting = Waiting::of(user, &["--own-name", "far"]);
        let output = near.run(&["pair", &waiting.address, &waiting.code]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains(&format!("paired with {name}\n")));
        let is_noted = text(&output.stderr).contains("the name `far` is not free");
        assert_eq!(is_noted, name != "far");
        assert_eq!(waiting.process.end().code, Some(0));
    }
    let known = nodes(&near);
    assert_eq!(known.as_array().map(Vec::len), Some(2), "{known}");
    // The second pairing with it added the address.
    assert_eq!(known[0]["addresses"].as_array().map(Vec::len), Some(2), "{known}");
}

#[test]
fn an_interrupt_and_a_used_port_have_their_codes() {
    let far = User::new();
    let waiting = Waiting::of(&far, &[]);
    let taken = far.run(&["pair", "--bind", &waiting.address]);
    assert_told(&taken, 3, &["the TCP port cannot be used", &waiting.address]);
    waiting.process.signal(Signal::INT);
    let ended = waiting.process.end();
    assert_eq!(ended.code, Some(130), "{}", ended.log);
    assert!(ended.log.contains("interrupted before the other node came"), "{}", ended.log);
}
