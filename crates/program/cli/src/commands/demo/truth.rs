//! The expected result: known before the pass, or the truth of a generated one.

use serde::Deserialize;
use std::collections::BTreeMap;

/// What one input's contact must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedContact {
    /// Mission that the station must find.
    pub mission: String,
    /// Spacecraft.
    pub scid: u16,
    /// Good frames, fill frames included.
    pub frames: u64,
    /// Digest over the good frames in the order of their sending.
    pub frames_sha256: String,
    /// Symbols to be corrected in good frames.
    pub corrected_symbols: u64,
    /// Frames that cannot be corrected.
    pub set_aside: u64,
    /// Virtual channels.
    pub channels: BTreeMap<u8, ExpectedChannel>,
}

/// What one virtual channel must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ExpectedChannel {
    /// Good frames.
    pub frames: u64,
    /// Frames that the count shows to be missing from the recording.
    pub missing: u64,
    /// Packets all of whose frames are there, idle packets included.
    #[serde(default)]
    pub packets: u64,
    /// Those packets by application.
    #[serde(default)]
    pub apids: BTreeMap<u16, u64>,
}

/// A recording as `expected.json` describes it.
#[derive(Deserialize)]
struct Entry {
    scid: u16,
    frames_total: u64,
    frames_sha256: String,
    rs_corrected: u64,
    rs_uncorrectable: u64,
    vcids: BTreeMap<u8, ExpectedChannel>,
}

/// What independent decoders found in the bundled recording `file` of `mission`.
pub fn bundled(file: &str, mission: &str) -> ExpectedContact {
    let mut entries: BTreeMap<String, serde_json::Value> =
        serde_json::from_str(EXPECTED).expect("the bundled results are JSON");
    let entry =
        entries.remove(&format!("cadu/{file}")).expect("the bundled results name every recording");
    let entry: Entry =
        serde_json::from_value(entry).expect("the bundled results have their documented form");
    ExpectedContact {
        mission: mission.to_owned(),
        scid: entry.scid,
        frames: entry.frames_total,
        frames_sha256: entry.frames_sha256,
        corrected_symbols: entry.rs_corrected,
        set_aside: entry.rs_uncorrectable,
        channels: entry.vcids,
    }
}

const EXPECTED: &str = include_str!("../../../../../../testdata/expected.json");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundled_results_are_complete() {
        for (file, mission, packets) in [
            ("npp.20241206T173815.dat", "suomi-npp", 273),
            ("aqua.20241206T175646.dat", "aqua", 1_182),
            ("metopb.20241206T152751.dat", "metop-b", 89),
        ] {
            let truth = bundled(file, mission);
            assert_eq!(
                truth.channels.values().map(|channel| channel.frames).sum::<u64>(),
                truth.frames
            );
            assert_eq!(
                truth.channels.values().map(|channel| channel.packets).sum::<u64>(),
                packets,
                "{file}"
            );
            for channel in truth.channels.values() {
                assert_eq!(channel.apids.values().sum::<u64>(), channel.packets, "{file}");
            }
        }
    }
}
