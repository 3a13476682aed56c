//! What this machine can do: datagrams to itself, as fast as it can, before a line is blamed.

use crate::ProbeSocket;
use skyhaul_net::Clock;
use skyhaul_probe::Handed;
use skyhaul_units::{ByteCount, Duration, Rate};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

/// What a machine can send and receive at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostCapacity {
    /// UDP payload that went through the loopback interface, in datagrams of the size asked for: on
    /// a line a machine has to do half of this work, so that it can do as much at least.
    pub rate: Rate,
    /// Datagrams a second.
    pub datagrams_a_second: u64,
}

/// Finds out in `time`; a tenth of a second is enough.
///
/// # Errors
/// The loopback interface cannot be used.
pub fn calibrate(payload: ByteCount, time: Duration) -> io::Result<HostCapacity> {
    let clock = Clock::start();
    let any: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
    let mut receiver = ProbeSocket::bind(any, clock)?;
    let sender = ProbeSocket::bind(any, clock)?;
    let to = receiver.local_addr()?;
    let datagram = vec![0u8; payload.as_usize()];
    let (begin, mut received) = (clock.now(), 0u64);
    while clock.now() < begin + time {
        for _ in 0..AT_ONCE {
            if sender.send(to, &datagram)? != Handed::Taken {
                break;
            }
        }
        while receiver.receive(clock.now())?.is_some() {
            received += 1;
        }
    }
    let span = clock.now().since(begin);
    let rate = Rate::over(ByteCount::new(received.saturating_mul(payload.as_u64())), span);
    let datagrams_a_second = (received as f64 / span.as_secs_f64().max(1e-9)) as u64;
    Ok(HostCapacity { rate, datagrams_a_second })
}

/// Sent before they are received: as a stream does it, little is in the queue.
const AT_ONCE: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_can_do_something() {
        let ability = calibrate(ByteCount::new(1_400), Duration::from_millis(20)).unwrap();
        assert!(ability.datagrams_a_second > 0 && ability.rate > Rate::ZERO);
    }
}
