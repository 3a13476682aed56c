//! Small documents for a server that takes them by POST: one at a time, each signed.

use crate::access::RemoteAccess;
use crate::failure::failed;
use crate::http::{CallBody, HttpCall, HttpClient, HttpServer, Keep, Scheme};
use crate::sink::GoOn;
use aws_lc_rs::hmac;
use bytes::Bytes;
use hyper::Method;
use serde::{Deserialize, Deserializer};
use skyhaul_dispatch::{DeliveryFailure, FailureKind};
use std::net::IpAddr;
use std::str::FromStr;

/// Where documents go: `https://host[:port]/path`; `http://` on this machine only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostUrl {
    text: String,
    host: String,
    port: u16,
    authority: String,
    target: String,
    is_secured: bool,
}

/// A text that is no [`PostUrl`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` {1}; write an address such as \"https://ops.example.org/hook\"")]
pub struct PostUrlError(String, &'static str);

const URL_MAX: usize = 2_048;

impl FromStr for PostUrl {
    type Err = PostUrlError;

    fn from_str(text: &str) -> Result<Self, PostUrlError> {
        let wrong = |why| Err(PostUrlError(skyhaul_units::printable(text, 200), why));
        if text.len() > URL_MAX || text.chars().any(|c| !c.is_ascii_graphic()) {
            return wrong("is too long, or has characters that an address must encode");
        }
        let (is_secured, rest) = match text.split_once("://") {
            Some(("https", rest)) => (true, rest),
            Some(("http", rest)) => (false, rest),
            _ => return wrong("begins with neither https:// nor http://"),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        if authority.contains('@') || target.contains('#') {
            return wrong("has a user or a fragment, which are not sent");
        }
        let usual = if is_secured { 443 } else { 80 };
        let (host, port) = match authority.strip_prefix('[') {
            Some(address) => {
                let Some((host, port)) = address.split_once(']') else {
                    return wrong("has no end of its IPv6 address");
                };
                (host, port)
            }
            None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
        };
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => Ok(usual),
            Some(port) => port.parse(),
            None => return wrong("has something behind its host"),
        };
        let (false, Ok(port @ 1..)) = (host.is_empty(), port) else {
            return wrong("has no host, or no port from 1 to 65535");
        };
        let address: Option<IpAddr> = host.parse().ok();
        let is_here = host == "localhost" || address.is_some_and(|address| address.is_loopback());
        if !is_secured && !is_here {
            return wrong("would send without encryption to another machine");
        }
        let slash = if target.starts_with('/') { "" } else { "/" };
        Ok(Self {
            text: text.to_owned(),
            host: host.to_owned(),
            port,
            authority: authority.to_owned(),
            target: format!("{slash}{target}"),
            is_secured,
        })
    }
}

impl std::fmt::Display for PostUrl {
    /// Without the query, which may have a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text.split('?').next().unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for PostUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl PostUrl {
    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Sends documents to one place.
pub struct HttpPost {
    client: HttpClient,
    place: String,
    target: String,
    key: Option<hmac::Key>,
}

impl core::fmt::Debug for HttpPost {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("HttpPost").field("place", &self.place).finish_non_exhaustive()
    }
}

/// A document.
#[derive(Debug, Clone)]
pub struct PostDocument {
    /// Its media type.
    pub media: &'static str,
    /// Its bytes.
    pub body: Vec<u8>,
    /// When it is sent, in seconds since 1970: it is signed too, so that nobody sends it again
    /// later.
    pub sent_s: i64,
}

impl HttpPost {
    /// To this place; with a secret, documents are signed.
    ///
    /// # Errors
    /// The certificates that vouch for the server cannot be read.
    pub fn new(
        url: &PostUrl,
        access: &RemoteAccess,
        secret: Option<&[u8]>,
    ) -> Result<Self, DeliveryFailure> {
        let place = url.to_string();
        let server = HttpServer {
            host: url.host.clone(),
            port: url.port,
            authority: url.authority.clone(),
            scheme: if url.is_secured { Scheme::Https } else { Scheme::Http },
        };
        let client = HttpClient::new(&place, server, access)?;
        let key = secret.map(|secret| hmac::Key::new(hmac::HMAC_SHA256, secret));
        Ok(Self { client, place, target: url.target.clone(), key })
    }

    /// Sends one, unless `go_on` stops it. It has arrived when this returns that it may go on.
    ///
    /// # Errors
    /// It may not have: the failure says whether the server refused this document
    /// ([`FailureKind::Refused`]), or takes none now.
    pub fn send(
        &mut self,
        document: &PostDocument,
        go_on: &dyn Fn() -> GoOn,
    ) -> Result<GoOn, DeliveryFailure> {
        let PostDocument { media, body, sent_s } = document;
        let mut call = HttpCall::new(Method::POST, self.target.clone())
            .header("content-type", *media)
            .body(CallBody::Bytes(Bytes::copy_from_slice(body)))
            .keep(Keep::Bytes(0));
        if let Some(key) = &self.key {
            call = call
                .header("skyhaul-timestamp", sent_s.to_string())
                .header("skyhaul-signature", signature(key, *sent_s, body));
        }
        let answer = self.client.call_watched(&call, &mut |_| go_on())?;
        let Some(status) = answer.map(|answer| answer.status) else { return Ok(GoOn::Stop) };
        if status.is_success() {
            return Ok(GoOn::Continue);
        }
        let kind = match status.as_u16() {
            400 | 413 | 415 | 422 => FailureKind::Refused,
            401 | 403 | 404 | 405 | 410 => FailureKind::Access,
            _ => FailureKind::Line,
        };
        Err(failed(kind, &self.place, format!("the server answered HTTP {status}")))
    }
}

/// `sha256=` and the HMAC-SHA256 of the time, a dot and the body, in hexadecimal.
fn signature(key: &hmac::Key, sent_s: i64, body: &[u8]) -> String {
    let mut context = hmac::Context::with_key(key);
    context.update(format!("{sent_s}.").as_bytes());
    context.update(body);
    let digits = context.sign().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let digits: String = digits;
    format!("sha256={digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_meant() {
        let read = |text: &str| text.parse::<PostUrl>();
        let url = read("https://ops.example.org/hook?token=x").unwrap();
        assert_eq!((&url.host[..], url.port), ("ops.example.org", 443));
        assert_eq!(url.target, "/hook?token=x");
        assert_eq!(url.to_string(), "https://ops.example.org/hook", "no secret is shown");
        let url = read("http://[::1]:8080").unwrap();
        assert_eq!((&url.host[..], url.port, &url.target[..]), ("::1", 8080, "/"));
        assert_eq!(url.authority, "[::1]:8080");
        assert!(read("http://localhost/x").is_ok());
        for wrong in [
            "",
            "ops.example.org",
            "ftp://x/",
            "http://ops.example.org/",
            "https://",
            "https://:443/",
            "https://x:0/",
            "https://x:99999/",
            "https://[::1/",
            "https://[::1]x/",
            "https://u:p@x/",
            "https://x/#f",
            "https://x/a b",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_signature_is_that_of_the_standard() {
        // RFC 4231 4.3 (test case 2), whose data are "what do ya want for nothing?".
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"Jefe");
        let tag = hmac::sign(&key, b"what do ya want for nothing?");
        assert_eq!(tag.as_ref()[..4], [0x5b, 0xdc, 0xc1, 0x46]);
        let whole = hmac::sign(&key, b"7.{}");
        let hex: String = whole.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(signature(&key, 7, b"{}"), format!("sha256={hex}"));
    }

    /// A server that accepts and says `answer` and nothing more.
    #[allow(clippy::disallowed_methods, reason = "the server waits on its socket")]
    fn stuck(answer: &'static [u8]) -> std::net::SocketAddr {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(answer).unwrap();
            // Until the other side leaves.
            let _ = stream.read_to_end(&mut Vec::new());
        });
        address
    }

    #[test]
    fn whoever_waits_for_a_server_that_says_no_more_can_stop_at_any_point() {
        let half = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n";
        for (scheme, answer) in [("https", &b""[..]), ("http", b""), ("http", half)] {
            let url: PostUrl = format!("{scheme}://{}/", stuck(answer)).parse().unwrap();
            // Without the stop the test would not end within the hour.
            let stall = std::time::Duration::from_secs(3_600);
            let access = RemoteAccess { stall, ..RemoteAccess::default() };
            let mut post = HttpPost::new(&url, &access, None).unwrap();
            let document = PostDocument { media: "text/plain", body: b"x".to_vec(), sent_s: 0 };
            let asked = std::cell::Cell::new(0);
            let go_on = || {
                asked.set(asked.get() + 1);
                if asked.get() > 2 { GoOn::Stop } else { GoOn::Continue }
            };
            assert_eq!(post.send(&document, &go_on), Ok(GoOn::Stop), "{scheme} {answer:?}");
        }
    }
}
