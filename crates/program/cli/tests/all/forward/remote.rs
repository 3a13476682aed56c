//! `-R`: the far node listens, this side connects.

use super::ends::{Ends, are_installed, pattern, printed};
use super::web;
use crate::support::patience::until;
use crate::support::process::{Running, run};
use crate::support::refusal::assert_told;
use rustix::process::Signal;
use std::net::{TcpListener, TcpStream};
use std::path::Path;

/// The address at which the far end says that it listens for this end.
pub fn far_listens(ends: &mut Ends) -> String {
    let log = ends.near.log_until("far listens on ");
    let (_, rest) = log.rsplit_once("far listens on ").unwrap();
    rest.split_once(", forwarding to ").unwrap().0.to_owned()
}

#[test]
fn an_application_at_the_far_node_reaches_a_server_here() {
    if !are_installed(&["curl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let target = web::start(2);
    let file = folder.path().join("there.sock");
    let (rule, port) = (format!("unix:{}", file.display()), format!("0=far:{target}"));
    let mut ends = Ends::start(
        &["--allow-listen", "127.0.0.1:*", &rule],
        &["-R", &port, "-R", &format!("{rule}=far:{target}")],
        0,
    );
    let at = far_listens(&mut ends);
    assert_eq!(far_listens(&mut ends), rule);
    let got = folder.path().join("got");
    let curl = ["curl", "-sS", "--noproxy", "*", "--max-time", "60", "-o", got.to_str().unwrap()];
    let by_port = format!("http://{at}/");
    for way in [&[&*by_port][..], &["--unix-socket", file.to_str().unwrap(), "http://here/"]] {
        printed(&[&curl[..], way].concat());
        assert!(std::fs::read(&got).unwrap() == pattern(web::PAGE));
        std::fs::remove_file(&got).unwrap();
    }
    // The listener at the far node ends with the session.
    ends.near.signal(Signal::INT);
    ends.far.log_until("a caller disconnected");
    until(|| TcpStream::connect(&at).is_err().then_some(()), || "it still listens".to_owned());
    assert!(!file.exists());
}

#[test]
fn a_far_node_that_may_not_or_cannot_listen_ends_the_run_with_the_reason() {
    let here = Path::new(".");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let rule = format!("127.0.0.1:{port}");
    for (allow, reason) in [
        (&[][..], "the listening node's rules do not allow it"),
        (&["--allow-listen", &rule], "in use"),
    ] {
        let serve =
            [&["forward", "serve", "--bind", "127.0.0.1:0", "--insecure-test"], allow].concat();
        let mut far = Running::start_logged(&serve, here);
        let node = format!("far={}", far.address());
        let wish = format!("{port}=far:127.0.0.1:9");
        let refused = run(&["forward", "--node", &node, "--insecure-test", "-R", &wish], here);
        assert_told(&refused, 4, &["does not listen on 127.0.0.1:", reason, "--allow-listen"]);
        far.log_until("cannot listen on 127.0.0.1:");
    }
}
