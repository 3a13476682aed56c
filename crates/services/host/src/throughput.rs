//! What one TCP connection can reach with a host's settings, and what keeps it from more.

use crate::line::HostLine;
use crate::settings::Settings;
use skyhaul_units::{ByteCount, Rate};

/// What keeps a connection from more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Nothing but the line.
    Line,
    /// The receive buffer, and so the window.
    ReceiveBuffer,
    /// The send buffer.
    SendBuffer,
    /// A window of 64 KiB, because window scaling is off (RFC 7323).
    NoWindowScaling,
    /// The greatest window there is, 1 GiB (RFC 7323 2.3).
    GreatestWindow,
    /// What the congestion controller makes of losses.
    CongestionControl,
}

/// What a connection reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throughput {
    /// Of what applications send.
    pub rate: Rate,
    /// What keeps it from more.
    pub limit: Limit,
    /// The greatest window.
    pub window: ByteCount,
}

/// What a connection between two hosts with these settings reaches over `line`.
pub fn of(settings: &Settings, line: &HostLine) -> Throughput {
    let mut windows = vec![(GREATEST_WINDOW, Limit::GreatestWindow)];
    if let Some([.., most]) = settings.buffers.tcp_rmem {
        windows.push((settings.window_of(most), Limit::ReceiveBuffer));
    }
    if let Some([.., most]) = settings.buffers.tcp_wmem {
        // The rest is book-keeping around each packet, and what waits to be sent.
        windows.push((most / 3 * 2, Limit::SendBuffer));
    }
    if settings.tcp.window_scaling == Some(0) {
        windows.push((UNSCALED_WINDOW, Limit::NoWindowScaling));
    }
    let (window, limit) =
        windows.into_iter().min_by_key(|(window, _)| *window).unwrap_or((0, Limit::Line));
    let window = ByteCount::new(window);
    let mut reached = Throughput { rate: line.rate, limit: Limit::Line, window };
    if line.round_trip.as_nanos() > 0 {
        let by_window = Rate::over(window, line.round_trip);
        if by_window < reached.rate {
            reached = Throughput { rate: by_window, limit, window };
        }
    }
    let by_loss = settings.tcp.congestion_control.as_deref().and_then(|name| lossy(name, line));
    match by_loss.filter(|rate| *rate < reached.rate) {
        Some(rate) => Throughput { rate, limit: Limit::CongestionControl, window },
        None => reached,
    }
}

/// What a controller reaches where packets are lost by chance; none for those of which it is not
/// known.
///
/// Reno: the square root formula, `MSS/RTT sqrt(3/2p)` (RFC 9438 5.1, with its deterministic loss).
/// CUBIC: the average window of the same section, `(C (3 + β) / (4 (1 - β)))^(1/4) (RTT/p)^(3/4)`
/// segments with C = 0.4 and β = 0.7, or Reno's where that is more (RFC 9438 4.3).
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a figure to judge by"
)]
fn lossy(controller: &str, line: &HostLine) -> Option<Rate> {
    let (loss, round_trip) = (line.loss.as_f64(), line.round_trip.as_secs_f64());
    if loss <= 0.0 || round_trip <= 0.0 {
        return None;
    }
    let reno = (1.5 / loss).sqrt();
    let cubic = (0.4_f64 * 3.7 / 1.2).powf(0.25) * (round_trip / loss).powf(0.75);
    let segments = match controller {
        "reno" => reno,
        "cubic" => cubic.max(reno),
        _ => return None,
    };
    Some(Rate::from_bps((segments * SEGMENT as f64 * 8.0 / round_trip) as u64))
}

/// RFC 7323 2.3: a shift of at most 14.
pub(crate) const GREATEST_WINDOW: u64 = 1 << 30;
const UNSCALED_WINDOW: u64 = (1 << 16) - 1;
/// Of a packet of 1500 bytes with time stamps.
const SEGMENT: u64 = 1_448;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{BufferSettings, TcpSettings};
    use skyhaul_units::{Duration, Probability};

    fn line(mbps: u64, millis: u64, loss_ppm: u32) -> HostLine {
        HostLine {
            rate: Rate::from_mbps(mbps),
            round_trip: Duration::from_millis(millis),
            loss: Probability::from_ppb(loss_ppm * 1_000),
        }
    }

    #[test]
    fn the_smallest_window_says_how_much_and_why() {
        let wide = Settings {
            buffers: BufferSettings {
                tcp_rmem: Some([4_096, 131_072, 1 << 28]),
                tcp_wmem: Some([4_096, 16_384, 1 << 28]),
                ..Settings::typical().buffers
            },
            ..Settings::typical()
        };
        let reached = |settings: &Settings, line: HostLine| {
            let reached = of(settings, &line);
            (reached.rate.as_bps() / 1_000_000, reached.limit)
        };
        assert_eq!(reached(&wide, line(1_000, 148, 0)), (1_000, Limit::Line));
        // 4 MiB of send buffer, two thirds of it under way, in 148 ms.
        assert_eq!(reached(&Settings::typical(), line(1_000, 148, 0)), (151, Limit::SendBuffer));
        let tcp = TcpSettings { window_scaling: Some(0), ..Settings::typical().tcp };
        let unscaled = Settings { tcp, ..wide.clone() };
        // The classic 64 KiB over 600 ms.
        assert_eq!(of(&unscaled, &line(50, 600, 0)).rate.as_bps(), 873_800);
        let endless = Settings { buffers: BufferSettings::default(), ..wide };
        assert_eq!(reached(&endless, line(400_000, 100, 0)), (85_899, Limit::GreatestWindow));
    }

    #[test]
    fn losses_hold_reno_and_cubic_back_and_of_others_nothing_is_claimed() {
        let with = |name: &str| Settings {
            buffers: BufferSettings::default(),
            tcp: TcpSettings {
                congestion_control: Some(name.to_owned()),
                ..Settings::typical().tcp
            },
            ..Settings::typical()
        };
        // RFC 9438 table 1: at a loss of 1e-4 and 0.1 s, Reno has 120 segments and CUBIC 187.
        let segments =
            |name, loss| of(&with(name), &line(100_000, 100, loss)).rate.as_bps() / 8 / 1_448 / 10;
        assert_eq!((segments("reno", 100), segments("cubic", 100)), (122, 187));
        // At 1e-2 both are Reno's 12.
        assert_eq!((segments("reno", 10_000), segments("cubic", 10_000)), (12, 12));
        assert_eq!(of(&with("bbr"), &line(100, 100, 10_000)).limit, Limit::Line);
    }
}
