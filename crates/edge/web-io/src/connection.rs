//! One connection: TLS, requests one after the other, and the end of it.

use crate::body::{Answering, WebBody, WebContent};
use crate::desk::OrderGiver;
use crate::events::{self, too_many};
use crate::login;
use crate::shared::WebShared;
use crate::stream::SentStream;
use crate::turns;
use hyper::body::{Body, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use skyhaul_http_io::{ClientProgress, ConnectionLimits, HttpConnection, read_head};
use skyhaul_serve::{AnswerBody, ServeAnswer, ServeMethod, ServeRequest};
use skyhaul_units::Duration;
use skyhaul_web::access::{WebCredential, WebOrder, WebTls, check_address, check_post};
use skyhaul_web::{
    EventsAsked, WebQuestion, WebReply, check_method, history_query, secured_answer, stream_head,
    web_answer,
};
use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The address and the headers of a request together.
const HEAD_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 64;
/// A body that is announced longer is refused; what is not wanted is read over.
const BODY_MAX: u64 = 64 << 10;
/// A login or an order: a note of 1,000 bytes, escaped, has room.
const ORDER_MAX: usize = 8 << 10;
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
    let progress = connection.progress().clone();
    let tls_is = if tls.is_some() { WebTls::Here } else { WebTls::No };
    let client = Arc::new(Client { shared, progress, peer, tls: tls_is });
    let service = service_fn(move |request| {
        let client = client.clone();
        async move { Ok::<_, Infallible>(client.respond(request).await) }
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
    peer: IpAddr,
    tls: WebTls,
}

/// A reply, and who gets it.
struct Answered {
    reply: WebReply,
    credential: WebCredential,
    /// What a stream has; none: looks.
    events: Option<EventsAsked>,
}

impl Client {
    async fn respond(&self, request: Request<Incoming>) -> Response<WebBody> {
        let answering = Answering::begin(self.progress.clone());
        let is_head = request.method() == Method::HEAD;
        let (head, body) = request.into_parts();
        let answered = self.answer(&head, body).await;
        let Answered { reply, credential, events } = answered.unwrap_or_else(|refused| Answered {
            reply: WebReply::Answer(secured_answer(refused)),
            credential: WebCredential::default(),
            events: None,
        });
        self.keep_uses();
        match reply {
            WebReply::Stream(head) if !is_head => {
                let sent = match events {
                    None => SentStream::looks(&self.shared, credential),
                    Some(asked) => SentStream::events(&self.shared, credential, asked),
                };
                match sent {
                    Some(sent) => {
                        self.shared.count(head.status);
                        head_of(&head, WebBody::new(WebContent::Sent(sent), answering))
                    }
                    None => self.whole(secured_answer(too_many()), answering, Shown::Whole),
                }
            }
            WebReply::Stream(answer) | WebReply::Answer(answer) => {
                let shown = if is_head { Shown::LengthOnly } else { Shown::Whole };
                self.whole(answer, answering, shown)
            }
        }
    }

    async fn answer(&self, head: &Parts, body: Incoming) -> Result<Answered, ServeAnswer> {
        let length = head.headers.get(hyper::header::CONTENT_LENGTH);
        let length = length.and_then(|text| text.to_str().ok()?.parse::<u64>().ok());
        if length.is_some_and(|length| length > BODY_MAX) {
            return Err(ServeAnswer::problem(413, "the body is longer than 64 KiB"));
        }
        let mut asked = read_head(head)?;
        self.shared.check_host(&asked)?;
        check_address(&asked)?;
        check_method(&asked)?;
        let credential = WebCredential::of(&asked, &self.shared.cookie);
        let mut events = None;
        let reply = match asked.method {
            ServeMethod::Post => {
                check_post(&asked, &credential, self.tls)?;
                let answer = self.post(&mut asked, &credential, body).await?;
                WebReply::Answer(secured_answer(answer))
            }
            _ if WebQuestion::is_at(&asked) => {
                self.shared.admit(&asked, &credential)?;
                let question = WebQuestion::read(&asked)?;
                WebReply::Answer(secured_answer(turns::ask(&self.shared, question).await?))
            }
            _ if asked.segments() == ["api", "v1", "history"] => {
                self.shared.admit(&asked, &credential)?;
                let query = history_query(&asked)?;
                WebReply::Answer(secured_answer(turns::history(&self.shared, query).await?))
            }
            _ if asked.segments() == ["api", "v1", "events"] => {
                self.shared.admit(&asked, &credential)?;
                let asked = EventsAsked::read(&asked)?;
                let answer = events::poll(&self.shared, asked, &self.progress).await?;
                WebReply::Answer(secured_answer(answer))
            }
            _ if asked.segments() == ["api", "v1", "events", "stream"] => {
                self.shared.admit(&asked, &credential)?;
                events = Some(EventsAsked::of_stream(&asked, self.shared.desk.last_event())?);
                WebReply::Stream(stream_head())
            }
            // A body that nobody wants is dropped with its connection.
            _ => self.look(&asked, &credential)?,
        };
        Ok(Answered { reply, credential, events })
    }

    /// The answer to who asks for something.
    fn look(
        &self,
        asked: &ServeRequest,
        credential: &WebCredential,
    ) -> Result<WebReply, ServeAnswer> {
        if asked.segments() == ["api", "v1", "session"] {
            let mut access = self.shared.access();
            let caller = access.caller(credential, self.shared.time())?;
            return Ok(WebReply::Answer(secured_answer(access.shown(&caller))));
        }
        self.shared.admit(asked, credential)?;
        if asked.segments() == ["api", "v1", "users"] {
            let listed = self.shared.access().listed(self.shared.time());
            return Ok(WebReply::Answer(secured_answer(listed)));
        }
        Ok(web_answer(asked, &*self.shared.look()))
    }

    /// The answer to who changes something.
    async fn post(
        &self,
        asked: &mut ServeRequest,
        credential: &WebCredential,
        body: Incoming,
    ) -> Result<ServeAnswer, ServeAnswer> {
        let shared = &self.shared;
        match asked.segments()[..] {
            ["api", "v1", "session"] => {
                asked.body = whole_body(body).await?;
                return login::log_in(shared, asked, self.peer).await;
            }
            ["api", "v1", "session", "keep"] => {
                let mut access = shared.access();
                let time = shared.time();
                let caller = access.caller(credential, time)?;
                access.keep(credential, time.now);
                return Ok(access.shown(&caller));
            }
            ["api", "v1", "session", "end"] => return Ok(shared.access().log_out(credential)),
            _ => {}
        }
        let caller = shared.admit(asked, credential)?;
        let Some(caller) = caller else {
            return Err(ServeAnswer::problem(404, "nothing here takes orders"));
        };
        asked.body = whole_body(body).await?;
        let order = WebOrder::read(asked)?;
        let giver = OrderGiver { owner: caller.owner, address: self.peer };
        turns::give(shared, order, giver).await
    }

    /// Has it kept when tokens were used, once a minute.
    fn keep_uses(&self) {
        let due = self.shared.access().uses_to_keep(self.shared.clock.now());
        if let Some(uses) = due {
            let desk = self.shared.desk.clone();
            tokio::task::spawn_blocking(move || desk.keep_uses(&uses));
        }
    }

    fn whole(&self, answer: ServeAnswer, answering: Answering, shown: Shown) -> Response<WebBody> {
        self.shared.count(answer.status);
        let length = answer.len();
        let bytes = match (&answer.body, shown) {
            (AnswerBody::Bytes(bytes), Shown::Whole) => Some(bytes.clone()),
            // No answer here is a file.
            (_, Shown::LengthOnly) | (AnswerBody::File(_), Shown::Whole) => None,
        };
        let bytes = bytes.filter(|bytes| !bytes.is_empty());
        let mut response = head_of(&answer, WebBody::new(WebContent::Whole(bytes), answering));
        // RFC 9110 8.6: none with 304, whose length would be that of an answer that is not sent.
        if answer.status != 304 {
            response.headers_mut().insert(hyper::header::CONTENT_LENGTH, length.into());
        }
        response
    }
}

/// The body of a request.
async fn whole_body(mut body: Incoming) -> Result<Vec<u8>, ServeAnswer> {
    let read = async {
        let mut bytes = Vec::new();
        loop {
            let frame =
                std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
            let Some(frame) = frame else { return Ok(bytes) };
            let broken = |_| ServeAnswer::problem(400, "the body broke off");
            if let Ok(data) = frame.map_err(broken)?.into_data() {
                if bytes.len() + data.len() > ORDER_MAX {
                    return Err(ServeAnswer::problem(413, "the body is longer than 8 KiB"));
                }
                bytes.extend_from_slice(&data);
            }
        }
    };
    let late = |_| ServeAnswer::problem(408, "the body did not come within 5 s");
    timeout(WITHIN.to_std(), read).await.map_err(late)?
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
