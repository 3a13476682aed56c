//! Lists of items in pages: the order, and the place where the next page begins.
//!
//! A place is the values of the last item that was shown, not a count: items that come or go
//! meanwhile move nothing, so that nothing is shown twice and nothing is left out.

use crate::filter::Filter;
use crate::item::Item;
use crate::property::{Property, PropertyType, PropertyValue};
use core::cmp::Ordering;
use skyhaul_units::Utc;

/// What is listed.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemListing {
    /// Items that it takes.
    pub filter: Filter,
    /// In which order.
    pub order: ItemOrder,
    /// Behind this place.
    pub after: Option<ListPlace>,
    /// Without the first so many.
    pub skip: u64,
    /// At most so many.
    pub limit: usize,
}

/// An order of items. Items with the same values stand by their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemOrder(Vec<OrderKey>);

/// A property that decides an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderKey {
    /// The property.
    pub property: Property,
    /// The direction.
    pub direction: ListDirection,
}

/// The direction of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListDirection {
    /// The least first.
    Rising,
    /// The greatest first.
    Falling,
}

/// The place behind an item in an order.
#[derive(Debug, Clone, PartialEq)]
pub struct ListPlace {
    /// The values of the item, by the keys of the order.
    pub values: Vec<PropertyValue>,
    /// The number of the item.
    pub id: u64,
}

/// Keys of an order: more than a person can make use of.
const KEYS_MAX: usize = 4;

impl ItemOrder {
    /// An order by keys; none is by publication, the newest first. What follows publication decides
    /// nothing more and is left out.
    ///
    /// # Errors
    /// What is wrong with a key.
    pub fn new(mut keys: Vec<OrderKey>) -> Result<Self, String> {
        if let Some(list) = keys.iter().find(|key| key.property.is_list()) {
            let name = list.property.name();
            return Err(format!("`{name}` has several values, so nothing can be ordered by it"));
        }
        if keys.len() > KEYS_MAX {
            return Err(format!("an order has at most {KEYS_MAX} properties"));
        }
        let mut seen = Vec::new();
        keys.retain(|key| {
            let is_new = !seen.contains(&key.property);
            seen.push(key.property);
            is_new
        });
        if keys.is_empty() {
            let key = OrderKey { property: Property::Published, direction: ListDirection::Falling };
            keys.push(key);
        }
        Ok(Self(keys))
    }

    /// Its keys; at least one.
    pub fn keys(&self) -> &[OrderKey] {
        &self.0
    }

    /// The direction among items with the same values.
    pub fn last_direction(&self) -> ListDirection {
        self.0.last().map_or(ListDirection::Falling, |key| key.direction)
    }

    /// The place behind an item.
    pub fn place(&self, id: u64, item: &Item) -> ListPlace {
        let values = self.0.iter().map(|key| order_value(key.property, item)).collect();
        ListPlace { values, id }
    }

    /// How two places stand to each other.
    pub fn compare(&self, one: &ListPlace, other: &ListPlace) -> Ordering {
        for (key, (own, others)) in self.0.iter().zip(one.values.iter().zip(&other.values)) {
            let order = key.direction.of(own.order(others).unwrap_or(Ordering::Equal));
            if order.is_ne() {
                return order;
            }
        }
        self.last_direction().of(one.id.cmp(&other.id))
    }

    /// A place as text, for the address of the next page.
    pub fn token(&self, place: &ListPlace) -> String {
        let value = |value: &PropertyValue| match value {
            PropertyValue::Text(text) => serde_json::json!(text),
            PropertyValue::Number(number) => serde_json::json!(number),
            PropertyValue::Time(time) => serde_json::json!(time.as_micros()),
        };
        let values: Vec<serde_json::Value> = place.values.iter().map(value).collect();
        serde_json::json!([place.id, values]).to_string()
    }

    /// The place that a text of [`ItemOrder::token`] is, in this order.
    pub fn place_of(&self, token: &str) -> Option<ListPlace> {
        let (id, values): (u64, Vec<serde_json::Value>) = serde_json::from_str(token).ok()?;
        if values.len() != self.0.len() {
            return None;
        }
        let values = self.0.iter().zip(values).map(|(key, value)| {
            Some(match key.property.of_type() {
                PropertyType::Text => PropertyValue::Text(value.as_str()?.to_owned()),
                PropertyType::Number => PropertyValue::Number(value.as_f64()?),
                PropertyType::Time => PropertyValue::Time(Utc::from_micros(value.as_i64()?)),
            })
        });
        // Numbers of items are those of a database, which has no greater ones.
        let is_number = i64::try_from(id).is_ok();
        is_number.then(|| Some(ListPlace { values: values.collect::<Option<_>>()?, id }))?
    }
}

impl Default for ItemOrder {
    fn default() -> Self {
        let key = OrderKey { property: Property::Published, direction: ListDirection::Falling };
        Self(vec![key])
    }
}

impl ListDirection {
    /// An order of the least first, in this direction.
    pub const fn of(self, order: Ordering) -> Ordering {
        match self {
            Self::Rising => order,
            Self::Falling => order.reverse(),
        }
    }
}

/// The value by which an item is ordered. An item without packet times stands at the time of its
/// publication, which STAC and OData show as its time.
pub fn order_value(property: Property, item: &Item) -> PropertyValue {
    let time = match property {
        Property::Start => Some(item.start.or(item.end).unwrap_or(item.published)),
        Property::End => Some(item.end.or(item.start).unwrap_or(item.published)),
        _ => None,
    };
    let value = time.map(PropertyValue::Time);
    let value = value.or_else(|| property.of(item).into_iter().next());
    value.unwrap_or(PropertyValue::Number(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::{ItemForm, ItemState};

    fn item(size: u64) -> Item {
        Item {
            name: "a'b".to_owned(),
            version: 1,
            form: ItemForm::Session,
            mission: "aqua".to_owned(),
            product: "p".to_owned(),
            stations: Vec::new(),
            apids: Vec::new(),
            start: None,
            end: None,
            published: Utc::from_micros(1_700_000_000_000_001),
            packets: size,
            missing: 0,
            state: ItemState::Present,
            files: Vec::new(),
        }
    }

    #[test]
    fn a_place_comes_back_from_its_token() {
        let key = |property, direction| OrderKey { property, direction };
        let order = ItemOrder::new(vec![
            key(Property::Id, ListDirection::Rising),
            key(Property::Start, ListDirection::Falling),
            key(Property::Size, ListDirection::Rising),
            key(Property::Id, ListDirection::Falling),
        ])
        .unwrap();
        assert_eq!(order.keys().len(), 3);
        let place = order.place(17, &item(3));
        let token = order.token(&place);
        assert_eq!(order.place_of(&token), Some(place));
        for bad in ["", "[]", "[1]", "[1,[\"a\",1]]", "[1,[1,1,1]]", "[-1,[\"a\",1,1]]", "{}"] {
            assert_eq!(order.place_of(bad), None, "{bad}");
        }
        assert_eq!(order.place_of("[18446744073709551615,[\"a\",1,1]]"), None);
    }

    #[test]
    fn an_order_by_a_list_or_by_many_is_refused() {
        let key = |property| OrderKey { property, direction: ListDirection::Rising };
        assert!(ItemOrder::new(vec![key(Property::Station)]).unwrap_err().contains("several"));
        assert!(ItemOrder::new(vec![key(Property::Id); 5]).unwrap_err().contains("at most 4"));
        assert_eq!(ItemOrder::new(Vec::new()).unwrap(), ItemOrder::default());
    }
}
