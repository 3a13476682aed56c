//! What the event log, the audit log and who is told of events read: lines, filters, addresses of
//! servers.

use skyhaul_events::{
    AlarmKind, AuditCheck, AuditLine, CauseBook, EventFilter, NodeEvent, NodeReport, audit_hash,
    cloud_event,
};
use skyhaul_remote::PostUrl;

/// A line of the event log: refused, or an event that comes back from its own line.
pub fn event_lines(input: &[u8]) {
    let mut causes = CauseBook::default();
    for line in input.split(|byte| *byte == b'\n') {
        if let Ok(event) = NodeEvent::from_line(line) {
            let event = event.bounded();
            let again = event.to_line();
            assert!(again.len() <= NodeEvent::LINE_MAX);
            assert!(NodeEvent::from_line(&again).is_ok_and(|it| it.number == event.number));
            assert_eq!(cloud_event(&event)["specversion"], "1.0");
            causes.follow(&event);
        }
        let text = String::from_utf8_lossy(line);
        let _ = text.parse::<EventFilter>();
        if let Ok(kind) = text.parse::<AlarmKind>() {
            assert_eq!(kind.name(), text);
        }
        if let Ok(url) = text.parse::<PostUrl>() {
            assert_eq!(url.text().parse(), Ok(url.clone()));
            assert!(!url.to_string().contains('?'), "its secret is not shown");
        }
    }
}

/// A report of a node: refused, or within its bounds, and read the same when it is written again.
pub fn node_report(input: &[u8]) {
    if let Ok(report) = NodeReport::decode(input) {
        let again = report.encode();
        assert!(NodeReport::is_marked(input) && again.len() <= NodeReport::LEN_MAX);
        assert_eq!(NodeReport::decode(&again), Ok(report));
    }
}

/// Who works on which alarm, as the state folder has it: what reads is written and reads the same.
pub fn acknowledgements(input: &[u8]) {
    if let Err(error) = skyhaul_node::check_acknowledgements(input) {
        assert!(!error.contains("not what was read"), "{error}");
    }
}

/// Lines of the audit log: refused, or one that comes back from its own line; and a check of all of
/// them, which names a fault wherever one of them is no line.
pub fn audit_lines(input: &[u8]) {
    let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    let mut check = AuditCheck::default();
    let mut kept = AuditCheck::with_heads([(1, audit_hash(lines[0]))].into());
    let mut unread = 0;
    for line in &lines {
        check.line(line);
        kept.line(line);
        let Ok(read) = AuditLine::from_line(line) else {
            unread += 1;
            continue;
        };
        let again = read.to_line();
        assert!(again.len() <= AuditLine::LINE_MAX + 1, "{} bytes", again.len());
        let again = AuditLine::from_line(again.trim_ascii_end());
        assert!(again.is_ok_and(|it| (it.number, &it.before) == (read.number, &read.before)));
    }
    let (report, kept) = (check.finish(), kept.finish());
    assert_eq!(report.lines, lines.len() as u64);
    assert!(report.faults.len() as u64 + report.more >= unread);
    assert!(kept.faults.len() <= 100);
}
