//! Published products as items of the catalogue.

use skyhaul_catalogue::{Item, ItemFile, ItemForm, ItemState};
use skyhaul_level0::construction::ProductKind;
use skyhaul_level0::report::{Product, ProductFile};
use skyhaul_units::Utc;
use std::collections::BTreeSet;

/// The item of a product that was published now; none where it has no packets.
pub fn item_of(product: &Product, now: Utc) -> Option<Item> {
    let (sidecar, accounting) = (&product.sidecar, &product.sidecar.accounting);
    if accounting.delivered == 0 || sidecar.product.packet_file.is_none() {
        return None;
    }
    let contact = sidecar.contacts.first();
    let mission = contact.map_or_else(String::new, |contact| contact.mission.clone());
    let stem = product.name.stem();
    let form = match (sidecar.product.kind, sidecar.product.window) {
        (ProductKind::Pds, Some(_)) => ItemForm::Time,
        (ProductKind::Pds, None) => ItemForm::Session,
        _ => ItemForm::Expedited,
    };
    let name = match (form, sidecar.product.window, contact) {
        // Each stands for itself, and has no later version.
        (ItemForm::Expedited, ..) => stem.clone(),
        (_, Some(window), _) => format!("{mission}-{}-{}", sidecar.product.name, window.from),
        (_, None, contact) => {
            let of = contact.map_or("", |contact| contact.name.as_str());
            format!("{mission}-{}-{of}", sidecar.product.name)
        }
    };
    let time = |stamps: Option<skyhaul_level0::PacketTimestamps>| stamps?.time;
    let stations: BTreeSet<&str> =
        sidecar.contacts.iter().map(|contact| contact.station.as_str()).collect();
    Some(Item {
        name,
        version: sidecar.product.version,
        form,
        mission,
        product: sidecar.product.name.clone(),
        stations: stations.into_iter().filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        apids: sidecar.apids.iter().map(|report| report.apid.value()).collect(),
        start: time(sidecar.product.first),
        end: time(sidecar.product.last),
        published: Utc::from_micros(now.as_micros()),
        packets: accounting.delivered,
        missing: accounting.missing,
        state: ItemState::Present,
        files: product.files.iter().map(|file| file_of(file, &stem)).collect(),
    })
}

fn file_of(file: &ProductFile, stem: &str) -> ItemFile {
    ItemFile {
        name: file.name.clone(),
        size: file.bytes,
        sha256: digest(&file.sha256),
        md5: file.md5,
        cksum: file.cksum,
        is_metadata: file.name.starts_with(stem) && !file.name.ends_with(".aside"),
    }
}

/// The bytes of a digest in hexadecimal.
fn digest(text: &str) -> [u8; 32] {
    let mut digest = [0; 32];
    for (place, byte) in digest.iter_mut().enumerate() {
        let digits = text.get(2 * place..2 * place + 2).unwrap_or_default();
        *byte = u8::from_str_radix(digits, 16).unwrap_or_default();
    }
    digest
}

/// The name of an item's construction record without suffix: it names records and notices.
pub fn stem_of(item: &Item) -> String {
    let record = item.files.iter().find(|file| file.is_metadata).or(item.files.first());
    let name = record.map_or(item.name.as_str(), |file| file.name.as_str());
    name.split('.').next().unwrap_or(name).to_owned()
}
