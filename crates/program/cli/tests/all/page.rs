//! The page of a node, its metrics and its JSON interface, asked by programs of other people: a
//! browser, promtool, the client library of Prometheus.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on, or skips, says so"
)]

use crate::support::browser::Browser;
use crate::support::node;
use crate::support::patience::until;
use crate::support::process::{run, text};
use crate::support::recordings::{DAMAGED, recording};
use crate::support::site::Site;
use rustix::process::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};

/// A centre with a page, which has received the damaged recording.
pub fn shown() -> (Site, String) {
    shown_with("")
}

/// The same, with these further tables.
fn shown_with(tables: &str) -> (Site, String) {
    let site = Site::with(&format!("[web]\nbind = \"127.0.0.1:0\"\n{tables}"));
    let path = recording(DAMAGED);
    let channel = format!("[[channel]]\nname = \"x\"\ninput = \"file:{}\"\n", path.display());
    site.write(&channel);
    assert_eq!(site.start().end().code, Some(0));
    site.centre_until(|status| (status["contacts"][0]["state"] == "done").then_some(()));
    let status = node::status("centre.toml", site.folder()).unwrap();
    let address = status["web"]["address"].as_str().unwrap().to_owned();
    (site, address)
}

/// The head and the body of an answer.
pub fn get(address: &str, path: &str, accept: &str) -> (String, String) {
    let host = address.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(host).unwrap();
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: {host}\r\naccept: {accept}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

fn json(address: &str, path: &str) -> Value {
    let (head, body) = get(address, path, "*/*");
    assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}\n{body}");
    serde_json::from_str(&body).unwrap()
}

/// The output of a program with this input, where it is installed.
fn fed(command: &mut Command, input: &str) -> Option<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = piped.spawn() else {
        eprintln!("SKIPPED: {name} is not installed");
        return None;
    };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    Some(child.wait_with_output().unwrap())
}

#[test]
fn lists_and_probes_say_what_the_status_says() {
    let (site, address) = shown();
    // The page looks once a second, the command when it asks.
    let keys = ["frames", "set_aside", "missing", "frames_sha256", "products"];
    let (contact, shown) = until(
        || {
            let row = json(&address, "/api/v1/contacts")["rows"][0].clone();
            let shown = site.centre_until(|status| Some(status["contacts"][0].clone()));
            keys.iter().all(|key| row[*key] == shown[*key]).then_some((row, shown))
        },
        || site.shown("centre.toml"),
    );
    let id = contact["id"].as_str().unwrap();
    assert_eq!(json(&address, &format!("/api/v1/contacts/{id}"))["frames"], contact["frames"]);
    let products = json(&address, &format!("/api/v1/products?contact={id}"));
    let count = shown["products"].as_array().unwrap().len();
    assert!(count > 0 && products["rows"].as_array().unwrap().len() == count, "{products}");
    for list in ["nodes", "stations", "channels", "paths", "queues", "gaps", "deliveries", "alarms"]
    {
        assert!(json(&address, &format!("/api/v1/{list}"))["rows"].is_array(), "{list}");
    }
    assert_eq!(json(&address, "/readyz")["ready"], true);
    assert!(get(&address, "/livez", "*/*").0.starts_with("HTTP/1.1 200"));
    assert!(get(&address, "/api/v1/contacts?limit=0", "*/*").0.starts_with("HTTP/1.1 400"));
    assert!(site.shown("centre.toml").contains("page at http://127.0.0.1:"));
}

#[test]
fn promtool_and_the_python_client_read_the_metrics() {
    let (site, address) = shown();
    // The page looks once a second: both forms of one look, behind the end of the contact.
    let (classic, open) = until(
        || {
            let (_, classic) = get(&address, "/metrics", "text/plain");
            let (_, open) = get(&address, "/metrics", "application/openmetrics-text");
            let look = |text: &str| {
                let line = text.lines().find(|line| line.starts_with("skyhaul_look_timestamp"));
                line.map(str::to_owned)
            };
            let is_done = classic.contains("skyhaul_received_contacts{state=\"done\"} 1");
            (is_done && look(&classic) == look(&open)).then_some((classic, open))
        },
        || site.shown("centre.toml"),
    );
    if let Some(output) = fed(Command::new("promtool").args(["check", "metrics"]), &classic) {
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(output.status.success() && said.trim().is_empty(), "{said}");
    }
    std::fs::write(site.folder().join("classic.txt"), &classic).unwrap();
    std::fs::write(site.folder().join("open.txt"), &open).unwrap();
    let install =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../space/level0/tests/readers/install.py");
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/prometheus-reader");
    let wanted = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/readers/prometheus.txt");
    let Some(installed) = fed(Command::new("python3").args([install, folder, wanted]), "") else {
        return;
    };
    if !installed.status.success() {
        let said = text(&installed.stderr);
        eprintln!("SKIPPED: {}", said.trim().lines().last().unwrap_or("no word from install.py"));
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/readers/metrics.py");
    let python = text(&installed.stdout).trim().to_owned();
    let output = fed(Command::new(python).arg(script).current_dir(site.folder()), "").unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    for form in ["classic", "open"] {
        assert_eq!(found[form]["documented"], true, "{found}");
        let families = found[form]["families"].to_string();
        for family in ["store_disk_bytes", "gaps", "stage_frames", "server_requests", "build_info"]
        {
            assert!(families.contains(&format!("\"skyhaul_{family}\"")), "{family}: {found}");
        }
    }
    assert_eq!(found["open"]["figures"], found["classic"]["figures"]);
}

/// Presses the button with this text.
fn press(browser: &mut Browser, text: &str) {
    let find = format!("find((one) => one.innerText === '{text}')");
    browser.value(&format!("[...document.querySelectorAll('button')].{find}.click()"));
}

/// Whether the text of the page has all of these parts.
fn says(parts: &[&str]) -> String {
    let parts = serde_json::to_string(parts).unwrap();
    format!("{parts}.every((part) => document.body.innerText.includes(part))")
}

#[test]
fn a_browser_shows_each_screen_says_when_it_is_stale_and_asks_no_other_host() {
    let (site, address) = shown();
    let Some(mut browser) = Browser::start(site.folder()) else { return };
    browser.open(&address);
    let contact = site.centre_until(|status| Some(status["contacts"][0].clone()));
    let id = format!("s-{}", contact["flow"]);
    browser.until(&says(&[&id, "suomi-npp", "UTC", "What waits"]));
    let screen_of = format!("contact/{id}");
    let product = contact["products"][0]["path"].as_str().unwrap().to_owned();
    let product = product.rsplit('/').next().unwrap().to_owned();
    for (screen, parts) in [
        ("contacts", vec![&*id, "Newest first", "Last bit to product"]),
        (&*screen_of, vec!["Reception", "SHA-256", "Margin", &product]),
        ("passes", vec!["A day behind and ahead", "No pass is planned"]),
        ("queues", vec!["What waits", "store"]),
        ("lines", vec!["Rates of all lines"]),
        ("nodes", vec!["The worst first", "as they report themselves"]),
        ("node/s", vec!["Node s", "All nodes"]),
        ("products", vec![&*product, "suomi-npp"]),
        ("deliveries", vec!["No delivery is like that."]),
        ("gaps", vec!["Frames missing now", "Unrecoverable"]),
        ("alarms", vec!["Alarms"]),
        ("events", vec!["Newest first", "contact.done", "product.published"]),
        ("latency", vec!["Where the time goes", "Frames by stage", "level0", "total"]),
        ("now", vec![&*id, "What waits"]),
    ] {
        browser.value(&format!("location.hash = '#{screen}'"));
        for width in [360, 1280, 2560] {
            browser.width(width);
            browser.until(&says(&parts));
            let wide = "document.documentElement.scrollWidth <= innerWidth";
            browser.until(wide);
        }
    }
    // By keyboard alone: the first link of the menu leads to its screen.
    browser.value("document.querySelector('nav a[href=\"#queues\"]').focus()");
    for kind in ["rawKeyDown", "char", "keyUp"] {
        let key = serde_json::json!({"type": kind, "key": "Enter", "code": "Enter", "text": "\r",
            "windowsVirtualKeyCode": 13});
        browser.order("Input.dispatchKeyEvent", key);
    }
    browser.until("location.hash === '#queues'");
    browser.until(&says(&["Blocks, files or frames"]));
    site.centre.signal(Signal::STOP);
    browser.until("!document.getElementById('stale').hidden");
    browser.until(&says(&["Stale since"]));
    site.centre.signal(Signal::CONT);
    browser.until("document.getElementById('stale').hidden");
    let strange: Vec<&String> = browser
        .asked
        .iter()
        .filter(|asked| !asked.starts_with(&address) && *asked != "about:blank")
        .collect();
    assert!(strange.is_empty() && browser.asked.len() > 20, "{strange:?}");
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

#[test]
fn a_browser_may_have_more_tabs_of_a_node_than_it_opens_connections() {
    let (site, address) = shown();
    let Some(mut browser) = Browser::start(site.folder()) else { return };
    let mut tabs = Vec::new();
    // Chromium opens six connections to a host.
    for _ in 0..8 {
        tabs.push(browser.tab());
        browser.open(&address);
        browser.until(&says(&["What waits", "All is well"]));
    }
    let web = || node::status("centre.toml", site.folder()).unwrap()["web"].clone();
    until(|| (web()["streams"] == 1).then_some(()), || format!("{}", web()));
    // One that was not seen for a while goes on.
    browser.show(&tabs[0]);
    browser.until("document.getElementById('stale').hidden && !document.hidden");
    let clock = "document.getElementById('clock').innerText";
    let before = browser.value(clock).to_string();
    browser.until(&format!("{clock} !== {before}"));
    until(|| (web()["streams"] == 1).then_some(()), || format!("{}", web()));
}

#[test]
fn a_browser_shows_which_element_broke_the_budget_and_the_worst_contact() {
    let (site, address) = shown_with("[[budget]]\nwithin = \"3 h\"\n");
    let Some(mut browser) = Browser::start(site.folder()) else { return };
    browser.open(&address);
    browser.value("location.hash = '#latency'");
    let contact = site.centre_until(|status| Some(status["contacts"][0].clone()));
    let id = format!("s-{}", contact["flow"]);
    // The recording is years old: what was observed then is late now, by its wait on board.
    browser.until(&says(&[
        "0.0 % of ",
        "were on time. Of suomi-npp most of the time goes in downlink",
        &format!("the worst contact is {id}."),
        "On time by day and hour, UTC",
        "Hours in which something was late",
    ]));
    // The cell of the hour leads to the contact, by keyboard too.
    let cell = format!("document.querySelector('svg a[href=\"#contact/{id}\"]')");
    browser.until(&format!("{cell} !== null && {cell}.textContent.includes('\u{25A0}')"));
    for range in ["48 h", "400 d"] {
        press(&mut browser, range);
        browser.until(&says(&[&format!("in the last {range} were on time")]));
    }
    browser.value("location.hash = '#queues'");
    for range in ["48 h", "400 d", "10 min"] {
        press(&mut browser, range);
        let drawn = "document.querySelectorAll('.plot polyline, .plot circle').length > 0";
        browser.until(drawn);
    }
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

#[test]
fn events_come_by_number_and_as_a_stream_and_the_screen_filters_them() {
    let (site, address) = shown();
    let all = json(&address, "/api/v1/events?since=0&limit=1000");
    let rows = all["rows"].as_array().unwrap();
    let numbers: Vec<u64> = rows.iter().filter_map(|row| row["number"].as_u64()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "{all}");
    assert_eq!(all["holes"], serde_json::json!([]));
    let done = json(&address, "/api/v1/events?types=contact.*&limit=1");
    assert_eq!(done["rows"][0]["kind"], "contact.done", "{done}");
    let before = format!("/api/v1/events?limit=2&before={}", numbers.len());
    let older = json(&address, &before);
    let last = numbers.len() as u64;
    assert_eq!(older["rows"][0]["number"], last - 1, "{older}");
    assert_eq!(
        (&older["rows"][1]["number"], &older["next"]),
        (&(last - 2).into(), &(last - 2).into())
    );
    assert!(get(&address, "/api/v1/events?types=no", "*/*").0.starts_with("HTTP/1.1 400"));
    // Who waits is told of what comes: here of an order that the node refuses.
    let order = ["deliveries", "hold", "77", "--config", "centre.toml"];
    let path = format!("/api/v1/events?since={}&types=order.*&timeout=60", all["last"]);
    let told = std::thread::scope(|scope| {
        let waits = scope.spawn(|| json(&address, &path));
        until(
            || {
                run(&order, site.folder());
                waits.is_finished().then_some(())
            },
            || site.shown("centre.toml"),
        );
        waits.join().unwrap()
    });
    assert_eq!(told["rows"][0]["kind"], "order.given", "{told}");
    let Some(mut browser) = Browser::start(site.folder()) else { return };
    browser.open(&address);
    browser.value("location.hash = '#events'");
    browser.until(&says(&["contact.done", "node.started"]));
    let choose = "const types = document.querySelector('select[name=types]'); types.value = \
                  'contact.*'; types.dispatchEvent(new Event('change'))";
    browser.value(choose);
    browser.until("!document.body.innerText.includes('node.started')");
    browser.until("document.querySelector('td a[href^=\"#contact/s-\"]') !== null");
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}
