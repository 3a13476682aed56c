//! One connection: TLS, requests one after the other, and the end of it.

use crate::body::{Answering, WebBody, WebContent};
use crate::shared::WebShared;
use crate::stream::LookStream;
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use skyhaul_http_io::{ClientProgress, ConnectionLimits, HttpConnection, read_head};
use skyhaul_serve::{AnswerBody, ServeAnswer};
use skyhaul_units::Duration;
use skyhaul_web::{WebReply, secured_answer, web_answer};
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::net::TcpStream;

/// The address and the headers of a request together.
const HEAD_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 64;
/// A body: none is wanted, and this much is read over.
const BODY_MAX: u64 = 64 << 10;
/// The time for TLS, and for the head of a request (also the one that is not begun).
const WITHIN: Duration = Duration::from_secs(5);
/// A client that takes nothing of its answer for so long is closed.
const IDLE: Duration = Duration::from_secs(20);

/// Serves a connection until it ends. It was admitted at the gate, and leaves it here.
pub async fn serve(shared: Arc<WebShared>, stream: TcpStream, peer: IpAddr) {
    let _left = Leaving { shared: shared.clone(), peer };
    let limits =
        ConnectionLimits { head: HEAD_MAX, headers: HEADERS_MAX, within: WITHIN, idle: IDLE };
    let connection = HttpConnection::new(stream, shared.clock, limits);
    let tls = shared.tls();
    let client = Client { shared, progress: connection.progress().clone() };
    let service = service_fn(move |request| {
        let answer = client.respond(request);
        async move { Ok::<_, Infallible>(answer) }
    });
    connection.serve(tls, service).await;
}

/// Leaves the gate at the end.
struct Leaving {
    shared: Arc<WebShared>,
    peer: IpAddr,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.shared.gate().disconnect(self.peer);
    }
}

/// Who is at the other end.
struct Client {
    shared: Arc<WebShared>,
    progress: Arc<ClientProgress>,
}

impl Client {
    fn respond(&self, request: Request<Incoming>) -> Response<WebBody> {
        let answering = Answering::begin(self.progress.clone());
        let is_head = request.method() == Method::HEAD;
        // A body that nobody wants is dropped with its connection.
        let (head, _) = request.into_parts();
        match self.answer(&head) {
            WebReply::Stream(head) if !is_head => match LookStream::open(&self.shared) {
                Some(looks) => {
                    self.shared.count(head.status);
                    head_of(&head, WebBody::new(WebContent::Looks(looks), answering))
                }
                None => {
                    let what = "too many watch this node; close a page, or try again";
                    let full = ServeAnswer::problem(503, what).header("retry-after", "5");
                    self.whole(secured_answer(full), answering, Shown::Whole)
                }
            },
            WebReply::Stream(answer) | WebReply::Answer(answer) => {
                let shown = if is_head { Shown::LengthOnly } else { Shown::Whole };
                self.whole(answer, answering, shown)
            }
        }
    }

    fn answer(&self, head: &hyper::http::request::Parts) -> WebReply {
        let asked = || {
            let length = head.headers.get(hyper::header::CONTENT_LENGTH);
            let length = length.and_then(|text| text.to_str().ok()?.parse::<u64>().ok());
            if length.is_some_and(|length| length > BODY_MAX) {
                return Err(ServeAnswer::problem(413, "the body is longer than 64 KiB"));
            }
            let asked = read_head(head)?;
            self.shared.check_host(&asked)?;
            self.shared.admit(&asked)?;
            Ok(asked)
        };
        match asked() {
            Ok(asked) => web_answer(&asked, &*self.shared.look()),
            Err(refused) => WebReply::Answer(secured_answer(refused)),
        }
    }

    fn whole(&self, answer: ServeAnswer, answering: Answering, shown: Shown) -> Response<WebBody> {
        self.shared.count(answer.status);
        let length = answer.len();
        let bytes = match (&answer.body, shown) {
            (AnswerBody::Bytes(bytes), Shown::Whole) => Some(bytes.clone().into()),
            // No answer here is a file.
            (_, Shown::LengthOnly) | (AnswerBody::File(_), Shown::Whole) => None,
        };
        let bytes = bytes.filter(|bytes: &bytes::Bytes| !bytes.is_empty());
        let mut response = head_of(&answer, WebBody::new(WebContent::Whole(bytes), answering));
        // RFC 9110 8.6: none with 304, whose length would be that of an answer that is not sent.
        if answer.status != 304 {
            response.headers_mut().insert(hyper::header::CONTENT_LENGTH, length.into());
        }
        response
    }
}

/// Whether the body goes out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Whole,
    LengthOnly,
}

fn head_of(answer: &ServeAnswer, body: WebBody) -> Response<WebBody> {
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in &answer.headers {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    response
}
