//! Why a server refused a request, in its own words.

use super::HttpAnswer;
use crate::failure::{failed, words};
use hyper::StatusCode;
use skyhaul_dispatch::{DeliveryFailure, FailureKind};

/// The failure that an answer without success is.
pub fn refused(place: &str, doing: &str, answer: &HttpAnswer) -> DeliveryFailure {
    let text = answer.text();
    let code = tag_text(&text, "Code").unwrap_or_default();
    let kind = kind(answer.status, &code);
    let mut what = format!("{doing}: HTTP {}", answer.status.as_u16());
    if let Some(reason) = answer.status.canonical_reason() {
        what.push_str(&format!(" {reason}"));
    }
    let message = tag_text(&text, "Message").or_else(|| tag_text(&text, "s:message"));
    for part in [Some(code).filter(|code| !code.is_empty()), message].into_iter().flatten() {
        what.push_str(&format!(": {}", words(&part)));
    }
    if let Some(to) = answer.header("location").filter(|_| answer.status.is_redirection()) {
        what.push_str(&format!(": the server sends to {}; write that address", words(to)));
    }
    let id = ["x-amz-request-id", "x-request-id"].into_iter().find_map(|name| answer.header(name));
    if let Some(id) = id.map(words).or_else(|| tag_text(&text, "RequestId").map(|id| words(&id))) {
        what.push_str(&format!(" (request {id})"));
    }
    failed(kind, place, what)
}

fn kind(status: StatusCode, code: &str) -> FailureKind {
    match code {
        "QuotaExceeded" | "XMinioStorageFull" | "XMinioAdminBucketQuotaExceeded" => {
            return FailureKind::Full;
        }
        // Content that was damaged on the way.
        "BadDigest" | "XAmzContentChecksumMismatch" | "RequestTimeout" => return FailureKind::Line,
        "RequestTimeTooSkewed" | "NoSuchBucket" => return FailureKind::Access,
        _ => {}
    }
    match status.as_u16() {
        507 => FailureKind::Full,
        301..=399 | 401 | 402 | 403 | 404 | 407 => FailureKind::Access,
        408 | 409 | 425 | 429 | 500..=599 => FailureKind::Line,
        _ => FailureKind::Refused,
    }
}

/// The text within the first element of a name in XML, without its entities.
pub fn tag_text(xml: &str, name: &str) -> Option<String> {
    let open = xml.match_indices(&format!("<{name}")).find_map(|(at, tag)| {
        let rest = &xml[at + tag.len()..];
        let ends = rest.starts_with('>') || rest.starts_with(char::is_whitespace);
        ends.then(|| rest.split_once('>').map(|(_, inner)| inner)).flatten()
    })?;
    let (inner, _) = open.split_once(&format!("</{name}>"))?;
    let plain = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#34;", "\""), ("&apos;", "'")];
    let inner = plain.into_iter().fold(inner.to_owned(), |text, (from, to)| text.replace(from, to));
    Some(inner.replace("&amp;", "&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_the_servers_words_and_the_number_of_the_request() {
        let body = "<Error><Code>SlowDown</Code><Message>Please &lt;wait&gt;\n</Message>\
                    <RequestId>4442587FB7D0A2F9</RequestId></Error>";
        let answer = HttpAnswer {
            status: StatusCode::SERVICE_UNAVAILABLE,
            headers: hyper::HeaderMap::new(),
            body: body.into(),
            is_cut: super::super::Cut::Whole,
            digest: None,
        };
        let failure = refused("s3://b", "placing a", &answer);
        let sentence = "s3://b: placing a: HTTP 503 Service Unavailable: SlowDown: Please <wait> \
                        (request 4442587FB7D0A2F9)";
        assert_eq!((failure.sentence.as_str(), failure.kind), (sentence, FailureKind::Line));
    }

    #[test]
    fn a_tag_is_found_with_attributes_and_not_as_the_beginning_of_another() {
        assert_eq!(tag_text("<Keys>x</Keys><Key a=\"b\">1&amp;lt;</Key>", "Key").unwrap(), "1&lt;");
        assert_eq!(tag_text("<Key>", "Key"), None);
    }
}
