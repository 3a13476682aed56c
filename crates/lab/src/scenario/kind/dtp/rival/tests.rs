//! One subflow alone against published models of it.

use super::*;
use crate::scenario::kind::dtp::PAYLOAD;
use crate::scenario::kind::medium::Medium;
use crate::workload::{Pattern, StreamConfig};
use skyhaul_transport::{ClassId, Mode};
use skyhaul_units::{Bytes, FlowId, Probability};

/// What one subflow did with a stream that never ends.
struct Course {
    /// Bytes of the stream in order, in full segments a second.
    goodput: f64,
    /// Segments sent a second, lost ones included.
    sent: f64,
    time_outs: u32,
}

const RTT: Duration = Duration::from_millis(100);

fn alone(loss: f64, seconds: u64, rtts: &[Duration]) -> Course {
    let cell = Cell {
        rtts: rtts.to_vec(),
        bandwidth: Rate::from_mbps(1_000),
        loss: Probability::from_ppb((loss * 1e9) as u32),
        duration: Duration::from_secs(seconds),
        over: Medium::Plain,
    };
    let endless = StreamConfig {
        flow: FlowId(0),
        class: ClassId::default(),
        priority: 0,
        lifetime: None,
        mode: Mode::Expendable,
        pattern: Pattern::Periodic { size: Bytes::new(10_000_000_000), period: cell.duration * 2 },
        start: Instant::ZERO,
        stop: Instant::ZERO + cell.duration,
    };
    let mut rivals = Rivals::new(&cell, vec![Stream::new(endless, 1)], 1);
    let (mut arrived, mut time_outs, mut in_order) = (0_u64, 0, 0);
    while let Some((now, event)) = rivals.next(Instant::ZERO + cell.duration) {
        match event {
            Event::Arrived { .. } => arrived += 1,
            Event::Acknowledged { acknowledgement, .. } => in_order = in_order.max(acknowledgement.stream),
            Event::Overdue { .. } => time_outs += 1,
            _ => {}
        }
        rivals.handle(now, event);
    }
    let seconds = seconds as f64;
    Course {
        goodput: in_order as f64 / PAYLOAD as f64 / seconds,
        sent: arrived as f64 / (1.0 - loss) / seconds,
        time_outs,
    }
}

/// Padhye, Firoiu, Towsley, Kurose 1998, the full model, with an acknowledgement for each segment: segments sent a second.
fn padhye(loss: f64, rtt: f64, time_out: f64) -> f64 {
    let kept = 1.0 - loss;
    let window = 1.0 + (8.0 * kept / (3.0 * loss) + 1.0).sqrt();
    let ends_in_time_out = ((1.0 - kept.powi(3)) * (1.0 + kept.powi(3) * (1.0 - kept.powf(window - 3.0)))
        / (1.0 - kept.powf(window)))
    .min(1.0);
    let backing_off = 1.0 + (0..6).map(|power| f64::from(1 << power) * loss.powi(power + 1)).sum::<f64>();
    (kept / loss + window + ends_in_time_out / kept)
        / (rtt * (window / 2.0 + 1.0) + ends_in_time_out * time_out * backing_off / kept)
}

#[test]
fn light_loss_leaves_the_published_response_of_new_reno() {
    for (loss, seconds) in [(0.001, 1_000), (0.003, 1_000), (0.01, 1_000)] {
        let published = 1.22 / (RTT.as_secs_f64() * f64::sqrt(loss));
        let ratio = alone(loss, seconds, &[RTT]).goodput / published;
        println!("{loss}: {ratio:.2} of 1.22 / (RTT sqrt p)");
        assert!((1.0 / 1.5..=1.5).contains(&ratio), "{loss}: {ratio}");
    }
}

#[test]
fn heavy_loss_brings_time_outs_as_published() {
    for loss in [0.05, 0.1, 0.2] {
        let course = alone(loss, 2_000, &[RTT]);
        let published = padhye(loss, 0.1, 0.3);
        let ratio = course.sent / published;
        println!("{loss}: {ratio:.2} of the full model, {} time-outs", course.time_outs);
        assert!((0.5..=2.0).contains(&ratio), "{loss}: {ratio}");
        assert!(course.time_outs > 200, "{loss}: {}", course.time_outs);
    }
}

#[test]
fn two_subflows_bring_more_than_one() {
    let one = alone(0.01, 200, &[RTT]).goodput;
    let both = alone(0.01, 200, &[RTT, RTT]).goodput;
    assert!(both > 1.6 * one, "{both} {one}");
}

#[test]
fn without_loss_a_stream_fills_the_window_of_its_host() {
    // 4 MiB in 100 ms are 2,933 segments of 1,430 bytes; slow start takes the first second.
    let goodput = alone(0.0, 20, &[RTT]).goodput;
    assert!((26_000.0..29_331.0).contains(&goodput), "{goodput}");
}
