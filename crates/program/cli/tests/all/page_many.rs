//! The page of a node with 1,000 stations and 20,000 contacts: what is in the browser has a bound,
//! and all of it can be reached. How fast that is, is measured elsewhere.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::browser::Browser;
use crate::support::many::ManyPage;

/// Presses the button with this text.
/// Presses a button, and waits until the page has a text.
fn press(browser: &mut Browser, button: &str, text: &str) {
    let find = format!("find((one) => one.innerText === '{button}')");
    browser.until(&format!("[...document.querySelectorAll('button')].{find} !== undefined"));
    browser.value(&format!("[...document.querySelectorAll('button')].{find}.click()"));
    browser.until(&has(text));
}

fn has(text: &str) -> String {
    format!("document.body.innerText.includes('{text}')")
}

#[test]
fn a_screen_has_a_bounded_number_of_elements_and_leads_to_all_rows() {
    let page = ManyPage::start();
    let folder = tempfile::tempdir().unwrap();
    let Some(mut browser) = Browser::start(folder.path()) else { return };
    browser.open(&page.address);
    for (screen, text) in [
        ("now", "station-0"),
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
    ] {
        browser.value(&format!("location.hash = '#{screen}'"));
        browser.until(&has(text));
        let rows = "Math.max(...[...document.querySelectorAll('tbody')].map((one) => \
                    one.children.length)) <= 50";
        browser.until(rows);
        let elements = browser.value("document.querySelectorAll('*').length");
        assert!(elements.as_u64().unwrap() < 8_000, "{screen}: {elements} elements");
    }
    // Lists of the node go on by its pages, others by the buttons below their table.
    browser.value("location.hash = '#contacts'");
    browser.until(&has("station-0-0"));
    press(&mut browser, "Older", "station-50-50");
    press(&mut browser, "Older", "station-100-100");
    press(&mut browser, "Newest", "station-0-0");
    browser.value("location.hash = '#alarms'");
    browser.until(&has("Alarms (1000)"));
    press(&mut browser, "More", "node station-99");
    press(&mut browser, "Worst", "node station-0");
    browser.value("location.hash = '#queues'");
    browser.until(&has("1 to 50 of 1,000"));
    press(&mut browser, "After", "51 to 100 of 1,000");
    browser.until(&has("station-99"));
    press(&mut browser, "Before", "1 to 50 of 1,000");
    browser.value("location.hash = '#nodes'");
    browser.until(&has("Nodes (500)"));
    press(&mut browser, "More", "station-99");
    press(&mut browser, "Worst", "station-0");
    browser.value("location.hash = '#lines'");
    press(&mut browser, "More paths", "path-200");
    press(&mut browser, "First paths", "path-0");
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
}

/// What the lines of a plot are called that has one value, by the page's own modules.
const NAMED: &str = r"(async () => {
    const { timed } = await import('/plot.js');
    const { rate, span } = await import('/show.js');
    const at = new Date().toISOString();
    const range = { name: '48 h', seconds: 172800, step: '1 min' };
    const names = (mean, show) => {
        const [, plot] = timed('x', range, [{ name: 'a', rows: [{ at, mean }] }], show);
        // The last three are times.
        return [...plot.querySelectorAll('text')].slice(0, -3).map((one) => one.textContent);
    };
    return [names(0, rate), names(1, rate), names(3e6, rate), names(7 * 3600, span),
        names(721 * 86400, span)];
})()";

#[test]
fn the_lines_of_a_plot_have_names_that_differ_and_that_people_count_in() {
    let page = ManyPage::start();
    let folder = tempfile::tempdir().unwrap();
    let Some(mut browser) = Browser::start(folder.path()) else { return };
    browser.open(&page.address);
    let order = serde_json::json!({
        "expression": NAMED, "awaitPromise": true, "returnByValue": true
    });
    let found = browser.order("Runtime.evaluate", order)["result"]["value"].clone();
    let expected = serde_json::json!([
        ["0 bit/s"],
        ["0 bit/s", "1 bit/s"],
        ["0 bit/s", "2.50 Mbit/s", "5.00 Mbit/s"],
        ["0 s", "6.0 h", "12.0 h"],
        ["0 s", "500 d", "1000 d"],
    ]);
    assert_eq!(found, expected);
}
