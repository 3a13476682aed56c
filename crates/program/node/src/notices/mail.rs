//! Mail about events, by the system's `sendmail`: one for what came within a minute.

use super::command::run;
use super::{Notice, NoticeOutcome, NoticeStop};
use skyhaul_config::MailEntry;
use skyhaul_events::NodeEvent;
use skyhaul_net::Clock;
use skyhaul_units::{Duration, Instant, printable};
use std::fmt::Write;

/// One `[[mail]]`.
pub struct MailNotice {
    to: Vec<String>,
    sendmail: String,
    clock: Clock,
    /// No mail before this time.
    next: Instant,
}

/// Between two mails.
const PAUSE: Duration = Duration::from_secs(60);
/// Events of one mail.
const EVENTS_MAX: usize = 100;
/// Mail that is refused so often is left out.
const ATTEMPTS: u32 = 20;
/// Of a line: RFC 5322 2.1.1 allows 998 characters.
const LINE_MAX: usize = 900;

impl MailNotice {
    /// Sends the mail of `entry`.
    pub fn new(entry: &MailEntry, clock: Clock) -> Self {
        let (to, sendmail) = (entry.to.clone(), entry.sendmail.clone());
        Self { to, sendmail, clock, next: Instant::ZERO }
    }
}

impl Notice for MailNotice {
    fn name(&self) -> String {
        format!("mail to {}", self.to.join(", "))
    }

    fn tell(&mut self, events: &[NodeEvent], attempt: u32, stop: &NoticeStop) -> NoticeOutcome {
        let now = self.clock.now();
        if now < self.next {
            stop.pause(self.next.since(now).min(Duration::from_secs(1)));
            return NoticeOutcome::NotYet;
        }
        let events = &events[..events.len().min(EVENTS_MAX)];
        let text = letter(&self.to, events);
        let arguments = ["-oi", "-t"];
        match run(&self.sendmail, &arguments, text.into_bytes(), stop) {
            Ok(()) => {
                self.next = self.clock.now() + PAUSE;
                NoticeOutcome::Done(events.len())
            }
            Err(reason) if attempt >= ATTEMPTS => {
                NoticeOutcome::LeftOut(format!("{reason}; an event is left out"))
            }
            Err(reason) => NoticeOutcome::Again(reason),
        }
    }
}

/// The mail: what is worst stands in its subject.
fn letter(to: &[String], events: &[NodeEvent]) -> String {
    let worst = events.iter().max_by_key(|event| event.severity);
    let (node, first) = worst.map_or(("", ""), |event| (&event.node, &event.sentence));
    let subject: String = printable(first, 120).chars().filter(char::is_ascii).collect();
    let mut text = String::new();
    let _ = writeln!(text, "To: {}", to.join(", "));
    let _ = writeln!(text, "Subject: [skyhaul {node}] {subject}");
    let _ = writeln!(text, "MIME-Version: 1.0");
    let _ = writeln!(text, "Content-Type: text/plain; charset=utf-8");
    let _ = writeln!(text, "Content-Transfer-Encoding: 8bit");
    let _ = writeln!(text, "Auto-Submitted: auto-generated\n");
    for NodeEvent { number, time, severity, kind, sentence, .. } in events {
        let sentence = printable(sentence, LINE_MAX - 100);
        let _ = writeln!(text, "{time} {severity} {kind} ({number})\n  {sentence}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_events::{EventKind, Severity};

    #[test]
    fn a_mail_names_the_worst_first_and_no_text_makes_a_header_of_its_own() {
        let event = |severity, sentence: &str| NodeEvent {
            number: 3,
            time: "2026-11-26T21:00:00Z".to_owned(),
            node: "polar".to_owned(),
            kind: EventKind::AlarmRaised,
            severity,
            subject: "x".to_owned(),
            sentence: sentence.to_owned(),
            cause: None,
            data: serde_json::Map::new(),
        };
        let events =
            [event(Severity::Info, "one"), event(Severity::Critical, "two\nBcc: x@y\r\n\r\nz")];
        let text = letter(&["noc@example.org".to_owned()], &events);
        let (head, body) = text.split_once("\n\n").unwrap();
        assert!(head.starts_with("To: noc@example.org\nSubject: [skyhaul polar] two"), "{head}");
        assert_eq!(head.lines().count(), 6, "{head}");
        assert!(body.contains("info alarm.raised (3)\n  one\n"), "{body}");
        assert!(text.lines().all(|line| line.len() < 998));
    }
}
