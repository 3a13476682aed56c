//! A delivery record in PVL, by the rules of NASA's open consumer.

use super::reading::{ReadObject, ReadRecord, ReadValue, blank_trimmed};
use super::{
    At, COUNT, CheckTerms, DATA_TYPE, DIRECTORY, FILE_ID, FILE_SIZE, FILE_TYPE, Findings, GROUP,
    NO_SUM, NO_SUM_TYPE, NODE_NAME, STATEMENT, SUM, SUM_TYPE, UNREADABLE, shown,
};
use crate::sips::FileType;
use std::collections::BTreeSet;

/// Checks a record.
pub fn check(text: &str, terms: &CheckTerms, findings: &mut Findings) {
    if blank_trimmed(text).is_empty() {
        let what = "the record is empty".to_owned();
        return findings.refuse(At::default(), UNREADABLE, what, "write it again");
    }
    let record = match ReadRecord::of(text) {
        Ok(record) => record,
        Err(error) => {
            let at = At { line: Some(error.line), place: None };
            return findings.refuse(at, STATEMENT, error.what, error.help);
        }
    };
    let root = record.root();
    let groups: Vec<&ReadObject> = record.objects(root, "FILE_GROUP").collect();
    for (place, group) in groups.iter().enumerate() {
        GroupCheck { record: &record, group, number: place + 1, findings }.whole(terms);
    }
    if groups.is_empty() {
        let help = "write at least one OBJECT = FILE_GROUP; with its FILE_SPEC";
        findings.refuse(At::default(), GROUP, "there is no FILE_GROUP".to_owned(), help);
    }
    let mut granules = BTreeSet::new();
    for (place, group) in groups.iter().enumerate() {
        let number = place + 1;
        GroupCheck { record: &record, group, number, findings }.granule(&mut granules);
    }
    header(root, findings);
    for object in record.unended() {
        let what = format!("OBJECT = {} does not end", shown(object.name()));
        let at = At { line: Some(object.line), place: None };
        findings.remark(at, what, "end it: other consumers refuse the record");
    }
}

fn header(root: &ReadObject, findings: &mut Findings) {
    let help = "write how many FILE_SPEC the record has";
    match root.value("TOTAL_FILE_COUNT") {
        Some((_, value)) if value.number() == Some(findings.files as f64) => {}
        Some((line, value)) => {
            let what = format!(
                "TOTAL_FILE_COUNT is {}, and there are {} files",
                value.shown(),
                findings.files
            );
            findings.refuse(At { line: Some(line), place: None }, COUNT, what, help);
        }
        None => {
            let what = "TOTAL_FILE_COUNT is missing".to_owned();
            findings.refuse(At::default(), COUNT, what, help);
        }
    }
    let help = "write a time such as 2026-11-30T08:07:13Z";
    match root.value("EXPIRATION_TIME") {
        Some((_, ReadValue::Time(Some(_)))) => {}
        Some((line, value)) => {
            let what = match value {
                ReadValue::Time(_) => "EXPIRATION_TIME is a time that does not exist".to_owned(),
                _ => format!("EXPIRATION_TIME is {}, not a time", value.shown()),
            };
            findings.refuse(At { line: Some(line), place: None }, STATEMENT, what, help);
        }
        None => {
            let what = "EXPIRATION_TIME is missing".to_owned();
            findings.refuse(At::default(), STATEMENT, what, help);
        }
    }
    if root.value("ORIGINATING_SYSTEM").is_none() {
        let what = "ORIGINATING_SYSTEM is missing".to_owned();
        findings.remark(At::default(), what, "write who delivers: notices go there");
    }
}

/// The check of one group.
struct GroupCheck<'a> {
    record: &'a ReadRecord,
    group: &'a ReadObject,
    number: usize,
    findings: &'a mut Findings,
}

impl GroupCheck<'_> {
    fn place(&self) -> String {
        format!("FILE_GROUP {}", self.number)
    }

    fn whole(&mut self, terms: &CheckTerms) {
        let (group, place) = (self.group, self.place());
        let at = |line| At { line: Some(line), place: Some(place.as_str()) };
        let missing = |key: &str| format!("{key} is missing");
        let help = "write the collection's name; in apostrophes if it has digits only";
        match group.value("DATA_TYPE") {
            Some((_, ReadValue::Text(_))) => {}
            Some((line, value)) => {
                let what = format!("DATA_TYPE is {}, not text", value.shown());
                self.findings.refuse(at(line), DATA_TYPE, what, help);
            }
            None => self.findings.refuse(at(group.line), DATA_TYPE, missing("DATA_TYPE"), help),
        }
        if group.value("DATA_VERSION").is_none() {
            let help = "write the version of the collection, such as 001";
            self.findings.refuse(at(group.line), DATA_TYPE, missing("DATA_VERSION"), help);
        }
        let specs: Vec<&ReadObject> = self.record.objects(group, "FILE_SPEC").collect();
        if specs.is_empty() {
            let help = "write an OBJECT = FILE_SPEC; for each file";
            self.findings.refuse(at(group.line), GROUP, missing("FILE_SPEC"), help);
        }
        self.host(terms);
        for (number, spec) in specs.into_iter().enumerate() {
            let name = spec.value("FILE_ID").and_then(|(_, value)| value.text());
            let name = name.map_or_else(String::new, |name| format!(", {}", shown(name)));
            let place = format!("{place}, FILE_SPEC {}{name}", number + 1);
            FileCheck { spec, place: &place, findings: self.findings }.whole();
        }
    }

    /// The host of the provider: the consumer knows it by name, or refuses all.
    fn host(&mut self, terms: &CheckTerms) {
        let Some((line, value)) = self.group.value("NODE_NAME") else { return };
        let place = self.place();
        let at = At { line: Some(line), place: Some(&place) };
        let is_known = |hosts: &Vec<String>| {
            value.text().is_some_and(|host| hosts.iter().any(|known| known == host))
        };
        match &terms.hosts {
            Some(hosts) if is_known(hosts) => {}
            None if value.text().is_some() => {
                let what = format!("NODE_NAME is {}", value.shown());
                let help = "the consumer refuses a host that it does not have as a provider's: \
                            leave NODE_NAME out, or give --host";
                self.findings.remark(at, what, help);
            }
            _ => {
                let what = format!("provider for host {} not found", value.shown());
                let help = "leave NODE_NAME out, or write the host under which the consumer has \
                            this provider";
                self.findings.refuse(at, NODE_NAME, what, help);
            }
        }
    }

    /// A granule is known by its first file, and comes once in a record.
    fn granule(&mut self, seen: &mut BTreeSet<String>) {
        let first = self.record.objects(self.group, "FILE_SPEC").next();
        let name = first.and_then(|spec| spec.value("FILE_ID"));
        let Some((line, ReadValue::Text(name))) = name else { return };
        if seen.insert(name.clone()) {
            return;
        }
        let place = self.place();
        let at = At { line: Some(line), place: Some(&place) };
        let what = format!("the granule `{}` comes twice", shown(name));
        self.findings.refuse(at, GROUP, what, "write one FILE_GROUP for each product");
    }
}

/// The check of one file.
struct FileCheck<'a> {
    spec: &'a ReadObject,
    place: &'a str,
    findings: &'a mut Findings,
}

impl FileCheck<'_> {
    fn whole(&mut self) {
        self.findings.files += 1;
        self.text("DIRECTORY_ID", DIRECTORY);
        self.text("FILE_ID", FILE_ID);
        self.size();
        self.kind();
        self.checksum();
    }

    fn refuse(&mut self, line: usize, verdict: &'static str, what: String, help: &str) {
        let at = At { line: Some(line), place: Some(self.place) };
        self.findings.refuse(at, verdict, what, help);
    }

    fn text(&mut self, key: &str, verdict: &'static str) {
        match self.spec.value(key) {
            Some((line, ReadValue::Text(text))) if text.is_empty() => {
                let at = At { line: Some(line), place: Some(self.place) };
                self.findings.remark(at, format!("{key} is empty"), "write it");
            }
            Some((_, ReadValue::Text(_))) => {}
            Some((line, value)) => {
                let what = format!("{key} is {}, not text", value.shown());
                let help = "put it in apostrophes: the consumer takes it for something else";
                self.refuse(line, verdict, what, help);
            }
            None => self.refuse(self.spec.line, verdict, format!("{key} is missing"), "write it"),
        }
    }

    fn size(&mut self) {
        let help = "write the bytes of the file as a number";
        match self.spec.value("FILE_SIZE") {
            Some((line, value)) => match value.number() {
                Some(size) if size >= 0.0 && size.fract() == 0.0 => {
                    // Beyond 2^53 bytes the consumer's own numbers are not exact either.
                    self.findings.bytes = self.findings.bytes.saturating_add(size as u64);
                }
                Some(size) => {
                    let what = format!("FILE_SIZE is {size}");
                    let at = At { line: Some(line), place: Some(self.place) };
                    self.findings.remark(at, what, help);
                }
                None => {
                    let what = format!("FILE_SIZE is {}, not a number", value.shown());
                    self.refuse(line, FILE_SIZE, what, help);
                }
            },
            None => {
                self.refuse(self.spec.line, FILE_SIZE, "FILE_SIZE is missing".to_owned(), help);
            }
        }
    }

    fn kind(&mut self) {
        let help = format!("write one of {}", FileType::all().join(", "));
        match self.spec.value("FILE_TYPE") {
            Some((_, ReadValue::Text(text))) if FileType::all().contains(&text.as_str()) => {}
            Some((line, value)) => {
                let what = format!("FILE_TYPE is {}", value.shown());
                self.refuse(line, FILE_TYPE, what, &help);
            }
            None => {
                self.refuse(self.spec.line, FILE_TYPE, "FILE_TYPE is missing".to_owned(), &help);
            }
        }
    }

    fn checksum(&mut self) {
        let spec = self.spec;
        let there = |key: &str| spec.value(key).filter(|(_, value)| value.is_something());
        let (kind, sum) = (there("FILE_CKSUM_TYPE"), there("FILE_CKSUM_VALUE"));
        match (kind, sum) {
            (None, None) => {
                let what = "there is no checksum".to_owned();
                let help = "write FILE_CKSUM_TYPE and FILE_CKSUM_VALUE: without them a damaged \
                            file is taken";
                let at = At { line: Some(self.spec.line), place: Some(self.place) };
                self.findings.remark(at, what, help);
            }
            (None, Some((line, _))) => {
                let what = "FILE_CKSUM_TYPE is missing".to_owned();
                self.refuse(line, NO_SUM_TYPE, what, "write MD5 or CKSUM");
            }
            (Some((line, _)), None) => {
                let what = "FILE_CKSUM_VALUE is missing, empty or 0".to_owned();
                let help = "write it, or leave both out: the consumer takes 0 for none";
                self.refuse(line, NO_SUM, what, help);
            }
            (Some((line, kind)), Some((value_line, value))) => match kind.text() {
                Some("CKSUM") if value.number().is_none() => {
                    let what = format!("the CKSUM is {}, not a number", value.shown());
                    self.refuse(value_line, SUM, what, "write it as `cksum` prints it");
                }
                Some("MD5") if value.text().is_none() => {
                    let what = format!("the MD5 is {}, not text", value.shown());
                    let help = "put it in apostrophes: the consumer takes digits for a number";
                    self.refuse(value_line, SUM, what, help);
                }
                Some("CKSUM" | "MD5") => {}
                _ => {
                    let what = format!("FILE_CKSUM_TYPE is {}", kind.shown());
                    self.refuse(line, SUM_TYPE, what, "write MD5 or CKSUM");
                }
            },
        }
    }
}
