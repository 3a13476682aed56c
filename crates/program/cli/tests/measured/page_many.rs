//! How soon the page of a node with 1,000 stations and 20,000 contacts answers a person, and how
//! long its frames are, in Chromium.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test that measures says what")]

use crate::support::browser::Browser;
use crate::support::many::ManyPage;
use crate::support::rung::is_all;
use serde_json::{Value, json};

/// Whoever chooses a screen sees it so soon, in milliseconds.
const SOON: f64 = 1_000.0;
/// No frame takes longer, in milliseconds.
const FRAME: f64 = 100.0;

/// The page draws some fifty times, for less than 100 ms each, however busy the machine is.
const BUSY: f64 = 5.0;

/// The value of a promise of the page.
fn awaited(browser: &mut Browser, expression: &str) -> Value {
    let order = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
    browser.order("Runtime.evaluate", order)["result"]["value"].clone()
}

/// Milliseconds from an action until the page has a text.
fn until_shown(browser: &mut Browser, action: &str, text: &str) -> f64 {
    let script = format!(
        "new Promise((done) => {{ const begun = performance.now(); {action}; const look = () => \
         (document.getElementById('screen').textContent.includes('{text}') ? \
         done(performance.now() - begun) : requestAnimationFrame(look)); look(); }})"
    );
    awaited(browser, &script).as_f64().unwrap()
}

/// The longest time, in milliseconds, for which the page got no processor though it wanted it all
/// the time.
fn pause(browser: &mut Browser) -> f64 {
    let script = "(() => { const begun = performance.now(); let [last, longest] = [begun, 0]; \
                  while (last - begun < 2000) { const now = performance.now(); longest = \
                  Math.max(longest, now - last); last = now; } return longest; })()";
    browser.value(script).as_f64().unwrap()
}

/// Seconds of processor time that the page has taken.
fn busy(browser: &mut Browser) -> f64 {
    let all = browser.order("Performance.getMetrics", json!({}));
    let mut all = all["metrics"].as_array().unwrap().iter();
    let found = all.find(|one| one["name"] == "TaskDuration");
    found.and_then(|one| one["value"].as_f64()).unwrap()
}

#[test]
fn every_screen_of_a_thousand_stations_is_there_within_a_second_without_a_long_frame() {
    if !is_all() {
        // `a_screen_has_a_bounded_number_of_elements…` is the smaller form.
        return;
    }
    let page = ManyPage::start();
    let folder = tempfile::tempdir().unwrap();
    let Some(mut browser) = Browser::start(folder.path()) else { return };
    browser.open(&page.address);
    browser.until("document.body.innerText.includes('station-0')");
    // The first look, and what the browser compiles, are over.
    awaited(&mut browser, "new Promise((done) => setTimeout(done, 3000))");
    let before = pause(&mut browser);
    let watch = "window.long = []; new PerformanceObserver((list) => list.getEntries().forEach(\
                 (one) => window.long.push(Math.round(one.duration)))).observe({ type: \
                 'long-animation-frame' })";
    browser.value(watch);
    let processor = json!({"timeDomain": "threadTicks"});
    browser.order("Performance.enable", processor);
    let started = busy(&mut browser);
    let mut slowest = (0.0, "");
    for (screen, text) in [
        ("contacts", "station-49-49"),
        ("passes", "pass 0"),
        ("queues", "station-49"),
        ("lines", "path-0"),
        ("nodes", "station-49"),
        ("products", "P15700000049"),
        ("deliveries", "P15700000049"),
        ("gaps", "station-49-49"),
        ("alarms", "node station-49"),
        ("events", "path.down"),
        ("now", "station-49"),
    ] {
        let action = format!("location.hash = '#{screen}'");
        let begun = busy(&mut browser);
        let took = until_shown(&mut browser, &action, text);
        // Looks come meanwhile, and lists are asked for again.
        awaited(&mut browser, "new Promise((done) => setTimeout(done, 2500))");
        eprintln!("{screen}: {took:.0} ms, {:.2} s busy", busy(&mut browser) - begun);
        if took > slowest.0 {
            slowest = (took, screen);
        }
    }
    browser.value("location.hash = '#contacts'");
    browser.until("document.body.innerText.includes('station-0-0')");
    let older = "[...document.querySelectorAll('button')].find((one) => one.innerText === \
                 'Older').click()";
    let turned = until_shown(&mut browser, older, "station-50-50");
    let turning = busy(&mut browser) - started;
    let long: Vec<f64> = serde_json::from_value(browser.value("window.long")).unwrap();
    let longest = long.iter().copied().fold(0.0, f64::max);
    eprintln!(
        "slowest screen: {} in {:.0} ms; the next contacts in {turned:.0} ms; longest frame \
         {longest:.0} ms, {} of more than 50 ms",
        slowest.1,
        slowest.0,
        long.len()
    );
    // Eleven screens, each with some looks and lists.
    assert!(turning < BUSY, "{turning} s of processor time");
    let pause = before.max(pause(&mut browser));
    if pause > FRAME / 4.0 {
        eprintln!("SKIPPED: other programs took the processor for {pause:.0} ms at a time");
        return;
    }
    assert!(slowest.0 < SOON && turned < SOON, "{slowest:?}, {turned}");
    assert!(longest <= FRAME, "{long:?}");
}
