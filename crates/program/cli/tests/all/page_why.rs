//! Why a contact, a delivery or a stream is no faster, at the page of a node: the same verdict as
//! that of the command.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::page::get;
use crate::support::browser::Browser;
use crate::support::node;
use crate::support::patience::until;
use crate::support::recordings::{DAMAGED, recording};
use crate::support::schema::assert_valid;
use crate::support::site::Site;
use serde_json::Value;
use std::io::Write;

/// The status and the body of an answer.
fn asked(address: &str, path: &str) -> (String, Value) {
    let (head, body) = get(address, path, "*/*");
    let status = head.split(' ').nth(1).unwrap_or_default().to_owned();
    (status, serde_json::from_str(&body).unwrap_or_default())
}

#[test]
fn the_page_says_why_of_what_is_under_way_and_where_the_rest_is() {
    let site = Site::with("[web]\nbind = \"127.0.0.1:0\"\n");
    let page = || {
        let status = node::status("centre.toml", site.folder())?;
        Some(status["web"]["address"].as_str()?.to_owned())
    };
    let address = until(page, || site.shown("centre.toml"));
    let (status, nobody) = asked(&address, "/api/v1/why");
    let said = nobody["description"].as_str().unwrap();
    assert!(status == "409" && said.contains("no station is connected"), "{nobody:#}");

    site.write("[[channel]]\nname = \"x\"\ninput = \"stdin\"\nsilence = \"600 s\"\n");
    let (input, mut downlink) = std::io::pipe().unwrap();
    let _station = site.start_from(input);
    let bytes = std::fs::read(recording(DAMAGED)).unwrap();
    downlink.write_all(&bytes[..bytes.len() / 2]).unwrap();
    let flow = site.centre_until(|status| {
        let contact = &status["contacts"][0];
        (contact["state"] == "open").then(|| contact["flow"].clone())
    });
    let id = format!("s-{flow}");
    // The observation before may have been of nobody: it is good for 5 s.
    let verdict = || {
        let (status, verdict) = asked(&address, &format!("/api/v1/why?contact={id}"));
        (status == "200").then_some(verdict)
    };
    let mut verdict = until(verdict, || site.shown("centre.toml"));
    assert_eq!(verdict["transfer"], "of station s to centre c", "{verdict:#}");
    let at = verdict.as_object_mut().unwrap().remove("at").unwrap();
    assert!(at.as_str().unwrap().starts_with("20"), "{at}");
    assert_valid(&verdict, "why.json");
    let (_, same) = asked(&address, "/api/v1/why?with=s");
    assert!(same["sentence"].is_string(), "{same:#}");
    for (query, said) in [
        ("contact=s-77", "there is no contact s-77"),
        ("delivery=7", "there is no delivery 7"),
        ("stream=stream.0", "there is no stream"),
        ("with=nobody", "there is no session with `nobody`"),
    ] {
        let (status, refused) = asked(&address, &format!("/api/v1/why?{query}"));
        let sentence = refused["description"].as_str().unwrap();
        assert!(status == "409" && sentence.contains(said), "{query}: {sentence}");
    }
    assert_eq!(asked(&address, "/api/v1/why?contact=a&with=b").0, "400");

    if let Some(mut browser) = Browser::start(site.folder()) {
        browser.open(&address);
        browser.value(&format!("location.hash = '#contact/{id}'"));
        browser.until("document.body.innerText.includes('The figures behind it')");
        browser.until("document.body.innerText.includes('of station s to centre c')");
        // What was measured within the last 5 s is the answer to whoever asks.
        let judged = "[...document.querySelectorAll('dt')].find((one) => one.innerText === \
                      'At UTC').nextElementSibling.innerText";
        browser.value(&format!("window.judged = {judged}"));
        let again = "[...document.querySelectorAll('button')].find((one) => one.innerText === \
                     'Measure again')";
        let is_new = format!(
            "(() => {{ if (document.body.innerText.includes('Measuring for 4 s.')) return false; \
             if ({judged} !== window.judged) return true; {again}.click(); return false; }})()"
        );
        browser.until(&is_new);
        assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
    }

    downlink.write_all(&bytes[bytes.len() / 2..]).unwrap();
    drop(downlink);
    site.centre_until(|status| (status["contacts"][0]["state"] == "done").then_some(()));
    let ended = || {
        let (status, refused) = asked(&address, &format!("/api/v1/why?contact={id}"));
        let sentence = refused["description"].as_str()?.to_owned();
        (status == "409" && sentence.contains("has come to its end")).then_some(())
    };
    until(ended, || site.shown("centre.toml"));
}
