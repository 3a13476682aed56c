//! The forms of the log: text for people, JSON for programs, lines for the journal of systemd.
//! Lines of one place in the source are limited: what is left out is counted and said.

use skyhaul_net::Clock;
use skyhaul_units::{Duration, Instant, printable};
use std::collections::HashMap;
use std::fmt::{self, Debug, Write};
use std::sync::{Arc, Mutex, PoisonError};
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::format::{DefaultFields, Format, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people: time, level, part, sentence, values.
    Text,
    /// One JSON object a line: time, level, part, what, fields.
    Json,
    /// For the journal of systemd, which has the time: <PRIORITY>part: sentence, values.
    Journal,
}

/// Lines of one place in the source in [`SPAN`].
const LINES_MAX: u64 = 50;
/// The span in which lines are counted.
const SPAN: Duration = Duration::from_secs(10);

/// Limits what each place in the source writes to the log. Lines for debugging are not limited.
#[derive(Debug, Clone)]
pub struct LineLimit(Arc<LimitState>);

#[derive(Debug)]
struct LimitState {
    clock: Clock,
    places: Mutex<HashMap<Identifier, LinePlace>>,
}

#[derive(Debug)]
struct LinePlace {
    begun: Instant,
    lines: u64,
    /// In spans that are over, and not said yet.
    left_out: u64,
    /// Where it is.
    name: String,
}

impl LineLimit {
    /// By this clock.
    pub fn new(clock: Clock) -> Self {
        Self(Arc::new(LimitState { clock, places: Mutex::default() }))
    }

    /// Counts a line of a place. Returns whether it is written.
    fn count(&self, now: Instant, place: Identifier, name: impl Fn() -> String) -> bool {
        let mut places = self.0.places.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || LinePlace { begun: now, lines: 0, left_out: 0, name: name() };
        let known = places.entry(place).or_insert_with(new);
        if now.since(known.begun) >= SPAN {
            let left_out = known.lines.saturating_sub(LINES_MAX);
            (known.begun, known.lines, known.left_out) = (now, 0, known.left_out + left_out);
        }
        known.lines += 1;
        known.lines <= LINES_MAX
    }

    /// What was left out in spans that are over, a sentence each.
    fn over(&self, now: Instant) -> Vec<String> {
        let mut places = self.0.places.lock().unwrap_or_else(PoisonError::into_inner);
        let mut said = Vec::new();
        for place in places.values_mut() {
            if now.since(place.begun) >= SPAN {
                place.left_out += place.lines.saturating_sub(LINES_MAX);
                (place.begun, place.lines) = (now, 0);
            }
            let left_out = std::mem::take(&mut place.left_out);
            if left_out > 0 {
                let name = &place.name;
                said.push(format!("{left_out} more lines like those of {name} are left out"));
            }
        }
        said.sort();
        said
    }
}

impl<S: Subscriber> Layer<S> for LineLimit {
    fn event_enabled(&self, event: &Event<'_>, _context: Context<'_, S>) -> bool {
        let of = event.metadata();
        if *of.level() > Level::INFO {
            return true;
        }
        let name = || format!("{}:{}", of.target(), of.line().unwrap_or(0));
        self.count(self.0.clock.now(), of.callsite(), name)
    }
}

/// Writes the lines, and what the limit left out.
#[derive(Debug)]
pub struct LineFormat {
    form: LogFormat,
    limit: LineLimit,
    text: Format,
}

impl LineFormat {
    /// In this form.
    pub fn new(form: LogFormat, limit: LineLimit) -> Self {
        Self { form, limit, text: Format::default() }
    }
}

/// What stands before the values of a line.
#[derive(Debug, Clone, Copy)]
struct LineHead<'a> {
    time: &'a str,
    level: Level,
    part: &'a str,
}

/// The values of a line.
#[derive(Debug, Default)]
struct LineValues {
    what: String,
    fields: serde_json::Map<String, serde_json::Value>,
}

impl LineValues {
    fn put(&mut self, field: &Field, value: serde_json::Value) {
        self.fields.insert(field.name().to_owned(), value);
    }
}

impl Visit for LineValues {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            let _ = write!(self.what, "{value:?}");
        } else {
            self.put(field, format!("{value:?}").into());
        }
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }
}

impl<S> FormatEvent<S, DefaultFields> for LineFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, DefaultFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let clock = self.limit.0.clock;
        let now = clock.now();
        let time = clock.utc_of(now).to_string();
        let head = |level, part| LineHead { time: &time, level, part };
        for what in self.limit.over(now) {
            let values = LineValues { what, ..LineValues::default() };
            writer.write_str(&line(self.form, head(Level::WARN, "skyhaul"), &values))?;
        }
        if self.form == LogFormat::Text {
            return self.text.format_event(context, writer, event);
        }
        let mut values = LineValues::default();
        event.record(&mut values);
        let of = event.metadata();
        writer.write_str(&line(self.form, head(*of.level(), of.target()), &values))
    }
}

fn line(form: LogFormat, head: LineHead<'_>, values: &LineValues) -> String {
    let LineHead { time, level, part } = head;
    let LineValues { what, fields } = values;
    let words = || {
        let mut words = printable(what, usize::MAX);
        for (name, value) in fields {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let _ = write!(words, " {name}={}", printable(&value, usize::MAX));
        }
        words
    };
    match form {
        LogFormat::Text => format!("{time} {level:>5} {part}: {}\n", words()),
        LogFormat::Journal => format!("<{}>{part}: {}\n", priority(level), words()),
        LogFormat::Json => {
            let level = level.as_str().to_ascii_lowercase();
            let line = serde_json::json!({
                "time": time, "level": level, "part": part, "what": what, "fields": fields,
            });
            format!("{line}\n")
        }
    }
}

/// As the journal of systemd counts (sd-daemon(3)).
const fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::PoisonError;
    use tracing_subscriber::prelude::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What `say` writes in this form.
    fn written(form: LogFormat, say: impl FnOnce()) -> String {
        let written = Written::default();
        let limit = LineLimit::new(Clock::start());
        let of = written.clone();
        let lines = tracing_subscriber::fmt::layer()
            .event_format(LineFormat::new(form, limit.clone()))
            .with_ansi(false)
            .with_writer(move || of.clone());
        let subscriber = tracing_subscriber::registry().with(limit).with(lines);
        tracing::subscriber::with_default(subscriber, say);
        let bytes = written.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn each_form_has_the_sentence_and_the_values() {
        let say = || tracing::warn!(station = "polar", frames = 7, "two\nlines");
        let json = written(LogFormat::Json, say);
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&value["level"], &value["what"]), (&"warn".into(), &"two\nlines".into()));
        assert_eq!(value["fields"], serde_json::json!({ "station": "polar", "frames": 7 }));
        let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["fields", "level", "part", "time", "what"]);
        let journal = written(LogFormat::Journal, say);
        assert!(journal.starts_with("<4>skyhaul::"), "{journal}");
        assert!(journal.ends_with(": two\\x0alines frames=7 station=polar\n"), "{journal}");
        let text = written(LogFormat::Text, say);
        assert!(text.contains(" WARN ") && text.contains("station=\"polar\""), "{text}");
    }

    #[test]
    fn a_place_that_says_the_same_again_and_again_is_cut_short_and_another_one_is_not() {
        let text = written(LogFormat::Journal, || {
            for nth in 0..3 * LINES_MAX {
                tracing::info!("again {nth}");
            }
            tracing::info!("other");
        });
        assert_eq!(text.matches("again").count() as u64, LINES_MAX);
        assert!(text.contains("other"));
    }

    #[test]
    fn what_was_left_out_is_said_when_the_span_is_over() {
        let limit = LineLimit::new(Clock::start());
        let callsite = Identifier(&CALL);
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let count = |seconds| limit.count(at(seconds), callsite.clone(), || "x:1".to_owned());
        let told = (0..LINES_MAX + 20).filter(|_| count(1)).count() as u64;
        assert_eq!(told, LINES_MAX);
        assert!(count(11), "the next span has begun");
        let said = limit.over(at(11));
        assert_eq!(said, ["20 more lines like those of x:1 are left out"]);
        assert!(limit.over(at(30)).is_empty());
    }

    struct NoCall;

    impl tracing::Callsite for NoCall {
        fn set_interest(&self, _: tracing::subscriber::Interest) {}
        fn metadata(&self) -> &tracing::Metadata<'_> {
            unreachable!("it says nothing")
        }
    }

    static CALL: NoCall = NoCall;
}
