//! The probe's both ends over the links and hosts of a case.

use super::case::Case;
use super::cross::Cross;
use super::machine::{Socket, encoded, is_others, numbers};
use skyhaul_link::Link;
use skyhaul_probe::why::{ExaminePlan, LineFound, examine};
use skyhaul_probe::wire::RequestLimits;
use skyhaul_probe::{
    FarConfig, Handed, HostCounters, LineError, NearError, ProbeClient, ProbeIo, ProbeReceived,
    ProbeServer, StreamDirection,
};
use skyhaul_units::{ByteCount, Duration, Instant, Rate, Utc};

struct Virtual {
    now: Instant,
    up: Link<Vec<u8>>,
    down: Link<Vec<u8>>,
    far: ProbeServer,
    /// Before the far end's process.
    socket: Socket,
    /// The near end's processor.
    own: Socket,
    payload_max: usize,
    clock_step: Option<(Duration, i64)>,
    others: Option<Cross>,
}

/// Measures the line of a case; none where its far end is too slow to answer.
pub fn measured(case: &Case, seed: u64) -> Option<LineFound> {
    let limits = RequestLimits {
        rate: Rate::from_mbps(400),
        time: Duration::from_secs(600),
        datagrams: 1 << 18,
    };
    let line = Virtual {
        now: Instant::ZERO,
        up: Link::new(case.up.clone(), seed.wrapping_mul(3)),
        down: Link::new(case.down.clone(), seed.wrapping_mul(3) + 1),
        far: ProbeServer::new(FarConfig {
            limits,
            utc_at_zero: Utc::from_nanos(5_000_000_000),
            secret: [7; 32],
        }),
        socket: Socket::new(case.receiver, seed),
        own: Socket::new(case.sender, seed + 1),
        payload_max: case.payload_max,
        clock_step: case.clock_step,
        others: case.others.map(|others| Cross::new(others, case.up.one_way_delay, seed + 2)),
    };
    let mut near = ProbeClient::open(line, seed).unwrap();
    let plan = ExaminePlan {
        direction: StreamDirection::Up,
        time: Duration::from_secs(12),
        rate_max: Rate::from_mbps(200),
        payload_max: ByteCount::new(8_972),
        headers: ByteCount::new(28),
    };
    match examine(&mut near, &plan, &mut |_| {}) {
        Err(NearError::Lost(_)) => None,
        found => Some(found.unwrap_or_else(|error| panic!("{error}: {case:?}"))),
    }
}

impl Virtual {
    /// All that they have at this moment, into the same link.
    fn let_others_send(&mut self) {
        let Some(cross) = &mut self.others else { return };
        while let Some(packet) = cross.poll(self.now) {
            self.up.send(self.now, cross.packet(), encoded(packet, cross.packet()));
        }
    }

    /// Lets the far end do what it has to do now.
    fn far(&mut self) {
        self.let_others_send();
        while let Some(datagram) = self.up.poll(self.now) {
            if is_others(&datagram) {
                if let Some(cross) = &mut self.others {
                    cross.arrived(self.now, numbers(&datagram));
                }
                continue;
            }
            if self.socket.admits(datagram.len()) {
                self.socket.push(self.now, datagram);
            }
        }
        let from = "192.0.2.1:9".parse().unwrap();
        while let Some((at, datagram)) = self.socket.take(self.now) {
            let counted = self.socket.counted;
            let mut told = || HostCounters {
                socket: Some(counted.socket),
                softnet: Some(counted.backlog),
                card: Some(0),
                udp_receive: Some(counted.socket),
                udp_send: Some(0),
            };
            let received = ProbeReceived { at, from, bytes: &datagram };
            self.far.datagram(self.now, received, &mut told);
        }
        while let Some(out) = self.far.poll(self.now) {
            let size = ByteCount::of(out.datagram.len() + 28);
            self.down.send(self.now, size, out.datagram);
        }
    }
}

impl ProbeIo for Virtual {
    fn now(&self) -> Instant {
        self.now
    }
    fn utc_at_zero(&self) -> Utc {
        let zero = Utc::from_nanos(0);
        match self.clock_step {
            Some((at, millis)) if self.now >= Instant::ZERO + at => {
                Utc::from_nanos(zero.as_nanos() + millis * 1_000_000)
            }
            _ => zero,
        }
    }
    fn send(&mut self, datagram: &[u8]) -> Result<Handed, LineError> {
        if datagram.len() > INTERFACE {
            return Ok(Handed::TooLong);
        }
        self.own.spend(self.now);
        // A call returns when the processor has done its work.
        self.now = self.now.max(self.own.busy_until());
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
            let others = self.others.as_ref().map(Cross::due);
            let events = [
                self.up.next_event(),
                self.down.next_event(),
                self.far.next_timeout(),
                self.socket.due(),
                others,
            ];
            let next = events.into_iter().flatten().min().unwrap_or(until);
            self.now = next.max(self.now + Duration::from_nanos(1)).min(until);
        }
    }
    fn host(&mut self) -> HostCounters {
        HostCounters::from_array([Some(0); HostCounters::COUNT])
    }
}

/// What an Ethernet interface takes: 1,500 bytes less the headers of IPv4 and UDP.
const INTERFACE: usize = 1_472;
