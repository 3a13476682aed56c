//! A stream's result in iperf3's JSON form for UDP, for programs that read that.
//!
//! Figures are the receiver's, as iperf3 gives them with `--get-server-output` or `-R`; names are
//! its own.

use crate::stream::{ProbeArrival, StreamDirection, Trace};
use crate::survey::{MILLIS, jitter};
use serde::Serialize;
use std::net::SocketAddr;

/// What iperf3 prints as `start`, `intervals` and `end`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Iperf {
    start: Start,
    intervals: Vec<Interval>,
    end: End,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Start {
    connected: Vec<Connected>,
    test_start: TestStart,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Connected {
    socket: u32,
    local_host: String,
    local_port: u16,
    remote_host: String,
    remote_port: u16,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct TestStart {
    protocol: &'static str,
    num_streams: u32,
    blksize: u64,
    duration: f64,
    reverse: u8,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Interval {
    streams: Vec<Totals>,
    sum: Totals,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct End {
    streams: Vec<Stream>,
    sum: Totals,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Stream {
    udp: Totals,
}

/// Totals of a time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Totals {
    socket: u32,
    start: f64,
    end: f64,
    seconds: f64,
    bytes: u64,
    bits_per_second: f64,
    jitter_ms: f64,
    lost_packets: u64,
    packets: u64,
    lost_percent: f64,
    out_of_order: u64,
    omitted: bool,
    sender: bool,
}

impl Iperf {
    /// Of a stream between the addresses of this end and the far one.
    pub fn of(trace: &Trace, local: Option<SocketAddr>, remote: SocketAddr) -> Self {
        let name = |address: SocketAddr| (address.ip().to_canonical().to_string(), address.port());
        let (local_host, local_port) = local.map_or((String::new(), 0), name);
        let (remote_host, remote_port) = name(remote);
        let whole = Totals::of(trace, 0..trace.offered, &trace.arrivals);
        let a_second = (1e9 / trace.spec.spacing.as_nanos().max(1) as f64)
            .ceil()
            .clamp(1.0, f64::from(u32::MAX)) as u32;
        let mut seconds = vec![Vec::new(); trace.offered.div_ceil(a_second) as usize];
        for arrival in &trace.arrivals {
            if let Some(second) = seconds.get_mut((arrival.seq / a_second) as usize) {
                second.push(*arrival);
            }
        }
        let interval = |(second, arrivals): (u32, Vec<ProbeArrival>)| {
            let first = second.saturating_mul(a_second);
            let sum = Totals::of(
                trace,
                first..first.saturating_add(a_second).min(trace.offered),
                &arrivals,
            );
            Interval { streams: vec![sum], sum }
        };
        Self {
            start: Start {
                connected: vec![Connected {
                    socket: SOCKET,
                    local_host,
                    local_port,
                    remote_host,
                    remote_port,
                }],
                test_start: TestStart {
                    protocol: "UDP",
                    num_streams: 1,
                    blksize: trace.spec.payload.as_u64(),
                    duration: trace.spec.time().as_secs_f64(),
                    reverse: u8::from(trace.direction == StreamDirection::Down),
                },
            },
            intervals: (0..).zip(seconds).map(interval).collect(),
            end: End { streams: vec![Stream { udp: whole }], sum: whole },
        }
    }
}

impl Totals {
    /// Of the datagrams with these numbers, of which these arrived, over the time in which they
    /// were to leave.
    fn of(trace: &Trace, seqs: core::ops::Range<u32>, arrivals: &[ProbeArrival]) -> Self {
        let spacing = trace.spec.spacing.as_secs_f64();
        let (start, end) = (f64::from(seqs.start) * spacing, f64::from(seqs.end) * spacing);
        let mut delays = Vec::new();
        let (mut greatest, mut out_of_order) = (None, 0);
        for arrival in arrivals {
            delays.push(arrival.arrived.as_nanos().saturating_sub(arrival.sent.as_nanos()));
            out_of_order += u64::from(greatest.is_some_and(|greatest| arrival.seq < greatest));
            greatest = greatest.max(Some(arrival.seq));
        }
        let (packets, received) =
            (u64::from(seqs.end.saturating_sub(seqs.start)), delays.len() as u64);
        let lost_packets = packets.saturating_sub(received);
        let (bytes, seconds) = (received * trace.spec.payload.as_u64(), end - start);
        Self {
            socket: SOCKET,
            start,
            end,
            seconds,
            bytes,
            bits_per_second: if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 },
            jitter_ms: jitter(&delays) * MILLIS,
            lost_packets,
            packets,
            lost_percent: if packets == 0 {
                0.0
            } else {
                lost_packets as f64 * 100.0 / packets as f64
            },
            out_of_order,
            omitted: false,
            sender: false,
        }
    }
}

/// The one stream's number; iperf3 gives its descriptor.
const SOCKET: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::HostCounters;
    use crate::stream::Spec;
    use skyhaul_units::{ByteCount, Duration, Utc};

    #[test]
    fn seconds_add_up_to_the_whole() {
        let at = |millis: u32| Utc::from_micros(i64::from(millis) * 1_000);
        let arrivals = (0..250).filter(|seq| seq % 50 != 7).map(|seq| ProbeArrival {
            seq,
            sent: at(seq * 10),
            arrived: at(seq * 10 + 5),
        });
        let mut arrivals: Vec<ProbeArrival> = arrivals.collect();
        arrivals.swap(120, 121);
        let trace = Trace {
            direction: StreamDirection::Down,
            spec: Spec {
                payload: ByteCount::new(1_000),
                spacing: Duration::from_millis(10),
                count: 250,
            },
            offered: 250,
            refused: 0,
            arrivals,
            duplicates: 0,
            sender: HostCounters::default(),
            receiver: HostCounters::default(),
        };
        let form = Iperf::of(&trace, None, "192.0.2.7:4720".parse().unwrap());
        let lost: Vec<u64> =
            form.intervals.iter().map(|interval| interval.sum.lost_packets).collect();
        assert_eq!(
            (lost, form.end.sum.lost_packets, form.end.sum.packets),
            (vec![2, 2, 1], 5, 250)
        );
        let bytes: u64 = form.intervals.iter().map(|interval| interval.sum.bytes).sum();
        assert_eq!((bytes, form.end.sum.bytes, form.end.sum.out_of_order), (245_000, 245_000, 1));
        assert!(
            (form.end.sum.seconds - 2.5).abs() < 1e-9
                && (form.end.sum.lost_percent - 2.0).abs() < 1e-9
        );
        assert!(
            (form.intervals[2].sum.start - 2.0).abs() < 1e-9
                && (form.intervals[2].sum.seconds - 0.5).abs() < 1e-9
        );
        let empty = Iperf::of(
            &Trace { offered: 0, arrivals: Vec::new(), ..trace },
            None,
            "192.0.2.7:1".parse().unwrap(),
        );
        assert_eq!((empty.intervals.len(), empty.end.sum.packets), (0, 0));
    }
}
