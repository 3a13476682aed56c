//! The page, by rules that others wrote: axe-core (WCAG 2, levels A and AA) on each screen, and
//! Lighthouse. Both come from the package registry where everything is tested.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on, or skips, says so"
)]

use crate::page::{get, shown};
use crate::serve::python;
use crate::support::browser::Browser;
use crate::support::rung::is_all;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGES: [&str; 2] = ["axe-core@4.14.1", "lighthouse@12.8.2"];

/// The folder in which both are installed.
fn installed() -> Option<PathBuf> {
    if !is_all() {
        eprintln!("SKIPPED: axe-core and Lighthouse are installed where all is tested");
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page-rules");
    fs::create_dir_all(&folder).unwrap();
    // Several tests may ask at once: one installs, the others wait for it.
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let done = folder.join("installed");
    if fs::read_to_string(&done).is_ok_and(|what| what == PACKAGES.concat()) {
        return Some(folder);
    }
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]);
    match npm.arg(&folder).args(PACKAGES).output() {
        Ok(said) if said.status.success() => {
            fs::write(done, PACKAGES.concat()).unwrap();
            Some(folder)
        }
        Ok(said) => {
            eprintln!("SKIPPED: npm installs nothing: {}", String::from_utf8_lossy(&said.stderr));
            None
        }
        Err(error) => {
            eprintln!("SKIPPED: npm: {error}");
            None
        }
    }
}

/// The rules that are broken, with the first element that breaks each.
const BROKEN: &str = "axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', \
                      'best-practice']}).then((found) => found.violations.filter((rule) => \
                      ['serious', 'critical'].includes(rule.impact)).map((rule) => `${rule.id}: \
                      ${rule.nodes[0].html} ${rule.nodes[0].failureSummary}`))";

/// What axe finds on the page as it is.
#[track_caller]
fn broken(browser: &mut Browser) -> Vec<String> {
    let order = json!({ "expression": BROKEN, "awaitPromise": true, "returnByValue": true });
    let found = browser.order("Runtime.evaluate", order);
    serde_json::from_value(found["result"]["value"].clone()).unwrap_or_else(|_| panic!("{found}"))
}

#[test]
fn axe_finds_nothing_serious_on_any_screen_light_or_dark_wide_or_narrow() {
    let Some(rules) = installed() else { return };
    let axe = fs::read_to_string(rules.join("node_modules/axe-core/axe.min.js")).unwrap();
    let (site, address) = shown();
    let Some(mut browser) = Browser::start(site.folder()) else { return };
    browser.open(&address);
    browser.until("document.querySelectorAll('nav a').length > 8");
    browser.order("Runtime.evaluate", json!({ "expression": axe }));
    let links = "[...document.querySelectorAll('nav a')].map((link) => link.getAttribute('href'))";
    let mut screens: Vec<String> = serde_json::from_value(browser.value(links)).unwrap();
    let contact = site.centre_until(|status| Some(status["contacts"][0]["flow"].clone()));
    screens.push(format!("#contact/s-{contact}"));
    // An image without a text shows that axe looks.
    browser.value("document.body.append(document.createElement('img'))");
    let shown = broken(&mut browser);
    assert!(shown.iter().any(|rule| rule.starts_with("image-alt")), "{shown:?}");
    browser.value("document.querySelector('body > img').remove()");
    let mut found = Vec::new();
    for scheme in ["light", "dark"] {
        let feature = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        browser.order("Emulation.setEmulatedMedia", json!({ "features": feature }));
        for screen in &screens {
            browser.value(&format!("location.hash = '{screen}'"));
            browser.until("!document.body.innerText.includes('Asking the node.')");
            for width in [360, 1280] {
                browser.width(width);
                for rule in broken(&mut browser) {
                    found.push(format!("{screen}, {scheme}, {width} px: {rule}"));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn lighthouse_gives_the_page_its_marks() {
    let Some(rules) = installed() else { return };
    let (site, address) = shown();
    if Browser::start(site.folder()).is_none() {
        return;
    }
    let report = site.folder().join("lighthouse.json");
    let mut lighthouse = Command::new(rules.join("node_modules/.bin/lighthouse"));
    lighthouse.arg(&address).args(["--output=json", "--quiet", "--output-path"]).arg(&report);
    lighthouse.arg("--only-categories=performance,accessibility,best-practices");
    lighthouse.arg("--chrome-flags=--headless --no-sandbox --disable-gpu");
    let said = lighthouse.output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let report: Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    for (category, least) in
        [("performance", 0.9), ("accessibility", 0.95), ("best-practices", 0.95)]
    {
        let mark = report["categories"][category]["score"].as_f64().unwrap_or_default();
        eprintln!("Lighthouse, {category}: {mark}");
        let failed: Vec<&Value> = report["audits"]
            .as_object()
            .unwrap()
            .values()
            .filter(|audit| audit["score"].as_f64().is_some_and(|score| score < 0.9))
            .map(|audit| &audit["title"])
            .collect();
        assert!(mark >= least, "{category}: {mark}; {failed:?}");
    }
}

#[test]
fn schemathesis_finds_nothing_in_the_interface_that_its_description_does_not_say() {
    if !is_all() {
        return eprintln!("SKIPPED: schemathesis is installed where all is tested");
    }
    let Some(python) = python("schemathesis") else { return };
    let (site, address) = shown();
    let program = Path::new(&python).with_file_name("schemathesis");
    let mut tries = Command::new(program);
    tries.current_dir(site.folder()).arg("run").arg(format!("{address}openapi.yaml"));
    tries.args(["--url", address.trim_end_matches('/'), "--phases", "coverage,fuzzing"]);
    // What it leaves out takes any request for one that must succeed: rows come and go.
    let checks = "not_a_server_error,status_code_conformance,content_type_conformance,\
                  response_headers_conformance,response_schema_conformance,unsupported_method,\
                  allow_header_conformance,missing_required_header,ignored_auth";
    tries.args(["--checks", checks, "--max-examples", "10", "--seed", "7", "--no-color"]);
    // Streams have no end, a request of events may wait for a minute, a verdict takes seconds.
    tries.args(["--exclude-path-regex", "stream|events|why"]);
    let said = tries.output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
    assert!(still_answers(&address), "the node answers as before");
}

/// Whether the page still has figures.
fn still_answers(address: &str) -> bool {
    let (head, body) = get(address, "/api/v1/status", "*/*");
    head.starts_with("HTTP/1.1 200") && body.contains("\"node\"")
}
