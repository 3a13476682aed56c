//! The digests of a published file: the one it was published with, and the one of its record.

use sha2::{Digest, Sha256};
use skyhaul_dispatch::{Checksum, ChecksumKind, Summing};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The digests of a file.
#[derive(Debug, PartialEq, Eq)]
pub struct FileDigests {
    /// Its SHA-256.
    pub sha256: [u8; 32],
    /// The checksum for its record.
    pub checksum: Option<Checksum>,
}

/// The size of a read: 1 MiB.
const CHUNK: usize = 1 << 20;

/// Reads a file once, for all its digests.
pub fn digests(path: &Path, kind: Option<ChecksumKind>) -> io::Result<FileDigests> {
    let (mut hash, mut summing) = (Sha256::new(), kind.map(Summing::new));
    let (mut file, mut buffer) = (File::open(path)?, vec![0; CHUNK]);
    loop {
        let count = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hash.update(&buffer[..count]);
        summing.iter_mut().for_each(|summing| summing.update(&buffer[..count]));
    }
    Ok(FileDigests { sha256: hash.finalize().into(), checksum: summing.map(Summing::finish) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_reading_gives_both_digests() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "123456789").unwrap();
        let found = digests(&path, Some(ChecksumKind::Cksum)).unwrap();
        // As `sha256sum` and `cksum` of GNU coreutils print them.
        let hex: String = found.sha256.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225");
        assert_eq!(found.checksum, Some(Checksum::Cksum(930_766_865)));
        assert!(digests(&folder.path().join("b"), None).is_err());
    }
}
