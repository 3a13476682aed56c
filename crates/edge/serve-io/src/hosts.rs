//! What the client calls the server.

use crate::shared::ServeShared;
use skyhaul_serve::{ServeAnswer, ServeRequest};
use std::net::IpAddr;

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
    if !shared.gate().has_accounts() && !is_own && !is_local(host) {
        let what = "this server does not have this name; use its address, or localhost";
        return Err(ServeAnswer::problem(421, what));
    }
    if let Some(own) = own {
        return Ok(own.trim_end_matches('/').to_owned());
    }
    let scheme = if shared.tls().is_some() { "https" } else { "http" };
    Ok(format!("{scheme}://{host}"))
}

fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    // Names below `localhost` are this host too (RFC 6761 6.3): S3 has buckets there.
    let name = name.to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_localhost_are_local() {
        for host in [
            "localhost",
            "LOCALHOST:8480",
            "127.0.0.1:1",
            "[::1]:2",
            "192.0.2.1",
            "aqua.localhost:1",
        ] {
            assert!(is_local(host), "{host}");
        }
        for host in
            ["example.org", "localhost.example.org:80", "127.0.0.1.example.org", "[x", "xlocalhost"]
        {
            assert!(!is_local(host), "{host}");
        }
    }
}
