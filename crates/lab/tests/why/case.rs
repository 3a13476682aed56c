//! Faults with parameters drawn by chance, each over a line that is drawn by chance too.

use crate::draw::Draws;
use crate::machine::Host;
use skyhaul_congestion::ControllerConfig;
use skyhaul_link::{Change, LinkConfig, Loss, Policer};
use skyhaul_probe::why::Cause;
use skyhaul_units::{Bytes, Duration, Probability, Rate};

/// All that decides a run. What measures never sees it.
#[derive(Debug, Clone)]
pub struct Case {
    /// From the sender to the receiver.
    pub up: LinkConfig,
    /// And back.
    pub down: LinkConfig,
    /// Longest UDP payload that passes on the way to the receiver.
    pub payload_max: usize,
    pub sender: Host,
    pub receiver: Host,
    pub controller: ControllerConfig,
    /// How fast the application hands over; left out, as fast as it goes.
    pub application: Option<Rate>,
    /// How fast the receiver's disk takes blocks; left out, at once.
    pub disk: Option<Rate>,
    pub window: Bytes,
    pub send_buffer: Bytes,
    /// When the sender's clock is set, and by how many milliseconds.
    pub clock_step: Option<(Duration, i64)>,
}

impl Case {
    /// A line without a fault, used to the full.
    fn sound(draws: &mut Draws) -> Self {
        let (rate, delay) = (draws.mbps(5.0, 15.0), draws.millis(5.0, 60.0));
        let queue = (rate * draws.millis(40.0, 120.0)).max(Bytes::kib(24));
        let jitter = draws.millis(0.0, 0.4);
        let loss = Loss::Independent(chance(draws.between(0.0, 0.000_03)));
        let up = LinkConfig { queue, jitter, loss, ..LinkConfig::line(rate, delay) };
        let down = LinkConfig { loss: Loss::None, ..up.clone() };
        Self {
            up,
            down,
            payload_max: 1_472,
            sender: Host::default(),
            receiver: Host::default(),
            controller: draws.one_of(&[ControllerConfig::Adaptive, ControllerConfig::declared(rate)]),
            application: None,
            disk: None,
            window: Bytes::mib(16),
            send_buffer: Bytes::mib(4),
            clock_step: None,
        }
    }

    /// The line with `fault`; the same seed gives the same case.
    pub fn draw(fault: Cause, seed: u64) -> Self {
        let mut draws = Draws::new(seed.wrapping_mul(64).wrapping_add(fault as u64));
        let draws = &mut draws;
        let mut case = Self::sound(draws);
        case.injure(fault, draws);
        case
    }

    fn rate(&self) -> Rate {
        self.up.rate.unwrap_or(Rate::ZERO)
    }

    fn part_of_rate(&self, draws: &mut Draws, low: f64, high: f64) -> Rate {
        self.rate().scaled((draws.between(low, high) * 1e3) as u64, 1_000)
    }

    /// What is under way on the line when it is full.
    fn under_way(&self) -> Bytes {
        self.rate() * (self.up.one_way_delay + self.down.one_way_delay)
    }

    fn injure(&mut self, fault: Cause, draws: &mut Draws) {
        match fault {
            // Nothing of a line makes a session wait for its other end.
            Cause::LineFull | Cause::OtherEnd => {}
            Cause::Application => self.application = Some(self.part_of_rate(draws, 0.1, 0.6)),
            Cause::SenderProcessor => self.sender.cost = self.too_dear(draws),
            Cause::ReceiverProcessor => {
                self.receiver =
                    Host { cost: self.too_dear(draws), socket: Bytes::kib(512), ..Host::default() };
            }
            Cause::ReceiverDisk => {
                self.disk = Some(self.part_of_rate(draws, 0.1, 0.6));
                self.window = Bytes::kib(1_024);
            }
            Cause::FlowWindow => {
                self.stretch(draws);
                let part = draws.between(0.1, 0.5);
                self.window =
                    Bytes::new((self.under_way().as_u64() as f64 * part) as u64).max(Bytes::kib(32));
            }
            Cause::SocketBuffer => self.small_buffer(draws),
            Cause::Controller => self.timid(draws),
            Cause::DeclaredRate => {
                self.controller = ControllerConfig::declared(self.part_of_rate(draws, 0.2, 0.75));
            }
            Cause::RandomLoss => {
                self.up.loss = Loss::Independent(chance(draws.scale(0.004, 0.05)));
                self.controller = named(draws.one_of(&["cubic", "reno", "highspeed", "westwood"]));
                self.stretch(draws);
            }
            Cause::Policer => {
                let rate = self.part_of_rate(draws, 0.2, 0.6);
                let burst = Bytes::kib(draws.one_of(&[8, 16, 32, 64]));
                self.up.policer = Some(Policer { rate, burst });
                self.controller = named(draws.one_of(&["adaptive", "cubic", "bbr", "reno"]));
            }
            Cause::Queueing => {
                self.up.queue = self.rate() * draws.millis(350.0, 1_200.0);
                self.controller = named(draws.one_of(&["cubic", "reno", "highspeed"]));
            }
            Cause::MtuBlackHole => self.payload_max = draws.between(1_250.0, 1_440.0) as usize,
            Cause::HostDrops => {
                self.receiver.backlog_drops = draws.scale(0.006, 0.1);
                self.controller = named(draws.one_of(&["adaptive", "cubic", "reno"]));
            }
            Cause::RouteChange => self.reroute(draws),
            Cause::ClockStep => {
                let step = draws.between(12.0, 400.0) as i64 * draws.one_of(&[-1, 1]);
                self.clock_step = Some((draws.millis(2_500.0, 7_000.0), step));
            }
        }
    }

    /// So much processor time for a datagram that it comes to a part of the line's rate.
    fn too_dear(&self, draws: &mut Draws) -> Duration {
        self.part_of_rate(draws, 0.25, 0.6).time_for(Bytes::new(1_500))
    }

    /// A longer line.
    fn stretch(&mut self, draws: &mut Draws) {
        let delay = draws.millis(30.0, 120.0);
        (self.up.one_way_delay, self.down.one_way_delay) = (delay, delay);
    }

    fn small_buffer(&mut self, draws: &mut Draws) {
        if draws.part() < 0.5 {
            // A process that comes late to a socket of some datagrams.
            let gather = draws.millis(8.0, 25.0);
            let takes = self.part_of_rate(draws, 0.2, 0.6) * gather;
            self.receiver = Host { socket: takes.max(Bytes::kib(4)), gather, ..Host::default() };
        } else {
            self.stretch(draws);
            let part = draws.between(0.2, 0.5);
            self.send_buffer =
                Bytes::new((self.under_way().as_u64() as f64 * part) as u64).max(Bytes::kib(96));
        }
    }

    /// A loss-based controller on a long line with a short queue.
    fn timid(&mut self, draws: &mut Draws) {
        let delay = draws.millis(120.0, 250.0);
        (self.up.one_way_delay, self.down.one_way_delay) = (delay, delay);
        self.up.rate = Some(draws.mbps(12.0, 24.0));
        self.down.rate = self.up.rate;
        self.up.queue = (self.rate() * draws.millis(3.0, 12.0)).max(Bytes::kib(12));
        self.controller = named(draws.one_of(&["reno", "cubic", "highspeed", "illinois"]));
    }

    fn reroute(&mut self, draws: &mut Draws) {
        let to = if draws.part() < 0.7 {
            self.up.one_way_delay + draws.millis(5.0, 60.0)
        } else {
            // From a longer way to the drawn one.
            let to = self.up.one_way_delay;
            self.up.one_way_delay = to + draws.millis(8.0, 60.0);
            to
        };
        let at = draws.millis(2_500.0, 7_000.0);
        self.up.changes = vec![Change { at, one_way_delay: Some(to), ..Change::default() }];
    }
}

fn chance(part: f64) -> Probability {
    Probability::from_ppb((part * 1e9) as u32)
}

fn named(name: &str) -> ControllerConfig {
    name.parse().expect("the names are the crate's own")
}
