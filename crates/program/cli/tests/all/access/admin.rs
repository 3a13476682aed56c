//! What an admin sees and orders, and nobody else: users, tokens, keys, the configuration against
//! its file, the audit log.

use super::page::{click, fill, log_in};
use super::{HASH, Shown, is};
use crate::support::browser::Browser;
use crate::support::node;
use crate::support::patience::until;
use crate::support::process::{printed, run, text};
use serde_json::Value;
use std::fs;

/// The JSON that a caller with these headers gets.
#[track_caller]
fn json(shown: &Shown, path: &str, headers: &str) -> Value {
    let answer = shown.get(path, headers);
    assert!(is(&answer, 200), "{path}: {answer}");
    serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap()
}

/// The key of the other node in the file.
fn peer_key() -> String {
    format!("SHA256:{}", "0f".repeat(32))
}

const ADDRESSES: [&str; 5] =
    ["/api/v1/users", "/api/v1/keys", "/api/v1/config", "/api/v1/audit", "/api/v1/audit/check"];

/// A text of each row of a list.
fn texts<'a>(rows: &'a Value, name: &str) -> Vec<&'a str> {
    rows.as_array().unwrap().iter().map(|row| row[name].as_str().unwrap()).collect()
}

#[test]
fn users_tokens_keys_and_the_audit_log_are_shown_to_an_admin_alone_and_without_secrets() {
    let shown = Shown::start();
    let (kim, ada) = (shown.logged_in("kim"), shown.logged_in("ada"));
    let token = "authorization: Bearer good\r\n";
    for path in ADDRESSES {
        for (headers, status) in [("", 401), (token, 403), (&kim[..], 403), (&ada[..], 200)] {
            assert!(is(&shown.get(path, headers), status), "{path} {status}");
        }
    }
    let users = json(&shown, "/api/v1/users", &ada);
    assert_eq!(texts(&users["users"], "name"), ["ada", "kim", "vera"]);
    assert_eq!(
        (&users["users"][0]["role"], &users["users"][0]["sessions"]),
        (&"admin".into(), &1.into())
    );
    let tokens = users["tokens"].as_array().unwrap();
    let token = |name: &str| tokens.iter().find(|one| one["name"] == name).unwrap();
    assert!(token("good")["last_used"].as_str().unwrap().starts_with("20"), "{users:#}");
    assert_eq!(token("metrics")["last_used"], Value::Null);
    assert!(token("late")["expires"].as_str().unwrap().starts_with("2026-01-02"));
    let all: String = ADDRESSES.iter().map(|path| shown.get(path, &ada)).collect();
    for secret in [HASH, "argon2id", "sha256\":", "PRIVATE KEY"] {
        assert!(!all.contains(secret), "{secret}");
    }
    // The same as the command says.
    let keys = printed(&["key", "show", "--config", "n.toml", "--json"], shown.folder());
    let keys: Value = serde_json::from_str(&keys).unwrap();
    assert_eq!(json(&shown, "/api/v1/keys", &ada), keys);
    assert_eq!(keys["peers"][0]["accepted"][0], peer_key());
}

#[test]
fn a_key_is_changed_and_another_one_revoked_by_an_admin_of_this_page_after_it_was_written_down() {
    let shown = Shown::start();
    let (kim, ada) = (shown.logged_in("kim"), shown.logged_in("ada"));
    let revoke = format!("/api/v1/keys/{}/revoke", peer_key());
    let foreign = ada.replace("origin: http://", "origin: http://evil.example/");
    for path in ["/api/v1/keys/rotate", &revoke] {
        assert!(is(&shown.post(path, &kim, "{}"), 403), "an operator");
        assert!(is(&shown.post(path, &foreign, "{}"), 403), "another site");
        assert!(is(&shown.post(path, &ada, "{\"x\":1}"), 400), "another body");
        assert!(is(&shown.get(path, &ada), 405));
    }
    let long = format!("{{\"reason\":\"{}\"}}", "x".repeat(501));
    assert!(is(&shown.post(&revoke, &ada, &long), 400));
    assert!(is(&shown.post("/api/v1/keys/x/revoke", &ada, "{}"), 409), "no fingerprint");
    let rotated = shown.post("/api/v1/keys/rotate", &ada, "{}");
    assert!(is(&rotated, 200), "{rotated}");
    let next = json(&shown, "/api/v1/keys", &ada)["next"].clone();
    assert_eq!((&next["stage"], &next["waits_for"][0]), (&"staged".into(), &"s".into()));
    let revoked = shown.post(&revoke, &ada, "{\"reason\":\"lost laptop\"}");
    assert!(is(&revoked, 200), "{revoked}");
    let keys = json(&shown, "/api/v1/keys", &ada);
    assert_eq!(keys["revoked"][0]["reason"], "lost laptop", "{keys:#}");
    // The order is written first; the key is refused from then on, and the event says so.
    let audit = json(&shown, "/api/v1/audit", &ada);
    let row = &audit["rows"][0];
    assert_eq!((&row["name"], &row["outcome"]), (&"ada".into(), &"done".into()), "{audit:#}");
    assert_eq!(row["subject"], format!("key {}", peer_key()));
    let revoked = || {
        let events = node::events("n.toml", shown.folder());
        events.into_iter().find(|event| event["kind"] == "key.revoked")
    };
    let event = until(revoked, || "no key.revoked".to_owned());
    assert_eq!(event["cause"]["kind"], "order.given", "{event:#}");
}

#[test]
fn keys_of_the_file_that_are_not_in_force_are_named_by_page_and_command() {
    let shown = Shown::start();
    let ada = shown.logged_in("ada");
    let diff = || run(&["config", "diff", "--config", "n.toml"], shown.folder());
    assert!(text(&diff().stdout).contains("the file is the same now"));
    let file = shown.folder().join("n.toml");
    let before = fs::read_to_string(&file).unwrap();
    let hook = "[[webhook]]\nurl = \"https://ops.example.org/x?token=t\"\nevents = [\"*\"]\n";
    let after = before.replace("silent_after = \"2 s\"", "silent_after = \"3 s\"") + hook;
    fs::write(&file, &after).unwrap();
    let report = json(&shown, "/api/v1/config", &ada);
    let of = |place: &str| format!("[[webhook]] number 1 {place}");
    assert_eq!(
        texts(&report["differences"], "key"),
        ["[[peer]] s silent_after", &of("events"), &of("url")],
        "{report:#}"
    );
    let silent = &report["differences"][0];
    assert_eq!((&silent["in_force"], &silent["on_disk"]), (&"\"2 s\"".into(), &"\"3 s\"".into()));
    assert!(!report.to_string().contains("token=t"), "{report:#}");
    let said = text(&diff().stdout);
    let line = "[[peer]] s silent_after: in force \"2 s\", in the file \"3 s\"";
    assert!(said.contains(line) && !said.contains("token=t"), "{said}");
    // Read again, it is in force, but for what waits.
    shown.node.signal(rustix::process::Signal::HUP);
    let read = || {
        let report = json(&shown, "/api/v1/config", &ada);
        (report["differences"].as_array().unwrap().is_empty()).then_some(report)
    };
    let report = until(read, || text(&diff().stdout));
    let waits = report["waits"].as_array().unwrap();
    assert!(waits.contains(&"[[webhook]]".into()), "{report:#}");
    fs::write(&file, after + "colour = 3\n").unwrap();
    let report = json(&shown, "/api/v1/config", &ada);
    let error = report["error"].as_str().unwrap();
    assert!(error.contains("colour"), "{error}");
    // A file that says nothing of the node any more does not name its socket either.
    fs::write(&file, "[[[").unwrap();
    let named = run(&["config", "diff", "--socket", "state/status.sock"], shown.folder());
    let said = text(&named.stdout);
    assert!(said.contains("the node would refuse the file as it is now"), "{said}");
}

#[test]
fn a_changed_audit_log_is_found_at_the_page_while_the_node_runs() {
    let shown = Shown::start();
    let ada = shown.logged_in("ada");
    let check = || json(&shown, "/api/v1/audit/check", &ada);
    let revoke = format!("/api/v1/keys/{}/revoke", peer_key());
    assert!(is(&shown.post(&revoke, &ada, "{\"reason\":\"lost laptop\"}"), 200));
    let report = until(
        || Some(check()).filter(|report| report["compared"] == 2),
        || format!("{:#}", check()),
    );
    assert_eq!((&report["lines"], &report["faults"]), (&2.into(), &serde_json::json!([])));
    let file = shown.folder().join("state/audit.jsonl");
    let changed = fs::read_to_string(&file).unwrap().replace("lost laptop", "lost tablet");
    fs::write(&file, changed).unwrap();
    assert!(!check()["faults"].as_array().unwrap().is_empty(), "{:#}", check());
}

#[test]
fn an_admin_sees_at_once_whether_all_is_in_order_and_revokes_a_key_by_the_page() {
    let shown = Shown::start();
    let Some(mut browser) = Browser::start(shown.folder()) else { return };
    browser.open(&format!("http://{}/", shown.address));
    log_in(&mut browser, "kim");
    browser.until("document.querySelector('nav a[href=\"#now\"]') !== null");
    assert_eq!(browser.value("document.querySelector('nav a[href=\"#admin\"]')"), Value::Null);
    click(&mut browser, "#logout");
    log_in(&mut browser, "ada");
    browser.until("document.querySelector('nav a[href=\"#admin\"]') !== null");
    browser.value("location.hash = '#admin'");
    let says = |text: &str| format!("document.body.innerText.includes('{text}')");
    // One of the tokens has expired, and nothing else waits.
    browser.until(&says("1 token has expired: remove it."));
    for part in ["The file is the one in force.", "vera", "metrics", "expired", "in use"] {
        browser.until(&says(part));
    }
    click(&mut browser, "button[data-key=check]");
    browser.until(&says("● whole"));
    let button = format!("button[aria-label=\"Revoke the key {} of s\"]", peer_key());
    click(&mut browser, &button.replace('"', "\\\""));
    browser.until("document.querySelector('dialog[open]') !== null");
    fill(&mut browser, "reason", "lost laptop");
    click(&mut browser, "dialog button[type=submit]");
    browser.until("document.querySelector('dialog') === null");
    browser.until(&says("lost laptop"));
    browser.until(&says("■ revoked"));
    let keys = printed(&["key", "show", "--config", "n.toml"], shown.folder());
    assert!(keys.contains("revoked of s"), "{keys}");
    let complaints = browser.complaints.iter().filter(|said| !said.contains("401"));
    assert_eq!(complaints.count(), 0, "{:?}", browser.complaints);
}
