//! `$filter` of OData v4 (OData ABNF, `boolCommonExpr`), as far as pollers use it.
//!
//! ```text
//! filter     = and *("or" and)              and = term *("and" term)
//! term       = "not" term | "(" filter ")" | function | path op literal | literal op path
//!            | path "in" "(" literal *("," literal) ")" | attribute
//! attribute  = "Attributes/" [TYPE "/"] "any(" x ":" x "/Name eq" text
//!              "and" x "/" [TYPE "/"] "Value" op literal ")"
//! function   = ("startswith" | "endswith" | "contains") "(" path "," text ")" ["eq" bool]
//! op         = "eq" | "ne" | "gt" | "ge" | "lt" | "le"
//! literal    = text | number | time | identifier | "true" | "false" | "null" | NAME text
//! ```

use skyhaul_catalogue::CompareOp;
use skyhaul_units::Utc;

/// A condition.
#[derive(Debug, Clone, PartialEq)]
pub enum ODataFilter {
    /// All of them hold.
    And(Vec<ODataFilter>),
    /// One of them holds.
    Or(Vec<ODataFilter>),
    /// It does not hold.
    Not(Box<ODataFilter>),
    /// A property, which may be within another (`ContentDate/Start`), compares so with a value.
    Compare(String, CompareOp, ODataValue),
    /// A property is one of these.
    In(String, Vec<ODataValue>),
    /// An attribute compares so with a value.
    Attribute(String, CompareOp, ODataValue),
    /// A function of a property and a text.
    Function(TextFunction, String, String),
}

/// A function of texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFunction {
    /// `startswith`
    Begins,
    /// `endswith`
    Ends,
    /// `contains`
    Contains,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum ODataValue {
    /// Text; also of an enumeration, whose name is left out.
    Text(String),
    /// A number.
    Number(f64),
    /// An instant.
    Time(Utc),
    /// True or false.
    Bool(bool),
    /// Nothing.
    Null,
    /// An identifier (RFC 9562).
    Uuid(String),
}

/// The longest text, in bytes.
const TEXT_MAX: usize = 16 << 10;
/// The deepest nesting.
const DEPTH_MAX: usize = 32;
/// The most values in one list.
const VALUES_MAX: usize = 1_000;

/// A word, a text, a bracket or a comma, with the byte that it begins at.
#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    Text(String),
    Sign(char),
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
}

/// Reads a filter.
///
/// # Errors
/// What is wrong, and where.
pub fn parse(text: &str) -> Result<ODataFilter, String> {
    if text.len() > TEXT_MAX {
        return Err(format!("the filter is longer than {TEXT_MAX} bytes"));
    }
    let mut parser = Parser { tokens: tokens(text)?, next: 0 };
    let filter = parser.filter(0)?;
    match parser.peek() {
        None => Ok(filter),
        Some(_) => Err(parser.refuse("expected and, or, or the end of the filter")),
    }
}

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, String> {
    let (bytes, mut found, mut at) = (text.as_bytes(), Vec::new(), 0);
    while let Some(&byte) = bytes.get(at) {
        let begin = at;
        let token = match byte {
            b' ' | b'\t' => {
                at += 1;
                continue;
            }
            b'(' | b')' | b',' => {
                at += 1;
                Token::Sign(char::from(byte))
            }
            b'\'' => {
                let (quoted, end) = quoted(text, at)
                    .ok_or_else(|| format!("at {}: a text does not end", at + 1))?;
                at = end;
                Token::Text(quoted)
            }
            _ => {
                let ends = |byte: &u8| b" \t(),'".contains(byte);
                at += bytes[at..].iter().position(ends).unwrap_or(bytes.len() - at);
                Token::Word(text[begin..at].to_owned())
            }
        };
        found.push((begin + 1, token));
    }
    Ok(found)
}

/// The text in apostrophes from `at`, and where it ends. An apostrophe within is doubled.
fn quoted(text: &str, at: usize) -> Option<(String, usize)> {
    let (mut value, mut rest) = (String::new(), at + 1);
    loop {
        let end = rest + text[rest..].find('\'')?;
        value.push_str(&text[rest..end]);
        if text[end + 1..].starts_with('\'') {
            value.push('\'');
            rest = end + 2;
        } else {
            return Some((value, end + 1));
        }
    }
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    fn refuse(&self, what: &str) -> String {
        match self.tokens.get(self.next) {
            Some((at, _)) => format!("at {at}: {what}"),
            None => format!("at the end: {what}"),
        }
    }

    fn word(&mut self, word: &str) -> bool {
        let is_next = matches!(self.peek(), Some(Token::Word(next)) if next == word);
        self.next += usize::from(is_next);
        is_next
    }

    fn sign(&mut self, sign: char) -> bool {
        let is_next = self.peek() == Some(&Token::Sign(sign));
        self.next += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, sign: char) -> Result<(), String> {
        match self.sign(sign) {
            true => Ok(()),
            false => Err(self.refuse(&format!("expected `{sign}`"))),
        }
    }

    fn filter(&mut self, depth: usize) -> Result<ODataFilter, String> {
        if depth > DEPTH_MAX {
            return Err(self.refuse(&format!("nested more than {DEPTH_MAX} deep")));
        }
        let mut any = vec![self.and(depth)?];
        while self.word("or") {
            any.push(self.and(depth)?);
        }
        Ok(if any.len() == 1 { any.remove(0) } else { ODataFilter::Or(any) })
    }

    fn and(&mut self, depth: usize) -> Result<ODataFilter, String> {
        let mut all = vec![self.term(depth)?];
        while self.word("and") {
            all.push(self.term(depth)?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { ODataFilter::And(all) })
    }

    fn term(&mut self, depth: usize) -> Result<ODataFilter, String> {
        if self.word("not") {
            if depth >= DEPTH_MAX {
                return Err(self.refuse(&format!("nested more than {DEPTH_MAX} deep")));
            }
            return Ok(ODataFilter::Not(Box::new(self.term(depth + 1)?)));
        }
        if self.sign('(') {
            let inner = self.filter(depth + 1)?;
            self.expect(')')?;
            return Ok(inner);
        }
        let functions = [
            ("startswith", TextFunction::Begins),
            ("endswith", TextFunction::Ends),
            ("contains", TextFunction::Contains),
        ];
        for (word, function) in functions {
            if self.word(word) {
                return self.function(function);
            }
        }
        if matches!(self.peek(), Some(Token::Word(word)) if is_any_attribute(word)) {
            self.next += 1;
            return self.attribute();
        }
        self.comparison()
    }

    fn attribute(&mut self) -> Result<ODataFilter, String> {
        self.expect('(')?;
        let variable = match self.peek() {
            Some(Token::Word(word)) => word
                .split_once(':')
                .filter(|(own, path)| path.strip_suffix("/Name") == Some(own))
                .map(|(own, _)| own.to_owned()),
            _ => None,
        };
        let wanted = "expected an attribute as in any(att:att/Name eq 'productType' and \
                      att/OData.CSC.StringAttribute/Value eq 'modis')";
        let variable = variable.ok_or_else(|| self.refuse(wanted))?;
        self.next += 1;
        let is_equal = self.word("eq");
        let name = match self.peek() {
            Some(Token::Text(name)) if is_equal => name.clone(),
            _ => return Err(self.refuse(wanted)),
        };
        self.next += 1;
        let has_value = self.word("and")
            && matches!(self.peek(), Some(Token::Word(word)) if is_value_of(word, &variable));
        if !has_value {
            return Err(self.refuse(wanted));
        }
        self.next += 1;
        let found = ODataFilter::Attribute(name, self.op()?, self.literal()?);
        self.expect(')')?;
        Ok(found)
    }

    fn function(&mut self, function: TextFunction) -> Result<ODataFilter, String> {
        self.expect('(')?;
        let path = self.path()?;
        self.expect(',')?;
        let Some(Token::Text(text)) = self.peek() else {
            return Err(self.refuse("expected a text in apostrophes"));
        };
        let found = ODataFilter::Function(function, path, text.clone());
        self.next += 1;
        self.expect(')')?;
        if !self.word("eq") {
            return Ok(found);
        }
        match (self.word("true"), self.word("false")) {
            (true, _) => Ok(found),
            (_, true) => Ok(ODataFilter::Not(Box::new(found))),
            _ => Err(self.refuse("expected true or false")),
        }
    }

    fn comparison(&mut self) -> Result<ODataFilter, String> {
        let begin = self.next;
        if let Ok(value) = self.literal() {
            let op = self.op()?;
            let mirrored = match op {
                CompareOp::Less => CompareOp::Greater,
                CompareOp::LessEqual => CompareOp::GreaterEqual,
                CompareOp::Greater => CompareOp::Less,
                CompareOp::GreaterEqual => CompareOp::LessEqual,
                same => same,
            };
            return Ok(ODataFilter::Compare(self.path()?, mirrored, value));
        }
        self.next = begin;
        let path = self.path()?;
        if self.word("in") {
            self.expect('(')?;
            let mut values = vec![self.literal()?];
            while self.sign(',') {
                if values.len() == VALUES_MAX {
                    return Err(self.refuse(&format!("more than {VALUES_MAX} values")));
                }
                values.push(self.literal()?);
            }
            self.expect(')')?;
            return Ok(ODataFilter::In(path, values));
        }
        let op = self.op()?;
        Ok(ODataFilter::Compare(path, op, self.literal()?))
    }

    fn op(&mut self) -> Result<CompareOp, String> {
        let all = [
            ("eq", CompareOp::Equal),
            ("ne", CompareOp::NotEqual),
            ("gt", CompareOp::Greater),
            ("ge", CompareOp::GreaterEqual),
            ("lt", CompareOp::Less),
            ("le", CompareOp::LessEqual),
        ];
        let found = all.into_iter().find(|(word, _)| self.word(word));
        found.map(|(_, op)| op).ok_or_else(|| self.refuse("expected eq, ne, gt, ge, lt or le"))
    }

    fn path(&mut self) -> Result<String, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_/.".contains(c);
        match self.peek() {
            Some(Token::Word(word)) if word.chars().all(is_plain) && word.len() <= 128 => {
                let word = word.clone();
                self.next += 1;
                Ok(word)
            }
            _ => Err(self.refuse("expected the name of a property")),
        }
    }

    fn literal(&mut self) -> Result<ODataValue, String> {
        let refuse = |parser: &Self| {
            Err(parser
                .refuse("expected a text in apostrophes, a number, a time, true, false or null"))
        };
        let value = match (self.peek(), self.tokens.get(self.next + 1)) {
            (Some(Token::Text(text)), _) => ODataValue::Text(text.clone()),
            // An enumeration: OData.CSC.ProductionType'systematic_production'.
            (Some(Token::Word(name)), Some((_, Token::Text(text)))) if name.contains('.') => {
                let text = text.clone();
                self.next += 1;
                ODataValue::Text(text)
            }
            (Some(Token::Word(word)), _) => match plain(word) {
                Some(value) => value,
                None => return refuse(self),
            },
            _ => return refuse(self),
        };
        self.next += 1;
        Ok(value)
    }
}

/// Whether a word begins a condition of any attribute: `Attributes/OData.CSC.StringAttribute/any`.
fn is_any_attribute(word: &str) -> bool {
    let within = word.strip_prefix("Attributes/").and_then(|rest| rest.strip_suffix("any"));
    within.is_some_and(|within| within.is_empty() || is_attribute_type(within))
}

/// Whether a word is the value of a variable: `att/OData.CSC.StringAttribute/Value`.
fn is_value_of(word: &str, variable: &str) -> bool {
    let within = word.strip_prefix(variable).and_then(|rest| rest.strip_prefix('/'));
    let within = within.and_then(|rest| rest.strip_suffix("Value"));
    within.is_some_and(|within| within.is_empty() || is_attribute_type(within))
}

/// Types are as the schema of the service names them; which attribute has which is looked up later.
fn is_attribute_type(text: &str) -> bool {
    text.starts_with("OData.CSC.") && text.ends_with("Attribute/") && text.len() <= 64
}

/// A value without apostrophes.
fn plain(word: &str) -> Option<ODataValue> {
    match word {
        "true" => return Some(ODataValue::Bool(true)),
        "false" => return Some(ODataValue::Bool(false)),
        "null" => return Some(ODataValue::Null),
        _ => {}
    }
    if let Some(time) = Utc::from_rfc3339(word) {
        return Some(ODataValue::Time(time));
    }
    if is_uuid(word) {
        return Some(ODataValue::Uuid(word.to_ascii_lowercase()));
    }
    let is_number = word.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    let number = word.parse::<f64>().ok().filter(|number| is_number && number.is_finite());
    number.map(ODataValue::Number)
}

/// Whether a word is an identifier.
pub fn is_uuid(word: &str) -> bool {
    word.len() == 36
        && word.bytes().enumerate().all(|(place, byte)| match place {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(path: &str, op: CompareOp, value: ODataValue) -> ODataFilter {
        ODataFilter::Compare(path.to_owned(), op, value)
    }

    #[test]
    fn filters_of_real_pollers_are_read() {
        let time = Utc::from_rfc3339("2026-11-23T06:00:00Z").unwrap();
        let text = |text: &str| ODataValue::Text(text.to_owned());
        let begins = |name: &str| {
            ODataFilter::Function(TextFunction::Begins, "Name".to_owned(), name.to_owned())
        };
        for (written, read) in [
            ("Name eq 'it''s'", compare("Name", CompareOp::Equal, text("it's"))),
            ("startswith(Name,'S1A_')", begins("S1A_")),
            ("startswith( Name , 'a' ) eq true", begins("a")),
            (
                "not contains(Name, 'x') or Retransfer eq false",
                ODataFilter::Or(vec![
                    ODataFilter::Not(Box::new(ODataFilter::Function(
                        TextFunction::Contains,
                        "Name".to_owned(),
                        "x".to_owned(),
                    ))),
                    compare("Retransfer", CompareOp::Equal, ODataValue::Bool(false)),
                ]),
            ),
            (
                "PublicationDate gt 2026-11-23T06:00:00.000Z and ContentDate/Start le \
                 2026-11-23T06:00:00Z",
                ODataFilter::And(vec![
                    compare("PublicationDate", CompareOp::Greater, ODataValue::Time(time)),
                    compare("ContentDate/Start", CompareOp::LessEqual, ODataValue::Time(time)),
                ]),
            ),
            (
                "ProductionType eq OData.CSC.ProductionType'systematic_production'",
                compare("ProductionType", CompareOp::Equal, text("systematic_production")),
            ),
            ("10 lt Size", compare("Size", CompareOp::Greater, ODataValue::Number(10.0))),
            (
                "Satellite in ('S1A','S1C')",
                ODataFilter::In("Satellite".to_owned(), vec![text("S1A"), text("S1C")]),
            ),
            (
                "Attributes/OData.CSC.StringAttribute/any(att:att/Name eq 'productType' and \
                 att/OData.CSC.StringAttribute/Value eq 'modis') and Online eq true",
                ODataFilter::And(vec![
                    ODataFilter::Attribute(
                        "productType".to_owned(),
                        CompareOp::Equal,
                        text("modis"),
                    ),
                    compare("Online", CompareOp::Equal, ODataValue::Bool(true)),
                ]),
            ),
            (
                "Attributes/any(a:a/Name eq 'version' and a/Value ge 2)",
                ODataFilter::Attribute(
                    "version".to_owned(),
                    CompareOp::GreaterEqual,
                    ODataValue::Number(2.0),
                ),
            ),
            (
                "PublicationDate ge 2026-11-23T07:30:00.000+01:30",
                compare("PublicationDate", CompareOp::GreaterEqual, ODataValue::Time(time)),
            ),
            (
                "((EvictionDate ne null))",
                compare("EvictionDate", CompareOp::NotEqual, ODataValue::Null),
            ),
        ] {
            assert_eq!(parse(written), Ok(read), "{written}");
        }
    }

    #[test]
    fn what_is_no_filter_is_refused_with_its_place() {
        for (written, said) in [
            ("", "at the end: expected the name"),
            ("Name", "at the end: expected eq"),
            ("Name eq 'a", "at 9: a text does not end"),
            ("Name eq 'a' Name", "at 13: expected and, or"),
            ("Name = 'a'", "at 6: expected eq"),
            ("Name eq 'a'; DROP TABLE item", "at 12: expected and"),
            ("Name eq \"a\"", "at 9: expected a text"),
            ("Attributes/any(a:a eq 1)", "at 16: expected an attribute as in any("),
            ("Attributes/any(a:b/Name eq 'x' and a/Value eq 1)", "at 16: expected an attribute"),
            ("Attributes/any(a:a/Name eq 'x' or a/Value eq 1)", "at 32: expected an attribute"),
            ("Attributes/any(a:a/Name eq 'x' and b/Value eq 1)", "at 36: expected an attribute"),
            ("Attributes/any(a:a/Name eq 'x' and a/Value eq 1", "at the end: expected `)`"),
            ("Attributes/all(a:a/Name eq 'x')", "at 15: expected eq"),
            ("startswith(Name)", "at 16: expected `,`"),
            ("Name eq NaN", "at 9: expected a text"),
            ("Na'me' eq 1", "at 3: expected eq"),
        ] {
            let error = parse(written).unwrap_err();
            assert!(error.starts_with(said), "{written}: {error}");
        }
        let deep = format!("{}Name eq 'a'{}", "(".repeat(10_000), ")".repeat(10_000));
        assert!(parse(&deep).is_err());
        let deep = format!("{}Name eq 'a'", "not ".repeat(4_000));
        assert!(parse(&deep).unwrap_err().contains("nested"), "{}", parse(&deep).unwrap_err());
        let deep = format!("{}Name eq 'a'{}", "(".repeat(40), ")".repeat(40));
        assert!(parse(&deep).unwrap_err().contains("nested"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[A-Za-z' ()/,.0-9:éZT-]{0,60}") {
            let _ = parse(&text);
            let _ = parse(&format!("Attributes/any(a:a/Name eq {text}"));
        }
    }
}
