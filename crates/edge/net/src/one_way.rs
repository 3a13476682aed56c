//! Sockets for a one-way path: one end only sends, the other only receives.
//!
//! [`receive`] makes no call that could send a datagram: a receiver behind a data diode cannot be
//! made to answer.

use crate::Clock;
use crate::socket::{AT_ONCE, OutgoingDatagrams, Socket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use skyhaul_oneway::{Listener, Transmitter};
use skyhaul_units::{Duration, Instant};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// The application's side of a transmission.
pub trait OneWaySource {
    /// Hands over blocks, takes outcomes, or finishes. Returns when it wants to be called again at
    /// the latest; it is called after each tick of the line anyway.
    ///
    /// # Errors
    /// The transmission must end with this error.
    fn work(&mut self, now: Instant, transmitter: &mut Transmitter) -> io::Result<Option<Instant>>;
}

/// The socket of a one-way path, and the receiver's address.
#[derive(Debug, Clone, Copy)]
pub struct OneWayRoute<'a> {
    /// Datagrams go out here.
    pub socket: &'a Socket,
    /// The receiver.
    pub to: SocketAddr,
}

/// How long a call runs.
#[derive(Debug, Clone, Copy)]
pub struct RunUntil<'a> {
    /// The time.
    pub clock: Clock,
    /// Set by another thread to end the call.
    pub stop: &'a AtomicBool,
}

/// What was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransmitTotals {
    /// Datagrams handed to the system.
    pub datagrams: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Batches that the system refused: lost, as if on the line.
    pub refused: u64,
}

/// Sends until the end has been announced, or `run.stop` is set.
///
/// # Errors
/// The socket or the feed failed.
pub fn transmit(
    line: OneWayRoute<'_>,
    transmitter: &mut Transmitter,
    feed: &mut dyn OneWaySource,
    run: RunUntil<'_>,
) -> io::Result<TransmitTotals> {
    let (socket, RunUntil { clock, stop }) = (line.socket, run);
    let mut batch = Batch { contents: Vec::new(), size: 0, count: 0, is_last: false };
    let mut sent = TransmitTotals::default();
    let mut held: Option<Vec<u8>> = None;
    while !stop.load(Ordering::Relaxed) {
        let now = clock.now();
        let wanted = feed.work(now, transmitter)?;
        loop {
            let most = socket.max_segments().min(BATCH_MAX / transmitter.datagram_max()).max(1);
            while batch.count < most && !batch.is_last {
                let Some(datagram) = held.take().or_else(|| transmitter.poll(now)) else { break };
                held = batch.add(datagram);
            }
            if batch.count == 0 {
                break;
            }
            if !flush(line, &mut batch, &mut sent)? {
                wait(socket, PollFlags::OUT, WAIT_MAX)?;
                break;
            }
        }
        let now = clock.now();
        let Some(due) = transmitter.next_timeout(now) else { break };
        if batch.count == 0 && held.is_none() {
            let due = wanted.map_or(due, |wanted| wanted.min(due));
            wait(socket, PollFlags::empty(), clock.until(due).clamp(WAIT_MIN, WAIT_MAX))?;
        }
    }
    Ok(sent)
}

/// Receives until `take` returns true, or `run.stop` is set. `take` is called after every datagram
/// and every wait.
///
/// # Errors
/// The socket or the taker failed.
pub fn receive(
    socket: &mut Socket,
    listener: &mut Listener,
    mut take: impl FnMut(Instant, &mut Listener) -> io::Result<bool>,
    run: RunUntil<'_>,
) -> io::Result<()> {
    let RunUntil { clock, stop } = run;
    while !stop.load(Ordering::Relaxed) {
        let (mut failed, mut enough) = (None, false);
        loop {
            let count = socket.receive(|incoming| {
                let now = clock.now();
                for datagram in incoming {
                    listener.datagram(now, datagram);
                    match take(now, listener) {
                        Ok(is_enough) => enough |= is_enough,
                        Err(error) => failed = failed.take().or(Some(error)),
                    }
                }
            })?;
            if count < AT_ONCE || failed.is_some() || enough {
                break;
            }
        }
        let now = clock.now();
        listener.expire(now);
        if let Some(error) = failed {
            return Err(error);
        }
        if take(now, listener)? || enough {
            break;
        }
        let span = listener.next_timeout().map_or(WAIT_MAX, |due| clock.until(due));
        wait(socket, PollFlags::IN, span.clamp(WAIT_MIN, WAIT_MAX))?;
    }
    Ok(())
}

/// Datagrams that go out in one call (GSO): of one size but for the last, which may be shorter.
struct Batch {
    contents: Vec<u8>,
    size: usize,
    count: usize,
    /// Its last datagram is shorter than the others.
    is_last: bool,
}

impl Batch {
    /// Adds a datagram; gives it back if it is longer than those before.
    fn add(&mut self, datagram: Vec<u8>) -> Option<Vec<u8>> {
        if self.count > 0 && datagram.len() > self.size {
            self.is_last = true;
            return Some(datagram);
        }
        self.is_last = self.count > 0 && datagram.len() < self.size;
        if self.count == 0 {
            self.size = datagram.len();
        }
        self.contents.extend_from_slice(&datagram);
        self.count += 1;
        None
    }
}

/// Hands the batch to the system. Returns `false` where its buffer is full: the batch is kept.
fn flush(
    OneWayRoute { socket, to }: OneWayRoute<'_>,
    batch: &mut Batch,
    sent: &mut TransmitTotals,
) -> io::Result<bool> {
    let segment_size = (batch.count > 1).then_some(batch.size);
    let outgoing =
        OutgoingDatagrams { to, from: None, ecn: None, contents: &batch.contents, segment_size };
    match socket.send(&outgoing) {
        Ok(false) => return Ok(false),
        Ok(true) => {
            sent.datagrams += batch.count as u64;
            sent.bytes += batch.contents.len() as u64;
        }
        // The system reports an ICMP answer to an earlier datagram, which a one-way sender cannot
        // use.
        Err(_) => sent.refused += 1,
    }
    *batch =
        Batch { contents: core::mem::take(&mut batch.contents), size: 0, count: 0, is_last: false };
    batch.contents.clear();
    Ok(true)
}

fn wait(socket: &Socket, flags: PollFlags, span: Duration) -> io::Result<()> {
    let mut fds = [PollFd::from_borrowed_fd(socket.as_fd(), flags)];
    let nanos = span.as_nanos();
    let timeout = Timespec {
        tv_sec: (nanos / 1_000_000_000).cast_signed(),
        tv_nsec: (nanos % 1_000_000_000).cast_signed(),
    };
    // A signal ends the wait, and so may an error that the socket's next use reports.
    match poll(if flags.is_empty() { &mut [] } else { &mut fds }, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Bytes of one batch: what one UDP message may have.
const BATCH_MAX: usize = 65_000;
/// The longest wait, so that the stop flag is checked this often.
const WAIT_MAX: Duration = Duration::from_millis(100);
/// The shortest wait.
const WAIT_MIN: Duration = Duration::from_micros(50);

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_identity::OneWayKey;
    use skyhaul_oneway::{HEADERS_IPV4, TransmitSession, assumptions_for};
    use skyhaul_transport::oneway::{Event, ReceiverConfig, SenderConfig};
    use skyhaul_transport::{Block, FlowId};
    use skyhaul_units::{ByteCount, Rate};

    /// Hands over some blocks, then finishes.
    struct Blocks(u32);

    impl OneWaySource for Blocks {
        fn work(
            &mut self,
            now: Instant,
            transmitter: &mut Transmitter,
        ) -> io::Result<Option<Instant>> {
            for number in 0..core::mem::take(&mut self.0) {
                let block = Block::reliable(FlowId(1), vec![number as u8; 20_000].into());
                transmitter.sender().send(now, block).map_err(io::Error::other)?;
            }
            transmitter.sender().finish();
            Ok(None)
        }
    }

    #[test]
    fn blocks_cross_and_nothing_ever_comes_back() {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let (mut near, mut far) = (Socket::bind(here).unwrap(), Socket::bind(here).unwrap());
        let (to, key, clock) =
            (far.local_addr().unwrap(), OneWayKey::from_bytes([9; 32]), Clock::start());
        let session = TransmitSession { key: key.clone(), began: clock.utc(), salt: [0; 8] };
        let assumptions =
            assumptions_for(Rate::from_mbps(200), ByteCount::new(1_500), HEADERS_IPV4);
        let mut transmitter =
            Transmitter::new(clock.now(), session, &assumptions, SenderConfig::default()).unwrap();
        let stop = AtomicBool::new(false);
        let received = std::thread::scope(|scope| {
            let receiving = scope.spawn(|| {
                let mut listener = Listener::new(key, ReceiverConfig::default());
                let (mut blocks, mut over) = (Vec::new(), false);
                let take = |_, listener: &mut Listener| {
                    while let Some((name, event)) = listener.poll_event() {
                        if let Event::Block(block) = event {
                            blocks.push(block.bytes);
                        }
                        over = listener.session(name).is_some_and(|session| session.is_over());
                    }
                    Ok(over)
                };
                let run = RunUntil { clock, stop: &stop };
                receive(&mut far, &mut listener, take, run).unwrap();
                (blocks, *listener.counters())
            });
            let (line, run) = (OneWayRoute { socket: &near, to }, RunUntil { clock, stop: &stop });
            let sent = transmit(line, &mut transmitter, &mut Blocks(30), run).unwrap();
            assert!(sent.datagrams > 400 && sent.refused == 0);
            stop.store(true, Ordering::Relaxed);
            receiving.join().unwrap()
        });
        assert_eq!(received.0.len(), 30);
        assert!(
            received
                .0
                .iter()
                .enumerate()
                .all(|(number, block)| block[..] == [number as u8; 20_000])
        );
        assert_eq!(received.1.opened, received.1.datagrams);
        assert_eq!(near.receive(|_| {}).unwrap(), 0);
    }
}
