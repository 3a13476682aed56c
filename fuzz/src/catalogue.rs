//! Filters of the catalogue, the places of deliveries, and the manifests of volumes.

use skyhaul_catalogue::{Filter, bag_manifest, parse_bag_manifest};
use skyhaul_remote::RemotePlace;

/// A text that is a filter, or a place, is written as one that is read the same.
pub fn filter(input: &[u8]) {
    let Ok(text) = core::str::from_utf8(input) else { return };
    if let Ok(filter) = text.parse::<Filter>() {
        let written = filter.to_string();
        assert_eq!(written.parse::<Filter>().as_ref(), Ok(&filter), "{written}");
    }
    if let Ok(place) = text.parse::<RemotePlace>() {
        let written = place.to_string();
        assert_eq!(written.parse::<RemotePlace>().as_ref(), Ok(&place), "{written}");
    }
}

/// A text that is a manifest is written as one that is read the same, and no path leaves the bag.
pub fn bag_manifests(input: &[u8]) {
    let Ok(text) = core::str::from_utf8(input) else { return };
    if let Ok(entries) = parse_bag_manifest(text) {
        assert!(entries.iter().all(|entry| !entry.path.split('/').any(|part| part == "..")));
        assert_eq!(parse_bag_manifest(&bag_manifest(&entries)), Ok(entries));
    }
}
