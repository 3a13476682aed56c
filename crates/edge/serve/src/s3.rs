//! S3 for readers: a bucket for each mission, and in it the files of its products under
//! `PRODUCT/NAME-vN/FILE`.
//!
//! A request is one of S3 if it is signed as those of S3 are, whatever its path, or if its path
//! begins with `/s3`.

mod address;
mod listing;
mod object;
mod refusal;
mod signature;
mod xml;

pub use refusal::{finished, read_only, refusal};
pub use signature::{SignatureClaim, is_signed};

use crate::answer::{AnswerBody, ServeAnswer};
use crate::holdings::{Asker, HoldingsError, ServedCatalogue, known};
use crate::http_date::milliseconds;
use crate::request::{ServeMethod, ServeRequest};
use address::ObjectAddress;
use listing::{ObjectListing, owner};
use object::{ObjectKey, object_answer};
use skyhaul_catalogue::{Filter, ItemState};
use skyhaul_units::Utc;
use std::collections::BTreeMap;
use xml::Xml;

/// What the query of a request may ask of a bucket or an object besides, and is not there. What
/// would write needs another method, and is refused before.
const OTHERS: [&str; 25] = [
    "accelerate",
    "acl",
    "analytics",
    "attributes",
    "cors",
    "encryption",
    "intelligent-tiering",
    "inventory",
    "legal-hold",
    "lifecycle",
    "logging",
    "metadataTable",
    "metrics",
    "notification",
    "object-lock",
    "ownershipControls",
    "policy",
    "policyStatus",
    "publicAccessBlock",
    "replication",
    "requestPayment",
    "tagging",
    "uploads",
    "versions",
    "website",
];

/// Answers a request.
///
/// # Errors
/// The answer to one that is refused.
pub fn answer(
    request: &ServeRequest,
    asker: Asker<'_>,
    holdings: &mut dyn ServedCatalogue,
) -> Result<ServeAnswer, ServeAnswer> {
    if !matches!(request.method, ServeMethod::Get | ServeMethod::Head) {
        return Err(read_only());
    }
    let asks = |name: &&&str| request.parameter(name).is_some();
    if let Some(name) = OTHERS.iter().find(asks) {
        let what = format!("`{name}` is not there; objects can be listed and read");
        return Err(refusal(501, "NotImplemented", &what));
    }
    let address = ObjectAddress::of(request, asker.base);
    match (address.bucket, address.key) {
        (None, _) => buckets(asker, holdings),
        (Some(bucket), None) => of_bucket(request, &bucket, asker, holdings),
        (Some(bucket), Some(key)) => object(request, &bucket, &key, asker, holdings),
    }
}

/// Whether a request is about one object, which an index finds.
pub fn is_of_one(request: &ServeRequest, base: &str) -> bool {
    ObjectAddress::of(request, base).key.is_some()
}

fn buckets(
    asker: Asker<'_>,
    holdings: &mut dyn ServedCatalogue,
) -> Result<ServeAnswer, ServeAnswer> {
    let all = holdings.collections(None, &asker.visible(Filter::Always(true)))?;
    let mut buckets: BTreeMap<String, Utc> = BTreeMap::new();
    for collection in all {
        let first = buckets.entry(collection.mission).or_insert(collection.first);
        *first = collection.first.min(*first);
    }
    let mut xml = Xml::default();
    xml.open_root("ListAllMyBucketsResult");
    owner(&mut xml);
    xml.open("Buckets");
    for (name, first) in buckets {
        xml.open("Bucket");
        xml.text("Name", &name);
        xml.text("CreationDate", &milliseconds(first));
        xml.close("Bucket");
    }
    xml.close("Buckets");
    xml.close("ListAllMyBucketsResult");
    Ok(document(xml))
}

fn document(xml: Xml) -> ServeAnswer {
    let answer = ServeAnswer::empty(200).header("content-type", "application/xml");
    ServeAnswer { body: AnswerBody::Bytes(xml.finish().into()), ..answer }
}

/// The products of a bucket that are there for the asker.
fn products(
    bucket: &str,
    asker: Asker<'_>,
    holdings: &mut dyn ServedCatalogue,
) -> Result<Vec<String>, HoldingsError> {
    let all = holdings.collections(Some(bucket), &asker.visible(Filter::Always(true)))?;
    Ok(all.into_iter().map(|collection| collection.product).collect())
}

fn of_bucket(
    request: &ServeRequest,
    bucket: &str,
    asker: Asker<'_>,
    holdings: &mut dyn ServedCatalogue,
) -> Result<ServeAnswer, ServeAnswer> {
    let products = products(bucket, asker, holdings)?;
    if products.is_empty() {
        return Err(no_bucket());
    }
    if request.method == ServeMethod::Head {
        return Ok(ServeAnswer::empty(200).header("x-amz-bucket-region", REGION));
    }
    let mut xml = Xml::default();
    if request.parameter("location").is_some() {
        // Of this region S3 says nothing.
        xml.open_root("LocationConstraint");
        xml.close("LocationConstraint");
        return Ok(document(xml));
    }
    if request.parameter("versioning").is_some() {
        xml.open_root("VersioningConfiguration");
        xml.close("VersioningConfiguration");
        return Ok(document(xml));
    }
    let listing = ObjectListing::of(request)?;
    Ok(listing.answer(bucket, &products, asker, holdings)?)
}

fn object(
    request: &ServeRequest,
    bucket: &str,
    key: &str,
    asker: Asker<'_>,
    holdings: &mut dyn ServedCatalogue,
) -> Result<ServeAnswer, ServeAnswer> {
    let held = match ObjectKey::of(key) {
        None => None,
        Some(parts) => match known(parts.id, asker, holdings) {
            Ok(held) => Some(held).filter(|held| {
                let item = &held.item;
                let is_there = item.state == ItemState::Present;
                is_there && item.mission == bucket && item.product == parts.product
            }),
            Err(refused) if refused.status == 404 => None,
            Err(failed) => return Err(failed),
        },
    };
    let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
    let file = held.as_ref().and_then(|held| {
        let file = held.item.files.iter().find(|file| file.name == name)?;
        Some((held, file))
    });
    match file {
        Some((held, file)) => object_answer(request, held, file),
        None if products(bucket, asker, holdings)?.is_empty() => Err(no_bucket()),
        None => Err(refusal(404, "NoSuchKey", "there is no such object")),
    }
}

fn no_bucket() -> ServeAnswer {
    refusal(404, "NoSuchBucket", "there is no such bucket; each mission has one")
}

/// What clients take a store without regions for.
const REGION: &str = "us-east-1";
