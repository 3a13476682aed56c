//! Links between two places as programs see them. Needs root, network namespaces and TUN devices;
//! without them it is skipped.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "what tests share; real packets take real time, both ends of a stream are at work at \
             once, and what is skipped is said"
)]

use skyhaul_emulator::{
    EmulatedDirection, Emulation, EmulatorError, EmulatorOrder, LabDescription, LinkEnd, Namespace,
    OrderAnswer, Status,
};
use skyhaul_link::LinkConfig;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Runs a lab while `work` does.
fn with_lab(name: &str, text: &str, work: impl FnOnce(&skyhaul_emulator::Handle)) {
    let description = LabDescription::from_toml(text).unwrap();
    let mut emulation = match Emulation::set_up(name, &description) {
        Ok(emulation) => emulation,
        Err(error)
            if !rustix::process::geteuid().is_root()
                || !std::path::Path::new("/dev/net/tun").exists() =>
        {
            eprintln!("SKIPPED: {name}: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let (handle, stop) = (emulation.handle(), Arc::new(AtomicBool::new(false)));
    let stopped = Arc::clone(&stop);
    let running = thread::spawn(move || {
        emulation.run(&stopped).unwrap();
        emulation.take_down().unwrap();
    });
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&handle)));
    stop.store(true, Ordering::Relaxed);
    running.join().unwrap();
    assert!(
        !Namespace::new(name, LinkEnd::A).exists() && !Namespace::new(name, LinkEnd::B).exists()
    );
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

fn inside<T: Send>(
    lab: &str,
    place: LinkEnd,
    work: impl FnOnce() -> std::io::Result<T> + Send,
) -> T {
    let work = || work().map_err(EmulatorError::NoAnswer);
    Namespace::new(lab, place).enter(work).unwrap()
}

fn udp(lab: &str, place: LinkEnd, link: usize) -> UdpSocket {
    let socket = inside(lab, place, || UdpSocket::bind((place.ipv4(link), 0)));
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    socket
}

fn status(handle: &skyhaul_emulator::Handle) -> Status {
    match handle.ask(EmulatorOrder::Status).unwrap() {
        OrderAnswer::Status(status) => *status,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_stream_goes_through_unharmed_in_large_pieces_and_small() {
    let text = "[[link]]\nboth = { rate = \"400 Mbit/s\", one_way_delay = \"2 ms\", loss = { kind \
               = \"independent\", probability = \"0.2 %\" } }";
    with_lab("t-stream", text, |handle| {
        let listener =
            inside("t-stream", LinkEnd::B, || TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)));
        let port = listener.local_addr().unwrap().port();
        let sent: Vec<u8> =
            (0..8_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let copy = sent.clone();
        let sender = thread::spawn(move || {
            let mut stream =
                inside("t-stream", LinkEnd::A, || TcpStream::connect((LinkEnd::B.ipv4(0), port)));
            stream.write_all(&copy).unwrap();
        });
        let mut received = Vec::new();
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_to_end(&mut received).unwrap();
        sender.join().unwrap();
        assert!(received == sent, "{} of {} bytes, or others", received.len(), sent.len());
        let link = status(handle).links.remove(0);
        let up = &link.up;
        assert!(up.counters.lost > 0, "{up:?}");
        assert!(up.counters.offered > 8_000_000 / 1_460, "{up:?}");
        assert_eq!(
            up.counters.offered,
            up.counters.forwarded + up.counters.dropped() + up.in_flight
        );
        assert_eq!((up.malformed, up.refused, up.device_dropped), (0, 0, Some(0)));
        let counted: u64 = up.queue_delay_histogram.steps.iter().map(|(_, count)| count).sum();
        assert_eq!(counted, up.counters.offered - up.counters.queue_dropped);
    });
}

#[test]
fn as_many_datagrams_are_lost_as_chance_allows_and_all_are_accounted_for() {
    let text = "[[link]]\nname = \"one\"\nboth = {}\n[[link]]\nname = \"geo\"
up = { loss = { kind = \"independent\", probability = \"10 %\" } }\ndown = {}";
    with_lab("t-loss", text, |handle| {
        let (from, to) = (udp("t-loss", LinkEnd::A, 1), udp("t-loss", LinkEnd::B, 1));
        let (mut received, mut room) = (0_u64, [0; 2000]);
        to.set_nonblocking(true).unwrap();
        // In bursts of what the socket holds, each read whole before the next.
        for burst in 1..=400 {
            for _ in 0..50 {
                from.send_to(&[7; 1000], to.local_addr().unwrap()).unwrap();
            }
            let mut up = status(handle).links.remove(1).up;
            while up.counters.offered < burst * 50 || up.in_flight > 0 {
                thread::sleep(Duration::from_millis(1));
                up = status(handle).links.remove(1).up;
            }
            while to.recv(&mut room).is_ok() {
                received += 1;
            }
        }
        let up = status(handle).links.remove(1).up;
        let lost = 20_000 - received;
        // The kernel's own packets of IPv6 are offered, and may be lost, as well.
        assert!((lost..lost + 100).contains(&up.counters.lost), "{lost}: {up:?}");
        assert_eq!(up.counters.offered, up.counters.forwarded + up.counters.lost);
        // Five standard deviations of 20,000 draws at one in ten.
        assert!((1_788..=2_212).contains(&lost), "{lost}");
    });
}

#[test]
fn a_running_link_becomes_another_one() {
    with_lab("t-set", "[[link]]\nboth = {}", |handle| {
        let (from, to) = (udp("t-set", LinkEnd::A, 0), udp("t-set", LinkEnd::B, 0));
        let mut room = [0; 10];
        from.send_to(b"first", to.local_addr().unwrap()).unwrap();
        assert_eq!(to.recv(&mut room).unwrap(), 5);
        let all_lost: LinkConfig =
            toml::from_str("loss = { kind = \"independent\", probability = \"100 %\" }").unwrap();
        let order = |link: &str| EmulatorOrder::Set {
            link: link.to_owned(),
            direction: EmulatedDirection::Up,
            config: Box::new(all_lost.clone()),
        };
        assert!(matches!(handle.ask(order("link2")).unwrap(),
                OrderAnswer::Refused(reason) if reason.contains("no link `link2`")));
        assert!(matches!(handle.ask(order("link1")).unwrap(), OrderAnswer::Done));
        from.send_to(b"second", to.local_addr().unwrap()).unwrap();
        while status(handle).links[0].up.counters.lost == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        to.send_to(b"back", from.local_addr().unwrap()).unwrap();
        assert_eq!(from.recv(&mut room).unwrap(), 4);
        assert_eq!(status(handle).links[0].up.config, all_lost);
    });
}

#[test]
fn what_cannot_be_made_leaves_nothing_behind() {
    with_lab("t-twice", "[[link]]\nboth = {}", |_| {
        let again = Emulation::set_up(
            "t-twice",
            &LabDescription::from_toml("[[link]]\nboth = {}").unwrap(),
        );
        let error = again.unwrap_err().to_string();
        assert!(error.contains("File exists"), "{error}");
    });
}
