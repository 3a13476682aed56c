//! The checksum of a published file as its record names it. The catalogue has it since the file was
//! published; only files that an earlier release published are read for it.

use skyhaul_catalogue::ItemFile;
use skyhaul_dispatch::{Checksum, ChecksumKind, Summing};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The size of a read: 1 MiB.
const CHUNK: usize = 1 << 20;

/// The checksum of the file at `path`, which the catalogue has as `file`.
pub fn checksum(path: &Path, file: &ItemFile, kind: ChecksumKind) -> io::Result<Checksum> {
    let kept = match kind {
        ChecksumKind::Md5 => file.md5.map(Checksum::Md5),
        ChecksumKind::Cksum => file.cksum.map(Checksum::Cksum),
        ChecksumKind::Sha256 => Some(Checksum::Sha256(file.sha256)),
    };
    kept.map_or_else(|| of_file(path, kind), Ok)
}

fn of_file(path: &Path, kind: ChecksumKind) -> io::Result<Checksum> {
    let (mut summing, mut buffer) = (Summing::new(kind), vec![0; CHUNK]);
    let mut file = File::open(path)?;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(summing.finish()),
            Ok(count) => summing.update(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_catalogue_has_is_taken_and_only_what_it_lacks_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let mut file = ItemFile {
            name: "a".to_owned(),
            size: 9,
            sha256: [0; 32],
            md5: Some([7; 16]),
            cksum: None,
            is_metadata: false,
        };
        let md5 = checksum(&path, &file, ChecksumKind::Md5);
        assert_eq!(md5.unwrap(), Checksum::Md5([7; 16]), "there is no file to read");
        assert!(checksum(&path, &file, ChecksumKind::Cksum).is_err());
        std::fs::write(&path, "123456789").unwrap();
        // As `cksum` of GNU coreutils prints it.
        let found = checksum(&path, &file, ChecksumKind::Cksum);
        assert_eq!(found.unwrap(), Checksum::Cksum(930_766_865));
        file.cksum = Some(1);
        assert_eq!(checksum(&path, &file, ChecksumKind::Cksum).unwrap(), Checksum::Cksum(1));
    }
}
