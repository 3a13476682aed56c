//! Signatures of requests (AWS Signature Version 4), in the `Authorization` header or in the query.
//!
//! ```text
//! key       = HMAC(HMAC(HMAC(HMAC("AWS4" secret, day), region), "s3"), "aws4_request")
//! request   = method LF path LF query LF headers LF names of the headers LF content
//! signature = HMAC(key, "AWS4-HMAC-SHA256" LF time LF scope LF SHA-256(request))
//! ```

use super::refusal::refusal;
use crate::access_key::KeySecret;
use crate::answer::ServeAnswer;
use crate::file_answer::{from_hex, hex};
use crate::http_date::from_http_date;
use crate::request::{ServeMethod, ServeRequest, encoded};
use aws_lc_rs::hmac;
use sha2::{Digest, Sha256};
use skyhaul_units::Utc;

/// What a signed request says of its signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureClaim {
    /// The identifier of the access key.
    pub key: String,
    /// The day and the region of the scope. Any region is as good as another.
    day: String,
    region: String,
    /// The headers that are signed.
    headers: Vec<String>,
    signature: [u8; 32],
    at: Utc,
    /// The seconds for which an address is valid; none for a header.
    valid: Option<i64>,
}

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const UNSIGNED: &str = "UNSIGNED-PAYLOAD";
/// The SHA-256 of nothing.
const NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/// How far the clock of a client may be off.
const SKEW_MAX: i64 = 15 * 60 * 1_000_000;
/// An address is valid for a week, at most.
const VALID_MAX: i64 = 604_800;
/// Headers that are signed: as many as a request may have.
const HEADERS_MAX: usize = 64;

/// Whether a request is one of S3 by its signature.
pub fn is_signed(query: &str, authorization: Option<&str>) -> bool {
    // Also of the former version, which is refused with a sentence.
    let by_header = authorization.is_some_and(|header| header.trim_start().starts_with("AWS"));
    by_header || query.split('&').any(|parameter| parameter.starts_with("X-Amz-Algorithm="))
}

fn malformed(what: &str) -> ServeAnswer {
    refusal(400, "AuthorizationHeaderMalformed", what)
}

impl SignatureClaim {
    /// The claim of a request; none where it has none.
    ///
    /// # Errors
    /// The answer to one that cannot be read.
    pub fn of(request: &ServeRequest) -> Result<Option<Self>, ServeAnswer> {
        let header = request.header("authorization").map(str::trim);
        if let Some(header) = header.filter(|header| header.starts_with("AWS")) {
            return Self::of_header(request, header).map(Some);
        }
        match request.parameter("X-Amz-Algorithm") {
            None => Ok(None),
            Some(_) => Self::of_query(request).map(Some),
        }
    }

    fn of_header(request: &ServeRequest, header: &str) -> Result<Self, ServeAnswer> {
        let rest = header.strip_prefix(ALGORITHM).filter(|rest| rest.starts_with([' ', ',']));
        let rest = rest.ok_or_else(|| malformed("sign requests with AWS4-HMAC-SHA256"))?;
        let (mut credential, mut headers, mut signature) = (None, None, None);
        for part in rest.split(',').map(str::trim) {
            match part.split_once('=') {
                Some(("Credential", value)) => credential = Some(value),
                Some(("SignedHeaders", value)) => headers = Some(value),
                Some(("Signature", value)) => signature = Some(value),
                _ => {}
            }
        }
        let all = credential.zip(headers).zip(signature);
        let ((credential, headers), signature) =
            all.ok_or_else(|| malformed("give Credential, SignedHeaders and Signature"))?;
        let written = request.header("x-amz-date");
        let at = written.map_or_else(|| request.header("date").and_then(from_http_date), stamp);
        let at = at.ok_or_else(|| refusal(403, "AccessDenied", "give x-amz-date, as signed"))?;
        let claim = Self::read(credential, headers, signature, at)?;
        let dated = if written.is_some() { "x-amz-date" } else { "date" };
        match claim.headers.iter().any(|name| name == dated) {
            true => Ok(claim),
            false => Err(refusal(403, "AccessDenied", "sign the time of the request too")),
        }
    }

    fn of_query(request: &ServeRequest) -> Result<Self, ServeAnswer> {
        let bad = |what: &str| refusal(400, "AuthorizationQueryParametersError", what);
        let value = |name: &str| {
            let found = request.parameter(name);
            found.ok_or_else(|| bad(&format!("the address lacks {name}")))
        };
        if value("X-Amz-Algorithm")? != ALGORITHM {
            return Err(bad("sign addresses with AWS4-HMAC-SHA256"));
        }
        let at = stamp(value("X-Amz-Date")?);
        let at = at.ok_or_else(|| bad("X-Amz-Date is no time, such as 20261126T060000Z"))?;
        let valid = value("X-Amz-Expires")?.parse::<i64>().ok();
        let valid = valid.filter(|valid| (0..=VALID_MAX).contains(valid));
        let valid = valid.ok_or_else(|| bad("X-Amz-Expires is 0 to 604800 seconds"))?;
        let [credential, headers, signature] =
            [value("X-Amz-Credential")?, value("X-Amz-SignedHeaders")?, value("X-Amz-Signature")?];
        let claim = Self::read(credential, headers, signature, at)?;
        Ok(Self { valid: Some(valid), ..claim })
    }

    fn read(
        credential: &str,
        headers: &str,
        signature: &str,
        at: Utc,
    ) -> Result<Self, ServeAnswer> {
        let parts: Vec<&str> = credential.split('/').collect();
        let [key, day, region, "s3", "aws4_request"] = parts[..] else {
            let what = "the credential is not KEY/DAY/REGION/s3/aws4_request";
            return Err(malformed(what));
        };
        let headers: Vec<String> = headers.split(';').map(str::to_ascii_lowercase).collect();
        if headers.len() > HEADERS_MAX || !headers.iter().any(|name| name == "host") {
            return Err(malformed("the header `host` is to be signed, and at most 64"));
        }
        if written(at)[..8] != *day {
            return Err(malformed("the day of the credential is not that of the request"));
        }
        let signature = from_hex(signature)
            .ok_or_else(|| malformed("the signature is not 64 hexadecimal digits"))?;
        let [key, day, region] = [key, day, region].map(str::to_owned);
        Ok(Self { key, day, region, headers, signature, at, valid: None })
    }

    /// Whether the request comes in time.
    ///
    /// # Errors
    /// The answer to one that does not.
    pub fn check_time(&self, now: Utc) -> Result<(), ServeAnswer> {
        let age = now.as_micros().saturating_sub(self.at.as_micros());
        let is_early = age < -SKEW_MAX;
        match self.valid {
            Some(valid) if !is_early && age <= valid * 1_000_000 => Ok(()),
            Some(_) if !is_early => {
                Err(refusal(403, "AccessDenied", "the address has expired; ask for another"))
            }
            None if !is_early && age <= SKEW_MAX => Ok(()),
            _ => {
                let what = "the time of the request is more than 15 minutes off; set the clock";
                Err(refusal(403, "RequestTimeTooSkewed", what))
            }
        }
    }

    /// Whether the request was signed with this secret. Takes as long for a wrong signature as for
    /// a good one.
    pub fn is_by(&self, request: &ServeRequest, secret: &KeySecret) -> bool {
        let scope = format!("{}/{}/s3/aws4_request", self.day, self.region);
        let hashed = hex(&Sha256::digest(self.canonical(request).as_bytes()));
        let text = format!("{ALGORITHM}\n{}\n{scope}\n{hashed}", written(self.at));
        let first = format!("AWS4{}", secret.as_str()).into_bytes();
        let key = [self.day.as_str(), self.region.as_str(), "s3", "aws4_request"].into_iter().fold(
            first,
            |key, text| {
                let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
                hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
            },
        );
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
        hmac::verify(&key, text.as_bytes(), &self.signature).is_ok()
    }

    /// The request in the form that is signed.
    fn canonical(&self, request: &ServeRequest) -> String {
        let method = match request.method {
            ServeMethod::Get => "GET",
            ServeMethod::Head => "HEAD",
            ServeMethod::Post => "POST",
            ServeMethod::Other => "",
        };
        let path: Vec<String> = request.written.split('/').map(encoded).collect();
        let mut query: Vec<String> = request
            .query
            .iter()
            .filter(|(name, _)| self.valid.is_none() || name != "X-Amz-Signature")
            .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)))
            .collect();
        query.sort();
        let value = |name: &String| {
            let value = request.header(name).unwrap_or_default();
            value.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
        };
        let headers: String =
            self.headers.iter().map(|name| format!("{name}:{}\n", value(name))).collect();
        let names = self.headers.join(";");
        // What a reader sends has no body: nothing is there to compare it with.
        let content = request.header("x-amz-content-sha256");
        let content = content.or_else(|| request.parameter("X-Amz-Content-Sha256"));
        let usual = if self.valid.is_some() { UNSIGNED } else { NOTHING };
        let content = content.unwrap_or(usual);
        [method, &path.join("/"), &query.join("&"), &headers, &names, content].join("\n")
    }
}

/// The time `20130524T000000Z`.
fn stamp(text: &str) -> Option<Utc> {
    let is_digit = |at: &usize| text.as_bytes()[*at].is_ascii_digit();
    let is_stamp = text.len() == 16
        && text.is_ascii()
        && (0..8).chain(9..15).all(|at| is_digit(&at))
        && (&text[8..9], &text[15..]) == ("T", "Z");
    let part = |from: usize| &text[from..from + 2];
    is_stamp.then(|| {
        let day = format!("{}-{}-{}", &text[..4], part(4), part(6));
        Utc::from_rfc3339(&format!("{day}T{}:{}:{}Z", part(9), part(11), part(13)))
    })?
}

/// A time as it is signed.
fn written(at: Utc) -> String {
    let (year, month, day) = at.date();
    let seconds = at.in_day().as_nanos() / 1_000_000_000;
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

#[cfg(test)]
mod tests;
