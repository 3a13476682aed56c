//! Objects: the files of products.

use super::refusal::refusal;
use crate::answer::{AnswerBody, ServeAnswer};
use crate::file_answer::{hex, tag, tagged_answer};
use crate::holdings::HeldItem;
use crate::request::ServeRequest;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use core::cmp::Ordering;
use skyhaul_catalogue::ItemFile;

/// The key of an object: `PRODUCT/NAME-vN/FILE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectKey<'a> {
    /// The product.
    pub product: &'a str,
    /// The name with its version.
    pub id: &'a str,
    /// The file.
    pub file: &'a str,
}

impl<'a> ObjectKey<'a> {
    /// A key of this form; none where it has another.
    pub fn of(key: &'a str) -> Option<Self> {
        let (product, rest) = key.split_once('/')?;
        let (id, file) = rest.split_once('/')?;
        let is_key = !product.is_empty() && !id.is_empty() && !file.contains('/');
        is_key.then_some(Self { product, id, file })
    }

    /// The order of two keys, or beginnings of keys. It is that of their bytes, but for an item
    /// whose name continues that of another with a character before the slash: items stand by their
    /// names.
    pub fn order(one: &str, other: &str) -> Ordering {
        Self::parts(one).cmp(&Self::parts(other))
    }

    /// The product with its slash, the name, the file.
    fn parts(key: &str) -> [&str; 3] {
        let (product, rest) = match key.split_once('/') {
            Some((product, rest)) => (&key[..=product.len()], rest),
            None => (key, ""),
        };
        let (id, file) = rest.split_once('/').unwrap_or((rest, ""));
        [product, id, file]
    }
}

/// The entity tag of an object: its MD5, with which clients of S3 compare files, where that was
/// taken, and else its SHA-256.
pub fn etag(file: &ItemFile) -> String {
    file.md5.map_or_else(|| tag(file), |md5| format!("\"{}\"", hex(&md5)))
}

/// The answer to a request for an object.
///
/// # Errors
/// The answer where it has no such part.
pub fn object_answer(
    request: &ServeRequest,
    held: &HeldItem,
    file: &ItemFile,
) -> Result<ServeAnswer, ServeAnswer> {
    let part = request.parameter("partNumber");
    if part.is_some_and(|part| part != "1") {
        return Err(refusal(416, "InvalidPartNumber", "the object has one part"));
    }
    let mut answer = tagged_answer(request, file, held.item.published, &etag(file));
    answer.headers.retain(|(name, _)| *name != "content-disposition");
    let wants_digest = request
        .header("x-amz-checksum-mode")
        .is_some_and(|mode| mode.eq_ignore_ascii_case("enabled"));
    // Of a part of an object S3 says nothing: clients would compare the part with it.
    if answer.status == 200 && wants_digest {
        answer = answer
            .header("x-amz-checksum-sha256", BASE64_STANDARD.encode(file.sha256))
            .header("x-amz-checksum-type", "FULL_OBJECT");
    }
    if answer.status == 200 && part.is_some() && file.size > 0 {
        let whole = format!("bytes 0-{}/{}", file.size - 1, file.size);
        answer.status = 206;
        answer = answer.header("content-range", whole).header("x-amz-mp-parts-count", "1");
    }
    if let AnswerBody::File(_) = &answer.body {
        answer = answer.header("x-amz-storage-class", "STANDARD");
    }
    Ok(answer)
}
