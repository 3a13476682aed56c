//! Which answer a request gets.

use crate::access::{WebOrder, WebRole};
use crate::assets::PAGE_FILES;
use crate::exposition::ExpositionForm;
use crate::listing::{json_text, page, row};
use crate::source::{WebList, WebSource};
use bytes::Bytes;
use serde_json::json;
use skyhaul_serve::{AnswerBody, ServeAnswer, ServeMethod, ServeRequest};

/// What goes back.
#[derive(Debug, PartialEq, Eq)]
pub enum WebReply {
    /// An answer.
    Answer(ServeAnswer),
    /// The head of an answer whose body are looks, one a second, as server-sent events.
    Stream(ServeAnswer),
}

/// Every path that is answered, beside the files of the page and those of [`ORDER_ROUTES`].
pub const ROUTES: [&str; 18] = [
    "/livez",
    "/readyz",
    "/metrics",
    "/openapi.yaml",
    "/api/v1/status",
    "/api/v1/stream",
    "/api/v1/session",
    "/api/v1/audit",
    "/api/v1/audit/check",
    "/api/v1/keys",
    "/api/v1/users",
    "/api/v1/config",
    "/api/v1/why",
    "/api/v1/history",
    "/api/v1/events",
    "/api/v1/events/stream",
    "/api/v1/{list}",
    "/api/v1/{list}/{name}",
];

/// Every path that takes a POST alone.
pub const ORDER_ROUTES: [&str; 6] = [
    "/api/v1/session/keep",
    "/api/v1/session/end",
    "/api/v1/alarms/{id}/ack",
    "/api/v1/deliveries/{id}/{action}",
    "/api/v1/keys/rotate",
    "/api/v1/keys/{key}/revoke",
];

const OPENAPI: &str = include_str!("openapi.yaml");

/// What the caller of a request must be; nothing where all may come: the files of the page have
/// no figure of the node, and a supervisor has no token.
pub fn needed_role(request: &ServeRequest) -> Option<WebRole> {
    let is_order = request.method == ServeMethod::Post;
    match request.segments()[..] {
        ["livez"] | ["api", "v1", "session", ..] => None,
        ["metrics" | "readyz"] => Some(WebRole::Metrics),
        ["api", "v1", "audit" | "keys" | "users" | "config", ..] => Some(WebRole::Admin),
        ["api", ..] if is_order => Some(WebRole::Operator),
        ["api", ..] | ["openapi.yaml"] => Some(WebRole::Viewer),
        _ => None,
    }
}

/// Refuses a request whose address does not take its method.
///
/// # Errors
/// The answer: 405, with the methods that it takes.
pub fn check_method(request: &ServeRequest) -> Result<(), ServeAnswer> {
    use ServeMethod::{Get, Head, Post};
    let (names, methods): (_, &[ServeMethod]) = match request.segments()[..] {
        ["api", "v1", "session"] => ("GET, HEAD, POST", &[Get, Head, Post]),
        ["api", "v1", "session", _] => ("POST", &[Post]),
        _ if WebOrder::is_at(request) => ("POST", &[Post]),
        _ => ("GET, HEAD", &[Get, Head]),
    };
    if methods.contains(&request.method) {
        return Ok(());
    }
    let refused = ServeAnswer::problem(405, &format!("this address takes {names}"));
    Err(secured(refused.header("allow", names)))
}

/// The answer to a request that was admitted.
pub fn web_answer(request: &ServeRequest, source: &dyn WebSource) -> WebReply {
    let answer = match request.segments()[..] {
        ["livez"] => alive(source),
        ["readyz"] => ready(source),
        ["metrics"] => metrics(request, source),
        ["openapi.yaml"] => text("application/yaml", OPENAPI),
        ["api", "v1", "stream"] => return WebReply::Stream(stream_head()),
        ["api", "v1", "status"] => live(json_text(source.summary().to_owned())),
        ["api", "v1", list] => {
            listed(list, |list| page(list, request, source)).unwrap_or_else(nothing)
        }
        ["api", "v1", list, name] => {
            listed(list, |list| row(list, name, source)).unwrap_or_else(nothing)
        }
        ref path => file(path, request).unwrap_or_else(nothing),
    };
    WebReply::Answer(secured(answer))
}

/// The head of an answer whose body are server-sent events.
pub fn stream_head() -> ServeAnswer {
    let head = ServeAnswer::empty(200).header("content-type", "text/event-stream");
    let head = head.header("x-accel-buffering", "no");
    secured(head.header("cache-control", "no-store"))
}

fn listed(name: &str, answer: impl FnOnce(WebList) -> ServeAnswer) -> Option<ServeAnswer> {
    Some(live(answer(WebList::named(name)?)))
}

fn nothing() -> ServeAnswer {
    ServeAnswer::problem(404, "nothing is here; /openapi.yaml names what is")
}

/// What is true for a second.
fn live(answer: ServeAnswer) -> ServeAnswer {
    answer.header("cache-control", "no-store")
}

fn text(media: &str, text: impl Into<Bytes>) -> ServeAnswer {
    ServeAnswer {
        status: 200,
        headers: vec![("content-type", media.to_owned())],
        body: AnswerBody::Bytes(text.into()),
    }
}

/// Looks at no disk and no peer: a supervisor that ends a node because its disk is full loses what
/// the node would have saved.
fn alive(source: &dyn WebSource) -> ServeAnswer {
    match source.is_alive() {
        true => live(text("text/plain; charset=utf-8", "alive\n")),
        false => ServeAnswer::problem(503, "the node's main thread does not turn"),
    }
}

fn ready(source: &dyn WebSource) -> ServeAnswer {
    let lacks = source.lacks();
    let status = if lacks.is_empty() { 200 } else { 503 };
    let lacks: Vec<_> =
        lacks.iter().map(|lack| json!({"what": lack.what, "text": lack.text})).collect();
    live(ServeAnswer::json(status, &json!({"ready": status == 200, "lacks": lacks})))
}

fn metrics(request: &ServeRequest, source: &dyn WebSource) -> ServeAnswer {
    let accept = request.header("accept").unwrap_or_default();
    let (form, media) = match wants_open_metrics(accept) {
        true => (
            ExpositionForm::OpenMetrics,
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
        ),
        false => (ExpositionForm::Classic, "text/plain; version=0.0.4; charset=utf-8"),
    };
    live(text(media, source.metrics(form))).header("vary", "accept")
}

/// Whether a client likes OpenMetrics no less than the classic form.
fn wants_open_metrics(accept: &str) -> bool {
    let quality = |media: &str| {
        let of = accept.split(',').filter_map(|range| {
            let (name, rest) = range.split_once(';').unwrap_or((range, ""));
            let quality = rest.split(';').find_map(|one| one.trim().strip_prefix("q="));
            let quality = quality.and_then(|text| text.trim().parse::<f32>().ok()).unwrap_or(1.0);
            (name.trim().eq_ignore_ascii_case(media)).then_some(quality)
        });
        of.fold(0.0_f32, f32::max)
    };
    let open = quality("application/openmetrics-text");
    open > 0.0 && open >= quality("text/plain")
}

/// A file of the page; `/` is the page itself.
fn file(path: &[&str], request: &ServeRequest) -> Option<ServeAnswer> {
    let name = match path {
        [] => "index.html",
        [name] => name,
        _ => return None,
    };
    let file = PAGE_FILES.iter().find(|file| file.name == name)?;
    let tag = file.tag();
    let is_known = request.header("if-none-match").is_some_and(|known| {
        known.split(',').any(|one| one.trim().trim_start_matches("W/") == tag)
    });
    let answer = match is_known {
        true => ServeAnswer::empty(304),
        false => ServeAnswer {
            status: 200,
            headers: vec![("content-type", file.media.to_owned())],
            body: AnswerBody::Bytes(Bytes::from_static(file.bytes)),
        },
    };
    // Asked for again each time, so that page and node are of one release.
    Some(answer.header("cache-control", "no-cache").header("etag", tag))
}

/// With what keeps a browser from running or fetching anything else.
pub fn secured(answer: ServeAnswer) -> ServeAnswer {
    answer
        .header("content-security-policy", POLICY)
        .header("x-content-type-options", "nosniff")
        .header("referrer-policy", "no-referrer")
        .header("cross-origin-resource-policy", "same-origin")
}

const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; object-src 'none'";
