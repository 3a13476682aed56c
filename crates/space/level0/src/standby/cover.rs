//! What of one contact of the standby the centre has from the other station.

use super::{DeliveredContact, EdgeFrame, LackingTime};
use skyhaul_units::{Duration, Utc};

/// Times at two stations count as equal up to this: their clocks, and the way of the signal.
pub(super) const SLACK: Duration = Duration::from_millis(500);

/// The frames of a contact, or of the part of it that is not sent yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FlowSpan {
    /// The first frame of the contact; its mark is only known where it was read from there.
    pub first: EdgeFrame,
    /// The newest frame.
    pub last: EdgeFrame,
}

/// Times of which the centre has all frames, ascending and apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Cover {
    times: Vec<(Utc, Utc)>,
}

/// Whether both stations received the same frame. Only frames of one time are compared: a
/// spacecraft may send the same bytes again later.
fn is_same(one: &EdgeFrame, other: &EdgeFrame) -> bool {
    let (one_at, other_at) = (one.received, other.received);
    one.mark.is_same(other.mark) && one_at.max(other_at).since(one_at.min(other_at)) <= SLACK
}

impl Cover {
    /// What these contacts of the other station have of a contact of the same mission.
    pub fn of<'a>(span: &FlowSpan, contacts: impl Iterator<Item = &'a DeliveredContact>) -> Self {
        let mut times: Vec<(Utc, Utc)> = Vec::new();
        for contact in contacts {
            let DeliveredContact { first, last, lacks, .. } = contact;
            let mut from = match is_same(first, &span.first) {
                true => first.received.min(span.first.received),
                false => first.received + SLACK,
            };
            let to = match is_same(last, &span.last) {
                true => last.received.max(span.last.received),
                false => last.received - SLACK,
            };
            for LackingTime { from: gap, to: end } in lacks {
                times.push((from, *gap - SLACK));
                from = from.max(*end + SLACK);
            }
            times.push((from, to));
        }
        times.retain(|(from, to)| from <= to);
        times.sort_unstable();
        let mut joined: Vec<(Utc, Utc)> = Vec::new();
        for (from, to) in times {
            match joined.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => joined.push((from, to)),
            }
        }
        Self { times: joined }
    }

    /// Whether it has all frames from `from` to `to`.
    pub fn has(&self, from: Utc, to: Utc) -> bool {
        self.times.iter().any(|(begin, end)| *begin <= from && to <= *end)
    }

    /// The first time from `from` to `to` that it lacks.
    pub fn lacks_from(&self, from: Utc, to: Utc) -> Option<Utc> {
        if from > to {
            return None;
        }
        let mut at = from;
        for (begin, end) in &self.times {
            if *begin > at {
                break;
            }
            if *end >= at {
                at = at.max(*end);
                if at >= to {
                    return None;
                }
            }
        }
        (!self.has(from, to)).then_some(at)
    }

    /// The end of what it has.
    pub fn end(&self) -> Option<Utc> {
        self.times.last().map(|(_, end)| *end)
    }
}
