//! The missions that come with the program: the files of the repository's `missions` folder.

use super::Mission;

/// The mission for unknown spacecraft: frames without packets, until there is a mission file.
pub const GENERIC: &str = include_str!("../../../../../missions/generic.toml");

const FILES: [&str; 32] = [
    include_str!("../../../../../missions/suomi-npp.toml"),
    include_str!("../../../../../missions/noaa-20.toml"),
    include_str!("../../../../../missions/noaa-21.toml"),
    include_str!("../../../../../missions/jpss-3.toml"),
    include_str!("../../../../../missions/jpss-4.toml"),
    include_str!("../../../../../missions/aqua.toml"),
    include_str!("../../../../../missions/aura.toml"),
    include_str!("../../../../../missions/terra.toml"),
    include_str!("../../../../../missions/metop-b.toml"),
    include_str!("../../../../../missions/metop-c.toml"),
    include_str!("../../../../../missions/metop-sg-a1.toml"),
    include_str!("../../../../../missions/metop-sg-a2.toml"),
    include_str!("../../../../../missions/metop-sg-a3.toml"),
    include_str!("../../../../../missions/metop-sg-b1.toml"),
    include_str!("../../../../../missions/metop-sg-b2.toml"),
    include_str!("../../../../../missions/metop-sg-b3.toml"),
    include_str!("../../../../../missions/gcom-w1.toml"),
    include_str!("../../../../../missions/goes-16.toml"),
    include_str!("../../../../../missions/goes-17.toml"),
    include_str!("../../../../../missions/sentinel-6.toml"),
    include_str!("../../../../../missions/landsat-s-band.toml"),
    include_str!("../../../../../missions/smap.toml"),
    include_str!("../../../../../missions/cryosat-2.toml"),
    include_str!("../../../../../missions/grace-fo.toml"),
    include_str!("../../../../../missions/mtg.toml"),
    include_str!("../../../../../missions/dscovr.toml"),
    include_str!("../../../../../missions/europa-clipper.toml"),
    include_str!("../../../../../missions/psyche.toml"),
    include_str!("../../../../../missions/euclid.toml"),
    include_str!("../../../../../missions/escapade-gold.toml"),
    include_str!("../../../../../missions/equuleus.toml"),
    include_str!("../../../../../missions/change-5.toml"),
];

/// The built-in missions in the order in which they are tried.
pub(super) fn all() -> Vec<Mission> {
    FILES
        .iter()
        .map(|text| {
            Mission::from_toml(text).expect("the repository's mission files are read by a test")
        })
        .collect()
}
