//! A folder with files of many sizes, and the contents of a folder.

use super::echo::pattern;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub struct Tree(PathBuf);

/// Lengths of the files: empty ones, small ones of which a block holds many, and some of many
/// blocks.
const LENGTHS: [usize; 12] =
    [0, 1, 1_000, 5_000, 20_000, 70_000, 130_000, 131_073, 300_000, 500_000, 700_000, 1_500_000];

impl Tree {
    /// What is at `folder`, now and later.
    pub fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// Makes the folder and its files.
    pub fn make(folder: &Path) -> Self {
        fs::create_dir_all(folder.join("deep/er")).unwrap();
        for (place, len) in LENGTHS.into_iter().enumerate() {
            let above = folder.join(["", "deep", "deep/er"][place % 3]);
            fs::write(above.join(format!("file-{place}")), pattern(len)).unwrap();
        }
        Self(folder.to_owned())
    }

    pub fn files(&self) -> usize {
        self.contents().len()
    }

    /// One file is new, one has other contents, and one is gone.
    pub fn change(&self) {
        fs::write(self.0.join("deep/new"), pattern(10_000)).unwrap();
        fs::write(self.0.join("file-3"), pattern(77_777)).unwrap();
        fs::remove_file(self.0.join("deep/er/file-2")).unwrap();
    }

    /// Every file with its bytes. A missing folder has no files, and the name of an unfinished file
    /// shows that it is unfinished.
    pub fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let (mut found, mut waiting) = (BTreeMap::new(), vec![self.0.clone()]);
        while let Some(folder) = waiting.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    waiting.push(path);
                } else if let Ok(bytes) = fs::read(&path) {
                    found.insert(path.strip_prefix(&self.0).unwrap().to_owned(), bytes);
                }
            }
        }
        found
    }
}
