//! What comes to the serving end of a probe, from anyone; and what `ss` prints of TCP connections.

use skyhaul_probe::why::{Evidence, judge, read_sockets};
use skyhaul_probe::wire::{Message, RequestLimits};
use skyhaul_probe::{FarConfig, HostCounters, ProbeReceived, ProbeServer};
use skyhaul_units::{Duration, Instant, Rate, Utc};

/// Any datagrams, each with a length of two bytes before it: one that is read is written and read
/// the same, and who has not shown its address gets no more than it sent.
pub fn probe(input: &[u8]) {
    let limits = RequestLimits {
        rate: Rate::from_mbps(10),
        time: Duration::from_secs(60),
        datagrams: 1_000,
    };
    let mut far =
        ProbeServer::new(FarConfig { limits, utc_at_zero: Utc::from_nanos(0), secret: [7; 32] });
    let from = ([192, 0, 2, 1], 9).into();
    let mut rest = input;
    for millis in 0..64 {
        let Some(([high, low], bytes)) = rest.split_first_chunk() else { break };
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(bytes.len());
        let (datagram, later) = bytes.split_at(length);
        rest = later;
        if let Ok(message) = Message::decode(datagram) {
            assert_eq!(Message::decode(&message.encode(0)), Ok(message));
        }
        let now = Instant::ZERO + Duration::from_millis(millis);
        let received = ProbeReceived { at: now, from, bytes: datagram };
        far.datagram(now, received, &mut HostCounters::default);
        let mut answered = 0;
        while let Some(out) = far.poll(now) {
            answered += out.datagram.len();
        }
        // Without a right cookie there is no session, and nobody can guess one.
        assert!(answered <= datagram.len(), "{answered} bytes for {}", datagram.len());
        assert_eq!(far.sessions(), 0);
    }
}

/// Two readings of any text: what is understood of it gives parts of the time, and any of these a
/// verdict.
pub fn tcp_sockets(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (first, later) = text.split_at(text.floor_char_boundary(text.len() / 2));
    let all: Vec<_> = read_sockets(first).into_iter().chain(read_sockets(later)).take(4).collect();
    for (one, other) in all.iter().zip(all.iter().skip(1)) {
        let Ok(transfer) = one.until(other, Duration::from_millis(500)) else { continue };
        let waited = transfer.waited;
        for part in
            [waited.application, waited.window, waited.buffer, waited.path, transfer.line.loss]
        {
            assert!((0.0..=1.0).contains(&part), "{transfer:?}");
        }
        let verdict = judge(&Evidence { line: None, transfer: Some(transfer) });
        assert!((0.0..=1.0).contains(&verdict.confidence), "{verdict:?}");
    }
}
