//! An upload in parts: begun, continued where an earlier attempt stopped, and completed.

use super::check::{CRC64_HEADER, PartSum, crc32c_text, crc64_text, joined, upload_headers};
use super::store::{Store, StoreCall};
use crate::failure::failed;
use crate::http::{CallBody, HttpAnswer, refused, tag_text};
use crate::sink::{
    GoOn, OutgoingFile, PlaceProgress, ResumeNote, ResumeStep, StoreCheck, UploadNote, UploadedPart,
};
use crate::source::{PIECE, PublishedSource, hex};
use bytes::Bytes;
use hyper::Method;
use skyhaul_dispatch::{DeliveryFailure, FailureKind};
use skyhaul_units::ByteCount;
use std::time::Duration;

/// An upload of a file.
pub struct Upload<'a> {
    /// The bucket.
    pub store: &'a mut Store,
    /// The key of the object.
    pub key: &'a str,
    /// The file.
    pub file: &'a OutgoingFile,
}

/// How an upload ended.
#[derive(Debug)]
pub enum Uploaded {
    /// The store has it, or has refused: the answer to its completion says.
    Answered(HttpAnswer),
    /// The store has all parts, and no upload of this name any more: it puts them together, or has
    /// given them up. The answer says the latter.
    Gone(HttpAnswer),
    /// The caller stopped it.
    Stopped,
}

impl<'a> Upload<'a> {
    /// The upload that a note names, as far as the store still has it; or none.
    ///
    /// # Errors
    /// The store cannot be asked.
    pub fn resumed(&mut self, note: &ResumeNote) -> Result<Option<UploadNote>, DeliveryFailure> {
        let ResumeNote::Upload(noted) = note else { return Ok(None) };
        if noted.sha256 != self.file.sha256 || noted.part_size == 0 {
            return Ok(None);
        }
        let Some(there) = self.parts(&noted.upload)? else { return Ok(None) };
        let mut note = noted.clone();
        let agrees = |(index, part): (usize, &UploadedPart)| {
            let length = part_length(self.file, noted.part_size, index);
            there.get(index).is_some_and(|(tag, size)| *tag == part.tag && *size == length)
        };
        let good = note.parts.iter().enumerate().take_while(|part| agrees(*part)).count();
        note.parts.truncate(good);
        Ok(Some(note))
    }

    /// The tag and size of each part that the store has, from the first on; none where it has no
    /// such upload.
    fn parts(&mut self, upload: &str) -> Result<Option<Vec<(String, u64)>>, DeliveryFailure> {
        let (mut found, mut marker) = (Vec::new(), String::from("0"));
        // 1,000 parts a page, and at most 10,000 parts.
        for _ in 0..12 {
            let call = StoreCall::of(Method::GET, self.key)
                .query("uploadId", upload)
                .query("part-number-marker", &marker);
            let answer = self.store.ask(&call)?;
            if is_gone(&answer) {
                return Ok(None);
            }
            if !answer.status.is_success() {
                return Err(refused(&self.store.place, "listing the parts of an upload", &answer));
            }
            let text = answer.text();
            for part in text.split("<Part>").skip(1) {
                let number = tag_text(part, "PartNumber").and_then(|number| number.parse().ok());
                if number != Some(found.len() + 1) {
                    return Ok(Some(found));
                }
                let size = tag_text(part, "Size").and_then(|size| size.parse().ok());
                found.push((tag_text(part, "ETag").unwrap_or_default(), size.unwrap_or(0)));
            }
            if tag_text(&text, "IsTruncated").as_deref() != Some("true") {
                break;
            }
            marker = found.len().to_string();
        }
        Ok(Some(found))
    }

    /// Begins one.
    ///
    /// # Errors
    /// The store cannot be asked, or refuses.
    pub fn begin(
        &mut self,
        check: StoreCheck,
        least_part: ByteCount,
    ) -> Result<UploadNote, DeliveryFailure> {
        let mut call = StoreCall::of(Method::POST, self.key)
            .query("uploads", "")
            .header("x-amz-meta-sha256", hex(&self.file.sha256));
        for (name, value) in upload_headers(check) {
            call = call.header(name, *value);
        }
        let answer = self.store.done(&format!("beginning {}", self.file.name), &call)?;
        let Some(upload) = tag_text(&answer.text(), "UploadId") else {
            let what = "the store began an upload without a name for it";
            return Err(failed(FailureKind::Refused, &self.store.place, what));
        };
        let part_size = part_size(self.file.size, least_part);
        Ok(UploadNote { sha256: self.file.sha256, upload, part_size, check, parts: Vec::new() })
    }

    /// Sends the parts that lack, and completes it.
    ///
    /// # Errors
    /// The store cannot be asked or refuses a part, or the file is not what was published.
    pub fn run(
        &mut self,
        mut note: UploadNote,
        progress: &mut dyn FnMut(PlaceProgress<'_>) -> GoOn,
    ) -> Result<Uploaded, DeliveryFailure> {
        let mut source = PublishedSource::open(self.file)?;
        let there = note.parts.len() as u64 * note.part_size;
        source.skip_to(there.min(self.file.size.as_u64()), 0)?;
        while !source.is_at_end() {
            let Some(part) = self.send_part(&note, &mut source, progress)? else {
                return Ok(Uploaded::Stopped);
            };
            note.parts.push(part.clone());
            if progress(PlaceProgress::Reached(&ResumeStep::Further(part))) == GoOn::Stop {
                return Ok(Uploaded::Stopped);
            }
        }
        if let Err(failure) = source.finish() {
            self.abort(&note.upload)?;
            return Err(failure);
        }
        let (call, size) = (self.completion(&note), self.file.size);
        let mut watch = |_| progress(PlaceProgress::Sent(size));
        let Some(answer) = self.store.ask_watched(&call, &mut watch)? else {
            return Ok(Uploaded::Stopped);
        };
        if is_gone(&answer) {
            return Ok(Uploaded::Gone(answer));
        }
        if is_hopeless(answer.status.as_u16()) {
            // Its parts will not do better the next time.
            self.abort(&note.upload)?;
        }
        Ok(Uploaded::Answered(answer))
    }

    /// Whether all parts of the file went to the upload of a note: what the store does next with
    /// them is to put them together.
    pub fn is_sent(&self, note: &ResumeNote) -> bool {
        let ResumeNote::Upload(noted) = note else { return false };
        let there = (noted.parts.len() as u64).saturating_mul(noted.part_size);
        noted.sha256 == self.file.sha256 && noted.part_size > 0 && there >= self.file.size.as_u64()
    }

    fn send_part(
        &mut self,
        note: &UploadNote,
        source: &mut PublishedSource<'_>,
        progress: &mut dyn FnMut(PlaceProgress<'_>) -> GoOn,
    ) -> Result<Option<UploadedPart>, DeliveryFailure> {
        let (from, index) = (source.at(), note.parts.len());
        let length = part_length(self.file, note.part_size, index);
        let mut sum = PartSum::new(note.check);
        while source.at() < from + length {
            let left = usize::try_from(from + length - source.at()).unwrap_or(usize::MAX);
            sum.update(&source.next(left.min(PIECE))?);
        }
        let check = sum.finish();
        let mut call = StoreCall::of(Method::PUT, self.key)
            .query("partNumber", &(index + 1).to_string())
            .query("uploadId", &note.upload)
            .body(CallBody::File { path: &self.file.path, from, length });
        if let Some((name, value)) = check.header() {
            call = call.header(name, value);
        }
        let mut watch = |taken| progress(PlaceProgress::Sent(ByteCount::new(from + taken)));
        let Some(answer) = self.store.ask_watched(&call, &mut watch)? else { return Ok(None) };
        let doing = format!("placing part {} of {}", index + 1, self.file.name);
        if !answer.status.is_success() {
            return Err(refused(&self.store.place, &doing, &answer));
        }
        let Some(tag) = answer.header("etag") else {
            let what = format!("{doing}: the store gave no tag (ETag)");
            return Err(failed(FailureKind::Refused, &self.store.place, what));
        };
        Ok(Some(UploadedPart { tag: tag.to_owned(), crc: check.crc }))
    }

    fn completion(&self, note: &UploadNote) -> StoreCall<'a> {
        let mut body = String::from("<CompleteMultipartUpload>");
        let (mut crc, size) = (0, self.file.size.as_u64());
        for (index, part) in note.parts.iter().enumerate() {
            let tag = part.tag.replace('&', "&amp;").replace('<', "&lt;");
            let number = index + 1;
            body.push_str(&format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag>"));
            match note.check {
                StoreCheck::Crc64 => {
                    let text = crc64_text(part.crc);
                    body.push_str(&format!("<ChecksumCRC64NVME>{text}</ChecksumCRC64NVME>"));
                }
                StoreCheck::Crc32c => {
                    let text = crc32c_text(part.crc);
                    body.push_str(&format!("<ChecksumCRC32C>{text}</ChecksumCRC32C>"));
                }
                StoreCheck::Md5 | StoreCheck::Blake3 | StoreCheck::Nothing => {}
            }
            body.push_str("</Part>");
            let length = part_length(self.file, note.part_size, index);
            crc = if index == 0 { part.crc } else { joined(crc, part.crc, length) };
        }
        body.push_str("</CompleteMultipartUpload>");
        let mut call = StoreCall::of(Method::POST, self.key)
            .query("uploadId", &note.upload)
            .header("if-none-match", "*")
            .header("x-amz-mp-object-size", size.to_string())
            .body(CallBody::Bytes(Bytes::from(body)))
            .work(joining(self.file));
        if note.check == StoreCheck::Crc64 {
            call = call.header(CRC64_HEADER, crc64_text(crc));
            call = call.header("x-amz-checksum-type", "FULL_OBJECT");
        }
        call
    }

    /// Removes what the store keeps of it.
    ///
    /// # Errors
    /// The store cannot be asked.
    pub fn abort(&mut self, upload: &str) -> Result<(), DeliveryFailure> {
        let call = StoreCall::of(Method::DELETE, self.key).query("uploadId", upload);
        let answer = self.store.ask(&call)?;
        match answer.status.is_success() || answer.status.as_u16() == 404 {
            true => Ok(()),
            false => Err(refused(&self.store.place, "aborting an upload", &answer)),
        }
    }
}

/// Whether a store says that it has no such upload.
fn is_gone(answer: &HttpAnswer) -> bool {
    answer.status.as_u16() == 404 && !is_of_bucket(answer)
}

/// Whether a store says that it has no such bucket.
fn is_of_bucket(answer: &HttpAnswer) -> bool {
    tag_text(&answer.text(), "Code").is_some_and(|code| code == "NoSuchBucket")
}

/// The longest time in which a store puts the parts of a file together, beyond the usual of an
/// answer: some copy them, at no less than 16 MiB/s.
pub fn joining(file: &OutgoingFile) -> Duration {
    Duration::from_secs(file.size.as_u64().div_ceil(JOINED_A_SECOND.as_u64()))
}

/// A disk that turns, and that others use too, reads and writes as much.
const JOINED_A_SECOND: ByteCount = ByteCount::mib(16);

/// Whether a completion was refused for the parts themselves (`BadDigest`, `InvalidPart`).
fn is_hopeless(status: u16) -> bool {
    (400..500).contains(&status) && ![401, 403, 404, 408, 409, 429].contains(&status)
}

/// The length of a part.
fn part_length(file: &OutgoingFile, part_size: u64, index: usize) -> u64 {
    file.size.as_u64().saturating_sub(index as u64 * part_size).min(part_size)
}

/// A store takes 10,000 parts: at most 9,000, each a whole number of MiB, and none shorter than
/// asked for.
fn part_size(size: ByteCount, least: ByteCount) -> u64 {
    let mib = ByteCount::mib(1).as_u64();
    size.as_u64().div_ceil(9_000).div_ceil(mib).saturating_mul(mib).max(least.as_u64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_few_as_a_store_takes_and_no_shorter_than_asked() {
        let least = ByteCount::mib(64);
        assert_eq!(part_size(ByteCount::mib(100), least), 64 << 20);
        let large = 4_u64 << 40;
        let part = part_size(ByteCount::new(large), least);
        assert!(part.is_multiple_of(1 << 20) && large.div_ceil(part) <= 9_000);
    }
}
