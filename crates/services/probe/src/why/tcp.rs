//! The kernel's figures of its TCP connections, as `ss -tinHOp` prints them: for a verdict on any
//! program's transfer.
//!
//! `busy`, `rwnd_limited` and `sndbuf_limited` are times that only grow; two readings give the
//! parts of the time between them. The text is another program's and may be anything: fields that
//! cannot be read are left out.

use super::evidence::{LoadedLine, ReceiverLoad, Transfer, Waited};
use skyhaul_units::Duration;
use std::net::SocketAddr;

/// One connection, read once.
#[derive(Debug, Clone, PartialEq)]
pub struct TcpSample {
    /// This end.
    pub local: SocketAddr,
    /// The other.
    pub remote: SocketAddr,
    /// Programs that hold it, as far as the reader may know.
    pub pids: Vec<u32>,
    /// The kernel's congestion controller.
    pub controller: String,
    /// Smoothed round trip, in milliseconds.
    pub round_trip_ms: f64,
    /// The shortest.
    pub shortest_round_trip_ms: Option<f64>,
    /// Bytes that the far end acknowledged.
    pub acked: u64,
    /// Segments with data, sent again ones counted again.
    pub segments: u64,
    /// Segments sent again.
    pub retransmitted: u64,
    /// Time with data to send or under way, in milliseconds; the next two are parts of it.
    pub busy_ms: u64,
    /// Of that, held by the receiver's window.
    pub window_ms: u64,
    /// Of that, held by this socket's send buffer.
    pub buffer_ms: u64,
}

/// Why two readings give no figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TcpTextError {
    /// The readings are of the same instant.
    #[error("the two readings are of the same instant; read again after a second")]
    SameInstant,
    /// Counts went back.
    #[error(
        "the connection's counts went back: it is another connection of the same addresses; read \
        both again"
    )]
    Backwards,
}

impl TcpSample {
    /// What happened from this reading to `later`, `span` after it.
    ///
    /// # Errors
    /// The readings are of one instant, or not of one connection.
    pub fn until(&self, later: &Self, span: Duration) -> Result<Transfer, TcpTextError> {
        if span == Duration::ZERO {
            return Err(TcpTextError::SameInstant);
        }
        let grown =
            |of: fn(&Self) -> u64| of(later).checked_sub(of(self)).ok_or(TcpTextError::Backwards);
        let seconds = span.as_secs_f64();
        let share = |millis: u64| (millis as f64 / 1e3 / seconds).min(1.0);
        let (busy, window, buffer) = (
            share(grown(|sample| sample.busy_ms)?),
            share(grown(|sample| sample.window_ms)?),
            share(grown(|sample| sample.buffer_ms)?),
        );
        let (segments, again) =
            (grown(|sample| sample.segments)?, grown(|sample| sample.retransmitted)?);
        Ok(Transfer {
            goodput_bps: (grown(|sample| sample.acked)? as f64 * 8.0 / seconds) as u64,
            waited: Waited {
                application: 1.0 - busy,
                window,
                buffer,
                classes: 0.0,
                path: (busy - window - buffer).max(0.0),
            },
            controller: later.controller.clone(),
            line: LoadedLine {
                round_trip_ms: Some(later.round_trip_ms),
                shortest_round_trip_ms: later.shortest_round_trip_ms,
                loss: if segments == 0 { 0.0 } else { (again as f64 / segments as f64).min(1.0) },
                ..LoadedLine::default()
            },
            receiver: ReceiverLoad { datagrams: segments, ..ReceiverLoad::default() },
            ..Transfer::default()
        })
    }
}

/// The connections in what `ss -tinHOp` printed, one a line; other lines are left out. At most
/// 65,536.
pub fn read_sockets(text: &str) -> Vec<TcpSample> {
    text.lines().filter_map(read_socket).take(SOCKETS_MAX).collect()
}

fn read_socket(line: &str) -> Option<TcpSample> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let addresses: Vec<SocketAddr> =
        words.iter().take(6).filter_map(|word| address(word)).collect();
    let [local, remote] = addresses[..] else { return None };
    let named =
        |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix(':'));
    let count = |name: &str| named(name).and_then(leading).unwrap_or(0);
    let millis =
        |text: &str| text.parse::<f64>().ok().filter(|millis| millis.is_finite() && *millis >= 0.0);
    let (round_trip, _) = named("rtt")?.split_once('/')?;
    // `retrans:now/total`, left out where there were none.
    let retransmitted =
        named("retrans").and_then(|text| leading(text.split_once('/')?.1)).unwrap_or(0);
    Some(TcpSample {
        local,
        remote,
        pids: line
            .split("pid=")
            .skip(1)
            .filter_map(|rest| u32::try_from(leading(rest)?).ok())
            .collect(),
        controller: controller(&words),
        round_trip_ms: millis(round_trip)?,
        shortest_round_trip_ms: named("minrtt").and_then(millis),
        acked: count("bytes_acked"),
        segments: count("data_segs_out"),
        retransmitted,
        busy_ms: count("busy"),
        window_ms: count("rwnd_limited"),
        buffer_ms: count("sndbuf_limited"),
    })
}

/// The word before the window scale, which every connection prints; options such as `ts` and `sack`
/// stand further before.
fn controller(words: &[&str]) -> String {
    let place =
        words.iter().position(|word| word.starts_with("wscale:") || word.starts_with("rto:"));
    let name = place.and_then(|place| words.get(place.checked_sub(1)?)).copied().unwrap_or("");
    if name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
        name.to_owned()
    } else {
        String::new()
    }
}

/// `192.0.2.1:80`, `[2001:db8::1]:80`, and the same with an interface behind `%`.
fn address(word: &str) -> Option<SocketAddr> {
    let Some((host, port)) = word.split_once('%') else { return word.parse().ok() };
    let (_, port) = port.rsplit_once(':')?;
    let host =
        host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>().ok()?;
    Some((host, port.parse().ok()?).into())
}

/// The digits that a text begins with, as a number.
fn leading(text: &str) -> Option<u64> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

/// More connections than any transfer needs; a host of a million does not fill the memory.
const SOCKETS_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FIRST: &str = "ESTAB 0 2895104 192.0.2.1:41822 198.51.100.9:5201 \
        users:((\"iperf3\",pid=4711,fd=5)) ts sack cubic wscale:7,7 rto:404 \
        rtt:203.1/0.9 ato:40 mss:1448 pmtu:1500 cwnd:2000 \
        ssthresh:1500 bytes_sent:52000000 bytes_retrans:14480 bytes_acked:50000000 \
        segs_out:36000 segs_in:20000 data_segs_out:35900 send 114Mbps pacing_rate 137Mbps \
        delivery_rate 40Mbps busy:10000ms rwnd_limited:8000ms(80.0%) \
        sndbuf_limited:100ms(1.0%) retrans:0/10 minrtt:200.5";

    #[test]
    fn two_readings_give_the_parts_of_the_time_between_them() {
        let second = FIRST
            .replace("bytes_acked:50000000", "bytes_acked:60000000")
            .replace("busy:10000ms", "busy:11800ms")
            .replace("rwnd_limited:8000ms", "rwnd_limited:9500ms")
            .replace("data_segs_out:35900", "data_segs_out:42900")
            .replace("retrans:0/10", "retrans:1/17");
        let (first, later) = (&read_sockets(FIRST)[0], &read_sockets(&second)[0]);
        assert_eq!((first.pids.as_slice(), &*first.controller), (&[4711][..], "cubic"));
        assert_eq!(
            (first.remote.to_string(), first.shortest_round_trip_ms),
            ("198.51.100.9:5201".to_owned(), Some(200.5))
        );
        let transfer = first.until(later, Duration::from_secs(2)).unwrap();
        assert_eq!(transfer.goodput_bps, 40_000_000);
        let waited = transfer.waited;
        assert!(
            (waited.window - 0.75).abs() < 1e-9 && (waited.application - 0.1).abs() < 1e-9,
            "{waited:?}"
        );
        assert!((waited.path - 0.15).abs() < 1e-9 && (transfer.line.loss - 0.001).abs() < 1e-9);
        assert_eq!(later.until(first, Duration::from_secs(2)), Err(TcpTextError::Backwards));
        assert_eq!(first.until(later, Duration::ZERO), Err(TcpTextError::SameInstant));
    }

    #[test]
    fn what_is_no_connection_is_left_out() {
        let text =
            "State Recv-Q Send-Q Local Peer\nLISTEN 0 128 0.0.0.0:22 0.0.0.0:*\n\nnonsense\n";
        assert_eq!(read_sockets(text), []);
        let v6 = "ESTAB 0 0 [fe80::1%eth0]:22 [fe80::2%eth0]:5 bbr wscale:7,7 rto:200 rtt:0.1/0.05 \
                 mss:1448";
        // An interface stands within the brackets or behind them, as the release has it.
        let behind = v6.replace("%eth0]", "]%eth0");
        assert_eq!(read_sockets(&behind).len() + read_sockets(v6).len(), 2);
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in ".{0,200}", place in 0..700usize) {
            let _ = read_sockets(&text);
            let cut: String = FIRST.chars().take(place).collect();
            let _ = read_sockets(&format!("{cut}{text}"));
        }
    }
}
