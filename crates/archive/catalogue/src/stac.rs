//! An item as a STAC item (STAC 1.1.0), as one line of JSON.

use crate::item::{Item, ItemFile};
use serde_json::{Value, json};
use skyhaul_units::Utc;

/// The extensions that items name.
const EXTENSIONS: [&str; 4] = [
    "https://stac-extensions.github.io/file/v2.1.0/schema.json",
    "https://stac-extensions.github.io/processing/v1.2.0/schema.json",
    "https://stac-extensions.github.io/product/v1.0.0/schema.json",
    "https://stac-extensions.github.io/version/v1.2.0/schema.json",
];

/// The STAC item of an item. `href` gives the address of a file from its name.
///
/// An item without a position has `geometry: null` and no `bbox` (STAC 1.1.0, item fields). Without
/// a packet time, `datetime` is the time of publication: STAC demands one.
pub fn stac_item(item: &Item, href: impl Fn(&str) -> String) -> Value {
    let time = |time: Utc| Value::String(rfc3339(time));
    let mut properties = json!({
        "created": rfc3339(item.published),
        "updated": rfc3339(item.published),
        "platform": item.mission,
        "processing:level": "L0",
        "product:type": item.product,
        "version": item.version.to_string(),
        "skyhaul:kind": item.form.name(),
        "skyhaul:packets": item.packets,
        "skyhaul:missing": item.missing,
        "skyhaul:station": item.stations,
        "skyhaul:apid": item.apids,
    });
    let span = match (item.start, item.end) {
        (Some(start), Some(end)) => {
            json!({"datetime": null, "start_datetime": time(start), "end_datetime": time(end)})
        }
        (Some(at), None) | (None, Some(at)) => json!({"datetime": time(at)}),
        (None, None) => json!({"datetime": rfc3339(item.published)}),
    };
    if let (Some(properties), Value::Object(span)) = (properties.as_object_mut(), span) {
        properties.extend(span);
    }
    let assets: serde_json::Map<String, Value> =
        item.files.iter().map(|file| (file.name.clone(), asset(file, &href))).collect();
    json!({
        "type": "Feature",
        "stac_version": "1.1.0",
        "stac_extensions": EXTENSIONS,
        "id": item.versioned_id(),
        "collection": item.collection(),
        "geometry": null,
        "properties": properties,
        "assets": assets,
        "links": [],
    })
}

fn asset(file: &ItemFile, href: &impl Fn(&str) -> String) -> Value {
    let role = if file.is_metadata { "metadata" } else { "data" };
    // A multihash (file extension 2.1.0): SHA2-256 has the code 0x12, and 0x20 bytes.
    let digest: String = file.sha256.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({
        "href": href(&file.name),
        "type": "application/octet-stream",
        "roles": [role],
        "file:size": file.size,
        "file:checksum": format!("1220{digest}"),
    })
}

/// As RFC 3339 demands, with microseconds.
fn rfc3339(time: Utc) -> String {
    time.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::{ItemForm, ItemState};
    use skyhaul_units::Duration;

    #[test]
    fn an_item_has_its_times_and_digests() {
        let at = |second| Utc::from_day(20_780, Duration::from_secs(second));
        let file = ItemFile {
            name: "x.PDS".to_owned(),
            size: 3,
            sha256: [0xba; 32],
            md5: None,
            cksum: None,
            is_metadata: false,
        };
        let mut item = Item {
            name: "x".to_owned(),
            version: 2,
            form: ItemForm::Time,
            mission: "noaa-20".to_owned(),
            product: "viirs-science".to_owned(),
            stations: vec!["svalbard-1".to_owned()],
            apids: vec![826],
            start: Some(at(1)),
            end: Some(at(2)),
            published: at(9),
            packets: 7,
            missing: 1,
            state: ItemState::Present,
            files: vec![file],
        };
        let stac = stac_item(&item, |name| format!("products/{name}"));
        assert_eq!(stac["id"], "x-v2");
        assert_eq!(stac["properties"]["datetime"], Value::Null);
        assert_eq!(stac["properties"]["start_datetime"], "2026-11-23T00:00:01.000000Z");
        assert_eq!(stac["assets"]["x.PDS"]["href"], "products/x.PDS");
        let checksum = format!("1220{}", "ba".repeat(32));
        assert_eq!(stac["assets"]["x.PDS"]["file:checksum"], checksum);
        item.end = None;
        let stac = stac_item(&item, str::to_owned);
        assert_eq!(stac["properties"]["datetime"], "2026-11-23T00:00:01.000000Z");
        assert_eq!(stac["properties"].get("start_datetime"), None);
    }
}
