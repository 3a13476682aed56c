//! Lists of objects: what is asked for, the way through the catalogue, and the answer.
//!
//! A key is `PRODUCT/NAME-vN/FILE`. The way is along an index: products of the mission by the bytes
//! of their names, items of each by name, files of each. The place where a page ends is the last
//! key, or the last common beginning, that was shown: what comes or goes meanwhile moves nothing.

use super::object::{ObjectKey, etag};
use super::refusal::refusal;
use super::xml::Xml;
use crate::answer::{AnswerBody, ServeAnswer};
use crate::holdings::{Asker, HeldItem, HoldingsError, ServedCatalogue};
use crate::http_date::milliseconds;
use crate::request::{ServeRequest, encoded};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use skyhaul_catalogue::{
    CompareOp, Filter, ItemFile, ItemListing, ItemOrder, ListDirection, OrderKey, Property,
    PropertyValue,
};
use skyhaul_units::Utc;

/// What a list is asked for with.
#[derive(Debug, Clone)]
pub struct ObjectListing {
    form: ListForm,
    prefix: String,
    delimiter: Option<String>,
    most: usize,
    /// Whether names are percent-encoded in the answer.
    is_encoded: bool,
    place: ListedPlace,
    /// What the answer repeats: `start-after` or `marker`, and `continuation-token`.
    start: Option<String>,
    token: Option<String>,
    shows_owner: bool,
}

/// `ListObjects` or `ListObjectsV2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListForm {
    First,
    Second,
}

/// Where a page begins.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ListedPlace {
    /// Behind this key.
    Behind(String),
    /// Behind all keys that begin so.
    BehindAll(String),
}

/// Keys of a page: what S3 allows.
const PAGE: usize = 1_000;
/// Searches of the catalogue for a page: a delimiter within names leads to one for each beginning.
const SEARCHES_MAX: usize = 1_100;

/// A page.
#[derive(Debug, Default)]
struct Page {
    entries: Vec<Entry>,
    /// The place behind the last entry, where more follows.
    next: Option<ListedPlace>,
}

#[derive(Debug)]
enum Entry {
    Object { key: String, file: ItemFile, published: Utc },
    Common(String),
}

impl ListedPlace {
    fn token(&self) -> String {
        let (mark, text) = match self {
            Self::Behind(key) => ('k', key),
            Self::BehindAll(beginning) => ('p', beginning),
        };
        BASE64_URL_SAFE_NO_PAD.encode(format!("{mark}{text}"))
    }

    fn of_token(token: &str) -> Option<Self> {
        let text = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
        match text.split_at_checked(1)? {
            ("k", key) => Some(Self::Behind(key.to_owned())),
            ("p", beginning) => Some(Self::BehindAll(beginning.to_owned())),
            _ => None,
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Behind(text) | Self::BehindAll(text) => text,
        }
    }

    /// Whether all of what begins so is before the place.
    fn passes_all(&self, beginning: &str) -> bool {
        match self {
            Self::BehindAll(passed) if beginning.starts_with(passed.as_str()) => true,
            place if place.text().starts_with(beginning) => false,
            place => beginning < place.text(),
        }
    }

    /// Whether a key is before the place. Items stand by their names, as the index has them.
    fn passes(&self, key: &str) -> bool {
        match self {
            Self::BehindAll(passed) if key.starts_with(passed.as_str()) => true,
            place => ObjectKey::order(key, place.text()).is_le(),
        }
    }
}

impl ObjectListing {
    /// What a request asks for.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of(request: &ServeRequest) -> Result<Self, ServeAnswer> {
        let bad = |what: &str| refusal(400, "InvalidArgument", what);
        let form = match request.parameter("list-type") {
            None => ListForm::First,
            Some("2") => ListForm::Second,
            Some(_) => return Err(bad("`list-type` is 2, or not there")),
        };
        let given = |name: &str| request.parameter(name).filter(|text| !text.is_empty());
        let most = given("max-keys").map_or(Ok(PAGE as u32), str::parse);
        let most = most.map_err(|_| bad("`max-keys` is a number from 0"))?;
        let is_encoded = match given("encoding-type") {
            None => false,
            Some("url") => true,
            Some(_) => return Err(bad("`encoding-type` is `url`, or not there")),
        };
        let (start, token) = match form {
            ListForm::First => (given("marker"), None),
            ListForm::Second => (given("start-after"), given("continuation-token")),
        };
        let delimiter = given("delimiter").map(str::to_owned);
        let prefix = given("prefix").unwrap_or_default().to_owned();
        let place = match (token, start, &delimiter) {
            (Some(token), _, _) => ListedPlace::of_token(token)
                .ok_or_else(|| bad("`continuation-token` is none of an earlier page"))?,
            // The marker of a page may be a common beginning.
            (None, Some(start), Some(delimiter))
                if form == ListForm::First && start.ends_with(delimiter.as_str()) =>
            {
                ListedPlace::BehindAll(start.to_owned())
            }
            (None, start, _) => ListedPlace::Behind(start.unwrap_or_default().to_owned()),
        };
        Ok(Self {
            form,
            prefix,
            delimiter,
            most: (most as usize).min(PAGE),
            is_encoded,
            place,
            start: start.map(str::to_owned),
            token: token.map(str::to_owned),
            shows_owner: form == ListForm::First || given("fetch-owner") == Some("true"),
        })
    }

    /// The answer for a bucket with these products.
    ///
    /// # Errors
    /// The catalogue does not answer.
    pub fn answer(
        &self,
        bucket: &str,
        products: &[String],
        asker: Asker<'_>,
        holdings: &mut dyn ServedCatalogue,
    ) -> Result<ServeAnswer, HoldingsError> {
        let mut walk = Walk {
            listing: self,
            bucket,
            asker,
            holdings,
            place: self.place.clone(),
            page: Page::default(),
            searches: 0,
        };
        let mut products: Vec<String> =
            products.iter().map(|product| format!("{product}/")).collect();
        products.sort();
        for product in products {
            if self.most > 0 && walk.page.next.is_none() && walk.meets(&product) {
                walk.product(&product)?;
            }
        }
        let page = walk.page;
        let mut answer = ServeAnswer::empty(200).header("content-type", "application/xml");
        answer.body = AnswerBody::Bytes(self.document(bucket, &page).into());
        Ok(answer)
    }

    /// The common beginning that a key is shown as; none where the key itself is.
    fn common<'k>(&self, key: &'k str) -> Option<&'k str> {
        let delimiter = self.delimiter.as_deref()?;
        let rest = &key[self.prefix.len()..];
        let end = rest.find(delimiter)? + delimiter.len();
        Some(&key[..self.prefix.len() + end])
    }

    fn document(&self, bucket: &str, page: &Page) -> Vec<u8> {
        let shown = |text: &str| match self.is_encoded {
            // The slash stays, as S3 itself leaves it.
            true => encoded(text).replace("%2F", "/"),
            false => text.to_owned(),
        };
        let mut xml = Xml::default();
        xml.open_root("ListBucketResult");
        xml.text("Name", bucket);
        xml.text("Prefix", &shown(&self.prefix));
        match self.form {
            ListForm::First => {
                xml.text("Marker", &shown(self.start.as_deref().unwrap_or_default()));
                if let Some(next) = &page.next {
                    xml.text("NextMarker", &shown(next.text()));
                }
            }
            ListForm::Second => {
                if let Some(start) = &self.start {
                    xml.text("StartAfter", &shown(start));
                }
                if let Some(token) = &self.token {
                    xml.text("ContinuationToken", token);
                }
                if let Some(next) = &page.next {
                    xml.text("NextContinuationToken", &next.token());
                }
                xml.text("KeyCount", &page.entries.len().to_string());
            }
        }
        xml.text("MaxKeys", &self.most.to_string());
        if let Some(delimiter) = &self.delimiter {
            xml.text("Delimiter", &shown(delimiter));
        }
        if self.is_encoded {
            xml.text("EncodingType", "url");
        }
        xml.text("IsTruncated", if page.next.is_some() { "true" } else { "false" });
        for entry in &page.entries {
            if let Entry::Object { key, file, published } = entry {
                xml.open("Contents");
                xml.text("Key", &shown(key));
                xml.text("LastModified", &milliseconds(*published));
                xml.text("ETag", &etag(file));
                xml.text("Size", &file.size.to_string());
                xml.text("StorageClass", "STANDARD");
                if self.shows_owner {
                    owner(&mut xml);
                }
                xml.close("Contents");
            }
        }
        for entry in &page.entries {
            if let Entry::Common(beginning) = entry {
                xml.open("CommonPrefixes");
                xml.text("Prefix", &shown(beginning));
                xml.close("CommonPrefixes");
            }
        }
        xml.close("ListBucketResult");
        xml.finish()
    }
}

/// The way through the catalogue.
struct Walk<'a> {
    listing: &'a ObjectListing,
    bucket: &'a str,
    asker: Asker<'a>,
    holdings: &'a mut dyn ServedCatalogue,
    /// What is before it was shown, or is not asked for.
    place: ListedPlace,
    page: Page,
    searches: usize,
}

impl Walk<'_> {
    /// Whether keys that begin so may be in the list.
    fn meets(&self, beginning: &str) -> bool {
        let prefix = self.listing.prefix.as_str();
        let may_fit = beginning.starts_with(prefix) || prefix.starts_with(beginning);
        may_fit && !self.place.passes_all(beginning)
    }

    /// Lists a product, whose keys begin with `product`.
    fn product(&mut self, product: &str) -> Result<(), HoldingsError> {
        let mut after = None;
        loop {
            if self.searches == SEARCHES_MAX {
                return Err(HoldingsError::Slow);
            }
            self.searches += 1;
            let listing = self.search(product, after.as_deref());
            let found = self.holdings.list(&listing)?;
            let mut step = Step::On;
            for held in &found.items {
                after = Some(held.item.versioned_id());
                step = self.item(product, held);
                if step == Step::Seek {
                    break;
                }
            }
            let is_through = step == Step::On && found.next.is_none();
            if is_through || self.page.next.is_some() || !self.meets(product) {
                return Ok(());
            }
        }
    }

    /// The items of a product behind an identifier, as far as prefix and place allow.
    fn search(&self, product: &str, after: Option<&str>) -> ItemListing {
        let text = |text: &str| PropertyValue::Text(text.to_owned());
        let is = |property, op, value: &str| Filter::Compare(property, op, text(value));
        let name = product.trim_end_matches('/');
        let mut all = vec![
            is(Property::Mission, CompareOp::Equal, self.bucket),
            is(Property::Product, CompareOp::Equal, name),
        ];
        let id = Property::VersionedId;
        all.extend(after.map(|after| is(id, CompareOp::Greater, after)));
        let mut least = String::new();
        if let Some(rest) = self.listing.prefix.strip_prefix(product) {
            match rest.split_once('/') {
                Some((whole, _)) => all.push(is(id, CompareOp::Equal, whole)),
                None => {
                    least = least.max(rest.to_owned());
                    all.extend(successor(rest).map(|end| is(id, CompareOp::Less, &end)));
                }
            }
        }
        if let Some(rest) = self.place.text().strip_prefix(product) {
            let seek = match (&self.place, rest.split_once('/')) {
                (ListedPlace::BehindAll(_), None) => successor(rest).unwrap_or_default(),
                (_, Some((whole, _))) => whole.to_owned(),
                (ListedPlace::Behind(_), None) => rest.to_owned(),
            };
            least = least.max(seek);
        }
        if !least.is_empty() {
            all.push(is(id, CompareOp::GreaterEqual, &least));
        }
        let key = OrderKey { property: id, direction: ListDirection::Rising };
        let order = ItemOrder::new(vec![key]).unwrap_or_default();
        let limit = self.listing.most - self.page.entries.len() + 1;
        let filter = self.asker.visible(Filter::And(all));
        ItemListing { filter, order, after: None, skip: 0, limit }
    }

    /// Lists the files of an item.
    fn item(&mut self, product: &str, held: &HeldItem) -> Step {
        let id = held.item.versioned_id();
        let mut files: Vec<&ItemFile> = held.item.files.iter().collect();
        files.sort_by(|one, other| one.name.cmp(&other.name));
        for file in files {
            let key = format!("{product}{id}/{}", file.name);
            if !key.starts_with(&self.listing.prefix) || self.place.passes(&key) {
                continue;
            }
            if self.page.entries.len() == self.listing.most {
                self.page.next = Some(self.place.clone());
                return Step::Seek;
            }
            let Some(beginning) = self.listing.common(&key).map(str::to_owned) else {
                self.place = ListedPlace::Behind(key.clone());
                let (file, published) = (file.clone(), held.item.published);
                self.page.entries.push(Entry::Object { key, file, published });
                continue;
            };
            self.place = ListedPlace::BehindAll(beginning.clone());
            // Others of this beginning may be many: the next search leaves them out.
            let is_wide = beginning.len() <= product.len() + id.len();
            self.page.entries.push(Entry::Common(beginning));
            if is_wide {
                return Step::Seek;
            }
        }
        Step::On
    }
}

/// What follows an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    On,
    Seek,
}

/// The least text behind all that begin so; none where there is none.
fn successor(beginning: &str) -> Option<String> {
    let mut characters: Vec<char> = beginning.chars().collect();
    while let Some(last) = characters.pop() {
        // The surrogates are no characters.
        let next = (last as u32 + 1..=char::MAX as u32).find_map(char::from_u32);
        if let Some(next) = next {
            characters.push(next);
            return Some(characters.into_iter().collect());
        }
    }
    None
}

/// Who has all objects: the server has one owner.
pub fn owner(xml: &mut Xml) {
    xml.open("Owner");
    xml.text("ID", "skyhaul");
    xml.text("DisplayName", "skyhaul");
    xml.close("Owner");
}

#[cfg(test)]
mod tests;
