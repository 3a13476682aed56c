//! The centre's side of custody transfer: writes blocks to the store, and makes receipts of what is
//! durable.
//!
//! The store keeps four times in front of each block, so that its latency can be accounted for
//! after a restart: 8 bytes each, microseconds since 1970. They are: first symbol sent (by the
//! station's clock), last symbol arrived that was no retransmission, block whole, block delivered
//! in order.

use skyhaul_store::{
    Appended, ArrivedRecord, ContactStore, FlowStatus, Receipt, Seq, SpoolKnown, SpoolSender,
    StoreError,
};
use skyhaul_transport::{BlockId, BlockTiming, Custody, Received, Resume};
use skyhaul_units::{Instant, Utc};

/// The bytes in front of a block of the station's spool: these times, and when the block was read
/// from the spool.
pub const PREFACE: usize = LEN + 8;

/// The custody that a greeting names for a spool that the store knows.
pub fn custody_of(known: &SpoolKnown) -> Custody {
    let SpoolKnown { spool, resume, .. } = known;
    let resume = Resume { finished_below: resume.finished_below, open: resume.flows.clone() };
    Custody { spool: *spool, resume }
}

/// Writes a block of `sender` to the store. It is durable after the store's next sync, which gives
/// the receipt. A block that the store had before gives a receipt at once, where one is due: the
/// station missed the earlier one.
///
/// # Errors
/// See [`StoreError`]; the block was not taken.
pub fn keep(
    store: &mut ContactStore,
    sender: &SpoolSender,
    received: &Received,
    stamps: &Stamps,
) -> Result<Option<Receipt>, StoreError> {
    let payload = stamps.before(&received.bytes);
    let BlockId { flow, seq } = received.id;
    let station = &sender.space;
    let arrival =
        ArrivedRecord { station, flow, seq, received: stamps.delivered, payload: &payload };
    if store.append_from(sender, arrival)? == Appended::New {
        return Ok(None);
    }
    let next = match store.spaces().status(station, flow) {
        FlowStatus::Open { durable, .. } => durable,
        FlowStatus::Finished => Seq::FINISHED,
        FlowStatus::Unknown => return Ok(None),
    };
    Ok(Some(Receipt { station: station.clone(), flow, next }))
}

/// When a block passed each stage of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamps {
    /// Its first symbol was sent.
    pub sent: Utc,
    /// The last symbol arrived that was no retransmission.
    pub last_original: Utc,
    /// All of its symbols were there.
    pub complete: Utc,
    /// All blocks before it were whole too.
    pub delivered: Utc,
}

const LEN: usize = 32;

impl Stamps {
    /// Converts the times of a session whose clock was at zero at `utc_at_zero`.
    pub fn of(timing: &BlockTiming, utc_at_zero: Utc) -> Self {
        let utc = |reading: Instant| utc_at_zero + reading.since(Instant::ZERO);
        Self {
            sent: timing.sent,
            last_original: utc(timing.last_original),
            complete: utc(timing.complete),
            delivered: utc(timing.delivered),
        }
    }

    /// The stamps, then `block`.
    pub fn before(&self, block: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(LEN + block.len());
        for stamp in [self.sent, self.last_original, self.complete, self.delivered] {
            out.extend_from_slice(&stamp.as_micros().to_be_bytes());
        }
        out.extend_from_slice(block);
        out
    }

    /// The stamps, and the block behind them; `None` where there are none.
    pub fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (stamps, block) = bytes.split_first_chunk::<LEN>()?;
        let at = |index: usize| {
            let field = &stamps[index * 8..index * 8 + 8];
            Utc::from_micros(
                field.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte)).cast_signed(),
            )
        };
        Some((Self { sent: at(0), last_original: at(1), complete: at(2), delivered: at(3) }, block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_survive() {
        let at = |micros: i64| Utc::from_micros(micros);
        let stamps =
            Stamps { sent: at(-5), last_original: at(1 << 50), complete: at(3), delivered: at(4) };
        assert_eq!(Stamps::split(&stamps.before(b"block")), Some((stamps, &b"block"[..])));
        assert_eq!(Stamps::split(&[0; 31]), None);
    }
}
