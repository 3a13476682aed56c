//! A recording of VDIF that a station streams, and the files that the centre has of it.

use skyhaul_streams::Synthesis;
use std::fs;
use std::path::Path;

pub struct Scan(Vec<u8>);

impl Scan {
    /// Two threads of 50 frames: 4 Mbit/s with 5000 bytes of samples in each.
    pub const FRAMES_PER_SECOND: u64 = 100;

    pub fn make(file: &Path, seconds: u64) -> Self {
        let mut synthesis = Synthesis::new(5_000, 2, 50).unwrap();
        let mut bytes = Vec::new();
        (0..seconds * Self::FRAMES_PER_SECOND).for_each(|_| synthesis.frame(&mut bytes));
        fs::write(file, &bytes).unwrap();
        Self(bytes)
    }

    /// The files of `folder` that have the whole recording and nothing else. Parts of interrupted
    /// streams do not count.
    pub fn copies(&self, folder: &Path) -> usize {
        let Ok(entries) = fs::read_dir(folder) else { return 0 };
        let paths = entries.map(|entry| entry.unwrap().path());
        let is_whole = |path: &Path| path.extension().is_some_and(|end| end == "vdif");
        paths
            .filter(|path| is_whole(path) && fs::read(path).is_ok_and(|bytes| bytes == self.0))
            .count()
    }
}
