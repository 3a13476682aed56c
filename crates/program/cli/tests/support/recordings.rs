//! What is played and decoded: real captures, what independent decoders found in them, and noise.

use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Recordings of three spacecraft without errors.
pub const CLEAN: [&str; 3] =
    ["npp.20241206T173815.dat", "aqua.20241206T175646.dat", "metopb.20241206T152751.dat"];
/// A recording of whole CADUs, which can be played over and over without a seam.
pub const WHOLE_CADUS: &str = "snpp_synchronized_cadus.dat";
/// A recording in which a tenth of the frames cannot be corrected.
pub const DAMAGED: &str = "npp_rs_errors.dat";

pub fn recording(name: &str) -> PathBuf {
    testdata().join("cadu").join(name)
}

/// What independent decoders found in a recording.
pub fn expected(name: &str) -> Value {
    let text = std::fs::read_to_string(testdata().join("expected.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    all[format!("cadu/{name}")].clone()
}

/// Bytes without any frame, always the same.
pub fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u64;
    let next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../testdata")
}
