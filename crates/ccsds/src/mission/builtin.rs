//! The missions that come with the program: the files of the repository's `missions` folder.

use super::Mission;

/// The mission that fits no spacecraft: frames without packets, until somebody writes a file for it.
pub const GENERIC: &str = include_str!("../../../../missions/generic.toml");

const FILES: [&str; 9] = [
    include_str!("../../../../missions/suomi-npp.toml"),
    include_str!("../../../../missions/noaa-20.toml"),
    include_str!("../../../../missions/noaa-21.toml"),
    include_str!("../../../../missions/aqua.toml"),
    include_str!("../../../../missions/aura.toml"),
    include_str!("../../../../missions/terra.toml"),
    include_str!("../../../../missions/metop-b.toml"),
    include_str!("../../../../missions/metop-c.toml"),
    include_str!("../../../../missions/gcom-w1.toml"),
];

/// The built-in missions in the order in which they are tried.
pub(super) fn all() -> Vec<Mission> {
    FILES
        .iter()
        .map(|text| Mission::from_toml(text).expect("the repository's mission files are read by a test"))
        .collect()
}
