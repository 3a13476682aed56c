//! The head of a request, as the servers read it.

use hyper::Method;
use skyhaul_serve::{ServeAnswer, ServeMethod, ServeRequest};

/// The path and the query of a request.
pub fn target(head: &hyper::http::request::Parts) -> &str {
    head.uri.path_and_query().map_or("/", hyper::http::uri::PathAndQuery::as_str)
}

/// A request without its body.
///
/// # Errors
/// The answer to one that cannot be read.
pub fn read_head(head: &hyper::http::request::Parts) -> Result<ServeRequest, ServeAnswer> {
    let method = match head.method {
        Method::GET => ServeMethod::Get,
        Method::HEAD => ServeMethod::Head,
        Method::POST => ServeMethod::Post,
        _ => ServeMethod::Other,
    };
    let mut request = ServeRequest::new(method, target(head))?;
    for (name, value) in &head.headers {
        let Ok(value) = value.to_str() else {
            return Err(ServeAnswer::problem(400, "a header is no text"));
        };
        let known = request.headers.entry(name.as_str().to_owned()).or_default();
        if !known.is_empty() {
            known.push_str(", ");
        }
        known.push_str(value);
    }
    // In the absolute form the target has the host (RFC 9112 3.2.2).
    if let Some(authority) = head.uri.authority() {
        request.headers.insert("host".to_owned(), authority.as_str().to_owned());
    }
    Ok(request)
}
