//! Products that were published before a subscription: what of them it takes, and their deliveries.

use super::ledger::{DeliveryLedger, offers};
use crate::status::{BackfillAction, BackfillPage, BackfillShare};
use skyhaul_catalogue::{CompareOp, Filter, Property, PropertyValue};
use skyhaul_catalogue_io::{
    CatalogueError, CatalogueReader, DeliveryOffer, ItemQuery, ItemRow, PageToken,
};
use skyhaul_config::ProductSubscription;
use skyhaul_dispatch::VersionRule;
use skyhaul_units::Utc;
use std::collections::BTreeMap;

/// The products that are looked at.
pub struct Backfill<'a> {
    /// For this subscription.
    pub subscription: &'a ProductSubscription,
    /// Published from then on.
    pub from: Utc,
    /// And before then.
    pub to: Utc,
    /// What is done about those without a delivery.
    pub action: BackfillAction,
    /// The time.
    pub now: Utc,
}

/// Items of one look.
const PAGE: usize = 1_000;
/// Versions of one product that are compared.
const VERSIONS: usize = 1_000;
/// Names that a page shows.
const NAMES: usize = 10;

impl Backfill<'_> {
    /// Looks at a page of items, newest first, and begins the deliveries that are missing if that
    /// is the action.
    ///
    /// # Errors
    /// See [`CatalogueError`]: try again, what has begun stays.
    pub fn page(
        &self,
        ledger: &DeliveryLedger,
        reader: &CatalogueReader,
        after: Option<PageToken>,
    ) -> Result<BackfillPage, CatalogueError> {
        let query = ItemQuery { filter: Some(self.filter()), after, limit: PAGE };
        let found = reader.search(&query)?;
        let to = self.subscription.to.iter();
        let mut shares: BTreeMap<String, BackfillShare> =
            to.map(|name| (name.to_string(), BackfillShare::of(name.as_str()))).collect();
        let mut page = BackfillPage {
            next: found.next.map(|next| next.to_string()),
            ..BackfillPage::default()
        };
        let mut missing = Vec::new();
        for row in &found.items {
            if !self.wants(reader, row)? {
                continue;
            }
            page.items += 1;
            page.bytes += row.item.size();
            if page.names.len() < NAMES {
                page.names.push(format!("{} version {}", row.item.name, row.item.version));
            }
            let lacking = self.lacking(reader, row, &mut shares)?;
            if !lacking.is_empty() {
                missing.push((row.id, lacking));
            }
        }
        if self.action == BackfillAction::Begin && !missing.is_empty() {
            ledger.offer_again(missing, self.now)?;
        }
        page.destinations = shares.into_values().collect();
        Ok(page)
    }

    fn filter(&self) -> Filter {
        let published = |op, at| Filter::Compare(Property::Published, op, PropertyValue::Time(at));
        let present = PropertyValue::Text("present".to_owned());
        let own = self.subscription.entry.filter.iter().map(|filter| filter.filter().clone());
        let bounds = [
            published(CompareOp::GreaterEqual, self.from),
            published(CompareOp::Less, self.to),
            Filter::Compare(Property::State, CompareOp::Equal, present),
        ];
        Filter::And(own.chain(bounds).collect())
    }

    /// Whether this is the version that the subscription wants, of those that it takes.
    fn wants(&self, reader: &CatalogueReader, row: &ItemRow) -> Result<bool, CatalogueError> {
        let rule = self.subscription.entry.versions.rule();
        if rule == VersionRule::All {
            return Ok(true);
        }
        let name = PropertyValue::Text(row.item.name.clone());
        let named = Filter::Compare(Property::Id, CompareOp::Equal, name);
        let query = ItemQuery { filter: Some(named), after: None, limit: VERSIONS };
        let versions = reader.search(&query)?.items;
        let taken = versions.iter().filter(|other| self.subscription.takes(&other.item));
        let taken = taken.map(|other| other.item.version);
        let wanted = if rule == VersionRule::Latest { taken.max() } else { taken.min() };
        Ok(wanted == Some(row.item.version))
    }

    /// The deliveries of an item that are not there yet; counts all of them.
    fn lacking(
        &self,
        reader: &CatalogueReader,
        row: &ItemRow,
        shares: &mut BTreeMap<String, BackfillShare>,
    ) -> Result<Vec<DeliveryOffer>, CatalogueError> {
        let states = reader.states_of(row.id, self.subscription.name.as_str())?;
        let mut lacking = Vec::new();
        for offer in offers(self.subscription, &row.item, self.now) {
            let state = states.iter().find(|(name, _)| *name == offer.destination);
            let Some(share) = shares.get_mut(&offer.destination) else { continue };
            match state {
                Some((_, state)) if state.is_there() => share.there += 1,
                Some(_) => share.begun += 1,
                None => {
                    share.missing += 1;
                    share.missing_bytes += row.item.size();
                    lacking.push(offer);
                }
            }
        }
        Ok(lacking)
    }
}
