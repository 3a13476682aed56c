//! Both ends of the probe over modelled links under a virtual clock.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "support of several tests, each of which needs a part; a test that cannot go on fails"
)]

use skyhaul_link::{Link, LinkConfig};
use skyhaul_probe::wire::RequestLimits;
use skyhaul_probe::{
    FarConfig, Handed, HostCounters, LineError, ProbeIo, ProbeReceived, ProbeServer,
};
use skyhaul_units::{ByteCount, Duration, Instant, Rate, Utc};

/// Both ends and the links between them.
pub struct Virtual {
    now: Instant,
    pub up: Link<Vec<u8>>,
    pub down: Link<Vec<u8>>,
    far: ProbeServer,
    /// Longest UDP payload each way; longer ones vanish, as in a black hole.
    payload_max: usize,
}

/// By how much the far end's clock is ahead.
pub const AHEAD: Duration = Duration::from_secs(7_200);

impl Virtual {
    pub fn new(up: LinkConfig, down: LinkConfig, seed: u64) -> Self {
        let limits = RequestLimits {
            rate: Rate::from_mbps(1_000),
            time: Duration::from_secs(900),
            datagrams: 1 << 20,
        };
        let far = ProbeServer::new(FarConfig {
            limits,
            utc_at_zero: Utc::from_nanos(0) + AHEAD,
            secret: [9; 32],
        });
        let (up, down) = (Link::new(up, seed), Link::new(down, seed + 1_000));
        Self { now: Instant::ZERO, up, down, far, payload_max: 1_472 }
    }

    /// Lets the far end do what it has to do now.
    fn far(&mut self) {
        while let Some(datagram) = self.up.poll(self.now) {
            let from = "192.0.2.1:9".parse().unwrap();
            let received = ProbeReceived { at: self.now, from, bytes: &datagram };
            self.far.datagram(self.now, received, &mut told);
        }
        while let Some(out) = self.far.poll(self.now) {
            if out.datagram.len() <= self.payload_max {
                let size = ByteCount::of(out.datagram.len() + 28);
                self.down.send(self.now, size, out.datagram);
            }
        }
    }
}

fn told() -> HostCounters {
    HostCounters::from_array([Some(0); HostCounters::COUNT])
}

impl ProbeIo for Virtual {
    fn now(&self) -> Instant {
        self.now
    }
    fn utc_at_zero(&self) -> Utc {
        Utc::from_nanos(0)
    }
    fn send(&mut self, datagram: &[u8]) -> Result<Handed, LineError> {
        if datagram.len() <= self.payload_max {
            self.up.send(self.now, ByteCount::of(datagram.len() + 28), datagram.to_vec());
        }
        Ok(Handed::Taken)
    }
    fn receive(&mut self, until: Instant) -> Result<Option<(Instant, Vec<u8>)>, LineError> {
        loop {
            self.far();
            if let Some(datagram) = self.down.poll(self.now) {
                return Ok(Some((self.now, datagram)));
            }
            if self.now >= until {
                return Ok(None);
            }
            let events = [self.up.next_event(), self.down.next_event(), self.far.next_timeout()];
            let next = events.into_iter().flatten().min().unwrap_or(until);
            self.now = next.max(self.now + Duration::from_nanos(1)).min(until);
        }
    }
    fn host(&mut self) -> HostCounters {
        told()
    }
}
