//! Average windows under random loss, beside the published response functions.
//!
//! The functions are of a loss every 1 ÷ p packets (checked so, to 6 %, in the controllers' crate);
//! chance loses at uneven distances. That lengthens Reno's average by 7 % (Ott, Kemperman and
//! Mathis, 1996: 1.31 ÷ sqrt(p) in place of 1.22), and CUBIC's by more, because its growth quickens
//! (Poojary and Sharma, "An Asymptotic Approximation of TCP CUBIC", 2015). Two hundred losses and
//! more leave a scatter of several per cent. So each average must lie within a fifth of the
//! function; Scalable's and CUBIC's within a third: Scalable's function is of the average over
//! packets.

use skyhaul_congestion::ControllerConfig;
use skyhaul_lab::flow::{Bottleneck, FlowConfig};
use skyhaul_link::{LinkConfig, Loss};
use skyhaul_units::{Duration, Instant, Probability};

/// A controller on a line without limit.
struct Response {
    name: &'static str,
    rtt: Duration,
    /// The published average window in segments, by the loss probability.
    published: fn(f64) -> f64,
    tolerance: f64,
}

impl Response {
    /// The average window at loss `p` over about `losses` losses, the first tenth left out.
    fn average(&self, p: f64, losses: u64) -> f64 {
        let data = LinkConfig {
            one_way_delay: self.rtt / 2,
            loss: Loss::Independent(Probability::from_ppb((p * 1e9) as u32)),
            ..LinkConfig::default()
        };
        let returns = LinkConfig { loss: Loss::None, ..data.clone() };
        let mut bottleneck = Bottleneck::new(data, returns, 7);
        let config: ControllerConfig = self.name.parse().expect("a name of the list");
        let flow = bottleneck.add(FlowConfig::kernel(), config.build(None));
        let rounds = losses as f64 / p / (self.published)(p);
        let span = Duration::from_nanos((rounds * self.rtt.as_nanos() as f64) as u64);
        let end = Instant::ZERO + span;
        bottleneck.run_until(end);
        let samples = bottleneck.flow(flow).samples_of(Instant::ZERO + span / 10, end);
        let sum: f64 = samples.iter().map(|sample| sample.window.as_u64() as f64 / 1_500.0).sum();
        sum / samples.len() as f64
    }

    fn check(&self, cases: &[(f64, u64)]) {
        for (p, losses) in cases.iter().copied() {
            let (average, published) = (self.average(p, losses), (self.published)(p));
            let off = average / published - 1.0;
            assert!(
                off.abs() <= self.tolerance,
                "{} at {p}: {average:.1} for {published:.1}",
                self.name
            );
        }
    }
}

#[test]
fn reno_is_at_1_22_by_the_root_of_p() {
    let rtt = Duration::from_millis(100);
    let published = |p: f64| 1.22 / p.sqrt();
    let cases = [(1e-2, 1_000), (1e-3, 300)];
    Response { name: "reno", rtt, published, tolerance: 0.2 }.check(&cases);
}

#[test]
fn cubic_is_where_rfc_9438_says() {
    let rtt = Duration::from_millis(300);
    let published = |p: f64| 1.054 * (0.3 / p).powf(0.75);
    Response { name: "cubic", rtt, published, tolerance: 0.33 }.check(&[(3e-4, 200)]);
}

#[test]
fn highspeed_is_where_rfc_3649_says() {
    let rtt = Duration::from_millis(100);
    let published = |p: f64| 0.12 / p.powf(0.835);
    Response { name: "highspeed", rtt, published, tolerance: 0.2 }.check(&[(4e-4, 200)]);
}

#[test]
fn scalable_is_at_0_08_by_p() {
    let rtt = Duration::from_millis(100);
    let published = |p: f64| 0.08 / p;
    Response { name: "scalable", rtt, published, tolerance: 0.33 }.check(&[(4e-4, 300)]);
}

#[test]
fn hybla_is_reno_s_by_rho() {
    // 100 ms are four times the reference.
    let rtt = Duration::from_millis(100);
    let published = |p: f64| 4.0 * 1.22 / p.sqrt();
    Response { name: "hybla", rtt, published, tolerance: 0.2 }.check(&[(1e-3, 300)]);
}

#[test]
fn illinois_without_queue_adds_ten_and_gives_up_an_eighth() {
    // sqrt(a (2 - b) / (2 b p)) with a = 10, b = 1/8.
    let rtt = Duration::from_millis(100);
    let published = |p: f64| (10.0 * 1.875 / 0.25 / p).sqrt();
    Response { name: "illinois", rtt, published, tolerance: 0.2 }.check(&[(1e-3, 300)]);
}
