//! What a request of S3 is about: a bucket and a key, in the path or with the bucket in the host.

use crate::request::ServeRequest;

/// What a request is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectAddress {
    /// The bucket; none where all are meant.
    pub bucket: Option<String>,
    /// The key of an object; none where the bucket is meant.
    pub key: Option<String>,
}

/// Unsigned requests have this before the bucket.
const PREFIX: &str = "/s3";

impl ObjectAddress {
    /// The address of a request to a server whose addresses begin with `base`.
    pub fn of(request: &ServeRequest, base: &str) -> Self {
        let host = request.header("host").unwrap_or_default();
        let path = request.written.as_str();
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        if let Some(bucket) = bucket_of(host, base) {
            let key = some(path.strip_prefix('/').unwrap_or(path));
            return Self { bucket: Some(bucket.to_owned()), key };
        }
        let path = match path.strip_prefix(PREFIX) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => rest,
            _ => path,
        };
        let path = path.strip_prefix('/').unwrap_or(path);
        let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
        Self { bucket: some(bucket), key: some(key) }
    }
}

/// The bucket that a host has before the name of the server.
fn bucket_of<'a>(host: &'a str, base: &str) -> Option<&'a str> {
    let own = base.split_once("://").map_or(base, |(_, own)| own);
    let (host, own) = (without_port(host), without_port(own));
    let before = |name: &str| host.strip_suffix(name)?.strip_suffix('.');
    // Without an address of its own, the server is what the client calls it.
    let found = if host == own { None } else { before(own) };
    found.or_else(|| before("localhost")).filter(|bucket| !bucket.is_empty())
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::ServeMethod;

    #[test]
    fn buckets_stand_in_the_path_or_in_the_host() {
        let base = "https://s3.example.org:8443";
        for (host, target, bucket, key) in [
            ("s3.example.org:8443", "/", None, None),
            ("s3.example.org:8443", "/aqua", Some("aqua"), None),
            ("s3.example.org:8443", "/aqua/", Some("aqua"), None),
            ("s3.example.org", "/aqua/a%20b/c?x=1", Some("aqua"), Some("a b/c")),
            ("s3.example.org", "/s3/aqua/a/", Some("aqua"), Some("a/")),
            ("s3.example.org", "/s3", None, None),
            ("aqua.s3.example.org:8443", "/", Some("aqua"), None),
            ("aqua.s3.example.org", "/a//b", Some("aqua"), Some("a//b")),
            ("aqua.localhost:1", "/a", Some("aqua"), Some("a")),
            ("localhost:1", "/a", Some("a"), None),
            ("[::1]:1", "/a/b", Some("a"), Some("b")),
        ] {
            let mut request = ServeRequest::new(ServeMethod::Get, target).unwrap();
            request.headers.insert("host".to_owned(), host.to_owned());
            let found = ObjectAddress::of(&request, base);
            assert_eq!((found.bucket.as_deref(), found.key.as_deref()), (bucket, key), "{target}");
        }
    }
}
