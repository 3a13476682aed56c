//! Time-based products, through the program: of a window of UTC, over contacts, with versions when more data comes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod support;

use serde_json::Value;
use std::path::Path;
use support::recordings::recording;
use support::site::Site;

const RECORDING: &str = "npp.20241206T173815.dat";

fn channel(name: &str, file: &Path) -> String {
    format!("[[channel]]\nname = \"{name}\"\ninput = \"file:{}\"\n", file.display())
}

/// The newest versions that the centre has made, by product, once `enough` says so.
fn assembled(site: &Site, enough: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    site.centre_until(|status| {
        let made = status["assembled"].as_array()?.clone();
        enough(&made).then_some(made)
    })
}

fn all_made(made: &[Value], version: u64) -> bool {
    !made.is_empty() && made.iter().all(|one| one["state"] == "made" && one["version"] == version)
}

#[test]
fn a_window_is_made_of_contacts_and_made_again_when_the_rest_comes() {
    let site = Site::with("time = true\nwait = \"10 min\"\n");
    let whole = std::fs::read(recording(RECORDING)).unwrap();
    // All but a stretch in the middle comes first; then everything.
    let cadu = 1_024;
    let (first, rest) = (whole.len() / cadu / 3 * cadu, whole.len() / cadu / 2 * cadu);
    let part = site.folder().join("part.dat");
    std::fs::write(&part, [&whole[..first], &whole[rest..]].concat()).unwrap();
    site.write(&channel("part", &part));
    assert_eq!(site.start().end().code, Some(0));
    let one = assembled(&site, |made| all_made(made, 1));
    site.write(&channel("whole", &recording(RECORDING)));
    assert_eq!(site.start().end().code, Some(0));
    let two = assembled(&site, |made| all_made(made, 2));
    let imager = |made: &[Value]| made.iter().find(|one| one["product"] == "viirs-science").unwrap().clone();
    let (one, two) = (imager(&one), imager(&two));
    assert_eq!(
        (&two["from"], &two["to"]),
        (&"2024-12-06T16:00:00.000000Z".into(), &"2024-12-06T18:00:00.000000Z".into())
    );
    let count = |of: &Value, what: &str| of[what].as_u64().unwrap();
    assert_eq!(count(&two, "packets"), count(&one, "packets") + count(&two, "added"));
    assert!(count(&two, "added") > 0, "{two}");
    // The recording is shorter than a scan, in which each application has its turn: a hole need not show in any count.
    assert!(count(&two, "missing") <= count(&one, "missing"), "{one} {two}");
    assert_eq!(count(&two, "contacts"), 2);
    // What a contact that heard everything has by itself is what the window has.
    let contacts = site.centre_until(|status| status["contacts"].as_array().cloned());
    let heard = contacts.iter().find(|contact| contact["channel"] == "whole").unwrap();
    let sha = &heard["products"][0]["sha256"];
    assert_eq!(&two["sha256"], sha, "{heard}");
    let path = two["path"].as_str().unwrap();
    assert!(path.contains("VIIRSSCIENCEAT"), "{path}");
    // The path is as the centre has it, which runs in the folder.
    let account = std::fs::read(site.folder().join(path.replace("01.PDS", "00.json"))).unwrap();
    let account: Value = serde_json::from_slice(&account).unwrap();
    assert_eq!(account["product"]["replaces"]["version"], 1);
    assert_eq!(account["accounting"]["balanced"], true);
}
