//! CQL2 text to filters.
//!
//! ```text
//! filter    = term *("OR" term)           term = factor *("AND" factor)
//! factor    = ["NOT"] ("(" filter ")" | predicate | "TRUE" | "FALSE")
//! predicate = property op value | value op property | property ["NOT"] "LIKE" text
//!           | property ["NOT"] "IN" "(" value *("," value) ")" | property "IS" ["NOT"] "NULL"
//!           | property ["NOT"] "BETWEEN" value "AND" value
//!           | ("T_AFTER" | "T_BEFORE") "(" property "," value ")"
//!           | "T_DURING" "(" property "," "INTERVAL" "(" text "," text ")" ")"
//! ```

use super::{CompareOp, Filter, FilterError, Like};
use crate::property::{Property, PropertyType, PropertyValue};
use core::str::FromStr;
use skyhaul_units::Utc;

/// The longest text, in bytes.
const TEXT_MAX: usize = 64 << 10;
/// The deepest nesting.
const DEPTH_MAX: usize = 64;
/// The most values in one `IN`.
const VALUES_MAX: usize = 1_000;

#[derive(Debug, Clone, PartialEq)]
enum Token {
    /// A keyword or a property's name.
    Word(String),
    /// A property's name in double quotes.
    Name(String),
    Text(String),
    Number(f64),
    Sign(&'static str),
}

/// Tokens with the character each begins at.
struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
    /// The character behind the last token.
    end: usize,
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        if text.len() > TEXT_MAX {
            let what = format!("the filter is longer than {TEXT_MAX} bytes; shorten it");
            return Err(FilterError { at: TEXT_MAX, what });
        }
        let (tokens, end) = (tokens(text)?, text.chars().count() + 1);
        let mut parser = Parser { tokens, next: 0, end };
        let filter = parser.filter(0)?;
        match parser.peek() {
            None => Ok(filter),
            Some(_) => Err(parser.refuse("expected AND, OR or the end of the filter")),
        }
    }
}

/// Signs, the longer ones first.
const SIGNS: [&str; 9] = ["<>", "<=", ">=", "<", ">", "=", "(", ")", ","];

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, FilterError> {
    let characters: Vec<char> = text.chars().collect();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < characters.len() {
        let (begin, character) = (at, characters[at]);
        if character.is_whitespace() {
            at += 1;
            continue;
        }
        let is_in_word =
            |character: char| character.is_alphanumeric() || "_.:-".contains(character);
        let token = if matches!(character, '\'' | '"') {
            let (text, end) = quoted(&characters, at)?;
            at = end;
            if character == '"' { Token::Name(text) } else { Token::Text(text) }
        } else if character.is_ascii_digit() || "+-".contains(character) {
            let is_in_number = |at: usize, character: char| {
                character.is_ascii_digit()
                    || "eE.".contains(character)
                    || "+-".contains(character)
                        && (at == begin || "eE".contains(characters[at - 1]))
            };
            while at < characters.len() && is_in_number(at, characters[at]) {
                at += 1;
            }
            let text: String = characters[begin..at].iter().collect();
            let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
            let refuse = || FilterError { at: begin + 1, what: format!("`{text}` is no number") };
            Token::Number(number.ok_or_else(refuse)?)
        } else if character.is_alphabetic() || character == '_' {
            while at < characters.len() && is_in_word(characters[at]) {
                at += 1;
            }
            Token::Word(characters[begin..at].iter().collect())
        } else {
            let rest: String = characters[at..(at + 2).min(characters.len())].iter().collect();
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let refuse = || {
                let what = format!(
                    "`{}` is not expected; put text in apostrophes",
                    character.escape_debug()
                );
                FilterError { at: at + 1, what }
            };
            let sign = sign.ok_or_else(refuse)?;
            at += sign.len();
            Token::Sign(sign)
        };
        found.push((begin + 1, token));
    }
    Ok(found)
}

/// The text between quotation marks from `at`, and where it ends. A mark within is doubled.
fn quoted(characters: &[char], at: usize) -> Result<(String, usize), FilterError> {
    let (mark, mut text, mut next) = (characters[at], String::new(), at + 1);
    while let Some(&character) = characters.get(next) {
        match (character == mark, characters.get(next + 1) == Some(&mark)) {
            (true, true) => {
                text.push(mark);
                next += 2;
            }
            (true, false) => return Ok((text, next + 1)),
            (false, _) => {
                text.push(character);
                next += 1;
            }
        }
    }
    let what = format!("the text has no closing {mark}");
    Err(FilterError { at: at + 1, what })
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    fn refuse(&self, what: &str) -> FilterError {
        let at = self.tokens.get(self.next).map_or(self.end, |(at, _)| *at);
        FilterError { at, what: what.to_owned() }
    }

    /// Takes the keyword, if it is next.
    fn word(&mut self, word: &str) -> bool {
        let is_next =
            matches!(self.peek(), Some(Token::Word(next)) if next.eq_ignore_ascii_case(word));
        self.next += usize::from(is_next);
        is_next
    }

    fn sign(&mut self, sign: &str) -> bool {
        let is_next = matches!(self.peek(), Some(Token::Sign(next)) if *next == sign);
        self.next += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, sign: &str) -> Result<(), FilterError> {
        if self.sign(sign) { Ok(()) } else { Err(self.refuse(&format!("expected `{sign}`"))) }
    }

    fn filter(&mut self, depth: usize) -> Result<Filter, FilterError> {
        if depth > DEPTH_MAX {
            return Err(self.refuse(&format!("brackets are nested more than {DEPTH_MAX} deep")));
        }
        let mut any = vec![self.term(depth)?];
        while self.word("OR") {
            any.push(self.term(depth)?);
        }
        Ok(if any.len() == 1 { any.remove(0) } else { Filter::Or(any) })
    }

    fn term(&mut self, depth: usize) -> Result<Filter, FilterError> {
        let mut all = vec![self.factor(depth)?];
        while self.word("AND") {
            all.push(self.factor(depth)?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Filter::And(all) })
    }

    fn factor(&mut self, depth: usize) -> Result<Filter, FilterError> {
        if self.word("NOT") {
            if depth >= DEPTH_MAX {
                return Err(self.refuse(&format!("NOT is nested more than {DEPTH_MAX} deep")));
            }
            return Ok(Filter::Not(Box::new(self.factor(depth + 1)?)));
        }
        if self.sign("(") {
            let inner = self.filter(depth + 1)?;
            self.expect(")")?;
            return Ok(inner);
        }
        for (word, holds) in [("TRUE", true), ("FALSE", false)] {
            if self.word(word) {
                return Ok(Filter::Always(holds));
            }
        }
        for (word, op) in [("T_AFTER", CompareOp::Greater), ("T_BEFORE", CompareOp::Less)] {
            if self.word(word) {
                self.expect("(")?;
                let property = self.property()?;
                self.expect(",")?;
                let value = self.value(property)?;
                self.expect(")")?;
                return Ok(Filter::Compare(property, op, value));
            }
        }
        if self.word("T_DURING") {
            return self.during();
        }
        if let Some(Token::Text(_) | Token::Number(_)) = self.peek() {
            return self.mirrored();
        }
        if self.is_instant() {
            return self.mirrored();
        }
        let property = self.property()?;
        self.predicate(property)
    }

    fn is_instant(&self) -> bool {
        matches!(self.peek(), Some(Token::Word(word))
            if word.eq_ignore_ascii_case("TIMESTAMP") || word.eq_ignore_ascii_case("DATE"))
    }

    /// `value op property`.
    fn mirrored(&mut self) -> Result<Filter, FilterError> {
        let value_at = self.next;
        // The value is read when its property is known.
        self.next += if self.is_instant() { 4 } else { 1 };
        let op = self.op()?;
        let property = self.property()?;
        let after = core::mem::replace(&mut self.next, value_at);
        let value = self.value(property)?;
        self.next = after;
        Ok(Filter::Compare(property, op.mirrored(), value))
    }

    fn during(&mut self) -> Result<Filter, FilterError> {
        self.expect("(")?;
        let property = self.property()?;
        self.expect(",")?;
        if !self.word("INTERVAL") {
            return Err(self.refuse("expected INTERVAL('…','…')"));
        }
        self.expect("(")?;
        let mut bounds = Vec::new();
        for (place, op) in [CompareOp::Greater, CompareOp::Less].into_iter().enumerate() {
            if place == 1 {
                self.expect(",")?;
            }
            if matches!(self.peek(), Some(Token::Text(text)) if text == "..") {
                self.next += 1;
            } else {
                bounds.push(Filter::Compare(property, op, self.value(property)?));
            }
        }
        self.expect(")")?;
        self.expect(")")?;
        Ok(match bounds.len() {
            0 => Filter::Not(Box::new(Filter::IsNull(property))),
            1 => bounds.remove(0),
            _ => Filter::And(bounds),
        })
    }

    fn op(&mut self) -> Result<CompareOp, FilterError> {
        let all = [
            CompareOp::NotEqual,
            CompareOp::LessEqual,
            CompareOp::GreaterEqual,
            CompareOp::Less,
            CompareOp::Greater,
            CompareOp::Equal,
        ];
        let found = all.into_iter().find(|op| self.sign(op.sign()));
        found.ok_or_else(|| self.refuse("expected =, <>, <, <=, > or >="))
    }

    fn property(&mut self) -> Result<Property, FilterError> {
        let Some(Token::Word(name) | Token::Name(name)) = self.peek() else {
            return Err(self.refuse("expected the name of a property"));
        };
        let found = Property::named(name).ok_or_else(|| {
            let names = Property::ALL.map(Property::name).join(", ");
            self.refuse(&format!("there is no property `{name}`; write one of {names}"))
        });
        self.next += usize::from(found.is_ok());
        found
    }

    fn predicate(&mut self, property: Property) -> Result<Filter, FilterError> {
        if self.word("IS") {
            let is_not = self.word("NOT");
            if !self.word("NULL") {
                return Err(self.refuse("expected NULL"));
            }
            let null = Filter::IsNull(property);
            return Ok(if is_not { Filter::Not(Box::new(null)) } else { null });
        }
        let is_not = self.word("NOT");
        let found = if self.word("LIKE") {
            self.like(property)?
        } else if self.word("IN") {
            Filter::In(property, self.values(property)?)
        } else if self.word("BETWEEN") {
            let least = self.value(property)?;
            if !self.word("AND") {
                return Err(self.refuse("expected AND"));
            }
            let most = self.value(property)?;
            Filter::And(vec![
                Filter::Compare(property, CompareOp::GreaterEqual, least),
                Filter::Compare(property, CompareOp::LessEqual, most),
            ])
        } else if is_not {
            return Err(self.refuse("expected LIKE, IN or BETWEEN"));
        } else {
            let op = self.op()?;
            Filter::Compare(property, op, self.value(property)?)
        };
        Ok(if is_not { Filter::Not(Box::new(found)) } else { found })
    }

    fn like(&mut self, property: Property) -> Result<Filter, FilterError> {
        if property.of_type() != PropertyType::Text {
            return Err(
                self.refuse(&format!("`{}` is no text; compare it instead", property.name()))
            );
        }
        let Some(Token::Text(pattern)) = self.peek() else {
            return Err(self.refuse("expected a pattern such as 'VIIRS%'"));
        };
        let like = Like(pattern.clone());
        self.next += 1;
        Ok(Filter::Like(property, like))
    }

    fn values(&mut self, property: Property) -> Result<Vec<PropertyValue>, FilterError> {
        self.expect("(")?;
        let mut values = vec![self.value(property)?];
        while self.sign(",") {
            if values.len() == VALUES_MAX {
                return Err(self.refuse(&format!("IN has more than {VALUES_MAX} values")));
            }
            values.push(self.value(property)?);
        }
        self.expect(")")?;
        Ok(values)
    }

    /// A value of the property's type.
    fn value(&mut self, property: Property) -> Result<PropertyValue, FilterError> {
        let wanted = property.of_type();
        let is_instant = self.is_instant();
        let refuse = |parser: &Self| {
            parser.refuse(&format!("`{}` takes {}", property.name(), wanted.example()))
        };
        if is_instant && wanted == PropertyType::Time {
            self.next += 1;
            self.expect("(")?;
        }
        let value = match (self.peek(), wanted) {
            (Some(Token::Text(text)), PropertyType::Text) => PropertyValue::Text(text.clone()),
            (Some(Token::Number(number)), PropertyType::Number) => PropertyValue::Number(*number),
            (Some(Token::Text(text)), PropertyType::Time) => {
                PropertyValue::Time(instant(text).ok_or_else(|| refuse(self))?)
            }
            _ => return Err(refuse(self)),
        };
        self.next += 1;
        if is_instant {
            self.expect(")")?;
        }
        Ok(value)
    }
}

/// An RFC 3339 time, or a date, which is its first instant.
fn instant(text: &str) -> Option<Utc> {
    Utc::from_rfc3339(text).or_else(|| Utc::from_rfc3339(&format!("{text}T00:00:00Z")))
}
