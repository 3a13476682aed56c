//! `--transparent`: a router in a namespace diverts what another host sends to addresses behind the
//! router.

use super::ends::{are_installed, printed, program};
use crate::support::process::Running;
use std::io::Write;
use std::process::{Command, Stdio};

/// Two namespaces joined by a pair of devices, removed however the test ends: a host, and its
/// router, which also has the address of the target.
struct Hosts {
    router: String,
    host: String,
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in [&self.router, &self.host] {
            program(&["ip", "netns", "del", name]);
        }
    }
}

impl Hosts {
    /// `None` if they cannot be made here; the reason is printed.
    fn new() -> Option<Self> {
        if !are_installed(&["ip", "nft", "python3"]) {
            return None;
        }
        let id = std::process::id();
        let hosts = Self { router: format!("skyhaul-t{id}-r"), host: format!("skyhaul-t{id}-h") };
        if !program(&["ip", "netns", "add", &hosts.router]).status.success() {
            eprintln!("SKIPPED: network namespaces need root");
            return None;
        }
        let (router, host) = (hosts.router.as_str(), hosts.host.as_str());
        printed(&["ip", "netns", "add", host]);
        let link = "link add in0 type veth peer name out0 netns";
        for (name, words) in [
            (router, format!("{link} {host}")),
            (router, "addr add 10.77.0.1/24 dev in0".to_owned()),
            (router, "addr add 10.99.0.5/32 dev lo".to_owned()),
            (router, "link set in0 up".to_owned()),
            (router, "link set lo up".to_owned()),
            (host, "addr add 10.77.0.2/24 dev out0".to_owned()),
            (host, "link set out0 up".to_owned()),
            (host, "route add default via 10.77.0.1".to_owned()),
            (router, "rule add fwmark 1 lookup 100".to_owned()),
            (router, "route add local 0.0.0.0/0 dev lo table 100".to_owned()),
        ] {
            let words: Vec<&str> = words.split(' ').collect();
            printed(&[&["ip", "-n", name], &words[..]].concat());
        }
        Some(hosts)
    }

    /// A command in one of them.
    fn command(name: &str, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", name]).args(words).stdin(Stdio::null());
        command
    }

    fn start(name: &str, words: &[&str]) -> Running {
        Running::of(Self::command(name, words).stdout(Stdio::piped()).stderr(Stdio::piped()))
    }

    /// Diverts what comes from the host. Returns whether the kernel can do it.
    fn divert(&self, port: &str) -> bool {
        let rules = format!(
            "table ip divert {{ chain prerouting {{ type filter hook prerouting priority mangle; \
            policy accept;\n\
             iifname \"in0\" meta l4proto tcp tproxy to 127.0.0.1:{port} meta mark set 1 \
             accept\n}}\n}}\n"
        );
        let mut command = Self::command(&self.router, &["nft", "-f", "-"]);
        let mut nft = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        nft.stdin.take().unwrap().write_all(rules.as_bytes()).unwrap();
        let can = nft.wait().unwrap().success();
        if !can {
            eprintln!("SKIPPED: this kernel diverts nothing (TPROXY)");
        }
        can
    }
}

/// Sends each client its own address and what it sent.
const SERVER: &str = "import socket
s = socket.create_server(('10.99.0.5', 8080))
print('ready', flush=True)
while True:
    c, a = s.accept()
    c.sendall(('%s said ' % a[0]).encode() + c.recv(100))
    c.close()
";

/// The result for each address: the answer of the server, or how the connection ended.
const CLIENT: &str = "import socket
for host in ['10.99.0.5', '10.98.0.6']:
    try:
        s = socket.create_connection((host, 8080), 60)
        s.settimeout(60)
        s.sendall(b'hello')
        print(s.recv(100).decode())
    except ConnectionError as error:
        print(type(error).__name__)
";

#[test]
fn connections_that_a_router_diverts_are_made_from_the_far_node_to_where_they_were_going() {
    let Some(hosts) = Hosts::new() else { return };
    let skyhaul = env!("CARGO_BIN_EXE_skyhaul");
    let mut server = Hosts::start(&hosts.router, &["python3", "-c", SERVER]);
    assert_eq!(server.line(), "ready\n");
    let rule = ["--allow", "10.99.0.0/16:*"];
    let serve = [skyhaul, "forward", "serve", "--bind", "127.0.0.1:0", "--insecure-test"];
    let mut far = Hosts::start(&hosts.router, &[&serve[..], &rule].concat());
    let node = format!("far={}", far.address());
    let call = [skyhaul, "forward", "--node", &node, "--insecure-test", "--transparent", "0"];
    let mut near = Hosts::start(&hosts.router, &call);
    let line = near.line();
    let port = line.split([':', ',']).nth(1).unwrap();
    near.log_until("far is connected");
    if !hosts.divert(port) {
        return;
    }
    let client = Hosts::command(&hosts.host, &["python3", "-c", CLIENT]).output().unwrap();
    // The server sees the router. A connection to the address that no rule allows is reset.
    assert_eq!(
        String::from_utf8_lossy(&client.stdout),
        "10.99.0.5 said hello\nConnectionResetError\n"
    );
    assert!(near.log_until("cannot connect to").contains("10.98.0.6:8080"));
}
