//! Signatures of the reference are good, and any change makes them bad.

use super::*;
use crate::access_key::AccessKey;

const SCOPE: &str = "AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request";

fn secret() -> KeySecret {
    let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned();
    AccessKey::new("AKIAIOSFODNN7EXAMPLE".to_owned(), secret).unwrap().secret
}

fn request(target: &str, headers: &[(&str, &str)]) -> ServeRequest {
    let mut request = ServeRequest::new(ServeMethod::Get, target).unwrap();
    request.headers.insert("host".to_owned(), "examplebucket.s3.amazonaws.com".to_owned());
    for (name, value) in headers {
        request.headers.insert((*name).to_owned(), (*value).to_owned());
    }
    request
}

fn with(target: &str, range: Option<&str>, signature: &str) -> ServeRequest {
    let range_name = if range.is_some() { "range;" } else { "" };
    let names = format!("host;{range_name}x-amz-content-sha256;x-amz-date");
    let authorization =
        format!("{ALGORITHM} Credential={SCOPE},SignedHeaders={names}, Signature={signature}");
    let mut all = vec![
        ("authorization", authorization.as_str()),
        ("x-amz-content-sha256", NOTHING),
        ("x-amz-date", "20130524T000000Z"),
    ];
    all.extend(range.map(|range| ("range", range)));
    request(target, &all)
}

fn is_good(request: &ServeRequest) -> bool {
    SignatureClaim::of(request).unwrap().unwrap().is_by(request, &secret())
}

/// The examples of the Amazon S3 API Reference, "Signature Calculations for the Authorization
/// Header" and "Authenticating Requests: Using Query Parameters".
#[test]
fn signatures_of_the_reference_are_good_and_those_of_other_requests_are_not() {
    let object = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";
    let good = with("/test.txt", Some("bytes=0-9"), object);
    assert!(is_good(&good));
    let lifecycle = "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543";
    assert!(is_good(&with("/?lifecycle", None, lifecycle)));
    let list = "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7";
    assert!(is_good(&with("/?max-keys=2&prefix=J", None, list)));
    assert!(is_good(&with("/?prefix=J&max-keys=2", None, list)), "in any order");
    for bad in [
        with("/test.tx", Some("bytes=0-9"), object),
        with("/test.txt", Some("bytes=0-10"), object),
        with("/test.txt?x", Some("bytes=0-9"), object),
        with("/test.txt/", Some("bytes=0-9"), object),
        with("/test.txt", None, object),
        ServeRequest { method: ServeMethod::Head, ..good.clone() },
    ] {
        assert!(!is_good(&bad), "{bad:?}");
    }
    let other = AccessKey::new("A".repeat(16), "wJalrXUtnFEMI/K7MDENG".to_owned()).unwrap();
    assert!(!SignatureClaim::of(&good).unwrap().unwrap().is_by(&good, &other.secret));
}

fn presigned(valid: &str) -> ServeRequest {
    let signature = "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
    let target = format!(
        "/test.txt?X-Amz-Algorithm={ALGORITHM}&X-Amz-Credential={}&X-Amz-Date=20130524T000000Z\
         &X-Amz-Expires={valid}&X-Amz-SignedHeaders=host&X-Amz-Signature={signature}",
        SCOPE.replace('/', "%2F")
    );
    request(&target, &[])
}

#[test]
fn a_signed_address_is_good_until_it_expires() {
    let good = presigned("86400");
    assert!(is_good(&good) && !is_good(&presigned("86401")));
    let claim = SignatureClaim::of(&good).unwrap().unwrap();
    let check = |time| {
        let checked = claim.check_time(Utc::from_rfc3339(time).unwrap());
        checked.map_err(|refused| refused.text())
    };
    assert_eq!(check("2013-05-24T23:59:59Z"), Ok(()));
    assert_eq!(check("2013-05-23T23:45:00Z"), Ok(()));
    assert!(check("2013-05-25T00:00:01Z").unwrap_err().contains("expired"));
    assert!(check("2013-05-23T23:44:00Z").unwrap_err().contains("RequestTimeTooSkewed"));
}

#[test]
fn the_clock_of_a_client_may_be_off_by_15_minutes() {
    let claim = SignatureClaim::of(&with("/", None, &"a".repeat(64))).unwrap().unwrap();
    for (time, is_good) in [
        ("2013-05-24T00:15:00Z", true),
        ("2013-05-23T23:45:00Z", true),
        ("2013-05-24T00:15:01Z", false),
        ("2013-05-23T23:44:59Z", false),
    ] {
        assert_eq!(claim.check_time(Utc::from_rfc3339(time).unwrap()).is_ok(), is_good, "{time}");
    }
}

#[test]
fn what_is_wrong_with_a_signature_is_said() {
    let signature = "a".repeat(64);
    let header = format!(
        "{ALGORITHM} Credential={SCOPE}, SignedHeaders=host;x-amz-date, Signature={signature}"
    );
    let ask = |header: &str, date: &str| {
        let request = request("/", &[("authorization", header), ("x-amz-date", date)]);
        SignatureClaim::of(&request)
    };
    let day = "20130524T000000Z";
    assert!(ask(&header, day).is_ok());
    for (header, date, said) in [
        ("AWS AKIAIOSFODNN7EXAMPLE:abc", day, "AWS4-HMAC-SHA256"),
        (&header.replace("4-HMAC", "4-ECDSA-P256"), day, "AWS4-HMAC-SHA256"),
        (&header.replace("Signature", "Sig"), day, "give Credential"),
        (&header.replace("/s3/", "/sqs/"), day, "the credential is not"),
        (&header.replace("host;", ""), day, "`host`"),
        (&header.replace(";x-amz-date", ""), day, "sign the time"),
        (&header.replace("aaaaa", "zz"), day, "64 hexadecimal digits"),
        (&header, "20130525T000000Z", "the day of the credential"),
        (&header, "2013-05-24T000000", "x-amz-date"),
        (&header, "20130524T250000Z", "x-amz-date"),
        (&header, "2013052ü000000Z", "x-amz-date"),
    ] {
        let text = ask(header, date).unwrap_err().text();
        assert!(text.contains(said), "{text}");
    }
    let bad = presigned("604801");
    assert!(SignatureClaim::of(&bad).unwrap_err().text().contains("X-Amz-Expires"));
    assert!(is_signed("a=1&X-Amz-Algorithm=x", None) && is_signed("", Some("AWS x:y")));
    assert!(!is_signed("a=X-Amz-Algorithm", Some("Bearer AWS")));
    assert_eq!(SignatureClaim::of(&request("/", &[("authorization", "Bearer x")])), Ok(None));
}
