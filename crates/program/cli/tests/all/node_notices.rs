//! Delivery records at a folder of another node, and the notices that its consumer writes there:
//! they come back over the session, each is applied once, whichever of the two nodes dies.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

use crate::node_outlets::{Caller, Pair};
use crate::outlets::publish_in;
use crate::support::patience::until;
use crate::support::process::{printed, run};
use crate::support::recordings::sha256;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A class of the products, and a consumer who answers.
const AWAITED: &str = "class = \"products\"\n[[class]]\nname = \"live\"\nguarantee = \"20 \
                       Mbit/s\"\npriority = 0\n[[class]]\nname = \"products\"\npriority = \
                       5\n[[subscription]]\nof = \"products\"\nname = \"all\"\nto = \
                       \"lance\"\nrecord = \"sips\"\nanswer = { within = \"7 d\" \
                       }\n[subscription.retry]\nfirst = \"1 s\"\nmost = \"2 s\"\n";
const ACCEPTED: &str =
    "MESSAGE_TYPE = SHORTPAN;\nDISPOSITION = \"SUCCESSFUL\";\nTIME_STAMP = 2026-01-01T00:00:00Z;\n";
const DAMAGED: &str = "MESSAGE_TYPE = SHORTPAN;\nDISPOSITION = \"CHECKSUM VERIFICATION \
                       FAILURE\";\nTIME_STAMP = 2026-01-01T00:00:00Z;\n";
const REFUSED: &str = "MESSAGE_TYPE = SHORTPDRD;\nDISPOSITION = \"INVALID FILE SIZE\";\n";

/// Writes a notice as the consumer does, in one step.
fn answer(pair: &Pair, name: &str, notice: &str) {
    fs::create_dir_all(pair.got("notices")).unwrap();
    fs::write(pair.got("notices/.part"), notice).unwrap();
    fs::rename(pair.got("notices/.part"), pair.got("notices").join(name)).unwrap();
}

fn state_of<'a>(all: &'a [Value], name: &str) -> &'a Value {
    all.iter().find(|one| one["name"] == name).unwrap()
}

/// Waits until a delivery is as `is` says.
#[track_caller]
fn until_is(pair: &Pair, name: &str, is: impl Fn(&Value) -> bool) {
    let look = || {
        let all = pair.deliveries();
        all.iter().any(|one| one["name"] == name && is(one)).then_some(())
    };
    until(look, || format!("{:?}\n{}", pair.deliveries(), pair.logs()));
}

#[track_caller]
fn until_there(pair: &Pair, path: &Path) {
    until(|| path.exists().then_some(()), || format!("{}: {}", path.display(), pair.logs()));
}

fn name_of(number: u32) -> String {
    format!("P{number:07}V1")
}

#[test]
fn records_go_last_and_notices_at_a_node_settle_deliveries_whoever_is_killed() {
    let pair = Pair::with(Caller::Centre, AWAITED, "read = true\n");
    let mut centre = pair.start_centre();
    let mut far = pair.start("customer");
    publish_in(pair.folder(), 0..4, 1, |number| 300_000 + number as usize);
    pair.backfill();
    // Whenever a signal file is there, so is the record, and all that this lists.
    let recorded = |number: u32| {
        let record = pair.got(&format!("{}.PDR", name_of(number)));
        until_there(&pair, &record.with_extension("PDR.XFR"));
        let said = fs::read_to_string(&record).unwrap();
        for suffix in ["PDS", "CR"] {
            let name = format!("{}.{suffix}", name_of(number));
            assert!(said.contains(&format!("FILE_ID = {name};")), "{said}");
            assert!(said.contains("DIRECTORY_ID = in/modis;"), "{said}");
            pair.assert_there(&name);
        }
        let checked = run(&["pdr", "check", record.to_str().unwrap()], pair.folder());
        assert!(checked.status.success(), "{checked:?}");
    };
    (0..4).for_each(recorded);
    let all = pair.settled(4, "recorded");
    assert!(all.iter().all(|one| one["proof"] == "receipt"), "{all:?}");
    // The customer's node dies with the first notice in the folder.
    far.kill();
    answer(&pair, "P0000000V1.PAN", ACCEPTED);
    let _far = pair.start("customer");
    until_is(&pair, "P0000000V1", |one| one["state"] == "accepted" && one["proof"] == "notice");
    until_there(&pair, &pair.got("notices/read/P0000000V1.PAN"));
    // The centre dies with the second one there; a file that is no notice stays where it is.
    centre.kill();
    answer(&pair, "P0000001V1.PAN", ACCEPTED);
    answer(&pair, "readme.txt", "nothing of yours");
    answer(&pair, "stray.PAN", ACCEPTED);
    centre = pair.start_centre();
    until_is(&pair, "P0000001V1", |one| one["state"] == "accepted");
    until_there(&pair, &pair.got("notices/read/P0000001V1.PAN"));
    until_there(&pair, &pair.got("notices/unknown/stray.PAN"));
    assert!(pair.got("notices/readme.txt").exists());
    // The consumer refuses one, which an operator sees.
    answer(&pair, "P0000002V1.PDRD", REFUSED);
    until_is(&pair, "P0000002V1", |one| one["state"] == "refused");
    let status = printed(&["status", "--config", "centre.toml"], pair.folder());
    assert!(status.contains("INVALID FILE SIZE"), "{status}");
    // The consumer's disk damaged another one: it is sent again, and the damaged one put aside.
    let (own, there) = (pair.own("P0000003V1.PDS"), pair.got("P0000003V1.PDS"));
    let mut damaged = fs::read(&there).unwrap();
    damaged[4_711] ^= 1;
    fs::write(&there, &damaged).unwrap();
    answer(&pair, "P0000003V1.PAN", DAMAGED);
    until_is(&pair, "P0000003V1", |one| one["state"] == "recorded" && one["attempts"] == 2);
    assert_eq!(sha256(&fs::read(&there).unwrap()), sha256(&fs::read(own).unwrap()));
    assert_eq!(fs::read(pair.got(".P0000003V1.PDS.refused")).unwrap(), damaged);
    // What was whole was kept, not put aside.
    assert!(!pair.got(".P0000003V1.CR.refused").exists());
    centre.kill();
    answer(&pair, "P0000003V1.PAN", ACCEPTED);
    let _centre = pair.start_centre();
    until_is(&pair, "P0000003V1", |one| one["state"] == "accepted");
    let all = pair.deliveries();
    assert_eq!(state_of(&all, "P0000002V1")["state"], "refused", "{all:?}");
}

#[test]
fn cloud_messages_to_a_node_that_calls_are_answered_there() {
    let tables = "[[subscription]]\nof = \"products\"\nname = \"all\"\nto = \"lance\"\nrecord = \
                  \"cnm\"\nchecksum = \"sha256\"\n[subscription.answer]\nwithin = \"7 d\"\n";
    let pair = Pair::with(Caller::Customer, tables, "read = true\n");
    let _centre = pair.start_centre();
    let _far = pair.start("customer");
    publish_in(pair.folder(), 0..1, 1, |_| 5_000);
    pair.backfill();
    pair.settled(1, "recorded");
    let message: Value =
        serde_json::from_slice(&fs::read(pair.got("P0000000V1.cnm.json")).unwrap()).unwrap();
    let (identifier, file) = (&message["identifier"], &message["product"]["files"][0]);
    assert_eq!(file["uri"], "file:///in/modis/P0000000V1.PDS");
    let response = "{\"status\": \"SUCCESS\"}";
    let text = format!("{{\"identifier\": {identifier}, \"response\": {response}}}");
    answer(&pair, "1.cnmr.json", &text);
    let all = pair.settled(1, "accepted");
    assert_eq!(all[0]["proof"], "notice", "{all:?}");
}

#[test]
fn a_node_that_may_not_be_read_is_named_only_where_a_notice_is_awaited() {
    for (answer_key, is_named) in [("", false), ("answer = { within = \"7 d\" }\n", true)] {
        let tables = format!(
            "[[subscription]]\nof = \"products\"\nname = \"all\"\nto = \"lance\"\nrecord = \
             \"sips\"\n{answer_key}"
        );
        let pair = Pair::with(Caller::Centre, &tables, "");
        let _centre = pair.start_centre();
        let far = pair.start("customer");
        publish_in(pair.folder(), 0..2, 1, |_| 5_000);
        pair.backfill();
        // Before each delivery, notices are looked for.
        pair.settled(2, if is_named { "recorded" } else { "accepted" });
        let status = || printed(&["status", "--config", "centre.toml"], pair.folder());
        let told = "node customer: its folder may not be read from";
        if !is_named {
            // What was raised while there was no session ends, and nothing else keeps it.
            until(|| (!status().contains("products for lance")).then_some(()), status);
            continue;
        }
        until(|| status().contains(told).then_some(()), status);
        drop(far);
        let config = pair.folder().join("customer.toml");
        let text_of = fs::read_to_string(&config).unwrap();
        fs::write(&config, format!("{text_of}read = true\n")).unwrap();
        let _far = pair.start("customer");
        until(|| (!status().contains("products for lance")).then_some(()), status);
        answer(&pair, "P0000000V1.PAN", ACCEPTED);
        until_is(&pair, "P0000000V1", |one| one["state"] == "accepted");
    }
}
