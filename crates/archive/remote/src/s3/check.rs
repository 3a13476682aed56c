//! Checksums that an object store verifies, and the trial that finds out which ones it does.

use super::store::{Store, StoreCall};
use crate::http::{CallBody, refused, tag_text};
use crate::sink::{Abilities, PublishWay, StoreCheck};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest as Crc};
use hyper::Method;
use md5::{Digest as _, Md5};
use skyhaul_dispatch::DeliveryFailure;

/// A checksum of one part or of one object, as bytes go by.
pub enum PartSum {
    /// A CRC.
    Crc(Box<Crc>, StoreCheck),
    /// MD5, beside the CRC-64/NVME that notes keep.
    Md5(Box<Crc>, Md5),
}

/// A checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartCheck {
    /// How the store checks.
    pub check: StoreCheck,
    /// The CRC that notes keep.
    pub crc: u64,
    md5: Option<[u8; 16]>,
}

impl PartSum {
    /// Begins one.
    pub fn new(check: StoreCheck) -> Self {
        let crc64 = || Box::new(Crc::new(CrcAlgorithm::Crc64Nvme));
        match check {
            StoreCheck::Crc32c => {
                Self::Crc(Box::new(Crc::new(CrcAlgorithm::Crc32Iscsi)), StoreCheck::Crc32c)
            }
            StoreCheck::Md5 => Self::Md5(crc64(), Md5::new()),
            check => Self::Crc(crc64(), check),
        }
    }

    /// Takes further bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Crc(crc, _) => crc.update(bytes),
            Self::Md5(crc, md5) => {
                crc.update(bytes);
                md5.update(bytes);
            }
        }
    }

    /// The checksum of all of them.
    pub fn finish(self) -> PartCheck {
        match self {
            Self::Crc(crc, check) => PartCheck { check, crc: crc.finalize(), md5: None },
            Self::Md5(crc, md5) => {
                let md5 = Some(md5.finalize().into());
                PartCheck { check: StoreCheck::Md5, crc: crc.finalize(), md5 }
            }
        }
    }
}

impl PartCheck {
    /// Of some bytes.
    pub fn of(check: StoreCheck, bytes: &[u8]) -> Self {
        let mut sum = PartSum::new(check);
        sum.update(bytes);
        sum.finish()
    }

    /// The header by which the store checks what it takes.
    pub fn header(&self) -> Option<(&'static str, String)> {
        match self.check {
            StoreCheck::Crc64 => Some((CRC64_HEADER, crc64_text(self.crc))),
            StoreCheck::Crc32c => Some((CRC32C_HEADER, crc32c_text(self.crc))),
            StoreCheck::Md5 => Some(("content-md5", STANDARD.encode(self.md5?))),
            StoreCheck::Blake3 | StoreCheck::Nothing => None,
        }
    }

    /// Another one than that of the content.
    fn wrong(self) -> Self {
        Self { crc: self.crc ^ 1, md5: self.md5.map(|md5| md5.map(|byte| byte ^ 1)), ..self }
    }
}

/// A CRC-64/NVME as headers have it.
pub fn crc64_text(crc: u64) -> String {
    STANDARD.encode(crc.to_be_bytes())
}

/// A CRC-32C as headers have it.
pub fn crc32c_text(crc: u64) -> String {
    STANDARD.encode((crc as u32).to_be_bytes())
}

/// The CRC-64/NVME of two pieces in a row.
pub fn joined(first: u64, second: u64, second_length: u64) -> u64 {
    crc_fast::checksum_combine(CrcAlgorithm::Crc64Nvme, first, second, second_length)
}

/// The names by which an upload in parts is begun with a check.
pub fn upload_headers(check: StoreCheck) -> &'static [(&'static str, &'static str)] {
    match check {
        StoreCheck::Crc64 => {
            &[("x-amz-checksum-algorithm", "CRC64NVME"), ("x-amz-checksum-type", "FULL_OBJECT")]
        }
        StoreCheck::Crc32c => &[("x-amz-checksum-algorithm", "CRC32C")],
        StoreCheck::Md5 | StoreCheck::Blake3 | StoreCheck::Nothing => &[],
    }
}

/// Finds out what a store can, with small objects that are removed again.
///
/// # Errors
/// It cannot be reached, or takes no object.
pub fn trial(store: &mut Store, by: &str) -> Result<Abilities, DeliveryFailure> {
    let key = store.key(&crate::name::trial(by));
    let plain = store.done("writing a trial object", &put(&key, None))?;
    abandon(store, &key)?;
    let server = plain.header("server").map(crate::failure::words).unwrap_or_default();
    let mut check = StoreCheck::Nothing;
    for tried in [StoreCheck::Crc64, StoreCheck::Crc32c, StoreCheck::Md5] {
        if verifies(store, &key, tried)? && uploads(store, &key, tried)? {
            check = tried;
            break;
        }
    }
    let again = store.ask(&put(&key, None).header("if-none-match", "*"))?;
    let refuses_existing = again.status.as_u16() == 412;
    let removed = store.ask(&StoreCall::of(Method::DELETE, &key))?;
    if !removed.status.is_success() && removed.status.as_u16() != 403 {
        return Err(refused(&store.place, "removing a trial object", &removed));
    }
    Ok(Abilities {
        server,
        publish: PublishWay::Whole,
        says_durable: true,
        resumes: true,
        refuses_existing,
        check,
        replaces: Some(true),
        free: None,
    })
}

/// Gives up what an earlier trial that was cut short began: parts of it would cost for ever. A
/// store that does not list uploads keeps them.
fn abandon(store: &mut Store, key: &str) -> Result<(), DeliveryFailure> {
    let listed = StoreCall::of_bucket(Method::GET).query("prefix", key).query("uploads", "");
    let listed = store.ask(&listed)?;
    if !listed.status.is_success() {
        return Ok(());
    }
    let text = listed.text();
    for upload in text.split("<Upload>").skip(1).take(ABANDONED_MAX) {
        let own = tag_text(upload, "Key").is_some_and(|found| found == key);
        if let Some(id) = tag_text(upload, "UploadId").filter(|_| own) {
            store.ask(&StoreCall::of(Method::DELETE, key).query("uploadId", &id))?;
        }
    }
    Ok(())
}

fn put(key: &str, check: Option<PartCheck>) -> StoreCall<'_> {
    let call = StoreCall::of(Method::PUT, key).body(CallBody::Bytes(Bytes::from_static(CONTENT)));
    match check.and_then(|check| check.header()) {
        Some((name, value)) => call.header(name, value),
        None => call,
    }
}

/// Whether it takes a good checksum, and refuses a wrong one.
fn verifies(store: &mut Store, key: &str, check: StoreCheck) -> Result<bool, DeliveryFailure> {
    let good = PartCheck::of(check, CONTENT);
    Ok(store.ask(&put(key, Some(good)))?.status.is_success()
        && store.ask(&put(key, Some(good.wrong())))?.status.is_client_error())
}

/// Whether it also does so for an upload in parts.
fn uploads(store: &mut Store, key: &str, check: StoreCheck) -> Result<bool, DeliveryFailure> {
    let mut begin = StoreCall::of(Method::POST, key).query("uploads", "");
    for (name, value) in upload_headers(check) {
        begin = begin.header(name, *value);
    }
    let begun = store.ask(&begin)?;
    let Some(upload) = tag_text(&begun.text(), "UploadId").filter(|_| begun.status.is_success())
    else {
        return Ok(false);
    };
    let sum = PartCheck::of(check, CONTENT);
    let part = put(key, Some(sum)).query("partNumber", "1").query("uploadId", &upload);
    let part = store.ask(&part)?;
    let listed = StoreCall::of(Method::GET, key).query("uploadId", &upload);
    let works = part.status.is_success() && store.ask(&listed)?.status.is_success();
    store.ask(&StoreCall::of(Method::DELETE, key).query("uploadId", &upload))?;
    Ok(works)
}

/// Uploads of earlier trials that one trial gives up.
const ABANDONED_MAX: usize = 100;
/// The header of a CRC-64/NVME.
pub const CRC64_HEADER: &str = "x-amz-checksum-crc64nvme";
const CRC32C_HEADER: &str = "x-amz-checksum-crc32c";

const CONTENT: &[u8] = b"a trial of Skyhaul; it may be removed";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_of_parts_join_to_that_of_the_whole() {
        let whole = PartCheck::of(StoreCheck::Crc64, b"123456789");
        // The check value of CRC-64/NVME in the catalogue of parametrised CRC algorithms.
        assert_eq!(whole.crc, 0xae8b_1486_0a79_9888);
        let [first, second] =
            [&b"1234"[..], b"56789"].map(|part| PartCheck::of(StoreCheck::Crc64, part).crc);
        assert_eq!(joined(first, second, 5), whole.crc);
        // RFC 3720 B.4 has the one of CRC-32C for 32 zeros: aa 36 91 8a, least octet first.
        let zeros = PartCheck::of(StoreCheck::Crc32c, &[0; 32]);
        assert_eq!(crc32c_text(zeros.crc), STANDARD.encode([0x8a, 0x91, 0x36, 0xaa]));
    }
}
