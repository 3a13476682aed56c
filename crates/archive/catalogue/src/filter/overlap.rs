//! Whether two filters can take one item: for rules that must not meet.

use super::{CompareOp, Filter};
use crate::property::{Property, PropertyValue};

/// Pairs of conditions that are compared; of filters with more, nothing is known.
const PAIRS_MAX: usize = 10_000;

impl Filter {
    /// Whether it is certain that no item is taken by both. Filters that only exclude each other
    /// through what items have are not found.
    pub fn excludes(&self, other: &Self) -> bool {
        self.leaves().saturating_mul(other.leaves()) <= PAIRS_MAX && excludes(self, other)
    }

    fn leaves(&self) -> usize {
        match self {
            Self::And(filters) | Self::Or(filters) => filters.iter().map(Self::leaves).sum(),
            Self::Not(inner) => inner.leaves(),
            _ => 1,
        }
    }
}

fn excludes(one: &Filter, other: &Filter) -> bool {
    match (one, other) {
        (Filter::Always(false), _) | (_, Filter::Always(false)) => true,
        (Filter::Or(any), other) | (other, Filter::Or(any)) => {
            any.iter().all(|one| excludes(one, other))
        }
        (Filter::And(all), other) | (other, Filter::And(all)) => {
            all.iter().any(|one| excludes(one, other))
        }
        (Filter::Not(inner), other) | (other, Filter::Not(inner)) => **inner == *other,
        (Filter::IsNull(null), other) | (other, Filter::IsNull(null)) => {
            property_of(other) == Some(*null)
        }
        (Filter::In(property, values), other) | (other, Filter::In(property, values)) => {
            let equal =
                |value: &PropertyValue| Filter::Compare(*property, CompareOp::Equal, value.clone());
            values.iter().all(|value| excludes(&equal(value), other))
        }
        (Filter::Like(property, like), Filter::Compare(other, CompareOp::Equal, value))
        | (Filter::Compare(other, CompareOp::Equal, value), Filter::Like(property, like)) => {
            let PropertyValue::Text(text) = value else { return false };
            property == other && !property.is_list() && !like.matches(text)
        }
        (Filter::Compare(property, first, low), Filter::Compare(other_property, second, high)) => {
            property == other_property
                && !property.is_list()
                && (exclude(*first, low, *second, high) || exclude(*second, high, *first, low))
        }
        _ => false,
    }
}

/// The property of a condition that does not hold where an item has no value of it.
const fn property_of(filter: &Filter) -> Option<Property> {
    match filter {
        Filter::Compare(property, ..) | Filter::Like(property, _) | Filter::In(property, _) => {
            Some(*property)
        }
        _ => None,
    }
}

/// Whether no value compares so with both: for the first with any other, the second is tried with
/// the value of the first.
fn exclude(
    first: CompareOp,
    value: &PropertyValue,
    second: CompareOp,
    other: &PropertyValue,
) -> bool {
    let Some(order) = value.order(other) else { return false };
    match (first, second) {
        (CompareOp::Equal, second) => !second.holds(order),
        // Below `value`, and above `other`.
        (CompareOp::Less, CompareOp::Greater | CompareOp::GreaterEqual)
        | (CompareOp::LessEqual, CompareOp::Greater) => order.is_le(),
        (CompareOp::LessEqual, CompareOp::GreaterEqual) => order.is_lt(),
        _ => false,
    }
}
