//! Delivery records that NASA publishes for the tests of its consumer (Cumulus): records as MODIS,
//! ASTER and other producers write them, and some that are broken on purpose.
//!
//! They are fetched where everything is tested (`SKYHAUL_RUNG=all`), and none of them is kept here.

use crate::cumulus;
use skyhaul_dispatch::{CheckTerms, check};
use std::collections::BTreeMap;
use std::fs;

/// What is said of the records that are not simply taken, by their names: facts of the records, and
/// not what some program says.
const FACTS: [(&str, &str); 9] = [
    ("MOD09GQ-with-invalid-CKSUM-checksum.PDR", "INVALID FILE_CKSUM_VALUE"),
    ("MOD09GQ-with-invalid-MD5-checksum.PDR", "INVALID FILE_CKSUM_VALUE"),
    ("MOD09GQ-with-invalid-file-type.PDR", "INVALID FILE TYPE"),
    ("MOD09GQ-without-FILE_CKSUM_TYPE.PDR", "MISSING FILE_CKSUM_TYPE PARAMETER"),
    ("MOD09GQ-without-FILE_CKSUM_VALUE.PDR", "MISSING FILE_CKSUM_VALUE PARAMETER"),
    ("MOD09GQ-without-file-id-value.PDR", "INVALID PVL STATEMENT"),
    ("MOD09GQ-without-file-id.PDR", "INVALID FILE ID"),
    // ASTER gives no EXPIRATION_TIME, which the ICD wants.
    ("PDN.ID1611071307.PDR", "INVALID PVL STATEMENT"),
    ("PDN.ID1611081200.PDR", "INVALID PVL STATEMENT"),
];
/// Its groups are within one that names the whole record: the consumer looks for them outside.
const WRAPPED: (&str, &str) = ("MYD13A1_5_grans.PDR", "INVALID FILE GROUP");

#[test]
#[allow(clippy::disallowed_methods, reason = "a test reads how much is tested")]
fn public_records_of_several_producers_are_judged_as_the_consumer_judges_them() {
    if !std::env::var("SKYHAUL_RUNG").is_ok_and(|rung| rung == "all") {
        return;
    }
    let (Some(reader), Some(folder)) = (cumulus::reader(), cumulus::records()) else { return };
    let mut texts = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|suffix| suffix == "PDR") {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            texts.insert(name, fs::read_to_string(path).unwrap());
        }
    }
    assert!(texts.len() >= 20, "{:?}", texts.keys());
    // A consumer knows the hosts of its own tests.
    let hosts: Vec<String> = texts
        .values()
        .flat_map(|text| text.lines())
        .filter_map(|line| line.trim().strip_prefix("NODE_NAME"))
        .map(|line| line.trim_matches(|sign| " =;\"'".contains(sign)).to_owned())
        .collect();
    let known: Vec<String> = texts.values().cloned().collect();
    let read = cumulus::read(&reader, &hosts.join(","), &known);
    let facts: BTreeMap<&str, &str> = FACTS.into_iter().chain([WRAPPED]).collect();
    let mut seen = 0;
    for ((name, text), read) in texts.iter().zip(read) {
        let terms = CheckTerms { hosts: Some(hosts.clone()) };
        let found = check(text.as_bytes(), &terms);
        let wanted = facts.get(name.as_str());
        seen += usize::from(wanted.is_some());
        assert_eq!(found.verdict, *wanted.unwrap_or(&"SUCCESSFUL"), "{name}: {found:?}");
        assert_eq!(found.is_taken, read["refused"].is_null(), "{name}: {read}\n{found:?}");
        let of_group = |group: &serde_json::Value| group["files"].as_array().unwrap().len();
        if found.is_taken {
            let files: usize = read["groups"].as_array().unwrap().iter().map(of_group).sum();
            assert_eq!(found.files, files as u64, "{name}");
        }
    }
    assert_eq!(seen, facts.len(), "a record that is judged here is not there any more");
}
