//! A person at a browser logs in, acknowledges an alarm, and logs out.

use super::Shown;
use crate::support::browser::Browser;
use crate::support::node;
use crate::support::patience::until;
use crate::support::process::printed;
use serde_json::Value;

/// Types into the field of a form, as a person does.
pub fn fill(browser: &mut Browser, name: &str, text: &str) {
    let focus = format!("document.querySelector('input[name={name}]').focus()");
    browser.value(&focus);
    browser.order("Input.insertText", serde_json::json!({"text": text}));
}

pub fn click(browser: &mut Browser, selector: &str) {
    browser.value(&format!("document.querySelector('{selector}').click()"));
}

/// Logs in by the form that is shown, as a user of the file.
pub fn log_in(browser: &mut Browser, name: &str) {
    browser.until("document.querySelector('input[name=password]') !== null");
    fill(browser, "name", name);
    fill(browser, "password", "password");
    click(browser, "form button[type=submit]");
    browser.until(&format!("document.body.innerText.includes('{name} (')"));
}

#[test]
fn an_operator_logs_in_by_the_page_acknowledges_an_alarm_and_logs_out() {
    let shown = Shown::start();
    let Some(mut browser) = Browser::start(shown.folder()) else { return };
    let address = format!("http://{}/", shown.address);
    browser.open(&address);
    browser.until("document.querySelector('input[name=password]') !== null");
    browser.until("!document.body.innerText.includes('What waits')");
    fill(&mut browser, "name", "kim");
    fill(&mut browser, "password", "wrong");
    click(&mut browser, "form button[type=submit]");
    browser.until("document.body.innerText.includes('the name or the password is wrong')");
    browser.value("document.querySelector('input[name=password]').value = ''");
    browser.value("document.querySelector('input[name=name]').value = ''");
    log_in(&mut browser, "kim");
    browser.until("document.body.innerText.includes('kim (operator)')");
    browser.value("location.hash = '#alarms'");
    let row = "tr[data-key=\\\"peer-silent.node s\\\"] button";
    browser.until(&format!("document.querySelector(\"{row}\") !== null"));
    browser.value(&format!("document.querySelector(\"{row}\").click()"));
    browser.until("document.querySelector('dialog[open]') !== null");
    fill(&mut browser, "note", "fibre cut");
    click(&mut browser, "dialog button[type=submit]");
    browser.until("document.querySelector('dialog') === null");
    browser.until("document.body.innerText.includes('fibre cut')");
    let alarms = printed(&["alarms", "list", "--config", "n.toml", "--json"], shown.folder());
    let alarms: Value = serde_json::from_str(&alarms).unwrap();
    assert_eq!(alarms[0]["acknowledged"]["by"], "kim", "{alarms:#}");
    assert_eq!(browser.value("document.cookie"), "", "scripts cannot read the cookie");
    click(&mut browser, "#logout");
    browser.until("document.querySelector('input[name=password]') !== null");
    // What the browser itself says of answers 401 is no complaint of the page.
    let complaints = browser.complaints.iter().filter(|said| !said.contains("401"));
    assert_eq!(complaints.count(), 0, "{:?}", browser.complaints);
    let events = || {
        let events = node::events("n.toml", shown.folder());
        events.iter().any(|event| event["kind"] == "alarm.acknowledged").then_some(())
    };
    until(events, || "no acknowledgement among the events".to_owned());
}
