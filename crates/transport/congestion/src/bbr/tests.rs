use super::*;

const SEGMENT: ByteCount = ByteCount::new(1_500);
const RTT: Duration = Duration::from_millis(100);
const RATE: Rate = Rate::from_mbps(12);

/// A path that delivers `RATE` at most, seen an acknowledgement each millisecond.
struct Path {
    bbr: Bbr,
    now: Instant,
    delivered: ByteCount,
    rtt: Duration,
    in_flight: ByteCount,
}

impl Path {
    fn new() -> Self {
        let bbr = Bbr::new(BbrConfig::default());
        Self {
            bbr,
            now: Instant::ZERO,
            delivered: ByteCount::ZERO,
            rtt: RTT,
            in_flight: ByteCount::ZERO,
        }
    }

    /// One segment arrives, `rate` being what the sample says.
    fn acknowledge(&mut self, rate: Rate) {
        self.now += Duration::from_millis(1);
        self.delivered += SEGMENT;
        self.in_flight = self.bbr.window().saturating_sub(SEGMENT);
        let flight = RATE * self.rtt;
        let sample = crate::RateSample {
            delivered: rate * self.rtt,
            interval: self.rtt,
            total: self.delivered,
            prior: self.delivered - flight,
            in_flight_when_sent: flight,
            ..crate::RateSample::default()
        };
        let ack = Ack {
            bytes: SEGMENT,
            packets: 2,
            sent: Instant::from_nanos(self.now.as_nanos().saturating_sub(self.rtt.as_nanos())),
            rtt: Some(self.rtt),
            smoothed: self.rtt,
            prompt: true,
            in_flight: self.in_flight,
            sample,
            marked: 0,
        };
        self.bbr.on_ack(self.now, &ack);
    }

    fn run(&mut self, rate: Rate, millis: u64) {
        (0..millis).for_each(|_| self.acknowledge(rate));
    }
}

#[test]
fn the_start_ends_when_three_rounds_brought_less_than_a_quarter_more() {
    let mut path = Path::new();
    assert_eq!(path.bbr.status().phase, Phase::Starting);
    for mbps in [3, 6, 12] {
        path.run(Rate::from_mbps(mbps), 100);
        assert_eq!(path.bbr.mode, Mode::Startup);
    }
    path.run(RATE, 150);
    assert_eq!(path.bbr.mode, Mode::Startup);
    path.run(RATE, 100);
    assert!(path.bbr.pipe.reached);
    assert!(matches!(path.bbr.mode, Mode::Drain | Mode::ProbeBw { .. }), "{:?}", path.bbr.mode);
}

#[test]
fn a_cycle_of_eight_phases_probes_once_and_drains_once() {
    let mut path = Path::new();
    path.run(RATE, 1_000);
    path.bbr.mode = Mode::ProbeBw { phase: 7, since: path.now };
    let mut phases = Vec::new();
    for _ in 0..850 {
        path.acknowledge(RATE);
        if let Mode::ProbeBw { phase, .. } = path.bbr.mode
            && phases.last() != Some(&phase)
        {
            phases.push(phase);
        }
    }
    assert_eq!(phases[..5], [7, 0, 1, 2, 3]);
    let gains: Vec<u64> = CYCLE.to_vec();
    assert_eq!(gains.iter().sum::<u64>(), 8 * UNIT, "a cycle sends as much as arrives");
}

#[test]
fn the_rate_is_the_largest_of_ten_rounds() {
    let mut path = Path::new();
    path.run(RATE, 1_000);
    path.run(Rate::from_mbps(6), 900);
    assert_eq!(path.bbr.max_rate(), RATE);
    path.run(Rate::from_mbps(6), 300);
    assert_eq!(path.bbr.max_rate(), Rate::from_mbps(6));
}

#[test]
fn ten_seconds_without_a_smaller_round_trip_bring_a_probe_of_it() {
    let mut path = Path::new();
    path.run(RATE, 9_000);
    assert_eq!(path.bbr.model.min_rtt, Some(RTT));
    path.rtt = Duration::from_millis(150);
    let is_probing = |path: &Path| matches!(path.bbr.mode, Mode::ProbeRtt { .. });
    while path.now < Instant::from_nanos(10_100_000_000) && !is_probing(&path) {
        path.acknowledge(RATE);
    }
    assert!(is_probing(&path), "{:?}", path.bbr.mode);
    assert_eq!(path.bbr.window(), SEGMENT.times(LEAST_WINDOW));
    let before = path.bbr.prior_window;
    path.run(RATE, 500);
    assert!(matches!(path.bbr.mode, Mode::ProbeBw { .. }), "{:?}", path.bbr.mode);
    assert!(path.bbr.window() >= before.scaled(9, 10));
}

#[test]
fn a_loss_conserves_packets_for_a_round_and_then_gives_the_window_back() {
    let mut path = Path::new();
    path.run(RATE, 2_000);
    let window = path.bbr.window();
    let half = window.scaled(1, 2);
    path.bbr
        .on_loss(path.now, &LossEvent { bytes: SEGMENT, in_flight: half, ..LossEvent::default() });
    assert_eq!(path.bbr.window(), half + SEGMENT);
    path.run(RATE, 250);
    assert!(path.bbr.recovery.is_none());
    assert!(path.bbr.window() >= window.scaled(95, 100), "{} of {window}", path.bbr.window());
}

#[test]
fn losses_without_end_are_one_recovery_that_conserves_once() {
    let mut path = Path::new();
    path.run(RATE, 2_000);
    let window = path.bbr.window();
    for round in 0..10 {
        path.bbr.on_loss(
            path.now,
            &LossEvent {
                bytes: SEGMENT,
                sent: path.now,
                in_flight: window,
                ..LossEvent::default()
            },
        );
        path.run(RATE, 100);
        assert!(path.bbr.recovery.is_some_and(|recovery| !recovery.conserving), "{round}");
    }
    assert!(path.bbr.window() >= window.scaled(95, 100), "{} of {window}", path.bbr.window());
}

#[test]
fn pacing_leaves_one_hundredth() {
    let mut path = Path::new();
    path.run(RATE, 2_000);
    path.bbr.mode = Mode::ProbeBw { phase: 3, since: path.now };
    path.acknowledge(RATE);
    assert_eq!(path.bbr.pacing_rate(), RATE.scaled(99, 100));
}
