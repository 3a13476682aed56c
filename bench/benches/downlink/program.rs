//! The whole program: `skyhaul decode` of a capture of one gibibyte that is in the page cache.

use crate::recording::Downlink;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Bytes of the capture.
const LENGTH: usize = 1 << 30;
/// Runs, of which the fastest counts.
const RUNS: usize = 5;

/// Gbit/s of the program at `program`, from its start to its end.
///
/// # Errors
/// The capture cannot be written, or the program does not decode it.
pub fn decode(program: &str, downlink: &Downlink) -> io::Result<f64> {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("capture.dat");
    let frames = write(&file, downlink)?;
    let mut best = 0f64;
    for _ in 0..RUNS {
        let begun = Instant::now();
        let output =
            Command::new(program).arg("decode").arg(&file).stderr(Stdio::inherit()).output()?;
        let seconds = begun.elapsed().as_secs_f64();
        let all = format!("{frames} clean");
        if !String::from_utf8_lossy(&output.stdout).contains(&all) {
            return Err(io::Error::other(format!("{program} does not find {frames} clean frames")));
        }
        best = best.max(8.0 * LENGTH as f64 / seconds / 1e9);
    }
    std::fs::remove_file(&file)?;
    Ok(best)
}

/// Writes the downlink over and over; how many whole frames that makes.
fn write(path: &Path, downlink: &Downlink) -> io::Result<usize> {
    let mut file = File::create(path)?;
    let (unit, mut left) = (downlink.mission.cadu_len(), LENGTH);
    while left > 0 {
        let piece = &downlink.stream[..downlink.stream.len().min(left)];
        file.write_all(piece)?;
        left -= piece.len();
    }
    Ok(LENGTH / unit)
}
