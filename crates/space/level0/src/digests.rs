//! The digests of a published file, taken as its bytes go by: a file is never read again for them.

use md5::Md5;
use sha2::{Digest, Sha256};
use skyhaul_coding::crc::Cksum;

/// Which digests are taken of published files, beside SHA-256.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DigestKinds {
    /// None: the account has SHA-256.
    #[default]
    Account,
    /// Also those that delivery records name: MD5, which takes twice the time of SHA-256 on a
    /// processor with instructions for the latter, and the check of `cksum`.
    Records,
}

/// The digests of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileDigests {
    /// SHA-256, lower-case hexadecimal; empty where none was taken.
    pub sha256: String,
    /// MD5 (RFC 1321), where it was asked for.
    pub md5: Option<[u8; 16]>,
    /// The check of `cksum` (POSIX.1-2017), where it was asked for.
    pub cksum: Option<u32>,
}

/// Digests under way.
pub(crate) struct Digesting {
    sha256: Sha256,
    records: Option<Box<(Md5, Cksum)>>,
}

impl Digesting {
    /// Begins those of a file.
    pub fn new(kinds: DigestKinds) -> Self {
        let records = match kinds {
            DigestKinds::Account => None,
            DigestKinds::Records => Some(Box::default()),
        };
        Self { sha256: Sha256::new(), records }
    }

    /// Those of a whole file.
    pub fn of(kinds: DigestKinds, bytes: &[u8]) -> FileDigests {
        let mut digesting = Self::new(kinds);
        digesting.update(bytes);
        digesting.finish()
    }

    /// Takes further bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.sha256.update(bytes);
        if let Some(records) = &mut self.records {
            records.0.update(bytes);
            records.1.update(bytes);
        }
    }

    /// The digests of all of them.
    pub fn finish(self) -> FileDigests {
        let sha256 = hex(&self.sha256.finalize());
        let (md5, cksum) = match self.records {
            None => (None, None),
            Some(records) => {
                let (md5, cksum) = *records;
                (Some(md5.finalize().into()), Some(cksum.finish()))
            }
        };
        FileDigests { sha256, md5, cksum }
    }
}

/// Lower-case hexadecimal.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
