//! Filters of the catalogue, and the places of deliveries.

use skyhaul_catalogue::Filter;
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
