//! Cloud notification messages and their answers, by the rules of version 1.6.1.

use super::{At, CheckedKind, Findings, NOTICE, asked_by, shown};
use crate::cnm::{CHECKSUM_TYPES, FILE_TYPES, VERSIONS};
use crate::{Disposition, NoticeContent, cnm};
use serde_json::{Map, Value};

/// What a consumer answers to a message that breaks a rule.
const VALIDATION: &str = "VALIDATION_ERROR";

/// Checks a message or an answer, and says which of them it is.
pub fn check(text: &str, findings: &mut Findings) -> CheckedKind {
    let refuse = |findings: &mut Findings, line: Option<usize>, what: String| {
        let at = At { line, place: None };
        findings.refuse(at, VALIDATION, what, "write one JSON object (RFC 8259)");
        CheckedKind::Unknown
    };
    let message = match serde_json::from_str(text) {
        Ok(Value::Object(message)) => message,
        Ok(_) => return refuse(findings, None, "it is no JSON object".to_owned()),
        Err(error) => {
            return refuse(findings, Some(error.line()), format!("it is no JSON: {error}"));
        }
    };
    if message.contains_key("response") {
        answer(text, &message, findings);
        return CheckedKind::CnmResponse;
    }
    Rules { findings, verdict: VALIDATION }.message(&message);
    CheckedKind::Cnm
}

fn answer(text: &str, message: &Map<String, Value>, findings: &mut Findings) {
    let mut rules = Rules { findings, verdict: NOTICE };
    rules.head(message);
    for key in ["receivedTime", "processCompleteTime"] {
        rules.time(message, key);
    }
    match cnm::parse_response(text.as_bytes()) {
        Ok(notice) => {
            let asked = match &notice.answer {
                NoticeContent::Accepted => Disposition::Taken,
                NoticeContent::Failed(reason) => Disposition::of(reason),
                _ => Disposition::Refused,
            };
            findings.asks = Some(asked_by(asked).to_owned());
        }
        Err(error) => {
            let help = "write SUCCESS, or FAILURE with an errorCode";
            findings.refuse(At { line: None, place: Some("response") }, NOTICE, error.0, help);
        }
    }
}

/// The rules for one message.
struct Rules<'a> {
    findings: &'a mut Findings,
    verdict: &'static str,
}

impl Rules<'_> {
    fn refuse(&mut self, place: &str, what: String, help: &str) {
        let at = At { line: None, place: Some(place) };
        self.findings.refuse(at, self.verdict, what, help);
    }

    /// What a message and an answer have in common.
    fn head(&mut self, message: &Map<String, Value>) {
        let version = message.get("version").and_then(Value::as_str);
        if !version.is_some_and(|version| VERSIONS.contains(&version)) {
            let what = format!("version is {}", said(message.get("version")));
            self.refuse("version", what, &format!("write one of {}", VERSIONS.join(", ")));
        }
        self.text(message, "identifier", "identifier");
        self.optional(message, &["provider", "trace"], "");
        self.time(message, "submissionTime");
        let help = "write the collection's name, or an object of its name and version";
        match message.get("collection") {
            Some(Value::String(_)) => {}
            Some(Value::Object(parts)) => {
                for key in ["name", "version"] {
                    self.text(parts, key, &format!("collection.{key}"));
                }
            }
            other => self.refuse("collection", format!("collection is {}", said(other)), help),
        }
    }

    fn message(&mut self, message: &Map<String, Value>) {
        self.head(message);
        let Some(product) = message.get("product").and_then(Value::as_object) else {
            let what = format!("product is {}", said(message.get("product")));
            return self.refuse("product", what, "write an object of its name and files");
        };
        self.text(product, "name", "product.name");
        self.optional(product, &["dataVersion", "producerGranuleId"], "product.");
        let kind = product.get("dataProcessingType");
        if kind.is_some_and(|kind| !matches!(kind.as_str(), Some("forward" | "reprocessing"))) {
            let what = format!("dataProcessingType is {}", said(kind));
            let place = "product.dataProcessingType";
            self.refuse(place, what, "write forward or reprocessing, or leave it out");
        }
        match (product.get("files"), product.get("filegroups")) {
            (Some(files), None) => self.files(files, "product.files"),
            (None, Some(Value::Array(groups))) => {
                for (number, group) in groups.iter().enumerate() {
                    let place = format!("product.filegroups[{number}]");
                    let empty = Map::new();
                    let group = group.as_object().unwrap_or(&empty);
                    self.text(group, "id", &format!("{place}.id"));
                    let files = group.get("files").unwrap_or(&Value::Null);
                    self.files(files, &format!("{place}.files"));
                }
            }
            _ => {
                let what = "there is not exactly one of files and filegroups".to_owned();
                self.refuse("product", what, "write files");
            }
        }
    }

    fn files(&mut self, files: &Value, place: &str) {
        let Some(files) = files.as_array() else {
            return self.refuse(place, format!("files is {}", said(Some(files))), "write a list");
        };
        for (number, file) in files.iter().enumerate() {
            self.findings.files += 1;
            let place = format!("{place}[{number}]");
            match file.as_object() {
                Some(file) => self.file(file, &place),
                None => self.refuse(&place, "it is no object".to_owned(), "write an object"),
            }
        }
    }

    fn file(&mut self, file: &Map<String, Value>, place: &str) {
        for key in ["uri", "name"] {
            self.text(file, key, &format!("{place}.{key}"));
        }
        self.optional(file, &["subtype"], &format!("{place}."));
        for (key, known, is_needed) in
            [("type", &FILE_TYPES, true), ("checksumType", &CHECKSUM_TYPES, false)]
        {
            let value = file.get(key);
            let is_known =
                value.and_then(Value::as_str).is_some_and(|value| known.contains(&value));
            if !is_known && (is_needed || value.is_some()) {
                let what = format!("{key} is {}", said(value));
                let help = format!("write one of {}", known.join(", "));
                self.refuse(&format!("{place}.{key}"), what, &help);
            }
        }
        match file.get("size").and_then(Value::as_f64) {
            Some(size) => {
                // A size is bytes: what lies behind the point is nothing.
                self.findings.bytes = self.findings.bytes.saturating_add(size as u64);
            }
            None => {
                let what = format!("size is {}", said(file.get("size")));
                self.refuse(&format!("{place}.size"), what, "write the bytes as a number");
            }
        }
        self.checksum(file, place);
    }

    fn checksum(&mut self, file: &Map<String, Value>, place: &str) {
        let at = At { line: None, place: Some(place) };
        let digits = match file.get("checksumType").and_then(Value::as_str) {
            Some("SHA512") => 128,
            Some("SHA256" | "SHA2") => 64,
            Some("SHA1") => 40,
            _ => 32,
        };
        match file.get("checksum") {
            None => {
                let help = "write checksum and checksumType: without them a damaged file is taken";
                self.findings.remark(at, "there is no checksum".to_owned(), help);
            }
            Some(Value::String(sum)) => {
                let is_hex = sum.bytes().all(|byte| byte.is_ascii_hexdigit());
                if sum.len() != digits || !is_hex {
                    let what = format!("checksum is `{}`", shown(sum));
                    let help = format!("this checksumType has {digits} hexadecimal digits");
                    self.findings.remark(at, what, &help);
                }
            }
            other => {
                let what = format!("checksum is {}", said(other));
                self.refuse(&format!("{place}.checksum"), what, "write it as text");
            }
        }
    }

    fn text(&mut self, of: &Map<String, Value>, key: &str, place: &str) {
        if !matches!(of.get(key), Some(Value::String(_))) {
            self.refuse(place, format!("{key} is {}", said(of.get(key))), "write it as text");
        }
    }

    /// What need not be there, and is text where it is.
    fn optional(&mut self, of: &Map<String, Value>, keys: &[&str], within: &str) {
        for key in keys.iter().filter(|key| of.contains_key(**key)) {
            self.text(of, key, &format!("{within}{key}"));
        }
    }

    /// A time (RFC 3339).
    fn time(&mut self, of: &Map<String, Value>, key: &str) {
        let is_time = of.get(key).and_then(Value::as_str).is_some_and(is_rfc3339);
        if !is_time {
            let what = format!("{key} is {}", said(of.get(key)));
            self.refuse(key, what, "write a time such as 2026-11-26T08:07:13Z");
        }
    }
}

/// Date, `T`, time of day, `Z` or an offset (RFC 3339 5.6).
fn is_rfc3339(text: &str) -> bool {
    let shape = |text: &str, shape: &str| {
        text.len() == shape.len()
            && text.bytes().zip(shape.bytes()).all(|(byte, wanted)| match wanted {
                b'0' => byte.is_ascii_digit(),
                other => byte.eq_ignore_ascii_case(&other),
            })
    };
    let Some((stamp, rest)) = text.split_at_checked(19) else { return false };
    let number = |from: usize| stamp[from..from + 2].parse::<u8>().unwrap_or(u8::MAX);
    if !shape(stamp, "0000-00-00T00:00:00") {
        return false;
    }
    let is_within = (1..=12).contains(&number(5))
        && (1..=31).contains(&number(8))
        && number(11) < 24
        && number(14) < 60
        && number(17) <= 60;
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|one: char| one.is_ascii_digit());
            if zone.len() == fraction.len() {
                return false;
            }
            zone
        }
        None => rest,
    };
    let is_zone = shape(zone, "Z") || shape(zone, "+00:00") || shape(zone, "-00:00");
    is_within && is_zone
}

/// A value as it is shown in a message.
fn said(value: Option<&Value>) -> String {
    match value {
        None => "missing".to_owned(),
        Some(value) => format!("`{}`", shown(&value.to_string())),
    }
}
