//! The meter against known losses.

use super::*;

/// Fates of a chain with these losses: a small generator of its own, so that runs repeat.
struct Line {
    loss: f64,
    after_loss: f64,
    last: bool,
    random: u64,
}

impl Line {
    fn new(loss: f64, after_loss: f64) -> Self {
        Self { loss, after_loss, last: false, random: 0x1234_5678_9abc_def1 }
    }

    fn fate(&mut self) -> DatagramFate {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let after_arrival = self.loss * (1.0 - self.after_loss) / (1.0 - self.loss);
        let chance = if self.last { self.after_loss } else { after_arrival };
        self.last = ((self.random >> 11) as f64) < chance * (1u64 << 53) as f64;
        if self.last { DatagramFate::Lost } else { DatagramFate::Arrived }
    }
}

/// 3,571 datagrams a second for so long.
fn feed(meter: &mut LossMeter, now: &mut Instant, line: &mut Line, time: Duration) {
    let end = *now + time;
    while *now < end {
        *now += Duration::from_micros(280);
        meter.fate(*now, line.fate());
    }
}

fn after(loss: f64, after_loss: f64, time: Duration) -> LossEstimate {
    let mut meter = LossMeter::new();
    feed(&mut meter, &mut Instant::from_nanos(0), &mut Line::new(loss, after_loss), time);
    meter.estimate()
}

#[test]
fn a_steady_loss_is_known_closely() {
    for (loss, near) in [(0.001, 0.5), (0.01, 0.15), (0.05, 0.08), (0.3, 0.03), (0.6, 0.02)] {
        let estimate = after(loss, loss, Duration::from_secs(30));
        let off = estimate.loss.as_f64() / loss - 1.0;
        assert!(off.abs() < near, "{loss}: {off}");
        assert!(
            estimate.upper > estimate.loss && estimate.upper.as_f64() < loss * (1.0 + 2.0 * near),
            "{estimate:?}"
        );
        assert!(
            estimate.after_loss.as_f64() < estimate.upper.as_f64() * 1.15,
            "{loss} looks bursty: {estimate:?}"
        );
        assert!(!estimate.is_clean);
    }
}

#[test]
fn bursts_are_seen_and_measured() {
    for burst in [2.0, 8.0, 20.0] {
        let estimate = after(0.05, 1.0 - 1.0 / burst, Duration::from_secs(30));
        let measured = f64::from(estimate.mean_burst_milli()) / 1_000.0 / burst;
        assert!((0.8..1.25).contains(&measured), "{burst}: {measured}");
        assert!((0.035..0.07).contains(&estimate.loss.as_f64()), "{estimate:?}");
    }
}

#[test]
fn a_path_that_becomes_clean_is_known_as_clean_within_a_second() {
    for after_loss in [0.05, 0.875] {
        let (mut meter, mut now) = (LossMeter::new(), Instant::ZERO);
        feed(&mut meter, &mut now, &mut Line::new(0.05, after_loss), Duration::from_secs(20));
        assert!(!meter.estimate().is_clean);
        feed(&mut meter, &mut now, &mut Line::new(0.0, 0.0), Duration::from_millis(1_500));
        assert!(meter.estimate().is_clean, "{:?}", meter.estimate());
    }
}

#[test]
fn a_new_path_that_loses_nothing_is_clean_within_a_second() {
    assert!(after(0.0, 0.0, Duration::from_secs(1)).is_clean);
    assert!(!after(0.0, 0.0, Duration::from_millis(100)).is_clean);
}

#[test]
fn a_rise_is_known_within_a_second_and_a_fall_within_four() {
    let (mut meter, mut now) = (LossMeter::new(), Instant::ZERO);
    feed(&mut meter, &mut now, &mut Line::new(0.001, 0.001), Duration::from_secs(20));
    feed(&mut meter, &mut now, &mut Line::new(0.1, 0.1), Duration::from_secs(1));
    assert!(meter.estimate().upper.as_f64() > 0.04, "{:?}", meter.estimate());
    feed(&mut meter, &mut now, &mut Line::new(0.1, 0.1), Duration::from_secs(20));
    feed(&mut meter, &mut now, &mut Line::new(0.01, 0.01), Duration::from_secs(4));
    assert!(meter.estimate().upper.as_f64() < 0.025, "{:?}", meter.estimate());
}

#[test]
fn one_loss_ends_a_clean_time_without_alarm() {
    let (mut meter, mut now) = (LossMeter::new(), Instant::ZERO);
    feed(&mut meter, &mut now, &mut Line::new(0.0, 0.0), Duration::from_secs(20));
    meter.fate(now, DatagramFate::Lost);
    let estimate = meter.estimate();
    assert!(
        !estimate.is_clean && estimate.upper < Probability::from_ppb(1_000_000),
        "{estimate:?}"
    );
}

#[test]
fn a_pause_forgets_no_more_than_its_time() {
    let (mut meter, mut now) = (LossMeter::new(), Instant::ZERO);
    feed(&mut meter, &mut now, &mut Line::new(0.05, 0.05), Duration::from_secs(20));
    now += Duration::from_secs(3_600);
    meter.fate(now, DatagramFate::Arrived);
    assert!((0.03..0.08).contains(&meter.estimate().loss.as_f64()), "{:?}", meter.estimate());
    meter.fate(Instant::FAR_FUTURE, DatagramFate::Lost);
    meter.fate(Instant::ZERO, DatagramFate::Lost);
}

#[test]
fn any_prior_is_taken() {
    for ppb in [0, 1, 500_000_000, 1_000_000_000] {
        let mut meter = LossMeter::with_prior(Probability::from_ppb(ppb));
        assert!(meter.estimate().upper >= meter.estimate().loss);
        (0..1_000).for_each(|at| meter.fate(Instant::from_nanos(at), DatagramFate::Lost));
        assert!(meter.estimate().loss > Probability::from_ppb(500_000_000));
    }
}
