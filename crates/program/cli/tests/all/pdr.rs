//! `skyhaul pdr check`: what is said of records, in words and as JSON.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::process::{printed, run, skyhaul, text};
use crate::support::refusal::{assert_alone, assert_refused};
use crate::support::schema::assert_valid;
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

const RECORD: &str = "ORIGINATING_SYSTEM = c;\nTOTAL_FILE_COUNT = 1;\n\
                      EXPIRATION_TIME = 2026-11-30T08:07:13Z;\nOBJECT = FILE_GROUP;\n\
                      DATA_TYPE = x;\nDATA_VERSION = '001';\nOBJECT = FILE_SPEC;\n\
                      DIRECTORY_ID = /d;\nFILE_ID = a.PDS;\nFILE_TYPE = SCIENCE;\n\
                      FILE_SIZE = 3;\nFILE_CKSUM_TYPE = CKSUM;\nFILE_CKSUM_VALUE = 7;\n\
                      END_OBJECT = FILE_SPEC;\nEND_OBJECT = FILE_GROUP;\nEND;\n";

#[test]
fn a_check_of_records_prints_each_verdict_with_line_and_remedy() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("good.PDR"), RECORD).unwrap();
    let bad = RECORD.replace("SCIENCE", "DATA");
    std::fs::write(folder.path().join("bad.PDR"), &bad).unwrap();
    let said = printed(&["pdr", "check", "good.PDR"], folder.path());
    let wanted = "good.PDR: SUCCESSFUL\n  delivery record (PDR, PVL), 1 file, 3 bytes\n";
    assert_eq!(said, wanted);

    let both = run(&["pdr", "check", "good.PDR", "bad.PDR"], folder.path());
    assert_alone(&both, 1, &["1 of 2 files would be refused", "check again"]);
    let said = text(&both.stdout);
    let line = "  line 10, FILE_GROUP 1, FILE_SPEC 1, a.PDS: INVALID FILE TYPE: FILE_TYPE is \
                `DATA`; help: write one of HDF, HDF-EOS, SCIENCE,";
    assert!(said.contains(line), "{said}");

    let both = run(&["pdr", "check", "--json", "good.PDR", "bad.PDR"], folder.path());
    assert_eq!(both.status.code(), Some(1));
    let found: Value = serde_json::from_slice(&both.stdout).unwrap();
    assert_valid(&found, "pdr-check.json");
    let verdicts = [&found["files"][0]["verdict"], &found["files"][1]["verdict"]];
    assert_eq!(verdicts, ["SUCCESSFUL", "INVALID FILE TYPE"]);
    assert_eq!(found["files"][1]["findings"][0]["line"], 10);

    let none = run(&["pdr", "check", "none.PDR"], folder.path());
    assert_refused(&none, 3, &["a record cannot be read", "none.PDR"]);
}

#[test]
fn standard_input_is_checked_and_hosts_are_those_that_are_given() {
    let folder = tempfile::tempdir().unwrap();
    let checked = |arguments: &[&str], input: &str| {
        let arguments = [&["pdr", "check"], arguments, &["-"]].concat();
        let mut child = skyhaul(&arguments, folder.path());
        child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let ended = child.wait_with_output().unwrap();
        (ended.status.code().unwrap(), text(&ended.stdout))
    };
    let named = RECORD.replace("DATA_VERSION", "NODE_NAME = dist.example.org;\nDATA_VERSION");
    assert_eq!(checked(&["--host", "dist.example.org"], &named).0, 0);
    let (code, said) = checked(&["--host", "other.example.org"], &named);
    assert_eq!(code, 1);
    assert!(said.starts_with("-: INVALID NODE NAME\n"), "{said}");
    let (code, said) = checked(&[], &named);
    assert_eq!(code, 0);
    assert!(said.contains("remark: NODE_NAME is `dist.example.org`"), "{said}");
    let notice = "MESSAGE_TYPE = SHORTPAN;\nDISPOSITION = \"NETWORK FAILURE\";\n\
                  TIME_STAMP = 2026-11-26T00:00:00Z;\n";
    let (code, said) = checked(&[], notice);
    assert_eq!(code, 0);
    assert!(said.contains("short PAN") && said.contains("send again"), "{said}");
}
