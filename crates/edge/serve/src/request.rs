//! A request, as the rest of the crate sees it: decoded and bounded.

use crate::answer::ServeAnswer;
use std::collections::BTreeMap;

/// A request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServeRequest {
    /// What is asked for.
    pub method: ServeMethod,
    /// The path as it came, but decoded: with empty segments, and with the slash at its end.
    pub written: String,
    /// The segments of the path, decoded. None is empty, `.` or `..`, and none has a `/`.
    pub path: Vec<String>,
    /// The query, decoded, in its order.
    pub query: Vec<(String, String)>,
    /// The headers, by their names in small letters; of several of one name, all, with `, `
    /// between them.
    pub headers: BTreeMap<String, String>,
    /// The body; empty but for a POST.
    pub body: Vec<u8>,
}

/// What a request wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ServeMethod {
    /// The thing.
    #[default]
    Get,
    /// What a GET would say about it.
    Head,
    /// An answer to the body.
    Post,
    /// Something that is not done here.
    Other,
}

/// The longest target, in bytes: a filter of a few thousand characters has room.
const TARGET_MAX: usize = 16 << 10;
/// Segments of a path.
const SEGMENTS_MAX: usize = 16;
/// Parameters of a query.
const PARAMETERS_MAX: usize = 64;

impl ServeRequest {
    /// A request for a target, as the first line of HTTP has it.
    ///
    /// # Errors
    /// The answer to one that cannot be read.
    pub fn new(method: ServeMethod, target: &str) -> Result<Self, ServeAnswer> {
        let bad = |what: &str| ServeAnswer::problem(400, what);
        if target.len() > TARGET_MAX {
            return Err(ServeAnswer::problem(414, "the address is longer than 16 KiB"));
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let written =
            decoded(path, Plus::Itself).ok_or_else(|| bad("the path has a wrong percent code"))?;
        let mut segments = Vec::new();
        for segment in path.split('/').filter(|segment| !segment.is_empty()) {
            let decoded = decoded(segment, Plus::Itself)
                .ok_or_else(|| bad("the path has a wrong percent code"))?;
            let is_plain =
                !decoded.contains(['/', '\\', '\0']) && decoded != "." && decoded != "..";
            if !is_plain || segments.len() == SEGMENTS_MAX {
                return Err(bad("the path has a segment that is not allowed"));
            }
            segments.push(decoded);
        }
        let mut parameters = Vec::new();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let pair = decoded(name, Plus::Space).zip(decoded(value, Plus::Space));
            if parameters.len() == PARAMETERS_MAX {
                return Err(bad("the query has more than 64 parameters"));
            }
            parameters.push(pair.ok_or_else(|| bad("the query has a wrong percent code"))?);
        }
        Ok(Self { method, written, path: segments, query: parameters, ..Self::default() })
    }

    /// A header, by its name in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The first parameter of this name.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The path as text segments.
    pub fn segments(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).collect()
    }
}

/// What a plus sign means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Plus {
    Itself,
    Space,
}

fn decoded(text: &str, plus: Plus) -> Option<String> {
    let (bytes, mut out, mut at) = (text.as_bytes(), Vec::with_capacity(text.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'%' => {
                let digits = text.get(at..at + 2)?;
                if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                    return None;
                }
                out.push(u8::from_str_radix(digits, 16).ok()?);
                at += 2;
            }
            b'+' if plus == Plus::Space => out.push(b' '),
            other => out.push(other),
        }
    }
    String::from_utf8(out).ok()
}

/// A text as a segment of a path or a value of a query may have it (RFC 3986 2.3).
pub fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(target: &str) -> Result<ServeRequest, ServeAnswer> {
        ServeRequest::new(ServeMethod::Get, target)
    }

    #[test]
    fn a_target_is_decoded_once() {
        let request = get("/products/a%20b%2525/?filter=x%3D'+1'&limit=2&flag").unwrap();
        assert_eq!(request.segments(), ["products", "a b%25"]);
        assert_eq!(request.parameter("filter"), Some("x=' 1'"));
        assert_eq!(request.parameter("flag"), Some(""));
        assert_eq!(get("/Products(1)/$value").unwrap().segments(), ["Products(1)", "$value"]);
        assert_eq!(get("/a+b").unwrap().segments(), ["a+b"]);
    }

    #[test]
    fn what_would_leave_the_folder_is_refused() {
        for target in [
            "/products/../x",
            "/products/%2e%2e/x",
            "/products/a%2fb",
            "/products/a%00",
            "/products/a%5cb",
            "/%",
            "/%zz",
            "/%+1",
            "/%ff",
            "/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a",
        ] {
            assert_eq!(get(target).unwrap_err().status, 400, "{target}");
        }
        assert_eq!(get(&format!("/{}", "a".repeat(20_000))).unwrap_err().status, 414);
        assert_eq!(get(&format!("/?{}", "a=1&".repeat(65))).unwrap_err().status, 400);
    }

    #[test]
    fn what_is_encoded_is_read_back() {
        let text = "a b/%'ä";
        assert_eq!(decoded(&encoded(text), Plus::Space).as_deref(), Some(text));
    }
}
