//! Events of the node, as the page's server asks for them.

use crate::journal::{EventHole, EventSink};
use skyhaul_events::{EventFilter, NodeEvent};
use skyhaul_serve::ServeAnswer;
use skyhaul_web::{EventsAsked, EventsFrom};
use skyhaul_web_io::{EventsFound, FoundEvent, NumberHole};

/// Events that are read at a time.
const WINDOW: usize = 1_000;
/// And so often for one answer: the next page goes on.
const WINDOWS_MAX: usize = 5;

/// Finds events of the log.
///
/// # Errors
/// The filter is none, or the disk refuses.
pub(super) fn find(sink: &EventSink, asked: &EventsAsked) -> Result<EventsFound, ServeAnswer> {
    let types = asked.types.as_deref().unwrap_or("*").parse::<EventFilter>();
    let types = types.map_err(|error| ServeAnswer::problem(400, &error.to_string()))?;
    let about = asked.subject.as_deref().map(str::to_lowercase);
    let wants = |event: &NodeEvent| {
        let is_about = |text: &String| event.subject.to_lowercase().contains(text);
        types.wants(event) && about.as_ref().is_none_or(is_about)
    };
    let found = match asked.from {
        EventsFrom::Behind(since) => behind(sink, since, asked.limit, wants),
        EventsFrom::Before(before) => newest(sink, before, asked.limit, wants),
    };
    found.map_err(|error| {
        let what = format!("the event log cannot be read ({error}); check the disk");
        ServeAnswer::problem(503, &what)
    })
}

fn row(event: &NodeEvent) -> FoundEvent {
    let json = serde_json::to_string(event).expect("an event has text keys only");
    FoundEvent { number: event.number, json }
}

fn hole(hole: &EventHole) -> NumberHole {
    NumberHole { from: hole.from, to: hole.to }
}

/// Oldest first.
fn behind(
    sink: &EventSink,
    since: u64,
    limit: usize,
    wants: impl Fn(&NodeEvent) -> bool,
) -> std::io::Result<EventsFound> {
    let mut found = EventsFound { next: Some(since), ..EventsFound::default() };
    let mut at = since;
    for _ in 0..WINDOWS_MAX {
        let page = sink.page(at, WINDOW)?;
        found.last = page.last;
        for event in &page.events {
            let missing = page.holes.iter().find(|hole| hole.to + 1 == event.number);
            found.holes.extend(missing.map(hole));
            at = event.number;
            if wants(event) {
                found.rows.push(row(event));
                if found.rows.len() == limit {
                    break;
                }
            }
        }
        found.next = Some(at);
        if page.events.is_empty() || found.rows.len() == limit {
            break;
        }
    }
    Ok(found)
}

/// Newest first.
fn newest(
    sink: &EventSink,
    before: Option<u64>,
    limit: usize,
    wants: impl Fn(&NodeEvent) -> bool,
) -> std::io::Result<EventsFound> {
    let mut found = EventsFound { last: sink.last(), ..EventsFound::default() };
    let mut end = before.unwrap_or(u64::MAX).min(found.last.saturating_add(1));
    for _ in 0..WINDOWS_MAX {
        let from = end.saturating_sub(WINDOW as u64 + 1);
        let page = sink.page(from, WINDOW)?;
        let older: Vec<_> = page.events.iter().filter(|event| event.number < end).collect();
        for event in older.iter().rev() {
            if found.rows.len() == limit {
                break;
            }
            end = event.number;
            let missing = page.holes.iter().find(|hole| hole.to + 1 == event.number);
            found.holes.extend(missing.map(hole));
            if wants(event) {
                found.rows.push(row(event));
            }
        }
        if older.is_empty() || end <= 1 {
            return Ok(found);
        }
        if found.rows.len() == limit {
            break;
        }
        end = end.min(from + 1);
    }
    found.next = Some(end);
    Ok(found)
}
