//! Filters: conditions over the properties of items, as CQL2 text (OGC 21-065r2).
//!
//! Of the standard: comparisons, `LIKE`, `IN`, `BETWEEN`, `IS NULL`, `AND`, `OR`, `NOT`, `TRUE` and
//! `FALSE`, `TIMESTAMP`, `DATE`, `INTERVAL`, `T_AFTER`, `T_BEFORE` and `T_DURING`. A comparison
//! with a property that an item does not have is neither true nor false, as in SQL; the filter
//! takes what is true.

mod overlap;
mod parse;

use crate::item::Item;
use crate::property::{Property, PropertyValue};
use core::cmp::Ordering;
use core::fmt;

/// A condition.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// All of them hold.
    And(Vec<Filter>),
    /// One of them holds.
    Or(Vec<Filter>),
    /// It does not hold.
    Not(Box<Filter>),
    /// A property compares so with a value of its type.
    Compare(Property, CompareOp, PropertyValue),
    /// A property matches a pattern.
    Like(Property, Like),
    /// A property is one of these values of its type.
    In(Property, Vec<PropertyValue>),
    /// The item has no value of a property.
    IsNull(Property),
    /// Every item, or none.
    Always(bool),
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompareOp {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
}

/// A pattern: `%` is any text, `_` any character, and `\` makes the next character stand for
/// itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Like(String);

/// A text that is no filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at {at}: {what}")]
pub struct FilterError {
    /// The character, from 1.
    pub at: usize,
    /// What is wrong, and what to write.
    pub what: String,
}

/// A part of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LikePart {
    /// Any text.
    Any,
    /// Any character.
    One,
    /// This character.
    Exactly(char),
}

impl Filter {
    /// Whether it takes the item.
    pub fn takes(&self, item: &Item) -> bool {
        self.eval(item) == Some(true)
    }

    /// The same about other properties: for interfaces that have their own names for them.
    pub fn renamed(self, rename: &impl Fn(Property) -> Property) -> Self {
        let each = |filters: Vec<Self>| -> Vec<Self> {
            filters.into_iter().map(|filter| filter.renamed(rename)).collect()
        };
        match self {
            Self::And(all) => Self::And(each(all)),
            Self::Or(any) => Self::Or(each(any)),
            Self::Not(inner) => Self::Not(Box::new(inner.renamed(rename))),
            Self::Compare(property, op, value) => Self::Compare(rename(property), op, value),
            Self::Like(property, like) => Self::Like(rename(property), like),
            Self::In(property, values) => Self::In(rename(property), values),
            Self::IsNull(property) => Self::IsNull(rename(property)),
            Self::Always(holds) => Self::Always(holds),
        }
    }

    /// Whether all properties that it names are such that `is_such` takes.
    pub fn is_over(&self, is_such: &impl Fn(Property) -> bool) -> bool {
        match self {
            Self::And(filters) | Self::Or(filters) => {
                filters.iter().all(|filter| filter.is_over(is_such))
            }
            Self::Not(inner) => inner.is_over(is_such),
            Self::Compare(property, ..)
            | Self::Like(property, _)
            | Self::In(property, _)
            | Self::IsNull(property) => is_such(*property),
            Self::Always(_) => true,
        }
    }

    /// Whether it holds; none where that is not known.
    fn eval(&self, item: &Item) -> Option<bool> {
        match self {
            Self::Always(holds) => Some(*holds),
            Self::And(all) => all_hold(all, item),
            Self::Or(any) => any_holds(any, item),
            Self::Not(inner) => inner.eval(item).map(|holds| !holds),
            Self::IsNull(property) => Some(property.of(item).is_empty()),
            Self::Compare(property, op, value) => any_value(*property, item, |own| {
                own.order(value).is_some_and(|order| op.holds(order))
            }),
            Self::In(property, values) => any_value(*property, item, |own| values.contains(own)),
            Self::Like(property, like) => any_value(*property, item, |own| match own {
                PropertyValue::Text(text) => like.matches(text),
                _ => false,
            }),
        }
    }
}

/// `AND`: one that does not hold decides, and else one that is not known.
fn all_hold(filters: &[Filter], item: &Item) -> Option<bool> {
    let mut result = Some(true);
    for filter in filters {
        match filter.eval(item) {
            Some(false) => return Some(false),
            None => result = None,
            Some(true) => {}
        }
    }
    result
}

/// `OR`: one that holds decides, and else one that is not known.
fn any_holds(filters: &[Filter], item: &Item) -> Option<bool> {
    let mut result = Some(false);
    for filter in filters {
        match filter.eval(item) {
            Some(true) => return Some(true),
            None => result = None,
            Some(false) => {}
        }
    }
    result
}

/// Whether any value of the property holds; none where the item has no value.
fn any_value(
    property: Property,
    item: &Item,
    holds: impl Fn(&PropertyValue) -> bool,
) -> Option<bool> {
    let values = property.of(item);
    (!values.is_empty()).then(|| values.iter().any(holds))
}

impl CompareOp {
    /// As it is written.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
        }
    }

    /// Whether it holds for this order of the property beside the value.
    pub const fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterEqual => order.is_ge(),
        }
    }

    /// The same with the sides exchanged.
    const fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessEqual => Self::GreaterEqual,
            Self::Greater => Self::Less,
            Self::GreaterEqual => Self::LessEqual,
            Self::Equal | Self::NotEqual => self,
        }
    }
}

impl Like {
    /// Texts that begin with one.
    pub fn beginning(text: &str) -> Self {
        Self(format!("{}%", Self::literal(text)))
    }

    /// Texts that end with one.
    pub fn ending(text: &str) -> Self {
        Self(format!("%{}", Self::literal(text)))
    }

    /// Texts that have one in them.
    pub fn containing(text: &str) -> Self {
        Self(format!("%{}%", Self::literal(text)))
    }

    fn literal(text: &str) -> String {
        text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_")
    }

    /// Its parts.
    pub fn parts(&self) -> Vec<LikePart> {
        let mut parts = Vec::new();
        let mut characters = self.0.chars();
        while let Some(character) = characters.next() {
            parts.push(match character {
                '%' => LikePart::Any,
                '_' => LikePart::One,
                '\\' => LikePart::Exactly(characters.next().unwrap_or('\\')),
                other => LikePart::Exactly(other),
            });
        }
        parts
    }

    /// Whether it matches the text. Takes as many steps as the product of the lengths, at most.
    pub fn matches(&self, text: &str) -> bool {
        let (parts, text) = (self.parts(), text.chars().collect::<Vec<_>>());
        let (mut part, mut at) = (0, 0);
        // Where the last `%` was, and the text that it took up to now.
        let mut last: Option<(usize, usize)> = None;
        while at < text.len() {
            match parts.get(part) {
                Some(LikePart::Any) => {
                    last = Some((part, at));
                    part += 1;
                }
                Some(LikePart::One) => (part, at) = (part + 1, at + 1),
                Some(LikePart::Exactly(character)) if *character == text[at] => {
                    (part, at) = (part + 1, at + 1);
                }
                _ => {
                    let Some((any, taken)) = last else { return false };
                    last = Some((any, taken + 1));
                    (part, at) = (any + 1, taken + 1);
                }
            }
        }
        parts[part..].iter().all(|part| *part == LikePart::Any)
    }
}

impl fmt::Display for Like {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'", self.0.replace('\'', "''"))
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |f: &mut fmt::Formatter<'_>, filters: &[Self], word: &str| {
            for (place, filter) in filters.iter().enumerate() {
                if place > 0 {
                    write!(f, " {word} ")?;
                }
                match filter {
                    Self::And(_) | Self::Or(_) => write!(f, "({filter})")?,
                    _ => write!(f, "{filter}")?,
                }
            }
            Ok(())
        };
        match self {
            Self::And(all) => join(f, all, "AND"),
            Self::Or(any) => join(f, any, "OR"),
            Self::Not(inner) => write!(f, "NOT ({inner})"),
            Self::Compare(property, op, value) => {
                write!(f, "{} {} {value}", property.name(), op.sign())
            }
            Self::Like(property, like) => write!(f, "{} LIKE {like}", property.name()),
            Self::In(property, values) => {
                let values: Vec<String> = values.iter().map(ToString::to_string).collect();
                write!(f, "{} IN ({})", property.name(), values.join(", "))
            }
            Self::IsNull(property) => write!(f, "{} IS NULL", property.name()),
            Self::Always(true) => f.write_str("TRUE"),
            Self::Always(false) => f.write_str("FALSE"),
        }
    }
}

#[cfg(test)]
mod tests;
