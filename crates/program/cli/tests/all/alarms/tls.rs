//! A server of other people, Python's, that is told over TLS.

use super::{CENTRE, alarms, change_centre};
use crate::support::patience::until;
use crate::support::process::Running;
use crate::support::site::Site;
use crate::webdav::certificate;
use serde_json::Value;
use std::process::{Command, Stdio};

#[test]
fn a_server_is_told_over_tls_where_its_certificate_is_vouched_for_and_not_otherwise() {
    let mut site = Site::new();
    let folder = site.folder().to_owned();
    // What a certificate of a server is, and no authority's.
    let Some(()) = certificate(&folder, &["basicConstraints=critical,CA:FALSE"]) else { return };
    if Command::new("python3").arg("-V").output().is_err() {
        return eprintln!("SKIPPED: python3 is not installed");
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/readers/hook.py");
    let mut command = Command::new("python3");
    command.args([script, "tls.pem", "tls.key", "told.jsonl"]).current_dir(&folder);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = Running::of(&mut command);
    let port = server.line().trim().to_owned();
    let hook = |path: &str, ca: &str| {
        let url = format!("https://127.0.0.1:{port}/{path}");
        format!("[[webhook]]\nurl = \"{url}\"\nevents = [\"node.*\"]\n{ca}")
    };
    let tables = hook("good", "ca = \"tls.pem\"\n") + &hook("unknown", "");
    change_centre(&mut site, "", &tables);
    let told = || {
        let text = std::fs::read_to_string(folder.join("told.jsonl")).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.collect::<Vec<Value>>()
    };
    let is_ready = |one: &Value| one["event"]["type"] == "skyhaul.node.ready";
    until(|| told().iter().any(is_ready).then_some(()), || format!("{:#?}", told()));
    for one in told() {
        assert_eq!(one["path"], "/good", "the other one sent nothing: {one:#}");
        assert_eq!(one["event"]["specversion"], "1.0");
        let tls = one["tls"].as_str().unwrap();
        assert!(["TLSv1.2", "TLSv1.3"].contains(&tls), "{tls}");
    }
    let standing = alarms(&site, |alarms| !alarms.is_empty());
    let sentence = standing[0]["sentence"].as_str().unwrap();
    let subject = format!("webhook https://127.0.0.1:{port}/unknown");
    assert!(standing.len() == 1 && standing[0]["subject"] == *subject, "{standing:#?}");
    assert!(sentence.contains("certificate"), "{sentence}");
    // The status is that of the last second.
    let is_shown = || site.shown(CENTRE).contains("/unknown").then_some(());
    until(is_shown, || sentence.to_owned());
}
