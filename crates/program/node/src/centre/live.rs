//! Live packets: each is forwarded as one UDP datagram as soon as it arrives, ahead of the
//! products.
//!
//! The Level-0 thread extracts the packets from the frames a second time and hands them to one
//! thread for each receiver through a bounded queue; it never blocks. That thread sends at the
//! configured rate. Packets that find no room are dropped and counted: a live display needs no late
//! packets, and the products have all of them.

use crate::fault::Fault;
use crate::services;
use crate::status::LiveStatus;
use skyhaul_ccsds::extract::{ExtractedPacket, Extractor};
use skyhaul_ccsds::mission::Mission;
use skyhaul_ccsds::packet::Header;
use skyhaul_ccsds::quality::CapturedFrame;
use skyhaul_config::Live;
use skyhaul_net::Clock;
use skyhaul_units::{ByteCount, Duration, Instant, Rate};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// All receivers of live packets.
#[derive(Debug, Clone, Default)]
pub struct Receivers(Arc<[Outlet]>);

/// One receiver, as seen by the Level-0 thread and by status.
#[derive(Debug)]
struct Outlet {
    wanted: Live,
    queue: SyncSender<Box<[u8]>>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    bytes: AtomicU64,
    /// Bytes in the queue.
    waiting: AtomicU64,
    dropped: AtomicU64,
}

/// The live packets of one contact.
pub struct LiveContact {
    receivers: Receivers,
    mission: Mission,
    extractor: Extractor,
}

impl Receivers {
    /// Starts a thread for each receiver, which ends with the last clone of what is returned.
    ///
    /// # Errors
    /// A receiver's name has no address, or this host refuses a socket or a thread.
    pub fn start(wanted: &[Live], clock: Clock) -> Result<Self, Fault> {
        let outlets = wanted.iter().map(|wanted| Outlet::start(wanted, clock));
        Ok(Self(outlets.collect::<Result<_, _>>()?))
    }

    /// The live packets of a contact; none where no receiver wants any.
    pub fn contact(&self, mission: &Mission) -> Option<LiveContact> {
        (!self.0.is_empty()).then(|| LiveContact {
            receivers: self.clone(),
            mission: mission.clone(),
            extractor: Extractor::new(mission.clone()),
        })
    }

    /// What status shows.
    pub fn status(&self) -> Vec<LiveStatus> {
        let show = |outlet: &Outlet| LiveStatus {
            to: outlet.wanted.to.to_string(),
            packets: outlet.counts.sent.load(Ordering::Relaxed),
            bytes: outlet.counts.bytes.load(Ordering::Relaxed),
            dropped: outlet.counts.dropped.load(Ordering::Relaxed),
        };
        self.0.iter().map(show).collect()
    }
}

impl LiveContact {
    /// Sends the packets that the next frame completes.
    pub fn frame(&mut self, frame: &CapturedFrame) {
        if !frame.is_good() {
            return;
        }
        let Self { receivers, mission, extractor } = self;
        // Level-0 counts frames that cannot be read.
        let _ = extractor.push(frame, |packet| {
            for outlet in
                receivers.0.iter().filter(|outlet| wants(&outlet.wanted, mission, &packet))
            {
                outlet.offer(&packet.bytes);
            }
        });
    }
}

fn wants(wanted: &Live, mission: &Mission, packet: &ExtractedPacket) -> bool {
    let Header::Space(header) = packet.header else { return false };
    let in_product = |name: &str| {
        let group = mission.product(packet.channel.vcid, header.apid);
        group.is_some_and(|group| group.name == name)
    };
    !packet.header.is_idle()
        && wanted
            .apids
            .as_ref()
            .is_none_or(|apids| apids.0.iter().any(|range| range.contains(header.apid)))
        && wanted.product.as_ref().is_none_or(|product| in_product(product.as_str()))
}

impl Outlet {
    fn start(wanted: &Live, clock: Clock) -> Result<Self, Fault> {
        let place = wanted.to.to_string();
        let address = wanted.to.address().to_string();
        let found = address.to_socket_addrs().ok().and_then(|mut found| found.next());
        let to = found.ok_or_else(|| {
            let help = "correct `to` of [[live]], or check the name service";
            Fault::configuration(format!("`{address}` is not found"), &place, help)
        })?;
        let unspecified: SocketAddr = match to {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(unspecified).map_err(|error| {
            Fault::environment(
                format!("cannot open a UDP socket ({error})"),
                &place,
                "raise this user's limits",
            )
        })?;
        let (queue, packets) = sync_channel(QUEUE_PACKETS);
        let counts = Arc::new(Counts::default());
        let sender = Sender { socket, to, rate: wanted.rate, counts: counts.clone(), packets };
        services::thread("live", move || sender.run(clock))?;
        Ok(Self { wanted: wanted.clone(), queue, counts })
    }

    /// Queues a packet, or drops it where the queue is full.
    fn offer(&self, packet: &[u8]) {
        let len = packet.len() as u64;
        // Counted before it is queued, so that the sending thread never subtracts what was not
        // added.
        let waiting = self.counts.waiting.fetch_add(len, Ordering::Relaxed);
        let fits = waiting + len <= QUEUE_BYTES && packet.len() <= LONGEST_DATAGRAM;
        if !fits || self.queue.try_send(packet.into()).is_err() {
            self.counts.waiting.fetch_sub(len, Ordering::Relaxed);
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The thread of one receiver.
struct Sender {
    socket: UdpSocket,
    to: SocketAddr,
    rate: Rate,
    counts: Arc<Counts>,
    packets: Receiver<Box<[u8]>>,
}

impl Sender {
    /// Sends until all senders of the queue are gone.
    fn run(self, clock: Clock) {
        let mut pace = Pace { rate: self.rate, free_at: clock.now() };
        while let Ok(packet) = self.packets.recv() {
            let len = packet.len() as u64;
            if let Some(wait) = pace.wait(clock.now(), ByteCount::new(len)) {
                pause(wait);
            }
            self.counts.waiting.fetch_sub(len, Ordering::Relaxed);
            match self.socket.send_to(&packet, self.to) {
                Ok(_) => {
                    self.counts.sent.fetch_add(1, Ordering::Relaxed);
                    self.counts.bytes.fetch_add(len, Ordering::Relaxed);
                }
                Err(_) => {
                    self.counts.dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a rate has nothing to wait on: its pace is the clock's"
)]
fn pause(span: Duration) {
    std::thread::sleep(span.to_std());
}

/// When the next packet may go.
struct Pace {
    rate: Rate,
    /// When all that was sent has left at the configured rate.
    free_at: Instant,
}

impl Pace {
    /// How long a packet waits; none where it may go at once. It counts as sent.
    fn wait(&mut self, now: Instant, len: ByteCount) -> Option<Duration> {
        let begins = self.free_at.max(now);
        self.free_at = begins + self.rate.time_for(len);
        let wait = begins.since(now);
        // Shorter waits are added up until the clock can measure them.
        (wait > SHORTEST_WAIT).then_some(wait)
    }
}

/// 1 ms: at 100 Mbit/s 12 KB in a row.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);
/// 8 MiB of packets wait for one receiver: what a block of 256 KiB brings at once 32 times over.
const QUEUE_BYTES: u64 = 8 << 20;
/// 64 Ki packets: short ones must not fill memory by what lies around them.
const QUEUE_PACKETS: usize = 64 << 10;
/// What a UDP datagram over IPv4 holds (RFC 768; RFC 791 3.1).
const LONGEST_DATAGRAM: usize = 65_507;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_go_at_the_rate_and_no_faster() {
        let start = Instant::ZERO;
        let mut pace = Pace { rate: Rate::from_mbps(8), free_at: start };
        // 8 Mbit/s is 1000 bytes a millisecond.
        let waits: Vec<_> = (0..5).map(|_| pace.wait(start, ByteCount::new(1_000))).collect();
        let millis = |millis| Some(Duration::from_millis(millis));
        assert_eq!(waits, [None, None, millis(2), millis(3), millis(4)]);
        let later = start + Duration::from_secs(1);
        assert_eq!(pace.wait(later, ByteCount::new(1_000)), None);
    }
}
