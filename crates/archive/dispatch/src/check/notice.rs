//! Notices in PVL, as the producer that gets them reads them.

use super::{At, CheckedKind, Findings, NOTICE, asked_by, shown};
use crate::pvl::{self, Statement};
use crate::{Disposition, sips};

/// Checks a notice, and says which kind it is.
pub fn check(text: &str, findings: &mut Findings) -> CheckedKind {
    let all = match pvl::parse(text) {
        Ok(all) => all,
        Err(error) => {
            let at = At { line: Some(error.line), place: None };
            let help = "write KEY = VALUE; a statement a line";
            findings.refuse(at, NOTICE, error.reason.to_owned(), help);
            return CheckedKind::Unknown;
        }
    };
    let kind = match pvl::value(&all, "MESSAGE_TYPE") {
        Some("SHORTPAN") => CheckedKind::ShortPan,
        Some("LONGPAN") => CheckedKind::LongPan,
        Some("SHORTPDRD") => CheckedKind::ShortPdrd,
        Some("LONGPDRD") => CheckedKind::LongPdrd,
        other => {
            let what = match other {
                Some(other) => format!("MESSAGE_TYPE is `{}`", shown(other)),
                None => "MESSAGE_TYPE is missing".to_owned(),
            };
            let help = "write SHORTPAN, LONGPAN, SHORTPDRD or LONGPDRD";
            findings.refuse(At::default(), NOTICE, what, help);
            return CheckedKind::Unknown;
        }
    };
    if let Err(error) = sips::parse_notice(text.as_bytes()) {
        let help = "write as many entries as the notice says, each with its DISPOSITION";
        findings.refuse(At::default(), NOTICE, error.0, help);
        return kind;
    }
    dispositions(kind, &all, findings);
    details(kind, &all, findings);
    kind
}

/// What the dispositions ask the producer for.
fn dispositions(kind: CheckedKind, all: &[Statement], findings: &mut Findings) {
    let is_refusal = matches!(kind, CheckedKind::ShortPdrd | CheckedKind::LongPdrd);
    let mut worst = Disposition::Taken;
    for (number, text) in pvl::values(all, "DISPOSITION").enumerate() {
        let meant = Disposition::of(text);
        worst = worst.max(meant);
        let place = format!("entry {}", number + 1);
        let at = At { line: None, place: Some(&place) };
        if text.trim() != text || text.to_ascii_uppercase() != text {
            let what = format!("DISPOSITION is `{}`", shown(text));
            findings.remark(at, what, "write it in capitals, without blanks at its ends");
        }
        if !Disposition::is_listed(text) {
            let what = format!("DISPOSITION `{}` is on no list", shown(text));
            findings.remark(at, what, "the producer takes it for a fault of the way");
        }
    }
    if is_refusal && worst != Disposition::Taken {
        worst = Disposition::Refused;
    }
    findings.asks = Some(asked_by(worst).to_owned());
}

/// What a producer that looks closely misses.
fn details(kind: CheckedKind, all: &[Statement], findings: &mut Findings) {
    let count = |key: &str| pvl::values(all, key).count();
    let (entries, keys): (usize, &[&str]) = match kind {
        CheckedKind::ShortPan => (1, &["TIME_STAMP"]),
        CheckedKind::LongPan => (count("FILE_NAME"), &["FILE_DIRECTORY", "TIME_STAMP"]),
        _ => (0, &[]),
    };
    findings.files = if kind == CheckedKind::LongPan { entries as u64 } else { 0 };
    for key in keys {
        if count(key) != entries {
            let what = format!("there are {} {key} for {entries} entries", count(key));
            findings.remark(At::default(), what, "write one for each entry");
        }
    }
}
