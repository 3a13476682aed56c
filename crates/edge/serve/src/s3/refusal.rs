//! Refusals of S3: their codes, and their form.

use super::xml::Xml;
use crate::answer::{AnswerBody, ServeAnswer};
use serde_json::{Value, json};

/// A refusal with a code of S3.
pub fn refusal(status: u16, code: &str, what: &str) -> ServeAnswer {
    ServeAnswer::json(status, &json!({"code": code, "description": what}))
}

/// The refusal of what would write.
pub fn read_only() -> ServeAnswer {
    let what = "objects can be read only; products come and go with the node";
    refusal(403, "AccessDenied", what)
}

/// An answer in the form of S3: refusals are XML with a code of S3, and each answer has the
/// identifier of its request, which the log has too.
pub fn finished(answer: ServeAnswer, id: &str) -> ServeAnswer {
    let answer = answer.header("x-amz-request-id", id);
    if answer.status < 400 {
        return answer;
    }
    let AnswerBody::Bytes(bytes) = &answer.body else { return answer };
    let problem: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let what = problem["description"].as_str().unwrap_or("the request cannot be answered");
    let (status, code) = code_of(answer.status, problem["code"].as_str().unwrap_or_default());
    let mut xml = Xml::default();
    xml.open("Error");
    for (name, text) in [("Code", code), ("Message", what), ("RequestId", id)] {
        xml.text(name, text);
    }
    xml.close("Error");
    let mut headers = answer.headers.clone();
    headers.retain(|(name, _)| !matches!(*name, "content-type" | "www-authenticate"));
    headers.push(("content-type", "application/xml".to_owned()));
    ServeAnswer { status, headers, body: AnswerBody::Bytes(xml.finish().into()) }
}

/// Status and code, as clients of S3 know them, of a refusal that all interfaces share.
fn code_of(status: u16, code: &str) -> (u16, &str) {
    match code {
        "BadRequest" => (400, "InvalidRequest"),
        "Unauthorized" | "Forbidden" => (403, "AccessDenied"),
        "NotFound" | "Gone" => (404, "NoSuchKey"),
        "UriTooLong" => (400, "KeyTooLongError"),
        "RangeNotSatisfiable" => (416, "InvalidRange"),
        "MisdirectedRequest" => (421, "InvalidRequest"),
        // Clients of S3 know this one, and come again.
        "TooManyRequests" => (503, "SlowDown"),
        "ContentTooLarge" => (400, "EntityTooLarge"),
        "InternalServerError" => (500, "InternalError"),
        other => (status, other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_xml_with_a_code_and_the_identifier_of_the_request() {
        let answer = finished(ServeAnswer::problem(401, "give a <key>"), "7F");
        assert_eq!((answer.status, answer.header_of("x-amz-request-id")), (403, Some("7F")));
        let text = answer.text();
        let said = "<Error><Code>AccessDenied</Code><Message>give a &lt;key&gt;</Message>";
        assert!(text.contains(said) && text.contains("<RequestId>7F</RequestId>"), "{text}");
        let slow = ServeAnswer::problem(429, "later").header("retry-after", "3");
        let slow = finished(slow, "1");
        assert_eq!((slow.status, slow.header_of("retry-after")), (503, Some("3")));
        let own = finished(refusal(404, "NoSuchBucket", "there is no such bucket"), "1");
        assert!(own.status == 404 && own.text().contains("<Code>NoSuchBucket</Code>"));
        assert_eq!(finished(ServeAnswer::empty(304), "1").text(), "");
    }
}
