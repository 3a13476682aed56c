//! What the event log and who is told of it read: lines of events, filters, addresses of servers.

use skyhaul_events::{AlarmKind, EventFilter, NodeEvent, cloud_event};
use skyhaul_remote::PostUrl;

/// A line of the event log: refused, or an event that comes back from its own line.
pub fn event_lines(input: &[u8]) {
    for line in input.split(|byte| *byte == b'\n') {
        if let Ok(event) = NodeEvent::from_line(line) {
            let event = event.bounded();
            let again = event.to_line();
            assert!(again.len() <= NodeEvent::LINE_MAX);
            assert!(NodeEvent::from_line(&again).is_ok_and(|it| it.number == event.number));
            assert_eq!(cloud_event(&event)["specversion"], "1.0");
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
