//! VITA 49 and DIFI packets, as a socket brings them.

use skyhaul_units::Utc;
use skyhaul_vita49::Depacketiser;

/// Any datagrams: the first two bytes say where the first one ends. What is counted is what came.
pub fn vita49(input: &[u8]) {
    let Some(([high, low], bytes)) = input.split_first_chunk() else { return };
    let first = usize::from(u16::from_be_bytes([*high, *low])).min(bytes.len());
    let (first, second) = bytes.split_at(first);
    let mut stream = Depacketiser::new();
    for datagram in [first, second] {
        let given = stream.push(Utc::from_micros(0), datagram);
        if let Ok(Some(symbols)) = given {
            assert!(symbols.bytes.len() <= datagram.len() + 1, "more came out than went in");
        }
    }
    let counters = stream.counters();
    assert!(counters.reordered + counters.lost <= 16 * (input.len() as u64 / 4 + 1));
}
