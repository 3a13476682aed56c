//! An event as other systems take it: CloudEvents 1.0 in JSON.

use crate::event::NodeEvent;
use serde_json::{Value, json};

/// The media type of [`cloud_event`].
pub const CLOUD_EVENTS: &str = "application/cloudevents+json; charset=utf-8";

/// The event in the structured form of CloudEvents 1.0 (JSON event format, 3.1).
///
/// `source` and `id` together name one event for ever: numbers begin again where a state folder was
/// removed, so that the time is part of the id.
pub fn cloud_event(event: &NodeEvent) -> Value {
    let NodeEvent { number, time, node, kind, severity, subject, sentence, cause, data } = event;
    let mut cloud = json!({
        "specversion": "1.0",
        "id": format!("{number}-{time}"),
        "source": format!("urn:skyhaul:node:{node}"),
        "type": format!("skyhaul.{kind}"),
        "subject": subject,
        "time": time,
        "datacontenttype": "application/json",
        "data": {
            "number": number,
            "node": node,
            "severity": severity,
            "sentence": sentence,
            "more": data,
        },
    });
    if let Some(cause) = cause {
        cloud["data"]["cause"] = json!(cause);
    }
    cloud
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EventCause, EventKind, Severity};

    #[test]
    fn the_attributes_that_the_standard_requires_are_there() {
        let event = NodeEvent {
            number: 41,
            time: "2026-11-26T21:00:00Z".to_owned(),
            node: "polar".to_owned(),
            kind: EventKind::ContactClosed,
            severity: Severity::Info,
            subject: "contact 7".to_owned(),
            sentence: "contact 7 of x: 100 frames".to_owned(),
            cause: Some(EventCause {
                number: 40,
                kind: EventKind::ContactOpened,
                subject: "contact 7".to_owned(),
            }),
            data: serde_json::Map::new(),
        };
        let cloud = cloud_event(&event);
        // CloudEvents 1.0.2, REQUIRED attributes.
        assert_eq!(cloud["specversion"], "1.0");
        assert_eq!(cloud["id"], "41-2026-11-26T21:00:00Z");
        assert_eq!(cloud["source"], "urn:skyhaul:node:polar");
        assert_eq!(cloud["type"], "skyhaul.contact.closed");
        assert_eq!(cloud["data"]["sentence"], "contact 7 of x: 100 frames");
        let cause = json!({"number": 40, "kind": "contact.opened", "subject": "contact 7"});
        assert_eq!(cloud["data"]["cause"], cause);
        let unexplained = cloud_event(&NodeEvent { cause: None, ..event });
        assert!(unexplained["data"].get("cause").is_none());
        let names = cloud.as_object().unwrap().keys();
        // Attribute names have lower-case letters and digits only.
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        assert!(names.into_iter().all(|name| name.chars().all(is_plain)));
    }
}
