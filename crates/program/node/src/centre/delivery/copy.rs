//! Copies a published file to a consumer: the checksum for its record is computed on the way, and
//! the bytes are compared with the published digest.

use sha2::{Digest, Sha256};
use skyhaul_catalogue::ItemFile;
use skyhaul_dispatch::{Checksum, ChecksumKind, Summing};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

/// What copying a file found.
#[derive(Debug, PartialEq, Eq)]
pub struct CopiedFile {
    /// The checksum for its record.
    pub checksum: Option<Checksum>,
    /// Whether the bytes are those that were published.
    pub is_as_published: bool,
}

/// Copies a file into a folder, makes it durable, and then gives it its name. A file that differs
/// from the published one gets none.
pub fn copy(
    from: &Path,
    dir: &Path,
    file: &ItemFile,
    kind: Option<ChecksumKind>,
) -> io::Result<CopiedFile> {
    let part = dir.join(format!(".{}.part", file.name));
    let mut to = File::create(&part)?;
    let seen = pass(File::open(from)?, &mut to, file, kind)?;
    if !seen.is_as_published {
        fs::remove_file(&part)?;
        return Ok(seen);
    }
    to.sync_data()?;
    fs::rename(&part, dir.join(&file.name))?;
    File::open(dir)?.sync_all()?;
    Ok(seen)
}

/// Checks a file of this name that is there already; none where there is none.
pub fn there(
    path: &Path,
    file: &ItemFile,
    kind: Option<ChecksumKind>,
) -> io::Result<Option<CopiedFile>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(found) if found.len() != file.size => {
            Ok(Some(CopiedFile { checksum: None, is_as_published: false }))
        }
        Ok(_) => pass(File::open(path)?, io::sink(), file, kind).map(Some),
    }
}

/// Writes a small file atomically.
pub fn write(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let part = dir.join(format!(".{name}.part"));
    fs::write(&part, bytes)?;
    File::open(&part)?.sync_data()?;
    fs::rename(&part, dir.join(name))?;
    File::open(dir)?.sync_all()
}

fn pass(
    mut from: impl Read,
    mut to: impl Write,
    file: &ItemFile,
    kind: Option<ChecksumKind>,
) -> io::Result<CopiedFile> {
    let (mut hash, mut summing) = (Sha256::new(), kind.map(Summing::new));
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        to.write_all(&buffer[..count])?;
        hash.update(&buffer[..count]);
        summing.iter_mut().for_each(|summing| summing.update(&buffer[..count]));
    }
    let digest: [u8; 32] = hash.finalize().into();
    Ok(CopiedFile {
        checksum: summing.map(Summing::finish),
        is_as_published: digest == file.sha256,
    })
}

/// The size of a read: 1 MiB.
const CHUNK: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn file(content: &str) -> ItemFile {
        ItemFile {
            name: "a".to_owned(),
            size: content.len() as u64,
            sha256: Sha256::digest(content).into(),
            md5: None,
            cksum: None,
            is_metadata: false,
        }
    }

    #[test]
    fn a_file_is_handed_over_with_its_checksum_unless_it_is_no_longer_what_was_published() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let source = from.path().join("a");
        fs::write(&source, "123456789").unwrap();
        let good = file("123456789");
        let kind = Some(ChecksumKind::Cksum);
        assert_eq!(there(&to.path().join("a"), &good, kind).unwrap(), None);
        let seen =
            CopiedFile { checksum: Some(Checksum::Cksum(930_766_865)), is_as_published: true };
        assert_eq!(copy(&source, to.path(), &good, kind).unwrap(), seen);
        assert_eq!(there(&to.path().join("a"), &good, kind).unwrap(), Some(seen));
        // Another content of the same length, or of another length, is told, and not touched.
        for other in ["123456780", "1234"] {
            let differs = there(&to.path().join("a"), &file(other), kind).unwrap().unwrap();
            assert!(!differs.is_as_published, "{other}");
        }
        fs::write(&source, "123456780").unwrap();
        fs::remove_file(to.path().join("a")).unwrap();
        assert!(!copy(&source, to.path(), &good, None).unwrap().is_as_published);
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0, "nothing is left of it");
    }
}
