use super::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use skyhaul_identity::Identity;
use skyhaul_tcp::{TlsEndpoint, TlsEndpointConfig};
use skyhaul_transport::{DownReason, Path, PathEvent, Token};
use skyhaul_units::{Duration, Instant, Rate};

fn identity(node: u8) -> Identity {
    Identity::from_seed(&[node + 1; 32]).unwrap()
}

fn quic(node: u8) -> TlsEndpoint {
    let mut config = TlsEndpointConfig::new(identity(node));
    config.trusted.insert(identity(0).fingerprint());
    TlsEndpoint::new(config)
}

/// Two ends on loopback, and what each has seen.
struct Ends {
    clock: Clock,
    streams: Vec<(TcpPathStream, TcpPath)>,
    buffer: Vec<u8>,
    up: [bool; 2],
    datagrams: [Vec<u64>; 2],
    acked: [u64; 2],
    down: [Option<DownReason>; 2],
    to_send: [u64; 2],
    sent: [u64; 2],
}

impl Ends {
    fn new() -> Self {
        let clock = Clock::start();
        let listener = TcpPathListener::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let path = quic(0).connect(clock.now(), identity(1).fingerprint()).unwrap();
        let caller = TcpPathStream::connect(None, listener.local_addr().unwrap()).unwrap();
        wait(&[PollFd::from_borrowed_fd(listener.fd(), PollFlags::IN)]);
        let (called, remote) = listener.accept().unwrap().expect("somebody called");
        assert_eq!(remote, caller.local_addr().unwrap());
        let called = (TcpPathStream::on(called).unwrap(), quic(1).accept(clock.now()).unwrap());
        let streams = vec![(caller, path), called];
        Self {
            clock,
            streams,
            buffer: vec![0; 1 << 16],
            up: Default::default(),
            datagrams: Default::default(),
            acked: Default::default(),
            down: Default::default(),
            to_send: Default::default(),
            sent: Default::default(),
        }
    }

    /// Serves both ends until `done`; how long that takes decides nothing, unless it is a minute.
    fn run(&mut self, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            assert!(self.clock.now().since(Instant::ZERO) < Duration::from_secs(60), "it hangs");
            (0..2).for_each(|end| self.serve(end));
            let fds: Vec<_> = self
                .streams
                .iter()
                .map(|(stream, path)| {
                    let read = if path.wants_read() { PollFlags::IN } else { PollFlags::empty() };
                    let write =
                        if stream.is_blocked() { PollFlags::OUT } else { PollFlags::empty() };
                    PollFd::from_borrowed_fd(stream.fd(), read | write)
                })
                .collect();
            wait(&fds);
        }
    }

    fn serve(&mut self, end: usize) {
        let (stream, path) = &mut self.streams[end];
        stream.unblock();
        stream.read(&self.clock, path, &mut self.buffer);
        let now = self.clock.now();
        path.handle_timeout(now);
        while let Some(event) = path.poll(now) {
            match event {
                PathEvent::Up { .. } => self.up[end] = true,
                PathEvent::Datagram(datagram) => {
                    self.datagrams[end].push(u64::from_be_bytes(datagram[..8].try_into().unwrap()));
                }
                PathEvent::Acked(_) => self.acked[end] += 1,
                PathEvent::Down(reason) => self.down[end] = Some(reason),
                PathEvent::Control(_) | PathEvent::Lost(_) => {}
            }
        }
        loop {
            let mut fed = false;
            while self.sent[end] < self.to_send[end] && path.room(now) > 0 {
                let mut datagram = vec![0; 1_438];
                datagram[..8].copy_from_slice(&self.sent[end].to_be_bytes());
                path.send(now, Some(Token(self.sent[end])), datagram.into());
                self.sent[end] += 1;
                fed = true;
            }
            stream.write(&self.clock, path);
            if !fed || stream.is_blocked() {
                break;
            }
        }
    }
}

fn wait(fds: &[PollFd<'_>]) {
    let mut fds = fds.to_vec();
    let millis = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
    poll(&mut fds, Some(&millis)).unwrap();
}

#[test]
fn datagrams_cross_loopback_both_ways_in_order() {
    let mut ends = Ends::new();
    ends.run(|ends| ends.up == [true; 2]);
    ends.to_send = [60_000, 20_000];
    let began = ends.clock.now();
    ends.run(|ends| ends.acked == ends.to_send);
    let took = ends.clock.now().since(began);
    println!("{}", Rate::over(ByteCount::new(80_000 * 1_438), took));
    for end in 0..2 {
        assert!(ends.datagrams[end].iter().copied().eq(0..ends.to_send[1 - end]));
    }
    assert!(ends.streams[0].1.counters().sent > ByteCount::new(60_000 * 1_438));
}

#[test]
fn an_end_that_reads_nothing_blocks_the_writer_and_no_more() {
    let mut ends = Ends::new();
    ends.run(|ends| ends.up == [true; 2]);
    ends.to_send[0] = 1_000_000;
    let mut last = u64::MAX;
    while ends.sent[0] != last {
        last = ends.sent[0];
        (0..100).for_each(|_| ends.serve(0));
        wait(&[PollFd::from_borrowed_fd(ends.streams[0].0.fd(), PollFlags::OUT)]);
    }
    assert!(ends.sent[0] < 4_000, "{} datagrams into nowhere", ends.sent[0]);
    ends.to_send[0] = ends.sent[0];
    ends.run(|ends| ends.acked == ends.to_send);
}

#[test]
fn the_closing_message_arrives_while_data_is_in_transit() {
    let mut ends = Ends::new();
    ends.run(|ends| ends.up == [true; 2]);
    ends.to_send = [1_000, 1_000];
    (0..2).for_each(|end| ends.serve(end));
    let now = ends.clock.now();
    ends.streams[0].1.close(now, "maintenance at noon");
    ends.run(|ends| ends.streams.iter().all(|(_, path)| path.is_finished()));
    let said = DownReason::ClosedByPeer("maintenance at noon".to_owned());
    assert_eq!(ends.down, [Some(DownReason::ClosedHere), Some(said)]);
}

#[test]
fn a_far_end_that_vanishes_ends_the_path() {
    let mut ends = Ends::new();
    ends.run(|ends| ends.up == [true; 2]);
    ends.streams.pop();
    while ends.down[0].is_none() {
        ends.serve(0);
        wait(&[PollFd::from_borrowed_fd(ends.streams[0].0.fd(), PollFlags::IN)]);
    }
    assert!(matches!(ends.down[0], Some(DownReason::Failed(_))), "{:?}", ends.down[0]);
    assert!(ends.streams[0].1.is_finished());
}

#[test]
fn a_port_without_a_listener_is_reported() {
    let clock = Clock::start();
    let address = TcpPathListener::bind(([127, 0, 0, 1], 0).into()).unwrap().local_addr().unwrap();
    let mut path = quic(0).connect(clock.now(), identity(1).fingerprint()).unwrap();
    let mut stream = TcpPathStream::connect(None, address).unwrap();
    while !path.is_finished() {
        stream.unblock();
        stream.write(&clock, &mut path);
        stream.read(&clock, &mut path, &mut [0; 100]);
        wait(&[PollFd::from_borrowed_fd(stream.fd(), PollFlags::OUT)]);
    }
    let Some(PathEvent::Down(DownReason::Failed(reason))) = path.poll(clock.now()) else {
        panic!("it is not down")
    };
    assert!(reason.to_lowercase().contains("refused"), "{reason}");
}

#[test]
fn a_path_can_leave_from_a_chosen_address() {
    let listener = TcpPathListener::bind(([127, 0, 0, 1], 0).into()).unwrap();
    let local = IpAddr::from([127, 0, 0, 2]);
    let stream = TcpPathStream::connect(Some(local), listener.local_addr().unwrap()).unwrap();
    assert_eq!(stream.local_addr().unwrap().ip(), local);
}
