//! One bucket: requests by the name of an object, signed.

use super::sign::{Signed, Signer, UNSIGNED};
use crate::access::RemoteAccess;
use crate::failure::failed;
use crate::http::{
    CallBody, HttpAnswer, HttpCall, HttpClient, HttpServer, Keep, Scheme, encoded, refused,
};
use crate::place::host_and_port;
use crate::sink::GoOn;
use crate::source::hex;
use aws_lc_rs::digest;
use hyper::Method;
use hyper::header::HeaderName;
use skyhaul_dispatch::{DeliveryFailure, FailureKind};
use skyhaul_units::Utc;
use std::time::Duration;

/// A bucket.
pub struct Store {
    client: HttpClient,
    signer: Signer,
    bucket: String,
    prefix: String,
    /// As texts name it.
    pub place: String,
}

/// A request to a bucket.
#[derive(Clone)]
pub struct StoreCall<'a> {
    method: Method,
    /// The object; none for the bucket itself.
    key: Option<&'a str>,
    query: Vec<(String, String)>,
    headers: Vec<(&'static str, String)>,
    body: CallBody<'a>,
    keep: Keep,
    work: Duration,
}

impl<'a> StoreCall<'a> {
    /// Of an object.
    pub fn of(method: Method, key: &'a str) -> Self {
        let keep = HttpCall::new(Method::GET, "").keep;
        let (query, headers, body) = (Vec::new(), Vec::new(), CallBody::Empty);
        Self { method, key: Some(key), query, headers, body, keep, work: Duration::ZERO }
    }

    /// Of the bucket.
    pub fn of_bucket(method: Method) -> Self {
        Self { key: None, ..Self::of(method, "") }
    }

    /// With one more part of the query.
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.query.push((encoded(name, ""), encoded(value, "")));
        self
    }

    /// With one more header.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// With a body.
    pub fn body(mut self, body: CallBody<'a>) -> Self {
        self.body = body;
        self
    }

    /// With another rule of what is kept of the answer.
    pub fn keep(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }

    /// With work of the store that takes so long.
    pub fn work(mut self, work: Duration) -> Self {
        self.work = work;
        self
    }
}

impl Store {
    /// Of a bucket and a prefix.
    ///
    /// # Errors
    /// The endpoint is none, or the keys cannot be read.
    pub fn new(
        place: String,
        bucket: &str,
        prefix: &str,
        access: &RemoteAccess,
    ) -> Result<Self, DeliveryFailure> {
        let region = access.s3.region.clone().unwrap_or_else(|| "us-east-1".to_owned());
        let endpoint = access.s3.endpoint.clone();
        let endpoint = endpoint.unwrap_or_else(|| format!("https://s3.{region}.amazonaws.com"));
        let server = server(&endpoint).ok_or_else(|| {
            let what = format!("`{endpoint}` is no endpoint; write \"https://host:port\"");
            failed(FailureKind::Access, &place, what)
        })?;
        let signer = Signer { keys: access.s3.keys(&place)?, region };
        let client = HttpClient::new(&place, server, access)?;
        let (bucket, prefix) = (bucket.to_owned(), prefix.to_owned());
        Ok(Self { client, signer, bucket, prefix, place })
    }

    /// The key of a name.
    pub fn key(&self, name: &str) -> String {
        crate::name::join(&self.prefix, name)
    }

    /// The bucket and the key of a name, as copies name their source.
    pub fn source(&self, key: &str) -> String {
        encoded(&format!("/{}/{key}", self.bucket), "/")
    }

    /// Asks; an answer without success is a failure.
    ///
    /// # Errors
    /// There is no answer, or none of success.
    pub fn done(
        &mut self,
        doing: &str,
        call: &StoreCall<'_>,
    ) -> Result<HttpAnswer, DeliveryFailure> {
        let answer = self.ask(call)?;
        match answer.status.is_success() {
            true => Ok(answer),
            false => Err(refused(&self.place, doing, &answer)),
        }
    }

    /// Asks.
    ///
    /// # Errors
    /// There is no answer.
    pub fn ask(&mut self, call: &StoreCall<'_>) -> Result<HttpAnswer, DeliveryFailure> {
        self.client.call(&self.signed(call))
    }

    /// Asks, and lets the caller watch how much of the body went out.
    ///
    /// # Errors
    /// There is no answer.
    pub fn ask_watched(
        &mut self,
        call: &StoreCall<'_>,
        watch: &mut dyn FnMut(u64) -> GoOn,
    ) -> Result<Option<HttpAnswer>, DeliveryFailure> {
        self.client.call_watched(&self.signed(call), watch)
    }

    /// Waits before the next request.
    ///
    /// # Errors
    /// This machine lacks resources.
    pub fn pause(&mut self, length: Duration) -> Result<(), DeliveryFailure> {
        self.client.pause(length)
    }

    fn signed<'a>(&self, call: &StoreCall<'a>) -> HttpCall<'a> {
        let key = call.key.map(|key| format!("/{key}")).unwrap_or_default();
        let path = encoded(&format!("/{}{key}", self.bucket), "/");
        let content = match &call.body {
            CallBody::Empty => hex(digest::digest(&digest::SHA256, b"").as_ref()),
            CallBody::Bytes(bytes) => hex(digest::digest(&digest::SHA256, bytes).as_ref()),
            CallBody::File { .. } => UNSIGNED.to_owned(),
        };
        let mut headers = vec![("host".to_owned(), self.client.server().authority.clone())];
        headers
            .extend(call.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        let added = self.signer.headers(
            now(),
            Signed {
                method: call.method.as_str(),
                path: &path,
                query: &call.query,
                content: &content,
                headers: &headers,
            },
        );
        let query: Vec<String> =
            call.query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let target = match query.is_empty() {
            true => path,
            false => format!("{path}?{}", query.join("&")),
        };
        let mut http = HttpCall::new(call.method.clone(), target).keep(call.keep).work(call.work);
        let all = call.headers.iter().chain(&added);
        http.headers =
            all.map(|(name, value)| (HeaderName::from_static(name), value.clone())).collect();
        http.body(call.body.clone())
    }
}

fn server(endpoint: &str) -> Option<HttpServer> {
    let (scheme, rest) = endpoint.split_once("://")?;
    let (scheme, usual) = match scheme {
        "http" => (Scheme::Http, 80),
        "https" => (Scheme::Https, 443),
        _ => return None,
    };
    let authority = rest.trim_end_matches('/').to_owned();
    let (host, port) = host_and_port(&authority, usual)?;
    Some(HttpServer { host, port, authority, scheme })
}

#[allow(clippy::disallowed_methods, reason = "a store refuses requests of another time")]
fn now() -> Utc {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let micros = since.map_or(0, |since| since.as_micros());
    Utc::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}
