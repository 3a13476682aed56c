//! Names of this host, which nobody else can give to it.

use std::net::IpAddr;

/// Whether a `Host` is an address or `localhost`, with a port or without.
///
/// A page of another site that a browser here shows could reach a server of this host under a name
/// of its own (DNS rebinding): a server without accounts answers to these alone.
pub fn is_local_host(host: &str) -> bool {
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
            assert!(is_local_host(host), "{host}");
        }
        for host in
            ["example.org", "localhost.example.org:80", "127.0.0.1.example.org", "[x", "xlocalhost"]
        {
            assert!(!is_local_host(host), "{host}");
        }
    }
}
