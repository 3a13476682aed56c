//! What a node tells those who watch over it from outside: the service manager, Prometheus.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::patience::{PATIENCE, until};
use crate::support::process::{Running, skyhaul, text};
use crate::support::site::Site;
use rustix::process::Signal;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};

/// The next message that is no sign of life.
fn told(manager: &UnixDatagram) -> String {
    loop {
        let mut message = [0; 256];
        let length = manager.recv(&mut message).unwrap();
        let message = text(&message[..length]);
        if message != "WATCHDOG=1\n" {
            return message;
        }
    }
}

#[test]
fn a_service_manager_is_told_of_start_life_reload_and_end() {
    let mut site = Site::new();
    site.kill_centre();
    let path = site.folder().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut command = skyhaul(&["run", "centre.toml", "--log-format", "json"], site.folder());
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "300000");
    site.centre = Running::of(command.stdout(Stdio::null()).stderr(Stdio::piped()));
    assert_eq!(told(&manager), "READY=1\n");
    let mut message = [0; 64];
    let length = manager.recv(&mut message).unwrap();
    assert_eq!(&message[..length], b"WATCHDOG=1\n");
    site.centre.signal(Signal::HUP);
    let reloading = told(&manager);
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    assert_eq!(told(&manager), "READY=1\n");
    site.centre.signal(Signal::TERM);
    assert_eq!(told(&manager), "STOPPING=1\n");
    let ended = until(|| site.centre.status(), || "the centre is still there".to_owned());
    assert_eq!(ended.code(), Some(0));
    let log = site.centre.log_until("\n");
    let line: serde_json::Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert_eq!(line["level"], "info", "{line:#}");
    assert!(line["what"].is_string() && line["time"].is_string(), "{line:#}");
}

#[test]
fn each_alert_rule_fires_and_is_quiet() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../ops/prometheus"));
    for arguments in [["check", "rules", "rules.yml"], ["test", "rules", "rules_test.yml"]] {
        let output = Command::new("promtool").args(arguments).current_dir(folder).output();
        let Ok(output) = output else {
            eprintln!("SKIPPED: there is no promtool");
            return;
        };
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(output.status.success(), "{said}");
    }
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let (rules, tests) = (read("rules.yml"), read("rules_test.yml"));
    for rule in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(tests.contains(&format!("name: {rule} fires")), "{rule} has no test");
    }
}
