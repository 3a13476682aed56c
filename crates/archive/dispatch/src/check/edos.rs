//! Records and notices of EDOS, as their readers hold them to their layout.

use super::{
    At, COUNT, DIRECTORY, FILE_ID, FILE_SIZE, FILE_TYPE, Findings, GROUP, NOTICE, STATEMENT,
    UNREADABLE, asked_by, shown,
};
use crate::pvl::{self, Statement};
use crate::{Disposition, NoticeContent, edos};

/// Checks a record.
pub fn check_record(bytes: &[u8], findings: &mut Findings) {
    let whole = At::default();
    let (head, body) = bytes.split_at(bytes.len().min(edos::HEADER));
    let length = match head.get(18..20) {
        Some(length) => usize::from(u16::from_be_bytes([length[0], length[1]])),
        None => 0,
    };
    // A record longer than 16 bits can say has a length of zero.
    if length != 0 && length != body.len() || length == 0 && body.len() <= usize::from(u16::MAX) {
        let what = format!("its header says {length} octets, and {} follow", body.len());
        findings.refuse(whole, UNREADABLE, what, "send the whole file, in binary mode");
    }
    let Some(text) = body.get(edos::LABELS..).and_then(|text| core::str::from_utf8(text).ok())
    else {
        let what = "there is no PVL text behind its labels".to_owned();
        return findings.refuse(whole, UNREADABLE, what, "send the whole file, in binary mode");
    };
    let all = match pvl::parse(text) {
        Ok(all) => all,
        Err(error) => {
            let at = At { line: Some(error.line), place: None };
            let help = "write it anew: KEY = VALUE; and each object ended";
            return findings.refuse(at, STATEMENT, error.reason.to_owned(), help);
        }
    };
    let mut total = 0u64;
    let groups = objects(&all, "FILE_GROUP");
    for (number, group) in groups.iter().enumerate() {
        let place = format!("FILE_GROUP {}", number + 1);
        let specs = objects(group, "FILE_SPEC");
        if specs.is_empty() {
            let at = At { line: None, place: Some(&place) };
            findings.refuse(at, GROUP, "FILE_SPEC is missing".to_owned(), "name its files");
        }
        for (number, spec) in specs.iter().enumerate() {
            let place = format!("{place}, FILE_SPEC {}", number + 1);
            total = total.saturating_add(file(spec, &place, findings));
        }
    }
    if groups.is_empty() {
        findings.refuse(whole, GROUP, "there is no FILE_GROUP".to_owned(), "name its files");
    }
    findings.bytes = total;
    header(&all, findings);
}

fn header(all: &[Statement], findings: &mut Findings) {
    let number = |key: &str| pvl::value(all, key).and_then(|value| value.parse::<u64>().ok());
    let (files, bytes) = (findings.files, findings.bytes);
    for (key, wanted) in [("TOTAL_FILE_COUNT", files), ("AGGREGATE_LENGTH", bytes)] {
        if number(key) != Some(wanted) {
            let said = pvl::value(all, key).map_or("missing".to_owned(), shown);
            let what = format!("{key} is {said}, and the files make {wanted}");
            findings.refuse(At::default(), COUNT, what, "write the sum over all files");
        }
    }
    for key in ["ORIGINATING_SYSTEM", "CONSUMER_SYSTEM", "PRODUCT_NAME", "EXPIRATION_TIME"] {
        if pvl::value(all, key).is_none_or(str::is_empty) {
            findings.refuse(At::default(), STATEMENT, format!("{key} is missing"), "write it");
        }
    }
    if number("DAN_SEQ_NO").is_none_or(|number| u32::try_from(number).is_err()) {
        let what = "DAN_SEQ_NO is not a number of 32 bits".to_owned();
        findings.refuse(At::default(), STATEMENT, what, "write it: notices name the record by it");
    }
}

/// Checks a file. Returns its size.
fn file(spec: &[Statement], place: &str, findings: &mut Findings) -> u64 {
    findings.files += 1;
    let at = At { line: None, place: Some(place) };
    for (key, verdict, most) in
        [("DIRECTORY_ID", DIRECTORY, edos::DIRECTORY), ("FILE_ID", FILE_ID, edos::NAME)]
    {
        match pvl::value(spec, key) {
            None | Some("") => {
                findings.refuse(at, verdict, format!("{key} is missing"), "write it");
            }
            Some(value) if value.len() > most => {
                let what = format!("{key} has {} characters", value.len());
                let help = format!("a notice has room for {most}: choose a shorter one");
                findings.remark(at, what, &help);
            }
            Some(_) => {}
        }
    }
    let kind = pvl::value(spec, "FILE_TYPE");
    if !matches!(kind, Some("DATA" | "METADATA")) {
        let what = format!("FILE_TYPE is {}", kind.map_or("missing".to_owned(), shown));
        findings.refuse(at, FILE_TYPE, what, "write METADATA of a construction record, else DATA");
    }
    let size = pvl::value(spec, "FILE_SIZE").and_then(|size| size.parse().ok());
    if size.is_none() {
        let what = "FILE_SIZE is not a number".to_owned();
        findings.refuse(at, FILE_SIZE, what, "write the bytes of the file");
    }
    size.unwrap_or_default()
}

fn objects<'a>(all: &'a [Statement], wanted: &str) -> Vec<&'a [Statement]> {
    let found = all.iter().filter_map(|statement| match statement {
        Statement::Object(name, body) if name == wanted => Some(body.as_slice()),
        _ => None,
    });
    found.collect()
}

/// Checks a notice.
pub fn check_notice(bytes: &[u8], findings: &mut Findings) {
    let notice = match edos::parse_notice(bytes) {
        Ok(notice) => notice,
        Err(error) => {
            let help = "send the whole file, in binary mode";
            return findings.refuse(At::default(), NOTICE, error.0, help);
        }
    };
    findings.files = ((bytes.len() - edos::HEADER) / edos::FILE) as u64;
    let worst = match &notice.answer {
        NoticeContent::Files(files) => {
            files.iter().filter_map(|file| file.failure.as_deref()).map(Disposition::of).max()
        }
        _ => None,
    };
    findings.asks = Some(asked_by(worst.unwrap_or(Disposition::Taken)).to_owned());
}
