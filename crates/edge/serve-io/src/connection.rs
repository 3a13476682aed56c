//! One connection: TLS, requests one after the other, and the end of it.

use crate::body::ServeBody;
use crate::holdings::{CatalogueHoldings, open};
use crate::hosts::base_of;
use crate::place::ServeNotice;
use crate::served_request::ServedRequest;
use crate::shared::ServeShared;
use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use skyhaul_http_io::{
    ClientProgress, ConnectionEnd, ConnectionLimits, HttpConnection, read_head, target,
};
use skyhaul_serve::{
    AnswerBody, Asker, ServeAccount, ServeAnswer, ServeMethod, ServeRequest, finished, is_of_one,
    root_of, root_of_head,
};
use skyhaul_units::Duration;
use std::convert::Infallible;
use std::fs::File;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

/// The address and the headers of a request together.
const HEAD_MAX: usize = 32 << 10;
const HEADERS_MAX: usize = 64;
/// The body of a search.
const BODY_MAX: usize = 64 << 10;
/// The time for TLS, for the head of a request (also the one that is not begun), and for its body.
const WITHIN: Duration = Duration::from_secs(20);
/// The time that a request may wait for its turn at the catalogue.
const TURN_WITHIN: Duration = Duration::from_secs(20);

/// Serves a connection until it ends. It was admitted at the gate, and leaves it here.
pub async fn serve(shared: Arc<ServeShared>, stream: TcpStream, peer: IpAddr) {
    let _left = Leaving { shared: shared.clone(), peer };
    let limits = ConnectionLimits {
        head: HEAD_MAX,
        headers: HEADERS_MAX,
        within: WITHIN,
        idle: shared.place.idle,
    };
    let connection = HttpConnection::new(stream, shared.clock, limits);
    let client = Client { shared: shared.clone(), progress: connection.progress().clone(), peer };
    let service = service_fn(move |request| {
        let client = client.clone();
        async move { Ok::<_, Infallible>(client.respond(request).await) }
    });
    if connection.serve(shared.tls(), service).await == ConnectionEnd::Stalled {
        shared.gate().stalled();
    }
}

/// Leaves the gate at the end.
struct Leaving {
    shared: Arc<ServeShared>,
    peer: IpAddr,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.shared.gate().disconnect(self.peer);
    }
}

/// Who is at the other end.
#[derive(Clone)]
struct Client {
    shared: Arc<ServeShared>,
    progress: Arc<ClientProgress>,
    peer: IpAddr,
}

impl Client {
    async fn respond(&self, request: Request<Incoming>) -> Response<ServeBody> {
        let (head, body) = request.into_parts();
        let asked = format!("{} {}", head.method, head.uri.path());
        let (shared, progress) = (self.shared.clone(), self.progress.clone());
        let mut exchange = ServedRequest::new(shared, progress, self.peer, &asked);
        let is_head = head.method == Method::HEAD;
        let authorization = head.headers.get(hyper::header::AUTHORIZATION);
        let authorization = authorization.and_then(|value| value.to_str().ok());
        let root = root_of_head(target(&head), authorization);
        let (answer, file) = match self.answer(&head, body, &mut exchange).await {
            Ok(answered) => answered,
            Err(refused) => (refused, None),
        };
        let answer = finished(root, answer, exchange.id());
        exchange.answered(answer.status);
        response(answer, file.filter(|_| !is_head), is_head.into(), exchange)
    }

    async fn answer(
        &self,
        head: &hyper::http::request::Parts,
        body: Incoming,
        exchange: &mut ServedRequest,
    ) -> Result<(ServeAnswer, Option<File>), ServeAnswer> {
        let mut request = read_head(head).inspect_err(|_| self.shared.gate().refused())?;
        let base = base_of(&self.shared, &request).inspect_err(|_| self.shared.gate().refused())?;
        let root = root_of(&request);
        let admission = self.shared.gate().admit(&request, root, self.shared.time())?;
        let account = admission.account.clone();
        exchange.admitted(admission);
        if request.method == ServeMethod::Post {
            let whole = timeout(WITHIN.to_std(), whole(body)).await;
            let late = |_| ServeAnswer::problem(408, "the body did not come within 20 s");
            request.body = whole.map_err(late)??;
        }
        // Slow searches of some customers do not delay the files of the others.
        let turn = match is_of_one(&request, &base) {
            true => None,
            false => Some(self.turn().await?),
        };
        let shared = self.shared.clone();
        let found = tokio::task::spawn_blocking(move || {
            // As long as the search: it goes on when its client has gone.
            let _turn = turn;
            looked_up(&shared, &request, account.as_deref(), &base)
        });
        let failed = |_| ServeAnswer::problem(500, "the request cannot be answered");
        found.await.map_err(failed)
    }

    /// Waits for a turn at the catalogue.
    async fn turn(&self) -> Result<OwnedSemaphorePermit, ServeAnswer> {
        let turn =
            timeout(TURN_WITHIN.to_std(), self.shared.searches.clone().acquire_owned()).await;
        let turn = turn.ok().and_then(Result::ok);
        turn.ok_or_else(|| {
            let what = "too many requests wait for the catalogue; try again";
            ServeAnswer::problem(503, what).header("retry-after", "5")
        })
    }
}

/// The answer of the catalogue, with the file that it is about.
fn looked_up(
    shared: &ServeShared,
    request: &ServeRequest,
    account: Option<&ServeAccount>,
    base: &str,
) -> (ServeAnswer, Option<File>) {
    let place = &shared.place;
    let asker = Asker { account, base, node: &place.node };
    let asked = shared.readers.with(|reader| {
        let mut holdings = CatalogueHoldings::new(reader, place.contacts.as_ref());
        let answer = skyhaul_serve::answer(request, &place.roots, asker, &mut holdings);
        (answer, holdings.failure)
    });
    let (answer, failure) = asked.unwrap_or_else(|error| {
        let what = format!("the catalogue cannot be opened: {error}");
        let failed = skyhaul_serve::HoldingsError::Failed;
        (failed.into(), Some(ServeNotice::Warning(what)))
    });
    if let Some(ServeNotice::Warning(what)) = failure {
        shared.warn(&what);
    }
    let AnswerBody::File(body) = &answer.body else { return (answer, None) };
    match open(place, body) {
        Ok(file) => (answer, Some(file)),
        Err(other) => {
            if other.status == 500 {
                let name = &body.name;
                shared.warn(&format!("the product file {name} has another size than published"));
            }
            (other, None)
        }
    }
}

/// The body of a request.
async fn whole(mut body: Incoming) -> Result<Vec<u8>, ServeAnswer> {
    let mut bytes = Vec::new();
    loop {
        let frame = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        let Some(frame) = frame else { return Ok(bytes) };
        let broken = |_| ServeAnswer::problem(400, "the body broke off");
        if let Ok(data) = frame.map_err(broken)?.into_data() {
            if bytes.len() + data.len() > BODY_MAX {
                return Err(ServeAnswer::problem(413, "the body is longer than 64 KiB"));
            }
            bytes.extend_from_slice(&data);
        }
    }
}

/// Whether the body goes out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Whole,
    LengthOnly,
}

impl From<bool> for Shown {
    fn from(is_head: bool) -> Self {
        if is_head { Self::LengthOnly } else { Self::Whole }
    }
}

fn response(
    answer: ServeAnswer,
    file: Option<File>,
    shown: Shown,
    exchange: ServedRequest,
) -> Response<ServeBody> {
    let length = answer.len();
    let ServeAnswer { status, headers, body } = answer;
    let body = match (body, file) {
        (_, _) if shown == Shown::LengthOnly => ServeBody::of_bytes(Bytes::new(), exchange),
        (AnswerBody::Bytes(bytes), _) => ServeBody::of_bytes(bytes, exchange),
        (AnswerBody::File(body), Some(file)) => ServeBody::of_file(file, body.slices, exchange),
        (AnswerBody::File(_), None) => ServeBody::of_bytes(Bytes::new(), exchange),
    };
    let mut response = Response::new(body);
    *response.status_mut() =
        hyper::StatusCode::from_u16(status).unwrap_or(hyper::StatusCode::INTERNAL_SERVER_ERROR);
    let out = response.headers_mut();
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            out.insert(HeaderName::from_static(name), value);
        }
    }
    // RFC 9110 8.6: none with 304, whose length would be that of an answer that is not sent.
    if status != 304 {
        out.insert(hyper::header::CONTENT_LENGTH, length.into());
    }
    response
}
