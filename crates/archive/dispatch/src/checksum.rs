//! The checksums that delivery records of science data processing systems name, taken as bytes go
//! by.

use md5::{Digest, Md5};
use sha2::Sha256;
use skyhaul_coding::crc::Cksum;

/// Which checksum a delivery record gives of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub enum ChecksumKind {
    /// MD5 (RFC 1321).
    Md5,
    /// The check of the utility `cksum` (POSIX.1-2017, cksum).
    Cksum,
    /// SHA-256 (FIPS 180-4).
    Sha256,
}

/// The checksum of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// MD5.
    Md5([u8; 16]),
    /// As `cksum` prints it.
    Cksum(u32),
    /// SHA-256.
    Sha256([u8; 32]),
}

/// A checksum under way.
#[derive(Debug)]
pub enum Summing {
    /// MD5.
    Md5(Md5),
    /// As `cksum` prints it.
    Cksum(Box<Cksum>),
    /// SHA-256.
    Sha256(Box<Sha256>),
}

impl Summing {
    /// Begins one.
    pub fn new(kind: ChecksumKind) -> Self {
        match kind {
            ChecksumKind::Md5 => Self::Md5(Md5::new()),
            ChecksumKind::Cksum => Self::Cksum(Box::default()),
            ChecksumKind::Sha256 => Self::Sha256(Box::default()),
        }
    }

    /// Takes further bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Md5(hash) => hash.update(bytes),
            Self::Cksum(check) => check.update(bytes),
            Self::Sha256(hash) => hash.update(bytes),
        }
    }

    /// The checksum of all of them.
    pub fn finish(self) -> Checksum {
        match self {
            Self::Md5(hash) => Checksum::Md5(hash.finalize().into()),
            Self::Cksum(check) => Checksum::Cksum(check.finish()),
            Self::Sha256(hash) => Checksum::Sha256(hash.finalize().into()),
        }
    }
}

impl core::str::FromStr for ChecksumKind {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "md5" => Ok(Self::Md5),
            "cksum" => Ok(Self::Cksum),
            "sha256" => Ok(Self::Sha256),
            other => Err(format!(
                "`{other}` is no checksum of delivery records; write \"md5\", \"cksum\" or \
                 \"sha256\""
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
        // As `printf 123456789 | sha256sum` prints it.
        let Checksum::Sha256(digest) = of(ChecksumKind::Sha256, &[b"123", b"456789"]) else {
            panic!("not SHA-256")
        };
        assert_eq!(&crate::hex(&digest)[..16], "15e2b0d3c33891eb");
        // RFC 1321 A.5.
        let Checksum::Md5(digest) = of(ChecksumKind::Md5, &[b"a", b"bc"]) else {
            panic!("not MD5")
        };
        assert_eq!(crate::hex(&digest), "900150983cd24fb0d6963f7d28e17f72");
    }
}
