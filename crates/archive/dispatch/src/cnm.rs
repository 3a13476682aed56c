//! Cloud notification messages, version 1.6.1: one JSON object announces one product, and one
//! answers it. The message has no transport of its own; here it is a file beside the product.
//!
//! An answer to a success is optional: that none comes is no failure.

use crate::{Checksum, DeliveryRecord, Notice, NoticeContent, NoticeError};
use serde_json::{Value, json};
use skyhaul_units::Utc;

/// What a message says beside its product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CnmTerms {
    /// The version of the collection that the consumer puts the data into.
    pub data_version: String,
    /// When the message is made.
    pub submitted: Utc,
}

/// The versions of the format that consumers take.
pub(crate) const VERSIONS: [&str; 11] =
    ["1.0", "1.1", "1.2", "1.3", "1.4", "1.4.1", "1.5", "1.5.1", "1.6", "1.6.0", "1.6.1"];
/// What a file is.
pub(crate) const FILE_TYPES: [&str; 5] = ["data", "browse", "metadata", "ancillary", "linkage"];
/// Which checksums it may have.
pub(crate) const CHECKSUM_TYPES: [&str; 5] = ["SHA512", "SHA256", "SHA2", "SHA1", "md5"];

/// A message's text. The directory of each file is the beginning of its URI.
pub fn write_notification(record: &DeliveryRecord, terms: &CnmTerms) -> Vec<u8> {
    let files: Vec<Value> = record
        .files
        .iter()
        .map(|file| {
            let mut entry = json!({
                "type": if file.is_metadata { "metadata" } else { "data" },
                "uri": format!("{}/{}", file.directory.trim_end_matches('/'), escaped(&file.name)),
                "name": file.name,
                "size": file.size.as_u64(),
            });
            let sum = match file.checksum {
                Some(Checksum::Md5(digest)) => Some(("md5", crate::hex(&digest))),
                Some(Checksum::Sha256(digest)) => Some(("SHA256", crate::hex(&digest))),
                // The format has no name for it.
                Some(Checksum::Cksum(_)) | None => None,
            };
            if let Some((kind, sum)) = sum {
                (entry["checksumType"], entry["checksum"]) = (kind.into(), sum.into());
            }
            entry
        })
        .collect();
    let message = json!({
        "version": "1.6.1",
        "provider": record.originator,
        "collection": {"name": record.data_type, "version": terms.data_version},
        "submissionTime": terms.submitted.to_string(),
        "identifier": identifier(record),
        "product": {
            "name": record.product,
            "dataVersion": format!("{:03}", record.version),
            "dataProcessingType": if record.version > 1 { "reprocessing" } else { "forward" },
            "files": files,
        },
    });
    let mut text = serde_json::to_vec_pretty(&message).expect("it has text keys only");
    text.push(b'\n');
    text
}

/// Names the message: it comes back in the answer. The number of the delivery is its last part; the
/// time tells it from that of another catalogue.
fn identifier(record: &DeliveryRecord) -> String {
    let DeliveryRecord { originator, consumer, created, sequence, .. } = record;
    format!("{originator}:{consumer}:{}:{sequence}", created.as_micros())
}

/// The number of the delivery in an identifier that [`identifier`] made.
fn sequence(identifier: &str) -> Option<u32> {
    let mut parts = identifier.rsplitn(3, ':');
    let (sequence, created) = (parts.next()?, parts.next()?);
    created.parse::<i64>().ok()?;
    parts.next()?;
    sequence.parse().ok()
}

/// A text as a part of a URI's path (RFC 3986 3.3).
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/:@!$&'()*+,;=".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Reads an answer.
pub(crate) fn parse_response(bytes: &[u8]) -> Result<Notice, NoticeError> {
    let refuse = |reason: &str| NoticeError(reason.to_owned());
    let message: Value =
        serde_json::from_slice(bytes).map_err(|error| NoticeError(format!("no JSON: {error}")))?;
    let response = message.get("response").ok_or_else(|| refuse("it has no response"))?;
    let text = |key: &str| response.get(key).and_then(Value::as_str);
    let answer = match (text("status"), text("errorCode")) {
        (Some("SUCCESS"), _) => NoticeContent::Accepted,
        (Some("FAILURE"), code) => {
            let code = code.unwrap_or("PROCESSING_ERROR");
            let said: String =
                text("errorMessage").unwrap_or("no message").chars().take(MESSAGE_MAX).collect();
            let reason = format!("{code}: {said}");
            if code == "VALIDATION_ERROR" {
                NoticeContent::Refused(reason)
            } else {
                NoticeContent::Failed(reason)
            }
        }
        _ => return Err(refuse("its response has no status SUCCESS or FAILURE")),
    };
    let identifier = message.get("identifier").and_then(Value::as_str);
    Ok(Notice { sequence: identifier.and_then(sequence), answer })
}

/// Characters of a consumer's message that are kept.
const MESSAGE_MAX: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(response: &str, identifier: &str) -> Result<Notice, NoticeError> {
        let text = format!("{{\"identifier\": {identifier:?}, \"response\": {response}}}");
        Notice::parse(text.as_bytes())
    }

    #[test]
    fn an_answer_names_its_delivery_and_says_what_became_of_it() {
        let ours = "centre-1:podaac:1733443200000000:77";
        let taken = answer("{\"status\": \"SUCCESS\"}", ours).unwrap();
        assert_eq!(taken, Notice { sequence: Some(77), answer: NoticeContent::Accepted });
        let failed = |code: &str| {
            let response = format!(
                "{{\"status\": \"FAILURE\", \"errorCode\": {code:?}, \"errorMessage\": \"an \
                 INVALID thing\"}}"
            );
            answer(&response, "1234-abcd").unwrap()
        };
        let reason = |code: &str| format!("{code}: an INVALID thing");
        for (code, wanted) in [
            ("TRANSFER_ERROR", NoticeContent::Failed(reason("TRANSFER_ERROR"))),
            ("PROCESSING_ERROR", NoticeContent::Failed(reason("PROCESSING_ERROR"))),
            ("VALIDATION_ERROR", NoticeContent::Refused(reason("VALIDATION_ERROR"))),
        ] {
            assert_eq!(failed(code), Notice { sequence: None, answer: wanted });
        }
        for (response, reason) in [("{}", "no status"), ("7", "no status")] {
            let error = answer(response, ours).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        assert!(Notice::parse(b"{").unwrap_err().to_string().contains("no JSON"));
        assert!(Notice::parse(b" {}").unwrap_err().to_string().contains("no response"));
    }

    #[test]
    fn a_part_of_an_address_is_escaped() {
        assert_eq!(escaped("/ein Ordner/ä#?%.PDS"), "/ein%20Ordner/%C3%A4%23%3F%25.PDS");
    }
}
