//! What is served: the face of a catalogue, and who looks at it.

use crate::accounts::ServeAccount;
use crate::answer::ServeAnswer;
use crate::contact_session::ContactSession;
use skyhaul_catalogue::{
    CompareOp, Filter, Item, ItemListing, ItemState, ListPlace, Property, PropertyValue,
};
use skyhaul_units::Utc;
use std::sync::Arc;

/// A catalogue, as the answers need it.
pub trait ServedCatalogue {
    /// A page of a list.
    ///
    /// # Errors
    /// See [`HoldingsError`].
    fn list(&mut self, listing: &ItemListing) -> Result<HeldPage, HoldingsError>;

    /// How many items a filter takes, but no more than `most`.
    ///
    /// # Errors
    /// See [`HoldingsError`].
    fn count(&mut self, filter: &Filter, most: u64) -> Result<u64, HoldingsError>;

    /// An item by its name and version.
    ///
    /// # Errors
    /// See [`HoldingsError`].
    fn named(&mut self, name: &str, version: u32) -> Result<Option<HeldItem>, HoldingsError>;

    /// An item by its number.
    ///
    /// # Errors
    /// See [`HoldingsError`].
    fn numbered(&mut self, id: u64) -> Result<Option<HeldItem>, HoldingsError>;

    /// The collections that have an item that the filter takes: of one mission, or of all.
    ///
    /// # Errors
    /// See [`HoldingsError`].
    fn collections(
        &mut self,
        mission: Option<&str>,
        filter: &Filter,
    ) -> Result<Vec<HeldCollection>, HoldingsError>;

    /// The contacts that are offered, by their numbers.
    fn sessions(&mut self) -> Vec<Arc<ContactSession>>;
}

/// An item with its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldItem {
    /// Its number in the catalogue.
    pub id: u64,
    /// The item.
    pub item: Item,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldPage {
    /// The items.
    pub items: Vec<HeldItem>,
    /// Where the next page begins; none behind the last one.
    pub next: Option<ListPlace>,
}

/// A mission's product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldCollection {
    /// The mission.
    pub mission: String,
    /// The product.
    pub product: String,
    /// The time of its first item.
    pub first: Utc,
    /// That of its last one, where it is known without a look at its items.
    pub last: Option<Utc>,
    /// How many items it has, where that is known.
    pub items: Option<u64>,
}

/// Why the catalogue does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldingsError {
    /// The search took too long.
    Slow,
    /// The catalogue cannot be read; the log has the reason.
    Failed,
}

/// Who asks, and under which address.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    /// The account; none where there are no accounts.
    pub account: Option<&'a ServeAccount>,
    /// What addresses in answers begin with, such as `https://centre.example.org:8443`.
    pub base: &'a str,
    /// The name of the node.
    pub node: &'a str,
}

impl HeldCollection {
    /// Its name.
    pub fn id(&self) -> String {
        format!("{}-{}", self.mission, self.product)
    }
}

impl Asker<'_> {
    /// The items that are there for it, of those that a filter takes.
    pub fn visible(&self, filter: Filter) -> Filter {
        let present = PropertyValue::Text(ItemState::Present.name().to_owned());
        let mut all = vec![Filter::Compare(Property::State, CompareOp::Equal, present)];
        all.extend(self.account.and_then(|account| account.filter.clone()));
        if filter != Filter::Always(true) {
            all.push(filter);
        }
        Filter::And(all)
    }

    /// Whether an item may be known to it.
    pub fn may_know(&self, item: &Item) -> bool {
        let filter = self.account.and_then(|account| account.filter.as_ref());
        filter.is_none_or(|filter| filter.takes(item))
    }

    /// The address of a file of an item.
    pub fn address_of(&self, item: &Item, file: &str) -> String {
        let [id, file] = [&item.versioned_id(), file].map(crate::request::encoded);
        format!("{}/products/{id}/{file}", self.base)
    }
}

/// A condition on a time as it is shown: where an item has no packet times it is that of the other
/// end, and else that of publication. It is true or false of every item, also under a `NOT`.
pub fn shown_time_is(property: Property, op: CompareOp, time: Utc) -> Filter {
    let condition = |of| Filter::Compare(of, op, PropertyValue::Time(time));
    let other = match property {
        Property::Start => Property::End,
        Property::End => Property::Start,
        _ => return condition(property),
    };
    let has = |of| Filter::Not(Box::new(Filter::IsNull(of)));
    Filter::Or(vec![
        Filter::And(vec![has(property), condition(property)]),
        Filter::And(vec![Filter::IsNull(property), has(other), condition(other)]),
        Filter::And(vec![
            Filter::IsNull(property),
            Filter::IsNull(other),
            condition(Property::Published),
        ]),
    ])
}

impl From<HoldingsError> for ServeAnswer {
    fn from(error: HoldingsError) -> Self {
        match error {
            HoldingsError::Slow => {
                let what = "the search takes too long; narrow it by mission, product or time";
                Self::problem(503, what).header("retry-after", "60")
            }
            HoldingsError::Failed => {
                let what = "the catalogue cannot be searched now; the operator has the reason";
                Self::problem(503, what).header("retry-after", "30")
            }
        }
    }
}

/// The item of an identifier `NAME-v2`, as far as the asker may know it.
///
/// # Errors
/// The answer where there is none.
pub fn known(
    id: &str,
    asker: Asker<'_>,
    holdings: &mut dyn ServedCatalogue,
) -> Result<HeldItem, ServeAnswer> {
    let nothing = || ServeAnswer::problem(404, "there is no such product");
    let (name, version) = id.rsplit_once("-v").ok_or_else(nothing)?;
    // Written in one way only: an identifier stands in addresses that are kept.
    let version = version.parse::<u32>().ok().filter(|number| number.to_string() == version);
    let found = holdings.named(name, version.ok_or_else(nothing)?)?;
    found.filter(|held| asker.may_know(&held.item)).ok_or_else(nothing)
}
