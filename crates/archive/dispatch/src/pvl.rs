//! Parameter value language (CCSDS 641.0-B), as far as delivery records and notices use it: `KEY =
//! value;` statements, and objects of them.

/// One statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// `KEY = value;`
    Value(String, String),
    /// `OBJECT = NAME;` … `END_OBJECT = NAME;`
    Object(String, Vec<Statement>),
}

/// Text that is no PVL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct PvlError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub reason: &'static str,
}

/// Reads statements. Each ends with `;` or with its line; text in double quotes, or a value in
/// apostrophes, may hold both. A form feed counts as a blank; `END` ends the text.
///
/// # Errors
/// [`PvlError`] names the line.
pub fn parse(text: &str) -> Result<Vec<Statement>, PvlError> {
    let mut open: Vec<(String, Vec<Statement>)> = Vec::new();
    let mut top = Vec::new();
    for (line, statement) in split(text)? {
        let refuse = |reason| PvlError { line, reason };
        if statement == "END" {
            break;
        }
        let (key, value) =
            statement.split_once('=').ok_or_else(|| refuse("a statement has no `=`"))?;
        let (key, value) = (key.trim(), unquoted(value.trim()));
        if key.is_empty()
            || !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_/".contains(&byte))
        {
            return Err(refuse("a name has characters other than letters, digits, `_` and `/`"));
        }
        match key {
            "OBJECT" | "GROUP" => {
                if open.len() >= DEEPEST {
                    return Err(refuse("objects stand more than eight deep"));
                }
                open.push((value.to_owned(), Vec::new()));
            }
            "END_OBJECT" | "END_GROUP" => {
                let (name, body) =
                    open.pop().ok_or_else(|| refuse("an object ends that was not begun"))?;
                if name != value {
                    return Err(refuse("another object is open"));
                }
                let into = open.last_mut().map_or(&mut top, |(_, body)| body);
                into.push(Statement::Object(name, body));
            }
            _ => {
                let into = open.last_mut().map_or(&mut top, |(_, body)| body);
                into.push(Statement::Value(key.to_owned(), value.to_owned()));
            }
        }
    }
    match open.pop() {
        Some(_) => {
            Err(PvlError { line: text.lines().count().max(1), reason: "an object is not ended" })
        }
        None => Ok(top),
    }
}

/// Writes statements, a line each, which `line_end` ends.
pub fn write(statements: &[Statement], line_end: &str) -> String {
    let mut out = String::new();
    put(statements, 0, line_end, &mut out);
    out
}

/// The value of a key, of those that stand at the top.
pub fn value<'a>(statements: &'a [Statement], key: &str) -> Option<&'a str> {
    values(statements, key).next()
}

/// All values of a key, in their order.
pub fn values<'a>(statements: &'a [Statement], key: &str) -> impl Iterator<Item = &'a str> {
    statements.iter().filter_map(move |statement| match statement {
        Statement::Value(name, value) if name == key => Some(value.as_str()),
        _ => None,
    })
}

fn put(statements: &[Statement], depth: usize, line_end: &str, out: &mut String) {
    let indent = "\t".repeat(depth);
    for statement in statements {
        match statement {
            Statement::Value(key, value) => {
                out.push_str(&format!("{indent}{key}={};{line_end}", quoted(value)));
            }
            Statement::Object(name, body) => {
                out.push_str(&format!("{indent}OBJECT={name};{line_end}"));
                put(body, depth + 1, line_end, out);
                out.push_str(&format!("{indent}END_OBJECT={name};{line_end}"));
            }
        }
    }
}

/// Statements with the lines they begin in.
fn split(text: &str) -> Result<Vec<(usize, &str)>, PvlError> {
    let mut found = Vec::new();
    // Where the statement begins; none before its first character.
    let (mut line, mut begun) = (1, None);
    // Which quotation mark is open, and the last character that was no blank: an apostrophe opens a
    // value, and is itself within one.
    let (mut open, mut before) = (None, b' ');
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b';' | b'\n' if open.is_none() => {
                found.extend(
                    begun
                        .take()
                        .map(|(line, start): (usize, usize)| (line, text[start..at].trim())),
                );
            }
            _ => {
                open = match open {
                    Some(mark) if mark == byte => None,
                    None if byte == b'"' || byte == b'\'' && before == b'=' => Some(byte),
                    still => still,
                };
                if begun.is_none() && !BLANK.contains(&byte) {
                    begun = Some((line, at));
                }
            }
        }
        line += usize::from(byte == b'\n');
        if !BLANK.contains(&byte) {
            before = byte;
        }
        if found.len() > MOST {
            return Err(PvlError { line, reason: "there are more than 65536 statements" });
        }
    }
    if open.is_some() {
        let line = begun.map_or(line, |(line, _)| line);
        return Err(PvlError { line, reason: "a quoted text does not end" });
    }
    found.extend(begun.map(|(line, start)| (line, text[start..].trim())));
    Ok(found)
}

fn unquoted(value: &str) -> &str {
    let within = |mark| value.strip_prefix(mark).and_then(|rest: &str| rest.strip_suffix(mark));
    within('"').or_else(|| within('\'')).unwrap_or(value)
}

/// In quotes where it would be read as something else without. A quote cannot be written: it
/// becomes an apostrophe.
fn quoted(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-:./".contains(&byte);
    if !value.is_empty() && value.bytes().all(plain) {
        return value.to_owned();
    }
    format!("\"{}\"", value.replace('"', "'"))
}

/// Blank, tabulators, carriage return, form feed.
const BLANK: &[u8] = b" \t\r\x0B\x0C";
const DEEPEST: usize = 8;
const MOST: usize = 65_536;
