//! Strangers that begin handshakes with a real centre and never end them.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "strangers are real: they have the real clock"
)]

use crate::support::site::{Site, channel};
use core::net::{Ipv4Addr, SocketAddr};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use skyhaul_quic::{EndpointConfig, Identity, PathConfig, QuicEndpoint};
use skyhaul_sessions::ReceivedDatagram;
use skyhaul_units::{Instant, Rate};
use std::net::UdpSocket;

/// Begins a handshake from `from`, proves the address if the centre requests it, and never
/// continues.
fn slow_caller(centre: SocketAddr, from: Ipv4Addr) {
    let socket = UdpSocket::bind((from, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let path = PathConfig { setup_copies: 1, ..PathConfig::over(Rate::from_mbps(10)) };
    let config = EndpointConfig::new(
        Identity::from_seed(&[9; 32]).unwrap(),
        path,
        std::time::Instant::now(),
    );
    let centre_key = Identity::from_seed(&[7; 32]).unwrap().fingerprint();
    let mut stranger = QuicEndpoint::new(config).unwrap();
    stranger.connect(Instant::ZERO, centre, centre_key).unwrap();
    let (mut out, mut answer) = (Vec::new(), [0; 2_048]);
    for _ in 0..2 {
        if stranger.poll_transmit(Instant::ZERO, &mut out).is_none() {
            break;
        }
        let _ = socket.send_to(&out, centre);
        while let Ok(length) = socket.recv(&mut answer) {
            // A Retry (RFC 9000 17.2.5). Nothing else is answered.
            if answer[0] & 0xf0 == 0xf0 {
                let payload = answer[..length].into();
                let received =
                    ReceivedDatagram { remote: centre, local_ip: None, ecn: None, payload };
                stranger.handle_datagram(Instant::ZERO, received);
                break;
            }
        }
    }
}

/// More than the centre has places for handshakes (128), each from a network of its own.
const MANY: usize = 200;

#[test]
fn a_station_connects_and_delivers_its_contact_while_strangers_occupy_the_handshakes() {
    let site = Site::new();
    let centre: SocketAddr = site.address.parse().unwrap();
    let (begun, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..u16::MAX {
                let [high, low] = number.to_be_bytes();
                slow_caller(centre, Ipv4Addr::new(127, 1 + (high >> 2), low, 1 + (high & 3)));
                begun.fetch_add(1, Ordering::Relaxed);
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        site.centre_until(|_| (begun.load(Ordering::Relaxed) >= MANY).then_some(()));
        site.write(&format!("[line]\nrate = \"93 Mbit/s\"\n{}", channel("")));
        let code = site.start().end().code;
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(code, Some(0));
    });
    println!("{} strangers", begun.load(Ordering::Relaxed));
    site.assert_whole();
}
