//! A record as the consumer of Cumulus reads it: a statement a line, `"` removed, a value torn at
//! each `=`, numbers and times by their looks, everything behind `END` unread, and objects that
//! need not end.

/// A record that was read.
#[derive(Debug)]
pub struct ReadRecord {
    /// The whole first; then the objects in the order in which they begin.
    objects: Vec<ReadObject>,
}

/// An object, or the whole.
#[derive(Debug)]
pub struct ReadObject {
    /// What it is an object of; empty for the whole.
    name: String,
    /// Where it begins, from 1.
    pub line: usize,
    /// Whether it ends.
    pub is_ended: bool,
    kind: ObjectKind,
    values: Vec<(String, usize, ReadValue)>,
    children: Vec<usize>,
}

/// How an object is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ObjectKind {
    /// `OBJECT`.
    Object,
    /// `GROUP`.
    Group,
}

/// What a value looks like.
#[derive(Debug, Clone, PartialEq)]
pub enum ReadValue {
    /// A number.
    Number(f64),
    /// A time; `None` where it looks like one and is none.
    Time(Option<String>),
    /// Text.
    Text(String),
}

/// A line that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub struct ReadingError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
    /// And what to do.
    pub help: &'static str,
}

impl ReadRecord {
    /// Reads a record.
    pub fn of(text: &str) -> Result<Self, ReadingError> {
        let mut objects = vec![ReadObject::begun(String::new(), 0, ObjectKind::Object)];
        let mut open = vec![0];
        // Where an object ended that had not begun.
        let mut overdone = None;
        for (line, statement) in statements(text) {
            if statement == "END" {
                break;
            }
            let (key, value) = statement.split_once(" = ").unwrap_or((statement.as_str(), ""));
            let (key, value) = (blank_trimmed(key), blank_trimmed(value));
            if matches!(key, "END_OBJECT" | "END_GROUP") {
                match open.pop() {
                    Some(at) if at > 0 => objects[at].is_ended = true,
                    _ => overdone = overdone.or(Some(line)),
                }
                continue;
            }
            let begun = match key {
                "OBJECT" | "BEGIN_OBJECT" => Some(ObjectKind::Object),
                "GROUP" | "BEGIN_GROUP" => Some(ObjectKind::Group),
                _ => None,
            };
            let Some(&within) = open.last() else {
                return Err(ReadingError {
                    line: overdone.unwrap_or(line),
                    what: "an object ends that was not begun".to_owned(),
                    help: "remove this END_OBJECT, or begin its object",
                });
            };
            let Some(kind) = begun else {
                let value = ReadValue::of(value).ok_or_else(|| unreadable(line, key, value))?;
                objects[within].values.push((key.to_owned(), line, value));
                continue;
            };
            let at = objects.len();
            objects.push(ReadObject::begun(value.replace('\'', ""), line, kind));
            objects[within].children.push(at);
            open.push(at);
        }
        objects[0].is_ended = true;
        Ok(Self { objects })
    }

    /// The whole.
    pub fn root(&self) -> &ReadObject {
        &self.objects[0]
    }

    /// The objects of this name within one.
    pub fn objects<'a>(
        &'a self,
        within: &'a ReadObject,
        name: &'a str,
    ) -> impl Iterator<Item = &'a ReadObject> {
        let children = within.children.iter().map(|at| &self.objects[*at]);
        children.filter(move |object| object.kind == ObjectKind::Object && object.name == name)
    }

    /// The objects that do not end.
    pub fn unended(&self) -> impl Iterator<Item = &ReadObject> {
        self.objects.iter().filter(|object| !object.is_ended)
    }
}

impl ReadObject {
    fn begun(name: String, line: usize, kind: ObjectKind) -> Self {
        let (values, children) = (Vec::new(), Vec::new());
        Self { name, line, is_ended: false, kind, values, children }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The first value of a key, with its line.
    pub fn value(&self, key: &str) -> Option<(usize, &ReadValue)> {
        let found = self.values.iter().find(|(name, ..)| name == key);
        found.map(|(_, line, value)| (*line, value))
    }
}

impl ReadValue {
    /// Of the text of a value; none where the consumer takes it for nothing.
    fn of(text: &str) -> Option<Self> {
        if is_number(text) {
            return text.parse().ok().map(Self::Number);
        }
        if let Some(time) = as_time(text) {
            return Some(Self::Time(time.then(|| text.to_owned())));
        }
        let quoted = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
        if let Some(inner) = quoted.filter(|inner| !inner.contains('\'')) {
            return Some(Self::Text(inner.to_owned()));
        }
        let is_plain = !text.is_empty() && !text.contains(|one| RESERVED.contains(one));
        is_plain.then(|| Self::Text(text.to_owned()))
    }

    /// Whether the consumer takes it for something that is there: it takes neither an empty text
    /// nor a zero for it.
    pub fn is_something(&self) -> bool {
        match self {
            Self::Number(number) => *number != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::Time(_) => true,
        }
    }

    /// Its text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Its number, if it is one.
    pub const fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// As it is shown in a message.
    pub fn shown(&self) -> String {
        match self {
            Self::Number(number) => format!("the number {number}"),
            Self::Time(_) => "a time".to_owned(),
            Self::Text(text) => format!("`{}`", super::shown(text)),
        }
    }
}

/// The statements with their lines, from 1.
fn statements(text: &str) -> impl Iterator<Item = (usize, String)> {
    let lines = text.split('\n').enumerate();
    let statement = |(at, line): (usize, &str)| {
        let line = line.replace('"', "").replace('=', " = ");
        let line = blank_trimmed(&line);
        (at + 1, line.strip_suffix(';').unwrap_or(line).to_owned())
    };
    let is_comment = |line: &str| line.starts_with("/*") && line.ends_with("*/");
    lines.map(statement).filter(move |(_, line)| !line.is_empty() && !is_comment(line))
}

fn unreadable(line: usize, key: &str, value: &str) -> ReadingError {
    let (key, value) = (super::shown(key), super::shown(value));
    if value.is_empty() {
        let what = format!("`{key}` has no value");
        return ReadingError { line, what, help: "write KEY = VALUE; a statement a line" };
    }
    let what = format!("{key} has the value `{value}`, which is neither number, time nor text");
    ReadingError { line, what, help: "put it in apostrophes; it may have no `=`, `\"` or `'`" }
}

/// Without the blanks of ECMAScript at its ends.
pub fn blank_trimmed(text: &str) -> &str {
    text.trim_matches(|one: char| one != '\u{85}' && one.is_whitespace() || one == '\u{FEFF}')
}

/// Digits without a leading zero, a sign before and a fraction behind them.
fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !whole.is_empty()
        && are_digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && are_digits(fraction)
}

/// Whether a text that looks like a time is one; none where it does not look like one.
fn as_time(text: &str) -> Option<bool> {
    let (year, month, day, rest) = by_dashes(text).or_else(|| by_slashes(text))?;
    let is_slashed = year.is_none();
    let (between, rest) = match rest.strip_prefix(['-', 'T']) {
        Some(behind) => (&rest[..1], behind),
        None => ("", rest),
    };
    let clock = Clock::of(rest)?;
    let is_day = (1..=12).contains(&month) && (1..=31).contains(&day);
    let is_clock = match (is_slashed, between) {
        (_, "") => clock == Clock::default(),
        (true, "-") => {
            clock == Clock::default() || clock.is_right() && !clock.is_utc && !clock.has_fraction
        }
        (false, "T") => clock.is_right(),
        _ => false,
    };
    Some(is_day && is_clock)
}

type Day<'a> = (Option<u32>, u32, u32, &'a str);

fn by_dashes(text: &str) -> Option<Day<'_>> {
    let (year, rest) = digits(text, 4)?;
    let (month, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let (day, rest) = digits(rest.strip_prefix('-')?, 2)?;
    Some((Some(year), month, day, rest))
}

fn by_slashes(text: &str) -> Option<Day<'_>> {
    let (month, rest) = digits(text, 2)?;
    let (day, rest) = digits(rest.strip_prefix('/')?, 2)?;
    let (_, rest) = digits(rest.strip_prefix('/')?, 4)?;
    Some((None, month, day, rest))
}

fn digits(text: &str, count: usize) -> Option<(u32, &str)> {
    let (number, rest) = text.split_at_checked(count)?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| number.parse().ok()).flatten().map(|number| (number, rest))
}

/// A time of day as it is written.
#[derive(Debug, Default, PartialEq, Eq)]
struct Clock {
    /// Hours, minutes, seconds, as many as there are.
    parts: Vec<u32>,
    has_fraction: bool,
    is_fraction_empty: bool,
    is_utc: bool,
}

impl Clock {
    /// Nothing, or up to three numbers of two digits, a fraction, and `Z`.
    fn of(text: &str) -> Option<Self> {
        let mut clock = Self::default();
        if text.is_empty() {
            return Some(clock);
        }
        let (hours, mut rest) = digits(text, 2)?;
        clock.parts.push(hours);
        while let Some(behind) = rest.strip_prefix(':').filter(|_| clock.parts.len() < 3) {
            let (part, behind) = digits(behind, 2)?;
            clock.parts.push(part);
            rest = behind;
        }
        if let Some(behind) = rest.strip_prefix('.') {
            let end = behind.find(|one: char| !one.is_ascii_digit()).unwrap_or(behind.len());
            (clock.has_fraction, clock.is_fraction_empty) = (true, end == 0);
            rest = &behind[end..];
        }
        if let Some(behind) = rest.strip_prefix('Z') {
            clock.is_utc = true;
            rest = behind;
        }
        rest.is_empty().then_some(clock)
    }

    fn is_right(&self) -> bool {
        let is_within = match self.parts[..] {
            [24, 0] | [24, 0, 0] => !self.has_fraction,
            [hours, minutes] => hours < 24 && minutes < 60 && !self.has_fraction,
            [hours, minutes, seconds] => hours < 24 && minutes < 60 && seconds < 60,
            _ => false,
        };
        is_within && !self.is_fraction_empty
    }
}

/// Text with any of these must stand in apostrophes (CCSDS 641.0-B, reserved characters).
const RESERVED: &str = "!\"#%&'(),;<=>@[]`{|}~";
