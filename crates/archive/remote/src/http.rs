//! One HTTP/1.1 connection to one server, for object stores and WebDAV.
//!
//! Every wait has a bound: an answer that does not begin while nothing of the request moves, and
//! each pause within an answer. What goes out is read from the disk in pieces, at the rate of the
//! destination.

mod body;
mod refusal;
pub mod tls;

pub use body::CallBody;
pub use refusal::{refused, tag_text};

use crate::access::RemoteAccess;
use crate::connect::{SinkRuntime, connect};
use crate::failure::{failed, source, stalled, words};
use crate::sink::GoOn;
use body::Outgoing;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use sha2::{Digest, Sha256};
use skyhaul_dispatch::{DeliveryFailure, FailureKind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// A client of one server.
pub struct HttpClient {
    runtime: SinkRuntime,
    server: HttpServer,
    tls: Option<TlsConnector>,
    place: String,
    access: RemoteAccess,
    connection: Option<SendRequest<Outgoing>>,
}

/// Where a server is.
#[derive(Debug, Clone)]
pub struct HttpServer {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// As the `Host` header has it.
    pub authority: String,
    /// How it is spoken to.
    pub scheme: Scheme,
}

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Without encryption.
    Http,
    /// With TLS.
    Https,
}

/// A request. Its headers may hold a secret, so it cannot be shown.
#[derive(Clone)]
pub struct HttpCall<'a> {
    /// The method.
    pub method: Method,
    /// Path and query, encoded.
    pub target: String,
    /// Headers, without `host` and `content-length`.
    pub headers: Vec<(HeaderName, String)>,
    /// What goes out.
    pub body: CallBody<'a>,
    /// What of the answer is kept.
    pub keep: Keep,
    /// How long the server may work before it answers, beyond the usual.
    pub work: Duration,
}

/// What of an answer is kept.
#[derive(Debug, Clone, Copy)]
pub enum Keep {
    /// The body, which has at most so many bytes.
    Bytes(usize),
    /// The SHA-256 of the body of a success.
    Digest,
}

/// An answer.
#[derive(Debug)]
pub struct HttpAnswer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, as far as it was kept.
    pub body: Vec<u8>,
    /// Whether the body has more than was kept.
    pub is_cut: Cut,
    /// The digest and the length of the body, where they were asked for.
    pub digest: Option<([u8; 32], u64)>,
}

/// Whether something is missing at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// No.
    Whole,
    /// Yes.
    Cut,
}

impl<'a> HttpCall<'a> {
    /// A request without a body, whose answer is short.
    pub fn new(method: Method, target: impl Into<String>) -> Self {
        let (target, headers, keep) = (target.into(), Vec::new(), Keep::Bytes(MOST_ANSWER));
        Self { method, target, headers, body: CallBody::Empty, keep, work: Duration::ZERO }
    }

    /// With one more header.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((HeaderName::from_static(name), value.into()));
        self
    }

    /// With a body.
    pub fn body(mut self, body: CallBody<'a>) -> Self {
        self.body = body;
        self
    }

    /// With another rule of what is kept.
    pub fn keep(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }

    /// With work of the server that takes so long.
    pub fn work(mut self, work: Duration) -> Self {
        self.work = work;
        self
    }

    fn request(
        &self,
        server: &HttpServer,
        outgoing: Outgoing,
    ) -> Result<Request<Outgoing>, hyper::http::Error> {
        let length = outgoing.size_hint().exact().unwrap_or(0);
        let mut request = Request::builder()
            .method(&self.method)
            .uri(&self.target)
            .header(HOST, &server.authority);
        if length > 0 || [Method::PUT, Method::POST].contains(&self.method) {
            request = request.header(CONTENT_LENGTH, length);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(outgoing)
    }
}

impl HttpAnswer {
    /// A header, where it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(HeaderValue::to_str)?.ok()
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl HttpClient {
    /// Of a server; it connects with the first request.
    ///
    /// # Errors
    /// The certificates that vouch for it cannot be read.
    pub fn new(
        place: &str,
        server: HttpServer,
        access: &RemoteAccess,
    ) -> Result<Self, DeliveryFailure> {
        let tls = match server.scheme {
            Scheme::Http => None,
            Scheme::Https => {
                Some(TlsConnector::from(tls::config(place, access.ca_file.as_deref())?))
            }
        };
        Ok(Self {
            runtime: SinkRuntime::new(place)?,
            server,
            tls,
            place: place.to_owned(),
            access: access.clone(),
            connection: None,
        })
    }

    /// The server.
    pub fn server(&self) -> &HttpServer {
        &self.server
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// There is no answer. An answer of any status is none.
    pub fn call(&mut self, call: &HttpCall<'_>) -> Result<HttpAnswer, DeliveryFailure> {
        let answer = self.call_watched(call, &mut |_| GoOn::Continue)?;
        Ok(answer.expect("a call that nobody stops has an answer"))
    }

    /// The same; `watch` sees how many bytes of the body went out, and may stop it.
    ///
    /// # Errors
    /// As [`HttpClient::call`].
    pub fn call_watched(
        &mut self,
        call: &HttpCall<'_>,
        watch: &mut dyn FnMut(u64) -> GoOn,
    ) -> Result<Option<HttpAnswer>, DeliveryFailure> {
        let Self { runtime, server, tls, place, access, connection } = self;
        let mut caller = Caller { server, tls: tls.as_ref(), place, access };
        let asked = runtime.run(async {
            if let Some(used) = connection.take().filter(|used| !used.is_closed()) {
                match caller.ask(call, used, connection, watch).await {
                    // The server closed the connection while it was idle.
                    Asked::Lost => {}
                    asked => return caller.ended(asked),
                }
            }
            let Some(fresh) = unless_stopped(caller.connect(), 0, watch).await else {
                return caller.ended(Asked::Stopped);
            };
            let fresh = fresh?;
            let asked = caller.ask(call, fresh, connection, watch).await;
            caller.ended(asked)
        });
        if connection.is_none() {
            // What was not sent to its end would go out with the next request.
            runtime.end();
        }
        asked
    }

    /// Waits before the next call.
    ///
    /// # Errors
    /// This machine lacks resources.
    pub fn pause(&mut self, length: Duration) -> Result<(), DeliveryFailure> {
        self.runtime.run(async {
            tokio::time::sleep(length).await;
            Ok(())
        })
    }
}

/// Waits for `work`, when so many bytes of the body went out; none where `watch` stops it.
async fn unless_stopped<T>(
    work: impl Future<Output = T>,
    sent: u64,
    watch: &mut dyn FnMut(u64) -> GoOn,
) -> Option<T> {
    let mut work = pin!(work);
    loop {
        match timeout(TICK, &mut work).await {
            Ok(done) => return Some(done),
            Err(_) if watch(sent) == GoOn::Stop => return None,
            Err(_) => {}
        }
    }
}

/// What an attempt to ask came to.
enum Asked {
    Answered(HttpAnswer),
    Stopped,
    /// The connection was lost before anything of an answer came, and nothing of a body went out.
    Lost,
    Failed(DeliveryFailure),
}

struct Caller<'a> {
    server: &'a HttpServer,
    tls: Option<&'a TlsConnector>,
    place: &'a str,
    access: &'a RemoteAccess,
}

impl Caller<'_> {
    fn failed(&self, kind: FailureKind, what: impl core::fmt::Display) -> DeliveryFailure {
        failed(kind, self.place, what)
    }

    fn ended(&self, asked: Asked) -> Result<Option<HttpAnswer>, DeliveryFailure> {
        match asked {
            Asked::Answered(answer) => Ok(Some(answer)),
            Asked::Stopped => Ok(None),
            Asked::Lost => {
                Err(self.failed(FailureKind::Line, "the server closed the connection unasked"))
            }
            Asked::Failed(failure) => Err(failure),
        }
    }

    async fn connect(&mut self) -> Result<SendRequest<Outgoing>, DeliveryFailure> {
        let HttpServer { host, port, .. } = self.server;
        let stall = self.access.stall;
        let tcp = connect(self.place, host, *port, stall).await?;
        let sender = match self.tls {
            None => self.spawn(tcp).await?,
            Some(tls) => {
                let name = tls::server_name(self.place, host)?;
                let secured = timeout(stall, tls.connect(name, tcp)).await;
                let secured = secured
                    .map_err(|_| stalled(self.place, "TLS was agreed on", stall))?
                    .map_err(|error| tls::failure(self.place, &error))?;
                self.spawn(secured).await?
            }
        };
        Ok(sender)
    }

    async fn spawn<S>(&self, stream: S) -> Result<SendRequest<Outgoing>, DeliveryFailure>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) = handshake(TokioIo::new(stream))
            .await
            .map_err(|error| self.failed(FailureKind::Line, words(&error.to_string())))?;
        // Its failures are those of the request that it carries.
        tokio::spawn(async move { connection.await.ok() });
        Ok(sender)
    }

    /// Sends the request over a connection, and puts that back when it can be used again.
    async fn ask(
        &mut self,
        call: &HttpCall<'_>,
        mut sender: SendRequest<Outgoing>,
        connection: &mut Option<SendRequest<Outgoing>>,
        watch: &mut dyn FnMut(u64) -> GoOn,
    ) -> Asked {
        let taken = Arc::new(AtomicU64::new(0));
        let outgoing = match Outgoing::new(&call.body, &taken, self.access.pace.clone()) {
            Ok(outgoing) => outgoing,
            Err(failure) => return Asked::Failed(failure),
        };
        let request = match call.request(self.server, outgoing) {
            Ok(request) => request,
            Err(error) => return Asked::Failed(self.failed(FailureKind::Refused, error)),
        };
        let mut response = pin!(sender.send_request(request));
        let (mut idle, mut before) = (Duration::ZERO, 0);
        let response = loop {
            match timeout(TICK, &mut response).await {
                Ok(response) => break response,
                Err(_) => idle += TICK,
            }
            let now = taken.load(Ordering::Relaxed);
            if now != before {
                (before, idle) = (now, Duration::ZERO);
            }
            if watch(now) == GoOn::Stop {
                return Asked::Stopped;
            }
            if idle >= self.patience(call) {
                return Asked::Failed(stalled(self.place, "an answer was awaited", idle));
            }
        };
        match response {
            Err(error) => self.unanswered(call, &error, taken.load(Ordering::Relaxed)),
            Ok(response) => {
                let sent = taken.load(Ordering::Relaxed);
                match unless_stopped(self.answer(call, response), sent, watch).await {
                    Some(Ok(answer)) => {
                        *connection = Some(sender).filter(|_| answer.is_cut == Cut::Whole);
                        Asked::Answered(answer)
                    }
                    Some(Err(failure)) => Asked::Failed(failure),
                    None => Asked::Stopped,
                }
            }
        }
    }

    fn unanswered(&self, call: &HttpCall<'_>, error: &hyper::Error, taken: u64) -> Asked {
        if let (true, CallBody::File { path, .. }) = (error.is_user(), &call.body) {
            return Asked::Failed(source(path, "cannot be read any more"));
        }
        let is_lost = error.is_canceled() || error.is_incomplete_message() || error.is_closed();
        if is_lost && taken == 0 {
            return Asked::Lost;
        }
        let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
        let cause = words(&format!("{error}{}", cause.unwrap_or_default()));
        let what = format!("the connection broke after {taken} bytes of the request: {cause}");
        Asked::Failed(self.failed(FailureKind::Line, what))
    }

    async fn answer(
        &self,
        call: &HttpCall<'_>,
        response: Response<Incoming>,
    ) -> Result<HttpAnswer, DeliveryFailure> {
        let (head, mut body) = response.into_parts();
        let (mut kept, mut is_cut) = (Vec::new(), Cut::Whole);
        let (mut hash, mut length) = (Sha256::new(), 0);
        let is_hashed = matches!(call.keep, Keep::Digest) && head.status.is_success();
        let most = match call.keep {
            Keep::Bytes(most) => most,
            Keep::Digest => MOST_ANSWER,
        };
        while let Some(frame) = self.frame(&mut body, self.patience(call)).await? {
            length += frame.len() as u64;
            if is_hashed {
                hash.update(&frame);
            } else {
                kept.extend_from_slice(&frame[..frame.len().min(most - kept.len())]);
                if length > most as u64 {
                    is_cut = Cut::Cut;
                    break;
                }
            }
        }
        let digest = is_hashed.then(|| (hash.finalize().into(), length));
        Ok(HttpAnswer { status: head.status, headers: head.headers, body: kept, is_cut, digest })
    }

    /// The longest time in which nothing of a request or of its answer moves. Some servers send the
    /// head of an answer before they begin the work that it is about.
    fn patience(&self, call: &HttpCall<'_>) -> Duration {
        self.access.stall + call.work
    }

    async fn frame(
        &self,
        body: &mut Incoming,
        patience: Duration,
    ) -> Result<Option<bytes::Bytes>, DeliveryFailure> {
        loop {
            let next = core::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
            let frame = timeout(patience, next)
                .await
                .map_err(|_| stalled(self.place, "an answer came in", patience))?;
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|error| {
                self.failed(FailureKind::Line, format!("the answer broke off: {error}"))
            })?;
            // Trailers say nothing that is used.
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
    }
}

/// Encodes what a path or a query must not have as it is (RFC 3986 2.3).
pub fn encoded(text: &str, also: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if is_plain || also.as_bytes().contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Lists of parts and of objects have less than 1 MiB a page.
const MOST_ANSWER: usize = 4 << 20;

/// How often the caller of a long request is asked whether it goes on.
const TICK: Duration = Duration::from_millis(200);
