//! The checksums that delivery records of science data processing systems name, taken as bytes go
//! by.

use crc_fast::{CrcAlgorithm, Digest as Crc};
use md5::{Digest, Md5};

/// Which checksum a delivery record gives of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub enum ChecksumKind {
    /// MD5 (RFC 1321).
    Md5,
    /// The check of the utility `cksum` (POSIX.1-2017, cksum).
    Cksum,
}

/// The checksum of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// MD5.
    Md5([u8; 16]),
    /// As `cksum` prints it.
    Cksum(u32),
}

/// A checksum under way.
#[derive(Debug)]
pub enum Summing {
    /// MD5.
    Md5(Md5),
    /// The check so far, and the bytes that it covers.
    Cksum(Box<Crc>, u64),
}

impl Summing {
    /// Begins one.
    pub fn new(kind: ChecksumKind) -> Self {
        match kind {
            ChecksumKind::Md5 => Self::Md5(Md5::new()),
            ChecksumKind::Cksum => Self::Cksum(Box::new(Crc::new(CrcAlgorithm::Crc32Cksum)), 0),
        }
    }

    /// Takes further bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Md5(hash) => hash.update(bytes),
            Self::Cksum(crc, length) => {
                crc.update(bytes);
                *length += bytes.len() as u64;
            }
        }
    }

    /// The checksum of all of them.
    pub fn finish(self) -> Checksum {
        match self {
            Self::Md5(hash) => Checksum::Md5(hash.finalize().into()),
            Self::Cksum(mut crc, length) => {
                // POSIX: the length follows, least significant octet first, as few octets as it
                // takes.
                let octets = 8 - length.leading_zeros() as usize / 8;
                crc.update(&length.to_le_bytes()[..octets]);
                Checksum::Cksum(crc.finalize() as u32)
            }
        }
    }
}

impl core::str::FromStr for ChecksumKind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "md5" => Ok(Self::Md5),
            "cksum" => Ok(Self::Cksum),
            other => Err(format!(
                "`{other}` is no checksum of delivery records; write \"md5\" or \"cksum\""
            )),
        }
    }
}

impl TryFrom<String> for ChecksumKind {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: ChecksumKind, parts: &[&[u8]]) -> Checksum {
        let mut summing = Summing::new(kind);
        parts.iter().for_each(|part| summing.update(part));
        summing.finish()
    }

    #[test]
    fn checksums_are_those_of_the_utilities() {
        // As `printf 123456789 | cksum` and `cksum < /dev/null` of GNU coreutils print them.
        assert_eq!(of(ChecksumKind::Cksum, &[b"1234", b"56789"]), Checksum::Cksum(930_766_865));
        assert_eq!(of(ChecksumKind::Cksum, &[]), Checksum::Cksum(4_294_967_295));
        // `head -c 70000 /dev/zero | cksum`: a length of three octets.
        assert_eq!(of(ChecksumKind::Cksum, &[&[0; 70_000]]), Checksum::Cksum(ZEROS));
        // RFC 1321 A.5.
        let Checksum::Md5(digest) = of(ChecksumKind::Md5, &[b"a", b"bc"]) else {
            panic!("not MD5")
        };
        assert_eq!(crate::hex(&digest), "900150983cd24fb0d6963f7d28e17f72");
    }

    const ZEROS: u32 = 1_774_371_287;
}
