//! Documents of XML, written element by element.

/// A document.
#[derive(Debug, Default)]
pub struct Xml(String);

/// The name space of all answers of S3.
const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

impl Xml {
    /// Begins an element.
    pub fn open(&mut self, name: &str) {
        self.0.push_str(&format!("<{name}>"));
    }

    /// Begins the element that has all others.
    pub fn open_root(&mut self, name: &str) {
        self.0.push_str(&format!("<{name} xmlns=\"{NAMESPACE}\">"));
    }

    /// Ends an element.
    pub fn close(&mut self, name: &str) {
        self.0.push_str(&format!("</{name}>"));
    }

    /// An element with a text.
    pub fn text(&mut self, name: &str, text: &str) {
        self.open(name);
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\r' => self.0.push_str("&#13;"),
                '\t' | '\n' => self.0.push(c),
                // XML 1.0 2.2 has no way to write these.
                c if c < ' ' || "\u{fffe}\u{ffff}".contains(c) => self.0.push('\u{fffd}'),
                c => self.0.push(c),
            }
        }
        self.close(name);
    }

    /// The document.
    pub fn finish(self) -> Vec<u8> {
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}", self.0).into_bytes()
    }
}
