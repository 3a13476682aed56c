//! What the client calls the server.

use crate::shared::ServeShared;
use skyhaul_http_io::is_local_host;
use skyhaul_serve::{ServeAnswer, ServeRequest};

/// What addresses in the answer begin with.
///
/// A server without accounts is for programs of this host. A page of another site that a browser
/// here shows could reach it under a name of its own (DNS rebinding): it answers to addresses and
/// to `localhost` alone.
///
/// # Errors
/// The answer to a name that is none, or that is not this server's.
pub fn base_of(shared: &ServeShared, request: &ServeRequest) -> Result<String, ServeAnswer> {
    let host = request.header("host").unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
    if host.is_empty() || host.len() > 255 || !host.chars().all(is_plain) {
        return Err(ServeAnswer::problem(400, "the request does not say a Host"));
    }
    let own = shared.place.address.as_deref();
    let is_own = own.and_then(|own| own.split_once("://")).is_some_and(|(_, own)| own == host);
    if !shared.gate().has_accounts() && !is_own && !is_local_host(host) {
        let what = "this server does not have this name; use its address, or localhost";
        return Err(ServeAnswer::problem(421, what));
    }
    if let Some(own) = own {
        return Ok(own.trim_end_matches('/').to_owned());
    }
    let scheme = if shared.tls().is_some() { "https" } else { "http" };
    Ok(format!("{scheme}://{host}"))
}
