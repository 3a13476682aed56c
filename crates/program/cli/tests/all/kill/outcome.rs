//! Compares the products in the centre's folder at the end with what independent decoders found in
//! the recordings.

use crate::support::process::printed;
use crate::support::recordings::{CLEAN, expected, sha256};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

pub struct Outcome {
    pub contacts: u64,
    pub frames: u64,
    pub products: u64,
    /// The number and the digest of the good frames, and how many contacts had them.
    passes: BTreeMap<(u64, String), u64>,
    /// Digests of packet files, and how many there are of each.
    packet_files: BTreeMap<String, u64>,
}

impl Outcome {
    /// Decodes each contact's archive anew, and reads each product and its account.
    pub fn of(products: &Path) -> Self {
        let mut outcome = Self {
            contacts: 0,
            frames: 0,
            products: 0,
            passes: BTreeMap::new(),
            packet_files: BTreeMap::new(),
        };
        let mut accounts = BTreeSet::new();
        let mut entries: Vec<_> =
            fs::read_dir(products).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in &entries {
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(!name.starts_with('.'), "{name} is left over");
            match path.extension().and_then(|kind| kind.to_str()) {
                Some("cadu") => outcome.archive(path),
                Some("json") => {
                    let account: Value =
                        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
                    let text = |part: &Value| part.as_str().unwrap().to_owned();
                    let key =
                        (text(&account["contacts"][0]["name"]), text(&account["product"]["name"]));
                    assert!(accounts.insert(key.clone()), "{key:?} is there twice");
                    assert_eq!(account["accounting"]["balanced"], true, "{key:?}");
                    assert_eq!(account["accounting"]["duplicates"], 0, "{key:?}");
                    outcome.products += 1;
                    let file = &account["product"]["packet_file"];
                    if !file.is_null() {
                        let name = text(&file["name"]);
                        let found = sha256(&fs::read(path.with_file_name(&name)).unwrap());
                        assert_eq!(found, text(&file["sha256"]), "{name}");
                        *outcome.packet_files.entry(found).or_default() += 1;
                    }
                }
                _ => {}
            }
        }
        outcome
    }

    fn archive(&mut self, path: &Path) {
        let decoded = printed(&["decode", "--json", path.to_str().unwrap()], Path::new("."));
        let decoded: Value = serde_json::from_str(&decoded).unwrap();
        let file = &decoded["files"][0];
        let frames = file["good_frames"].as_u64().unwrap();
        let digest = file["good_frames_sha256"].as_str().unwrap().to_owned();
        self.contacts += 1;
        self.frames += frames;
        *self.passes.entry((frames, digest)).or_default() += 1;
    }

    /// Asserts that each recording has arrived once in each pass, frame by frame, and has become
    /// the same products each time.
    pub fn compare(&self, passes: u64) {
        let wanted: BTreeMap<(u64, String), u64> = CLEAN
            .iter()
            .map(|name| {
                let known = expected(name);
                let digest = known["frames_sha256"].as_str().unwrap().to_owned();
                ((known["frames_total"].as_u64().unwrap(), digest), passes)
            })
            .collect();
        assert_eq!(self.passes, wanted, "frames and digest of each contact");
        let uneven: Vec<_> =
            self.packet_files.iter().filter(|(_, count)| **count != passes).collect();
        assert!(uneven.is_empty(), "products that are not there once a pass: {uneven:?}");
    }
}
