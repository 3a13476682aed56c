//! The audit log over restarts, kills and full disks.

use super::*;
use skyhaul_events::AuditReport;
use skyhaul_store::RealDisk;
use skyhaul_store::sim::SimDisk;
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
    let newest = open(folder.path()).newest().unwrap();
    assert_eq!(newest.iter().map(|line| line.number).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
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
    for torn in [&b"{\"number\":3,\"ti"[..], b"\0\0\0\0\n", b"{\"nu\0\0\0\0\n\0\0"] {
        std::fs::write(&file, [&whole[..], torn].concat()).unwrap();
        drop(open(folder.path()));
        assert_eq!(std::fs::read(&file).unwrap(), whole);
    }
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

fn on(disk: &SimDisk) -> Result<AuditLog, Fault> {
    AuditLog::open(Arc::new(disk.clone()), Clock::start(), EventSink::default())
}

fn lines_of(log: &AuditLog) -> Vec<AuditLine> {
    log.newest().unwrap()
}

#[test]
fn a_full_disk_refuses_orders_until_there_is_room_and_no_outcome_is_lost() {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(ByteCount::mib(1)));
    let log = AuditLog::open(disk.clone(), Clock::start(), EventSink::default()).unwrap();
    let order = log.order(kim(), words("remove path b"), Value::Null).unwrap();
    let filler = disk.create("filler").unwrap();
    let room = disk.free_space().unwrap().as_u64() as usize;
    filler.append(&vec![0; room]).unwrap();
    log.outcome(order, &done("b is gone"));
    for _ in 0..3 {
        let refused = log.order(kim(), words("remove path c"), Value::Null).unwrap_err();
        assert!(refused.help.starts_with("free space"), "{refused}");
    }
    disk.remove("filler").unwrap();
    drop(filler);
    give(&log, "remove path d");
    let lines = lines_of(&log);
    let mut check = AuditCheck::default();
    lines.iter().for_each(|line| check.line(line.to_line().trim_ascii_end()));
    assert_eq!(check.finish().faults, []);
    let said: Vec<&str> = lines
        .iter()
        .map(|line| match &line.entry {
            AuditEntry::Order { sentence, .. } => &**sentence,
            AuditEntry::Outcome { said, .. } => said,
        })
        .collect();
    assert_eq!(said, ["remove path b", "b is gone", "remove path d", "b is gone"]);
}

#[test]
fn a_kill_at_any_operation_loses_no_order_that_was_let_through() {
    for operations in 0..40 {
        let shared = Arc::new(SimDisk::new(ByteCount::mib(1)));
        let log = AuditLog::open(shared.clone(), Clock::start(), EventSink::default()).unwrap();
        shared.fail_after(operations);
        let mut through = Vec::new();
        for number in 0..8 {
            let sentence = format!("remove path {number}");
            if let Ok(order) = log.order(kim(), words(&sentence), Value::Null) {
                through.push(sentence);
                log.outcome(order, &done("gone"));
            }
        }
        shared.kill();
        let again = on(&shared).unwrap();
        give(&again, "remove path x");
        let lines = lines_of(&again);
        let written: Vec<&String> = lines
            .iter()
            .filter_map(|line| match &line.entry {
                AuditEntry::Order { sentence, .. } => Some(sentence),
                AuditEntry::Outcome { .. } => None,
            })
            .collect();
        for sentence in &through {
            assert!(written.contains(&sentence), "{operations}: {sentence} of {written:?}");
        }
        let mut check = AuditCheck::default();
        lines.iter().for_each(|line| check.line(line.to_line().trim_ascii_end()));
        assert_eq!(check.finish().faults, [], "{operations}");
    }
}

/// The check of all files in a folder, the oldest first.
fn check_files(disk: &dyn Disk) -> AuditReport {
    let names = disk.list("").unwrap();
    let mut firsts: Vec<u64> =
        names.iter().filter_map(|entry| audit_file_first(&entry.name)).collect();
    firsts.sort_unstable();
    let complete = firsts.into_iter().map(|first| (Some(first), audit_file(first)));
    let mut check = AuditCheck::default();
    for (first, name) in complete.chain([(None, AUDIT_FILE.to_owned())]) {
        first.into_iter().for_each(|first| check.file(first));
        let Ok(file) = disk.open(&name) else { continue };
        let text = read(&*file, 0, file.size().unwrap().as_u64()).unwrap();
        let lines = text.trim_ascii_end().split(|byte| *byte == b'\n');
        lines.filter(|line| !line.is_empty()).for_each(|line| check.line(line));
    }
    check.finish()
}

#[test]
fn a_file_that_is_complete_is_followed_by_another_one_of_the_same_chain_whenever_it_is_killed() {
    for seed in 0..40 {
        let disk = SimDisk::new(ByteCount::mib(1));
        let mut given = 0_u64;
        for run in 0..6_u64 {
            let log = AuditLog::open(Arc::new(disk.clone()), Clock::start(), EventSink::default());
            let log = log.unwrap();
            log.tail().complete = 700;
            for _ in 0..(seed + run) % 5 {
                given += 1;
                let order = log.order(kim(), words("remove path b"), Value::Null).unwrap();
                if !(seed + given).is_multiple_of(3) {
                    log.outcome(order, &done("b is gone"));
                }
            }
            drop(log);
            disk.crash(seed * 7 + run);
        }
        let report = check_files(&disk);
        assert_eq!((report.from, &report.faults), (1, &vec![]), "seed {seed}");
        assert!(report.last >= given, "seed {seed}: each order is there");
        assert_eq!(report.lines, report.last);
    }
}

#[test]
fn the_newest_lines_are_those_of_two_files_and_orders_go_on_without_archived_ones() {
    let folder = tempfile::tempdir().unwrap();
    let disk = RealDisk::open(folder.path()).unwrap();
    let log = AuditLog::open(Arc::new(disk), Clock::start(), EventSink::default()).unwrap();
    log.tail().complete = 1_000;
    (0..12).for_each(|_| give(&log, "remove path b"));
    let numbers: Vec<u64> = log.newest().unwrap().iter().map(|line| line.number).collect();
    assert_eq!(numbers.last(), Some(&24));
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1) && numbers.len() > 4);
    drop(log);
    let mut names: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| audit_file_first(name).is_some())
        .collect();
    names.sort();
    assert!(names.len() > 3, "{names:?}");
    let archived = [&names[0], &names[1]];
    archived.iter().for_each(|name| std::fs::remove_file(folder.path().join(name)).unwrap());
    give(&open(folder.path()), "remove path b");
    let disk = RealDisk::open(folder.path()).unwrap();
    let report = check_files(&disk);
    assert_eq!((Some(report.from), report.faults), (audit_file_first(&names[2]), vec![]));
    assert_eq!(report.last, 26);
}
