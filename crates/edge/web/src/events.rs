//! What is asked of the event log.

use skyhaul_serve::{ServeAnswer, ServeRequest};
use skyhaul_units::Duration;

/// Which events are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventsAsked {
    /// Where, and in which order.
    pub from: EventsFrom,
    /// Kinds, groups and severities, with commas between them; none: all.
    pub types: Option<String>,
    /// Those whose subject has this text in it.
    pub subject: Option<String>,
    /// At most so many.
    pub limit: usize,
    /// How long to wait for the first.
    pub timeout: Duration,
}

/// Where events begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventsFrom {
    /// Behind this number, oldest first.
    Behind(u64),
    /// Before this number, newest first; none: from the newest on.
    Before(Option<u64>),
}

/// A long poll lasts no longer.
const TIMEOUT_MAX: u64 = 60;
/// A filter is no longer.
const TEXT_MAX: usize = 1_024;

impl EventsAsked {
    /// From the parameters of a request.
    ///
    /// # Errors
    /// The refusal of a parameter.
    pub fn read(request: &ServeRequest) -> Result<Self, ServeAnswer> {
        let mut asked = Self {
            from: EventsFrom::Before(None),
            types: None,
            subject: None,
            limit: 100,
            timeout: Duration::ZERO,
        };
        for (name, value) in &request.query {
            let number = |most: u64| {
                let number = value.parse::<u64>().ok().filter(|number| *number <= most);
                let refused = || refusal(&format!("`{name}` is a number up to {most}"));
                number.ok_or_else(refused)
            };
            match &name[..] {
                "since" => asked.from = EventsFrom::Behind(number(u64::MAX)?),
                "before" => asked.from = EventsFrom::Before(Some(number(u64::MAX)?)),
                "limit" => asked.limit = usize::try_from(number(1_000)?).unwrap_or(1).max(1),
                "timeout" => asked.timeout = Duration::from_secs(number(TIMEOUT_MAX)?),
                "types" | "subject" if value.len() > TEXT_MAX => {
                    return Err(refusal(&format!("`{name}` has up to {TEXT_MAX} bytes")));
                }
                "types" => asked.types = Some(value.clone()).filter(|text| !text.is_empty()),
                "subject" => asked.subject = Some(value.clone()).filter(|text| !text.is_empty()),
                other => {
                    let other = skyhaul_units::printable(other, 64);
                    let what = format!(
                        "`{other}` is no parameter of the events; they have `since`, `before`, \
                         `types`, `subject`, `limit` and `timeout`"
                    );
                    return Err(refusal(&what));
                }
            }
        }
        if asked.timeout > Duration::ZERO && matches!(asked.from, EventsFrom::Before(_)) {
            return Err(refusal("`timeout` waits for events behind `since`: give that too"));
        }
        Ok(asked)
    }

    /// The same for a stream, which goes on behind the last event that the client got.
    ///
    /// # Errors
    /// The refusal of a parameter.
    pub fn of_stream(request: &ServeRequest, last: u64) -> Result<Self, ServeAnswer> {
        let asked = Self::read(request)?;
        let known = request.header("last-event-id").and_then(|text| text.trim().parse().ok());
        let since = match asked.from {
            EventsFrom::Behind(since) => since,
            EventsFrom::Before(_) => last,
        };
        Ok(Self { from: EventsFrom::Behind(known.unwrap_or(since)), ..asked })
    }
}

fn refusal(what: &str) -> ServeAnswer {
    ServeAnswer::problem(400, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_serve::ServeMethod;

    fn read(query: &str) -> Result<EventsAsked, ServeAnswer> {
        let target = format!("/api/v1/events?{query}");
        EventsAsked::read(&ServeRequest::new(ServeMethod::Get, &target).unwrap())
    }

    #[test]
    fn events_are_asked_for_by_number_and_kind_and_wrong_words_are_named() {
        let asked = read("since=7&types=contact.*,major%2B&timeout=60&limit=5").unwrap();
        assert_eq!((asked.from, asked.limit), (EventsFrom::Behind(7), 5));
        assert_eq!(asked.types.as_deref(), Some("contact.*,major+"));
        assert_eq!(read("").unwrap().from, EventsFrom::Before(None));
        for (query, said) in [
            ("since=x", "`since` is a number"),
            ("limit=1001", "up to 1000"),
            ("since=1&timeout=61", "up to 60"),
            ("timeout=5", "give that too"),
            ("kind=x", "`kind` is no parameter"),
        ] {
            let refused = read(query).unwrap_err();
            assert!(refused.status == 400 && refused.text().contains(said), "{}", refused.text());
        }
        let mut request = ServeRequest::new(ServeMethod::Get, "/api/v1/events/stream").unwrap();
        let of = |request: &ServeRequest| EventsAsked::of_stream(request, 9).unwrap().from;
        assert_eq!(of(&request), EventsFrom::Behind(9));
        request.headers.insert("last-event-id".to_owned(), "4".to_owned());
        assert_eq!(of(&request), EventsFrom::Behind(4));
    }
}
