use super::*;

const SEGMENT: ByteCount = ByteCount::new(1_500);
const RTT: Duration = Duration::from_millis(100);
const RATE: Rate = Rate::from_mbps(12);

/// A path that delivers `RATE`, an acknowledgement each millisecond.
struct Path {
    bbr: Bbr3,
    now: Instant,
    delivered: ByteCount,
    rtt: Duration,
    /// Lost in the round trip that each sample tells of.
    lost: ByteCount,
}

impl Path {
    fn new() -> Self {
        let bbr = Bbr3::new(Bbr3Config::default());
        Self {
            bbr,
            now: Instant::ZERO,
            delivered: ByteCount::ZERO,
            rtt: RTT,
            lost: ByteCount::ZERO,
        }
    }

    /// Past the start.
    fn cycling() -> Self {
        let mut path = Self::new();
        path.run(RATE, 1_500);
        assert!(path.bbr.is_cycling(), "{:?}", path.bbr.state);
        path
    }

    fn acknowledge(&mut self, rate: Rate) {
        self.now += Duration::from_millis(1);
        self.delivered += SEGMENT;
        let flight = RATE * self.rtt;
        self.bbr.on_sent(self.now, SEGMENT, flight);
        let sample = crate::RateSample {
            delivered: rate * self.rtt,
            interval: self.rtt,
            total: self.delivered,
            prior: self.delivered - flight,
            in_flight_when_sent: flight,
            lost: self.lost,
            is_app_limited: false,
        };
        let ack = Ack {
            bytes: SEGMENT,
            packets: 2,
            rtt: Some(self.rtt),
            smoothed: self.rtt,
            prompt: true,
            in_flight: flight.min(self.bbr.window()),
            sample,
            ..Ack::default()
        };
        self.bbr.on_ack(self.now, &ack);
    }

    fn run(&mut self, rate: Rate, millis: u64) {
        (0..millis).for_each(|_| self.acknowledge(rate));
    }

    /// Runs until the state is reached, for ten seconds at most.
    fn until(&mut self, state: State) {
        for _ in 0..10_000 {
            if self.bbr.state == state {
                return;
            }
            self.acknowledge(RATE);
        }
        panic!("{state:?} was not reached: {:?}", self.bbr);
    }

    fn lose(&mut self, share_percent: u64) {
        let flight = RATE * self.rtt;
        let loss = LossEvent {
            bytes: SEGMENT,
            in_flight_when_sent: flight,
            lost_since_sent: flight.scaled(share_percent, 100),
            in_flight: flight,
            ..LossEvent::default()
        };
        self.bbr.on_loss(self.now, &loss);
    }
}

#[test]
fn a_cycle_is_down_cruise_refill_up() {
    let mut path = Path::cycling();
    for state in [State::Down, State::Cruise, State::Refill, State::Up, State::Down] {
        path.until(state);
    }
}

#[test]
fn a_probe_comes_after_two_to_three_seconds() {
    let mut path = Path::cycling();
    path.until(State::Refill);
    let waited = path.now.since(path.bbr.cycle.began);
    assert!(waited > Duration::from_secs(2) && waited < Duration::from_millis(3_010), "{waited}");
}

#[test]
fn loss_while_cruising_lowers_the_rate_until_the_next_probe() {
    let mut path = Path::cycling();
    path.until(State::Cruise);
    for _ in 0..3 {
        path.lose(1);
        path.run(Rate::from_mbps(9), 110);
    }
    assert_eq!(path.bbr.state, State::Cruise);
    assert!(path.bbr.rate() < RATE && path.bbr.rate() >= Rate::from_mbps(9), "{}", path.bbr.rate());
    path.until(State::Refill);
    assert_eq!(path.bbr.rate(), path.bbr.max_rate());
}

#[test]
fn heavy_loss_while_probing_ends_the_probe_and_bounds_what_is_under_way() {
    let mut path = Path::cycling();
    path.until(State::Up);
    path.lose(1);
    assert_eq!(path.bbr.state, State::Up, "1 % is borne");
    path.lose(3);
    assert_eq!(path.bbr.state, State::Down);
    let bound = path.bbr.bounds.long_term().unwrap();
    assert!(bound <= RATE * RTT && bound >= (RATE * RTT).scaled(7, 10), "{bound}");
    path.until(State::Cruise);
    path.acknowledge(RATE);
    assert!(path.bbr.window() <= bound.scaled(86, 100), "headroom: {}", path.bbr.window());
}

#[test]
fn heavy_loss_ends_the_start() {
    let mut path = Path::new();
    path.run(Rate::from_mbps(3), 150);
    path.lost = (RATE * RTT).scaled(5, 100);
    for _ in 0..8 {
        path.lose(5);
    }
    path.run(Rate::from_mbps(6), 300);
    assert!(path.bbr.full.ever && path.bbr.state != State::Startup, "{:?}", path.bbr.state);
}

#[test]
fn five_seconds_without_a_smaller_round_trip_bring_a_probe_of_it_at_half_the_flight() {
    let mut path = Path::cycling();
    path.rtt = Duration::from_millis(120);
    path.until(State::ProbeRtt { until: None, round_over: false });
    path.acknowledge(RATE);
    assert!(path.bbr.window() <= (RATE * RTT).scaled(51, 100), "{}", path.bbr.window());
    path.until(State::Cruise);
}
