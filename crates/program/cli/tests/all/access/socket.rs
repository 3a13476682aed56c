//! Other users of the host at the status socket: the kernel says who they are.

use super::config;
use crate::support::patience::until;
use crate::support::process::{Running, run, skyhaul, text};
use crate::support::refusal::assert_refused;
use rustix::process::Signal;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

/// Numbers that no user of the host has.
const OPERATOR: u32 = 4_000_001;
const READER: u32 = 4_000_002;
const STRANGER: u32 = 4_000_003;

#[test]
fn users_of_the_host_ask_and_order_as_the_file_says() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root runs commands as other users");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // Others reach the socket, and nothing else.
    fs::set_permissions(at, Permissions::from_mode(0o711)).unwrap();
    let status = format!("[status]\noperators = [\"{OPERATOR}\"]\nreaders = [\"{READER}\"]\n");
    config(at, "status_socket = \"n.sock\"\n", &status);
    let node = Running::start(&["run", "n.toml"], at);
    until(
        || run(&["status", "--config", "n.toml"], at).status.success().then_some(()),
        || text(&run(&["config", "check", "n.toml"], at).stderr),
    );
    let socket = at.join("n.sock").display().to_string();
    let by = |uid: u32, arguments: &[&str]| -> std::io::Result<Output> {
        let arguments = [arguments, &["--socket", &socket]].concat();
        skyhaul(&arguments, at).uid(uid).gid(uid).current_dir("/").output()
    };
    let order = ["path", "remove", "x"];
    let Ok(asked) = by(READER, &["status"]) else {
        eprintln!("SKIPPED: other users cannot run the program where it was built");
        return;
    };
    assert!(asked.status.success(), "{}", text(&asked.stderr));
    let refused = by(READER, &order).unwrap();
    assert_refused(&refused, 2, &["uid 4000002 may ask this node, and give it no orders"]);
    assert!(by(OPERATOR, &["status"]).unwrap().status.success());
    // It is let through, and the node says that it has no such path.
    let given = by(OPERATOR, &order).unwrap();
    assert!(!text(&given.stderr).contains("4000001"), "{}", text(&given.stderr));
    let kept_out = by(STRANGER, &order).unwrap();
    assert_refused(&kept_out, 2, &["uid 4000003 may not ask this node", "[status]"]);
    let log = fs::read_to_string(at.join("state/audit.jsonl")).unwrap();
    assert!(log.contains("uid 4000001") && !log.contains("uid 4000002"), "{log}");
    // What the file says applies on SIGHUP: the kernel refuses others then.
    let text_of = fs::read_to_string(at.join("n.toml")).unwrap();
    fs::write(at.join("n.toml"), text_of.replace(&status, "")).unwrap();
    node.signal(Signal::HUP);
    until(
        || (!by(READER, &["status"]).unwrap().status.success()).then_some(()),
        || "the reader is still answered".to_owned(),
    );
}

#[test]
fn a_node_in_a_pid_namespace_of_its_own_answers_processes_outside_it() {
    let apart = |program: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child"]).args(program);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    if !apart(&["true"]).status().is_ok_and(|ended| ended.success()) {
        eprintln!("SKIPPED: a PID namespace needs root and unshare (util-linux)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    config(at, "status_socket = \"n.sock\"\n", "");
    let _node =
        Running::of(apart(&[env!("CARGO_BIN_EXE_skyhaul"), "run", "n.toml"]).current_dir(at));
    let asked = || run(&["status", "--config", "n.toml"], at);
    until(|| asked().status.success().then_some(()), || text(&asked().stderr));
}
