//! When a block was where: kept in the store before each block, so that its way can be accounted for after a restart.
//!
//! Four times, 8 bytes each, microseconds since 1970: first symbol sent (by the station's clock), last symbol arrived that
//! was no repetition, block whole, block given out in order.

use skyhaul_net::Clock;
use skyhaul_transport::BlockTiming;
use skyhaul_units::Utc;

/// When a block was where on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamps {
    /// Its first symbol was sent.
    pub sent: Utc,
    /// The last symbol arrived that was no repetition.
    pub last_original: Utc,
    /// It was whole.
    pub complete: Utc,
    /// All before it were whole too.
    pub delivered: Utc,
}

const LEN: usize = 32;

impl Stamps {
    /// From a session's readings of this process's clock.
    pub fn of(timing: &BlockTiming, clock: Clock) -> Self {
        Self {
            sent: timing.sent,
            last_original: clock.utc_of(timing.last_original),
            complete: clock.utc_of(timing.complete),
            delivered: clock.utc_of(timing.delivered),
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
            Utc::from_micros(field.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte)).cast_signed())
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
        let stamps = Stamps { sent: at(-5), last_original: at(1 << 50), complete: at(3), delivered: at(4) };
        assert_eq!(Stamps::split(&stamps.before(b"block")), Some((stamps, &b"block"[..])));
        assert_eq!(Stamps::split(&[0; 31]), None);
    }
}
