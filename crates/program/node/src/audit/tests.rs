//! The audit log over restarts, kills and full disks.

use super::*;
use skyhaul_events::AuditReport;
use skyhaul_store::RealDisk;
use std::path::Path;

fn open(folder: &Path) -> AuditLog {
    let disk = Arc::new(RealDisk::open(folder).unwrap());
    AuditLog::open(disk, Clock::start(), EventSink::default()).unwrap()
}

fn words(sentence: &str) -> OrderWords {
    OrderWords { sentence: sentence.to_owned(), subject: "path b".to_owned() }
}

fn kim() -> AuditWho {
    AuditWho::new(AuditMeans::Socket, "kim (uid 1000)", "")
}

fn done(said: &str) -> StatusReply {
    StatusReply::Answer(Ok(said.to_owned()).into())
}

fn give(log: &AuditLog, sentence: &str) {
    let order = log.order(kim(), words(sentence), Value::Null).unwrap();
    log.outcome(order, &done("b is gone"));
}

fn check(folder: &Path) -> AuditReport {
    let text = std::fs::read(folder.join(AUDIT_FILE)).unwrap();
    let mut check = AuditCheck::default();
    text.trim_ascii_end().split(|byte| *byte == b'\n').for_each(|line| check.line(line));
    check.finish()
}

#[test]
fn orders_and_outcomes_are_one_chain_over_restarts() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        let log = open(folder.path());
        give(&log, "remove path b");
    }
    let report = check(folder.path());
    assert_eq!((report.lines, report.last, report.faults), (6, 6, vec![]));
}

#[test]
fn an_order_is_on_the_disk_before_it_is_carried_out() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path());
    let order = log.order(kim(), words("remove path b"), json!({"name": "b"})).unwrap();
    let text = std::fs::read(folder.path().join(AUDIT_FILE)).unwrap();
    let line = AuditLine::from_line(text.trim_ascii_end()).unwrap();
    assert_eq!((line.number, line.who), (1, kim()));
    let refused = Err(Fault::configuration("there is no path b", "here", "see `path list`"));
    log.outcome(order, &StatusReply::Answer(refused.into()));
    let text = std::fs::read_to_string(folder.path().join(AUDIT_FILE)).unwrap();
    assert!(text.contains("\"outcome\":\"refused\",\"said\":\"there is no path b\""), "{text}");
}

#[test]
fn a_line_that_a_kill_tore_is_cut_off_and_one_that_was_changed_stays() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(AUDIT_FILE);
    give(&open(folder.path()), "remove path b");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, [&whole[..], b"{\"number\":3,\"ti"].concat()).unwrap();
    give(&open(folder.path()), "remove path b");
    assert_eq!(check(folder.path()).faults, []);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen("\"number\":4", "\"number\":\"x\"", 1)).unwrap();
    give(&open(folder.path()), "remove path b");
    let report = check(folder.path());
    assert_eq!((report.last, report.faults.len()), (6, 1), "{report:?}");
    assert_eq!(report.faults[0].to_string(), "the line at place 4 cannot be read: it was changed");
}

#[test]
fn where_an_order_cannot_be_written_it_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path());
    give(&log, "remove path b");
    // The name does not lead to the file any more: what is appended could not be found again.
    let (file, away) = (folder.path().join(AUDIT_FILE), folder.path().join("away"));
    std::fs::rename(&file, &away).unwrap();
    let refused = log.order(kim(), words("remove path c"), Value::Null).unwrap_err();
    assert!(refused.what.starts_with("the order is not carried out: it cannot be written down"));
    assert!(refused.help.contains("free space"), "{refused}");
    std::fs::rename(&away, &file).unwrap();
    give(&log, "remove path c");
    assert_eq!((check(folder.path()).last, check(folder.path()).faults), (4, vec![]));
}
