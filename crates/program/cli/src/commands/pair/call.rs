//! The end that connects and has the code.

use super::PORT;
use skyhaul_config::HostPort;
use skyhaul_exit::{Exit, Failure};
use skyhaul_net::Clock;
use skyhaul_pairing::{PairingCall, PairingCard, PairingCode, PairingFailure, PairingStep};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Pairs with the node that waits at `address`. Returns its card, and the address.
///
/// # Errors
/// The address or code is none, nobody waits there, or the code is not the right one.
pub fn call(
    address: &str,
    code: &str,
    card: PairingCard,
    seed: [u8; 32],
) -> Result<(PairingCard, Option<HostPort>), Failure> {
    let code: PairingCode = code.parse().map_err(|error: skyhaul_pairing::PairingCodeError| {
        Failure::from_sentence(Exit::Usage, &error.to_string())
    })?;
    let written = with_port(address)?;
    let remote = resolve(&written)?;
    let mut stream = connect(remote)?;
    let clock = Clock::start();
    let mut call = PairingCall::new(clock.now(), &code, card, seed);
    let lost = |source| {
        let help = "check the line, then let the other end show its code, and try again";
        Failure::io("the connection was lost", &remote.to_string(), help, source).with(Exit::Peer)
    };
    stream.set_read_timeout(Some(LOOK)).map_err(lost)?;
    loop {
        while let Some(step) = call.poll() {
            match step {
                PairingStep::Send(bytes) => stream.write_all(&bytes).map_err(lost)?,
                PairingStep::Paired(card) => {
                    finish(&stream);
                    return Ok((card, Some(written)));
                }
                PairingStep::Failed(failure) => return Err(failed(failure, remote)),
            }
        }
        let mut bytes = [0; 1024];
        match stream.read(&mut bytes) {
            Ok(0) => call.handle_closed(),
            Ok(count) => call.handle(clock.now(), &bytes[..count]),
            Err(error) if is_pause(&error) => call.handle_timeout(clock.now()),
            // After a reset, as after an end, the state machine has the sentence.
            Err(_) => call.handle_closed(),
        }
    }
}

fn failed(failure: PairingFailure, remote: SocketAddr) -> Failure {
    Failure::from_sentence(Exit::Peer, &failure.to_string()).at(&remote.to_string())
}

/// Waits until the other end has the last message, which it shows by closing.
fn finish(mut stream: &TcpStream) {
    // If it is gone, it says so at its end.
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.set_read_timeout(Some(CLOSING));
    let _ = stream.read(&mut [0; 64]);
}

fn is_pause(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn connect(remote: SocketAddr) -> Result<TcpStream, Failure> {
    TcpStream::connect_timeout(&remote, CONNECT).map_err(|source| {
        let (what, help) = match source.kind() {
            ErrorKind::ConnectionRefused => (
                "nobody waits at this address",
                "start `skyhaul pair` there first, and type the address and port that it shows",
            ),
            ErrorKind::TimedOut => (
                "no answer from this address",
                "check the address, and that no firewall blocks TCP to this port",
            ),
            _ => ("no connection to this address", "check the address and the line"),
        };
        Failure::io(what, &remote.to_string(), help, source).with(Exit::Peer)
    })
}

fn with_port(address: &str) -> Result<HostPort, Failure> {
    let bare = address.trim_start_matches('[').trim_end_matches(']');
    let text = match (bare.parse::<std::net::Ipv6Addr>(), address.contains(':')) {
        (Ok(_), _) => format!("[{bare}]:{PORT}"),
        (Err(_), true) => address.to_owned(),
        (Err(_), false) => format!("{address}:{PORT}"),
    };
    text.parse().map_err(|error: skyhaul_config::NameError| {
        Failure::from_sentence(Exit::Usage, &error.to_string())
    })
}

fn resolve(address: &HostPort) -> Result<SocketAddr, Failure> {
    let help = "type the address that the other end shows";
    let unknown =
        |why: &str| Failure::new(Exit::Usage, &format!("`{address}` is not found ({why})"), help);
    let mut found = (address.host(), address.port())
        .to_socket_addrs()
        .map_err(|error| unknown(&error.to_string()))?;
    found.next().ok_or_else(|| unknown("no address"))
}

/// Several round trips of 660 ms with losses.
const CONNECT: Duration = Duration::from_secs(10);
/// Between two looks at the clock.
const LOOK: Duration = Duration::from_millis(200);
/// For the other end to take the last message.
const CLOSING: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_may_be_left_out() {
        for (text, whole) in [
            ("192.0.2.7", "192.0.2.7:4740"),
            ("far.example.org", "far.example.org:4740"),
            ("far.example.org:99", "far.example.org:99"),
            ("2001:db8::1", "[2001:db8::1]:4740"),
            ("[2001:db8::1]", "[2001:db8::1]:4740"),
            ("[2001:db8::1]:99", "[2001:db8::1]:99"),
        ] {
            assert_eq!(with_port(text).unwrap().to_string(), whole);
        }
        assert!(with_port("a b").is_err() && with_port("a:b").is_err());
    }
}
