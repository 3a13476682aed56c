//! A TCP connection of this host, read twice with `ss`.

use super::rest::rest;
use skyhaul_exit::{Exit, Failure};
use skyhaul_probe::why::{TcpSample, Transfer, read_sockets};
use skyhaul_units::Duration;
use std::net::SocketAddr;
use std::process::Command;

/// Which connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Process(u32),
    At(SocketAddr),
}

/// Looks at a connection for `span`. Of several that a process has, at the one that carries most.
///
/// # Errors
/// There is no such connection, no `ss`, or the wait was interrupted.
pub fn watched(which: &str, span: Duration) -> Result<Transfer, Failure> {
    let wanted = parse(which)?;
    let before = sockets(which)?;
    let found: Vec<&TcpSample> = before.iter().filter(|sample| is_it(sample, wanted)).collect();
    if found.is_empty() {
        let help = "give the other end's address and port as `ss -tn` shows them, or run this as \
                   root for processes of other users";
        return Err(Failure::new(Exit::Usage, "there is no such TCP connection", help).at(which));
    }
    rest(span)?;
    let after = sockets(which)?;
    let of = |sample: &&TcpSample| {
        let later = after
            .iter()
            .find(|later| (later.local, later.remote) == (sample.local, sample.remote))?;
        sample.until(later, span).ok()
    };
    found.iter().filter_map(of).max_by_key(|transfer| transfer.goodput_bps).ok_or_else(|| {
        let what = "the connection ended during the observation";
        Failure::new(Exit::Usage, what, "give a shorter --watch").at(which)
    })
}

fn parse(which: &str) -> Result<Which, Failure> {
    let process = which.parse().map(Which::Process);
    process.or_else(|_| which.parse().map(Which::At)).map_err(|_| {
        let help =
            "give an address with a port, such as 192.0.2.7:5201, or the number of a process";
        Failure::new(Exit::Usage, &format!("`{which}` does not name a TCP connection"), help)
    })
}

fn is_it(sample: &TcpSample, which: Which) -> bool {
    match which {
        Which::Process(process) => sample.pids.contains(&process),
        Which::At(address) => {
            unmapped(sample.remote) == address || unmapped(sample.local) == address
        }
    }
}

/// An IPv4 address that a socket of IPv6 has, as people write it.
fn unmapped(address: SocketAddr) -> SocketAddr {
    (address.ip().to_canonical(), address.port()).into()
}

fn sockets(place: &str) -> Result<Vec<TcpSample>, Failure> {
    let output = Command::new("ss").args(["-tinHOp", "state", "established"]).output().map_err(
        |source| {
            let help = "install iproute2, which has `ss`";
            Failure::io("the kernel's TCP connections cannot be read", place, help, source)
        },
    )?;
    Ok(read_sockets(&String::from_utf8_lossy(&output.stdout)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_named_by_its_process_or_its_far_end() {
        assert_eq!(parse("4711").unwrap(), Which::Process(4711));
        let at: SocketAddr = "192.0.2.7:5201".parse().unwrap();
        assert_eq!(parse("192.0.2.7:5201").unwrap(), Which::At(at));
        assert!(parse("centre").is_err());
        let mapped: SocketAddr = "[::ffff:192.0.2.7]:5201".parse().unwrap();
        assert_eq!(unmapped(mapped), at);
    }
}
