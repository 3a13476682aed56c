//! Signatures of requests to object stores (AWS Signature Version 4).

use crate::access::S3Keys;
use crate::source::hex;
use aws_lc_rs::{digest, hmac};
use skyhaul_units::Utc;

/// Signs the requests of one account.
#[derive(Debug, Clone)]
pub struct Signer {
    /// The keys.
    pub keys: S3Keys,
    /// The region of the store.
    pub region: String,
}

/// What of a request is signed.
#[derive(Debug, Clone, Copy)]
pub struct Signed<'a> {
    /// The method.
    pub method: &'a str,
    /// The path, encoded.
    pub path: &'a str,
    /// The query: names and values, encoded.
    pub query: &'a [(String, String)],
    /// The SHA-256 of the body in hexadecimal, or [`UNSIGNED`].
    pub content: &'a str,
    /// All headers, also `host`, in lower case.
    pub headers: &'a [(String, String)],
}

impl Signer {
    /// The headers that are added to a request: its time, the digest of its body, and last its
    /// signature.
    pub fn headers(&self, now: Utc, of: Signed<'_>) -> Vec<(&'static str, String)> {
        let stamp = stamp(now);
        let mut added =
            vec![("x-amz-content-sha256", of.content.to_owned()), ("x-amz-date", stamp.clone())];
        if let Some(token) = &self.keys.token {
            added.push(("x-amz-security-token", token.0.clone()));
        }
        let mut headers: Vec<(String, String)> = of.headers.to_vec();
        headers.extend(added.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        headers.sort();
        let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(";");
        let mut query = of.query.to_vec();
        query.sort();
        let query: Vec<String> =
            query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let lines: String =
            headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
        let canonical =
            [of.method, of.path, &query.join("&"), &lines, &names, of.content].join("\n");
        let scope = format!("{}/{}/s3/aws4_request", &stamp[..8], self.region);
        let hashed = hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref());
        let text = format!("AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashed}");
        let signature = hex(mac(&self.key(&stamp[..8]), &text).as_ref());
        let id = &self.keys.id;
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}"
        );
        added.push(("authorization", authorization));
        added
    }

    fn key(&self, day: &str) -> Vec<u8> {
        let first = format!("AWS4{}", self.keys.secret.0);
        [day, self.region.as_str(), "s3", "aws4_request"]
            .into_iter()
            .fold(first.into_bytes(), |key, text| mac(&key, text).as_ref().to_vec())
    }
}

fn mac(key: &[u8], text: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
}

/// `20130524T000000Z`.
fn stamp(now: Utc) -> String {
    let (year, month, day) = now.date();
    let seconds = now.in_day().as_nanos() / 1_000_000_000;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Of a body that is not hashed before it is sent. Its checksum is in a header that is signed.
pub const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Secret;

    fn signer() -> Signer {
        let keys = S3Keys {
            id: "AKIAIOSFODNN7EXAMPLE".to_owned(),
            secret: Secret("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned()),
            token: None,
        };
        Signer { keys, region: "us-east-1".to_owned() }
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// The examples of the Amazon S3 API Reference, "Signature Calculations for the Authorization
    /// Header".
    #[test]
    fn signatures_are_those_of_the_reference() {
        let now = Utc::from_rfc3339("2013-05-24T00:00:00Z").unwrap();
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let cases = [
            (
                pairs(&[("max-keys", "2"), ("prefix", "J")]),
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
            ),
            (
                pairs(&[("lifecycle", "")]),
                "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
            ),
        ];
        for (query, signature) in cases {
            let headers = signer().headers(
                now,
                Signed {
                    method: "GET",
                    path: "/",
                    query: &query,
                    content: empty,
                    headers: &pairs(&[("host", "examplebucket.s3.amazonaws.com")]),
                },
            );
            let (name, value) = headers.last().unwrap();
            assert_eq!(*name, "authorization");
            assert!(value.ends_with(&format!("Signature={signature}")), "{value}");
        }
    }
}
