//! Whether a request that changes something comes from the page itself, and whether an address has
//! a secret in it.

use super::gate::{WebCredential, WebTls};
use skyhaul_serve::{ServeAnswer, ServeRequest};

/// Parameters that stand for a secret with other programs.
const SECRETS: [&str; 8] =
    ["token", "access_token", "api_key", "apikey", "key", "password", "auth", "authorization"];

/// Refuses a secret in the address: proxies and browsers write addresses into logs and histories.
///
/// # Errors
/// The answer: 400.
pub fn check_address(request: &ServeRequest) -> Result<(), ServeAnswer> {
    let is_secret = |(name, _): &&(String, String)| {
        SECRETS.iter().any(|secret| name.eq_ignore_ascii_case(secret))
    };
    let Some((name, _)) = request.query.iter().find(is_secret) else { return Ok(()) };
    let what = format!(
        "`{name}` in an address is written into logs: give a token as `Authorization: Bearer \
         TOKEN`; make a new one if this was one"
    );
    Err(ServeAnswer::problem(400, &what))
}

/// Refuses a POST that another site made a browser send.
///
/// Browsers say in `Origin` which page sends a POST, and let other sites send JSON only where a
/// server permits it, which this one never does. A program without a browser has no cookie.
///
/// # Errors
/// The answer: 403, or 415 for another content than JSON.
pub fn check_post(
    request: &ServeRequest,
    credential: &WebCredential,
    tls: WebTls,
) -> Result<(), ServeAnswer> {
    let refused = |what: &str| Err(ServeAnswer::problem(403, what));
    let fetch = request.header("sec-fetch-site").unwrap_or("same-origin");
    if fetch != "same-origin" {
        return refused("the request comes from another site");
    }
    match request.header("origin") {
        Some(origin) if !is_own(origin, request.header("host").unwrap_or_default(), tls) => {
            return refused("the request comes from a page of another site");
        }
        None if credential.has_cookie() => {
            return refused("a request with a cookie must say its `Origin`; programs use a token");
        }
        Some(_) | None => {}
    }
    let content = request.header("content-type").unwrap_or_default();
    let media = content.split(';').next().unwrap_or_default().trim();
    if !media.eq_ignore_ascii_case("application/json") {
        return Err(ServeAnswer::problem(415, "the body must be JSON: `application/json`"));
    }
    Ok(())
}

/// Whether an origin is this server, as the caller calls it. A proxy before it may have TLS that it
/// has not.
fn is_own(origin: &str, host: &str, tls: WebTls) -> bool {
    let Some((scheme, authority)) = origin.split_once("://") else { return false };
    let fits = match tls {
        WebTls::Here => scheme == "https",
        WebTls::No => matches!(scheme, "http" | "https"),
    };
    fits && !host.is_empty() && authority.eq_ignore_ascii_case(host)
}
