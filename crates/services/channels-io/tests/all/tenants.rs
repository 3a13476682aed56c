//! Channels and connections over a session that somebody else holds, on real sockets.

#![allow(clippy::unwrap_used, reason = "test support")]
#![allow(clippy::disallowed_methods, reason = "the two ends of a link wait for each other")]

use crate::support::block_on;
use skyhaul_channels::SessionEnd;
use skyhaul_channels_io::{AppChannel, ChannelService, Sent};
use skyhaul_channels_io::{
    FILES_SHARE, FORWARDS_SHARE, STREAMS_SHARE, SessionPeer, TakenChannels, Tenants,
};
use skyhaul_forward_io::Forwarding;
use skyhaul_identity::Fingerprint;
use skyhaul_net::{Clock, Driver, Service, SessionManager, Socket, UdpEndpoint};
use skyhaul_quic::{EndpointConfig, Identity, PathConfig, QuicEndpoint};
use skyhaul_sessions::{SessionId, SessionManagerEvent, SocketId};
use skyhaul_transport::{Block, Event, Opening, Outcome, SessionConfig};
use skyhaul_units::{ByteCount, FlowId, Instant, Rate};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// What has the session: it sends blocks of its own, and tells of those that come.
struct Holder {
    guests: Tenants,
    call: Option<(SocketAddr, Fingerprint)>,
    session: Option<SessionId>,
    /// Own blocks to send.
    left: usize,
    came: Sender<usize>,
}

const OWN: usize = 100_000;

impl Service for Holder {
    fn event(&mut self, now: Instant, manager: &mut SessionManager, event: SessionManagerEvent) {
        match event {
            SessionManagerEvent::Connected { id, fingerprint, incoming, .. } => {
                let session = manager.session(id).unwrap();
                session.open(Opening { name: "a node".to_owned(), ..Opening::default() });
                let end = if incoming { SessionEnd::Called } else { SessionEnd::Calling };
                let far =
                    SessionPeer { end, node: Some(0), rules: Arc::default(), key: fingerprint };
                self.guests.begun(id, session, far);
            }
            SessionManagerEvent::Session { id, event } => {
                match self.guests.event(now, manager, id, event) {
                    Some(Event::Greeted { name, .. }) => {
                        self.session = Some(id);
                        self.guests.opened(id, &name);
                    }
                    Some(Event::Block(received)) => {
                        assert_eq!(received.id.flow, FlowId(5));
                        manager.session(id).unwrap().release(received.bytes.len());
                        self.came.send(received.bytes.len()).unwrap();
                    }
                    _ => {}
                }
            }
            SessionManagerEvent::Disconnected { id, .. } => self.guests.ended(id),
            _ => {}
        }
    }

    fn work(&mut self, now: Instant, manager: &mut SessionManager) -> Option<Instant> {
        if let Some((remote, key)) = self.call.take() {
            manager.connect_from(now, SocketId(0), remote, key).unwrap();
        }
        if let Some(session) = self.session.and_then(|id| manager.session(id)) {
            while self.left > 0
                && session.send(now, Block::reliable(FlowId(5), vec![1; OWN].into())).is_ok()
            {
                self.left -= 1;
            }
        }
        Some(self.guests.work(now, manager))
    }
}

/// A node that runs.
struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    address: SocketAddr,
    door: ChannelService,
    streams: ChannelService,
    came: Receiver<usize>,
}

impl Running {
    fn start(seed: u8, call: Option<SocketAddr>, left: usize, files: TakenChannels) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, (ready, started), (came, told)) = (Arc::clone(&stop), channel(), channel());
        let thread = std::thread::spawn(move || {
            let clock = Clock::start();
            let path = PathConfig::over(Rate::from_mbps(1_000));
            let mut config = EndpointConfig::new(identity(seed), path, clock.std_start());
            config.listen = true;
            config.trusted = [identity(3 - seed).fingerprint()].into();
            let socket = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
            let address = socket.local_addr().unwrap();
            let endpoint = UdpEndpoint::new(QuicEndpoint::new(config).unwrap(), socket);
            let own = ByteCount::mib(8);
            let session = SessionConfig {
                utc_at_zero: clock.utc_at_start(),
                receive_window: own,
                send_buffer: own + FORWARDS_SHARE + FILES_SHARE + STREAMS_SHARE,
                ..SessionConfig::default()
            };
            let mut driver =
                Driver::new(SessionManager::new(endpoint.into(), session), clock).unwrap();
            let guests =
                Tenants::new(Forwarding::default(), files, driver.waker(), Box::new(|_| {}))
                    .unwrap();
            ready.send((address, guests.files(), guests.streams())).unwrap();
            let call = call.map(|remote| (remote, identity(3 - seed).fingerprint()));
            let mut holder = Holder { guests, call, session: None, left, came };
            driver.run(&mut holder, &stopped).unwrap();
        });
        let (address, door, streams) = started.recv().unwrap();
        Self { stop, thread: Some(thread), address, door, streams, came: told }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_none_or(|ended| ended.is_ok()));
    }
}

fn identity(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32]).unwrap()
}

/// A program's own flow.
const FLOW: FlowId = FlowId(0x0001_0001);
/// The same of streams.
const STREAM: FlowId = FlowId(0x0002_0001);
const PIECE: usize = 256 << 10;

fn hand_over(link: &AppChannel, place: usize) -> Sent {
    let mut bytes = vec![0; PIECE];
    bytes[..8].copy_from_slice(&(place as u64).to_be_bytes());
    block_on(link.send(Block::reliable(FLOW, bytes.into()))).unwrap()
}

fn send(link: &AppChannel, place: usize) -> Option<Outcome> {
    block_on(hand_over(link, place))
}

#[test]
fn a_channel_that_nobody_reads_holds_back_neither_others_nor_the_owner() {
    const OWN_BLOCKS: usize = 600;
    const PIECES: usize = 400;
    let far = Running::start(2, None, 0, TakenChannels::ALL);
    let near = Running::start(1, Some(far.address), OWN_BLOCKS, TakenChannels::NONE);
    let slow = block_on(near.door.connect(0, "")).unwrap();
    let sender = std::thread::spawn(move || {
        let sent: Vec<_> = (0..PIECES).map(|place| hand_over(&slow, place)).collect();
        sent.into_iter()
            .filter_map(block_on)
            .filter(|outcome| *outcome == Outcome::Delivered)
            .count()
    });
    let unread = block_on(far.door.accept()).unwrap();
    assert_eq!(unread.peer(), Some(identity(1).fingerprint()));
    // Its window is full, and stays so.
    let held = || unread.stats().received.bytes_delivered;
    while held() < 31 << 20 {
        std::thread::park_timeout(std::time::Duration::from_millis(1));
    }
    let quick = block_on(near.door.connect(0, "no such class")).unwrap();
    let echo = {
        let door = far.door.clone();
        std::thread::spawn(move || {
            let link = block_on(door.accept()).unwrap();
            while let Some(incoming) = block_on(link.recv()) {
                let block = Block::reliable(incoming.id.flow, incoming.bytes.clone());
                drop(block_on(link.send(block)).unwrap());
            }
        })
    };
    for place in 0..100 {
        assert_eq!(send(&quick, place), Some(Outcome::Delivered));
        let back = block_on(quick.recv()).unwrap();
        assert_eq!((back.id.flow, back.bytes.len(), back.bytes[7]), (FLOW, PIECE, place as u8));
    }
    // What is dropped here has ended there.
    drop(quick);
    echo.join().unwrap();
    let own: usize = (0..OWN_BLOCKS).map(|_| far.came.recv().unwrap()).sum();
    assert_eq!(own, OWN_BLOCKS * OWN);
    assert!(held() <= 32 << 20, "{} bytes are held for one that reads nothing", held());
    // It is read at last, and everything is there in its order.
    for place in 0..PIECES {
        let piece = block_on(unread.recv()).unwrap();
        assert_eq!(piece.bytes[..8], (place as u64).to_be_bytes());
    }
    assert_eq!(sender.join().unwrap(), PIECES);
    assert!(block_on(unread.recv()).is_none());
}

#[test]
fn channels_wait_for_their_session_and_end_with_it() {
    let far = Running::start(2, None, 0, TakenChannels::ALL);
    let near = Running::start(1, Some(far.address), 0, TakenChannels::NONE);
    let link = block_on(near.door.connect(0, "")).unwrap();
    assert_eq!(send(&link, 0), Some(Outcome::Delivered));
    let there = block_on(far.door.accept()).unwrap();
    drop(far);
    assert!(there.closed().is_some());
    assert!(block_on(link.recv()).is_none());
    assert!(link.closed().is_some_and(|reason| reason.contains("ended")), "{:?}", link.closed());
    // Another one waits for the next session, or for the end of the node.
    let door = near.door.clone();
    let waiting = std::thread::spawn(move || block_on(door.connect(0, "")).map(drop));
    drop(near);
    assert!(waiting.join().unwrap().is_err());
}

#[test]
fn an_unread_stream_loses_what_exceeds_its_window_and_one_beside_it_loses_nothing() {
    const SENT: usize = 600;
    let far = Running::start(2, None, 0, TakenChannels::ALL);
    let near = Running::start(1, Some(far.address), 0, TakenChannels::NONE);
    let pass = |link: &AppChannel, place: usize| {
        let mut bytes = vec![0; 64 << 10];
        bytes[..8].copy_from_slice(&(place as u64).to_be_bytes());
        let patient = skyhaul_units::Duration::from_secs(60);
        block_on(link.send(Block::expendable(STREAM, patient, bytes.into()))).unwrap()
    };
    let slow = block_on(near.streams.connect(0, "")).unwrap();
    let mut sent = vec![pass(&slow, 0)];
    let unread = block_on(far.streams.accept()).unwrap();
    let quick = block_on(near.streams.connect(0, "")).unwrap();
    sent.push(pass(&quick, 0));
    let read = block_on(far.streams.accept()).unwrap();
    for place in 1..SENT {
        sent.extend([&slow, &quick].map(|link| pass(link, place)));
        let came = block_on(read.recv()).unwrap();
        assert_eq!(came.bytes[..8], (place as u64 - 1).to_be_bytes());
    }
    assert!(sent.into_iter().all(|sent| block_on(sent) == Some(Outcome::Delivered)));
    drop(slow);
    let first: Vec<u64> = std::iter::from_fn(|| block_on(unread.recv()))
        .map(|came| u64::from_be_bytes(*came.bytes.first_chunk().unwrap()))
        .collect();
    // 32 MiB are 512 blocks, less what each costs beside its bytes. What came first is kept.
    assert!((400..512).contains(&first.len()), "{} blocks are kept", first.len());
    assert!(first.iter().copied().eq(0..first.len() as u64), "{first:?}");
    assert_eq!(unread.stats().received.blocks_expired, (SENT - first.len()) as u64);
}

#[test]
fn a_channel_that_nobody_takes_is_ended() {
    let far = Running::start(2, None, 0, TakenChannels::NONE);
    let near = Running::start(1, Some(far.address), 0, TakenChannels::NONE);
    let link = block_on(near.door.connect(0, "")).unwrap();
    let _ = send(&link, 0);
    assert!(block_on(link.recv()).is_none());
    assert!(link.closed().is_some_and(|reason| reason.contains("ended by the far end")));
}
