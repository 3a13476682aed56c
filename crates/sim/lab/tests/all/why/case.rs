//! Faults with parameters drawn by chance, each over a line that is drawn by chance too.

use super::cross::Others;
use super::draw::Draws;
use super::machine::Host;
use core::num::NonZeroU32;
use skyhaul_congestion::ControllerConfig;
use skyhaul_link::{Change, GilbertElliott, LinkConfig, Loss, Outage, Policer, Reordering};
use skyhaul_probe::why::Cause;
use skyhaul_units::{ByteCount, Duration, Probability, Rate};

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
    pub window: ByteCount,
    pub send_buffer: ByteCount,
    /// When the sender's clock is set, and by how many milliseconds.
    pub clock_step: Option<(Duration, i64)>,
    /// A transfer is made, and not the line alone looked at.
    pub is_sent: bool,
    /// What others send over the way to the receiver.
    pub others: Option<Others>,
}

/// Where parameters are drawn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// From the ranges that thresholds were set on.
    Known,
    /// From beside them, and in other forms: losses in bursts, others that come and go.
    Beside,
    /// From both, on lines that have jitter and a little loss of their own, and with other
    /// controllers.
    Noisy,
}

/// Draws from the range of a kind; beside the known one lie two.
struct Dice<'a> {
    draws: &'a mut Draws,
    kind: Kind,
}

type Range = (f64, f64);

impl Dice<'_> {
    fn range(&mut self, known: Range, beside: [Range; 2]) -> Range {
        match self.kind {
            Kind::Known => known,
            Kind::Beside => self.draws.one_of(&beside),
            Kind::Noisy => self.draws.one_of(&[known, beside[0], beside[1]]),
        }
    }

    fn between(&mut self, known: Range, beside: [Range; 2]) -> f64 {
        let (low, high) = self.range(known, beside);
        self.draws.between(low, high)
    }

    fn scale(&mut self, known: Range, beside: [Range; 2]) -> f64 {
        let (low, high) = self.range(known, beside);
        self.draws.scale(low, high)
    }

    fn millis(&mut self, known: Range, beside: [Range; 2]) -> Duration {
        let (low, high) = self.range(known, beside);
        self.draws.millis(low, high)
    }

    fn one_of<T: Copy>(&mut self, known: &[T], beside: &[T]) -> T {
        self.draws.one_of(if self.kind == Kind::Beside { beside } else { known })
    }
}

impl Case {
    /// A line without a fault, used to the full.
    fn sound(dice: &mut Dice<'_>) -> Self {
        let (low, high) = dice.range((5.0, 15.0), [(2.5, 5.0), (15.0, 30.0)]);
        let (rate, delay) =
            (dice.draws.mbps(low, high), dice.millis((5.0, 60.0), [(2.0, 5.0), (60.0, 110.0)]));
        let queue = (rate * dice.millis((40.0, 120.0), [(30.0, 40.0), (120.0, 150.0)]))
            .max(ByteCount::kib(24));
        let is_noisy = dice.kind == Kind::Noisy;
        let jitter =
            if is_noisy { dice.draws.millis(0.8, 2.5) } else { dice.draws.millis(0.0, 0.4) };
        let most = if is_noisy { 0.000_3 } else { 0.000_03 };
        let loss = Loss::Independent(chance(dice.draws.between(0.0, most)));
        let controllers = if is_noisy {
            [ControllerConfig::Adaptive, named("bbr3")]
        } else {
            [ControllerConfig::Adaptive, ControllerConfig::declared(rate)]
        };
        let up = LinkConfig { queue, jitter, loss, ..LinkConfig::line(rate, delay) };
        let down = LinkConfig { loss: Loss::None, ..up.clone() };
        Self {
            up,
            down,
            payload_max: 1_472,
            sender: Host::default(),
            receiver: Host::default(),
            controller: dice.draws.one_of(&controllers),
            application: None,
            disk: None,
            window: ByteCount::mib(16),
            send_buffer: ByteCount::mib(4),
            clock_step: None,
            is_sent: true,
            others: None,
        }
    }

    /// The line with `fault`; the same seed gives the same case.
    pub fn draw(fault: Cause, seed: u64, kind: Kind) -> Self {
        let mut draws = Draws::new(seed.wrapping_mul(64).wrapping_add(fault as u64));
        let mut dice = Dice { draws: &mut draws, kind };
        let mut case = Self::sound(&mut dice);
        case.injure(fault, &mut dice);
        case
    }

    fn rate(&self) -> Rate {
        self.up.rate.unwrap_or(Rate::ZERO)
    }

    fn part_of_rate(&self, part: f64) -> Rate {
        self.rate().scaled((part * 1e3) as u64, 1_000)
    }

    /// What is under way on the line when it is full.
    fn under_way(&self, part: f64) -> ByteCount {
        let full = self.rate() * (self.up.one_way_delay + self.down.one_way_delay);
        ByteCount::new((full.as_u64() as f64 * part) as u64)
    }

    fn injure(&mut self, fault: Cause, dice: &mut Dice<'_>) {
        match fault {
            // Nothing of a line makes a session wait for its other end.
            Cause::LineFull | Cause::OtherEnd => {}
            Cause::Application => {
                self.application =
                    Some(self.part_of_rate(dice.between((0.1, 0.6), [(0.05, 0.1), (0.6, 0.7)])));
            }
            Cause::SenderProcessor => self.sender = self.busy(dice),
            Cause::ReceiverProcessor => {
                self.receiver = Host { socket: ByteCount::kib(512), ..self.busy(dice) }
            }
            Cause::ReceiverDisk => self.slow_disk(dice),
            Cause::FlowWindow => {
                self.stretch(dice);
                let part = dice.between((0.1, 0.5), [(0.06, 0.1), (0.5, 0.6)]);
                self.window = self.under_way(part).max(ByteCount::kib(32));
            }
            Cause::SocketBuffer => self.small_buffer(dice),
            Cause::Controller => self.timid(dice),
            Cause::DeclaredRate => {
                let part = dice.between((0.2, 0.75), [(0.1, 0.2), (0.75, 0.8)]);
                self.controller = ControllerConfig::declared(self.part_of_rate(part));
            }
            Cause::RandomLoss => self.lossy(dice),
            Cause::Policer => {
                let rate = self.part_of_rate(dice.between((0.2, 0.6), [(0.12, 0.2), (0.6, 0.65)]));
                let burst = ByteCount::kib(dice.one_of(&[8, 16, 32, 64], &[6, 12, 96]));
                self.up.policer = Some(Policer { rate, burst });
                self.controller = named(dice.draws.one_of(&["adaptive", "cubic", "bbr", "reno"]));
            }
            Cause::Queueing => {
                self.up.queue = self.rate()
                    * dice.millis((350.0, 1_200.0), [(300.0, 350.0), (1_200.0, 1_500.0)]);
                self.controller = named(dice.draws.one_of(&["cubic", "reno", "highspeed"]));
            }
            Cause::MtuBlackHole => {
                self.payload_max = dice
                    .between((1_250.0, 1_440.0), [(1_233.0, 1_250.0), (1_440.0, 1_450.0)])
                    as usize;
            }
            Cause::HostDrops => {
                self.receiver.backlog_drops =
                    dice.scale((0.006, 0.1), [(0.005, 0.006), (0.1, 0.2)]);
                self.controller = named(dice.draws.one_of(&["adaptive", "cubic", "reno"]));
            }
            Cause::RouteChange => self.reroute(dice),
            Cause::ClockStep => {
                let step = dice.between((12.0, 400.0), [(9.0, 12.0), (400.0, 3_000.0)]) as i64
                    * dice.draws.one_of(&[-1, 1]);
                self.clock_step = Some((dice.draws.millis(2_500.0, 7_000.0), step));
            }
            Cause::OtherTraffic => self.share(dice),
            Cause::Reordering => {
                let probability = chance(dice.scale((0.02, 0.1), [(0.01, 0.02), (0.1, 0.25)]));
                // Later than an eighth of a round trip counts as lost (RFC 9002 6.1.2), and three
                // of our datagrams must overtake.
                let part = dice.between((0.35, 0.8), [(0.25, 0.35), (0.8, 1.5)]);
                let trip = (self.up.one_way_delay + self.down.one_way_delay)
                    .scaled((part * 1e3) as u64, 1_000);
                let extra_delay = trip.max(self.rate().time_for(ByteCount::new(8_000)));
                self.up.reordering = Some(Reordering { probability, extra_delay });
                self.controller =
                    named(dice.draws.one_of(&["cubic", "reno", "highspeed", "westwood"]));
            }
            Cause::Jitter => {
                let jitter = dice.millis((12.0, 40.0), [(10.0, 12.0), (40.0, 70.0)]);
                self.up.jitter = jitter;
                self.up.one_way_delay = self.up.one_way_delay.max(jitter);
                // Our controllers bear it: what another program makes of it, the line alone must
                // say.
                self.is_sent = false;
            }
            Cause::Outage => self.cut(dice),
        }
    }

    fn cut(&mut self, dice: &mut Dice<'_>) {
        let length = dice.millis((1_200.0, 2_500.0), [(900.0, 1_200.0), (2_500.0, 3_500.0)]);
        let start = dice.draws.millis(2_800.0, 7_000.0 - length.as_secs_f64() * 1e3);
        self.up.outages = vec![Outage { start, length }];
        if dice.draws.part() < 0.5 {
            self.down.outages = self.up.outages.clone();
        }
    }

    /// So much processor time for a datagram that it comes to a part of the line's rate; or a quota
    /// that comes to it.
    fn busy(&self, dice: &mut Dice<'_>) -> Host {
        let rate = self.part_of_rate(dice.between((0.25, 0.6), [(0.18, 0.25), (0.6, 0.65)]));
        let cost = rate.time_for(ByteCount::new(1_500));
        if dice.draws.part() < 0.5 {
            return Host { cost, ..Host::default() };
        }
        // A processor that is fast enough, for a part of the time.
        let quota = dice.between((0.15, 0.5), [(0.08, 0.15), (0.5, 0.6)]);
        Host { cost: cost.scaled((quota * 1e3) as u64, 1_000), quota, ..Host::default() }
    }

    /// Slower than the line; behind a window that it fills, or behind one that hides it for as long
    /// as is looked.
    fn slow_disk(&mut self, dice: &mut Dice<'_>) {
        self.disk = Some(self.part_of_rate(dice.between((0.1, 0.6), [(0.05, 0.1), (0.6, 0.7)])));
        self.window = dice.one_of(
            &[ByteCount::kib(1_024), ByteCount::mib(64)],
            &[ByteCount::kib(512), ByteCount::mib(8), ByteCount::mib(256)],
        );
    }

    fn lossy(&mut self, dice: &mut Dice<'_>) {
        self.controller = named(dice.draws.one_of(&["cubic", "reno", "highspeed", "westwood"]));
        self.stretch(dice);
        self.up.loss = match dice.kind {
            Kind::Known => Loss::Independent(chance(dice.draws.scale(0.004, 0.05))),
            Kind::Beside | Kind::Noisy => {
                let (mean, burst) =
                    (chance(dice.draws.scale(0.01, 0.06)), dice.draws.between(2.0, 7.0) as u32);
                let burst = NonZeroU32::new(burst).expect("it is two at least");
                Loss::GilbertElliott(
                    GilbertElliott::with_bursts(mean, burst).expect("few are lost"),
                )
            }
        };
    }

    fn share(&mut self, dice: &mut Dice<'_>) {
        let packet = ByteCount::new(dice.draws.one_of(&[600, 1_000, 1_500]));
        let rate = self.part_of_rate(dice.between((0.35, 0.7), [(0.25, 0.35), (0.7, 0.8)]));
        let flows = dice.draws.one_of(&[1, 2, 3]);
        self.others = Some(match dice.kind {
            Kind::Known => dice
                .draws
                .one_of(&[Others::Steady { rate, packet }, Others::Windows { flows, packet }]),
            Kind::Beside | Kind::Noisy => {
                let time = dice.draws.millis(150.0, 700.0);
                let rate_on = self.part_of_rate(dice.draws.between(0.85, 1.3));
                let forms = [
                    Others::Steady { rate, packet },
                    Others::OnOff { rate: rate_on, packet, time },
                    Others::Windows { flows: flows + 3, packet },
                ];
                dice.draws.one_of(&forms)
            }
        });
        self.controller = named(dice.draws.one_of(&["adaptive", "cubic", "reno"]));
    }

    /// A longer line.
    fn stretch(&mut self, dice: &mut Dice<'_>) {
        let delay = dice.millis((30.0, 120.0), [(25.0, 30.0), (120.0, 160.0)]);
        (self.up.one_way_delay, self.down.one_way_delay) = (delay, delay);
    }

    fn small_buffer(&mut self, dice: &mut Dice<'_>) {
        let part = dice.between((0.2, 0.5), [(0.15, 0.2), (0.5, 0.55)]);
        let before = (self.up.one_way_delay, self.down.one_way_delay);
        self.stretch(dice);
        self.send_buffer = self.under_way(part);
        if dice.draws.part() < 0.5 || self.send_buffer < ByteCount::kib(96) {
            // A process that comes late to a socket of some datagrams.
            let gather = dice.millis((8.0, 25.0), [(6.0, 8.0), (25.0, 40.0)]);
            let takes =
                self.part_of_rate(dice.between((0.2, 0.6), [(0.15, 0.2), (0.6, 0.65)])) * gather;
            self.receiver =
                Host { socket: takes.max(ByteCount::kib(4)), gather, ..Host::default() };
            (self.up.one_way_delay, self.down.one_way_delay) = before;
            self.send_buffer = ByteCount::mib(4);
        }
    }

    /// A loss-based controller on a long line with a short queue.
    fn timid(&mut self, dice: &mut Dice<'_>) {
        let delay = dice.millis((120.0, 250.0), [(110.0, 120.0), (250.0, 300.0)]);
        (self.up.one_way_delay, self.down.one_way_delay) = (delay, delay);
        self.up.rate = Some(dice.draws.mbps(12.0, 24.0));
        self.down.rate = self.up.rate;
        self.up.queue = (self.rate() * dice.draws.millis(3.0, 12.0)).max(ByteCount::kib(12));
        self.controller = named(dice.draws.one_of(&["reno", "cubic", "highspeed", "illinois"]));
    }

    fn reroute(&mut self, dice: &mut Dice<'_>) {
        // What is less than a part of the round trip is no other route.
        let least = (self.up.one_way_delay + self.down.one_way_delay).scaled(5, 100);
        let longer = dice.millis((5.0, 60.0), [(4.0, 5.0), (60.0, 120.0)]).max(least);
        let shorter = self.up.one_way_delay;
        let (from, to) = if dice.draws.part() < 0.7 {
            (shorter, shorter + longer)
        } else {
            (shorter + longer, shorter)
        };
        self.up.one_way_delay = from;
        let at = dice.draws.millis(2_500.0, 7_000.0);
        self.up.changes = vec![Change { at, one_way_delay: Some(to), ..Change::default() }];
    }
}

fn chance(part: f64) -> Probability {
    Probability::from_ppb((part * 1e9) as u32)
}

fn named(name: &str) -> ControllerConfig {
    name.parse().expect("the names are the crate's own")
}
