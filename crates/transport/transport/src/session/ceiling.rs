//! Holds a path to the rate that a hint gives as its most: what does not fit waits in the session.

use crate::classes::Bucket;
use crate::repair::UNDER_SYMBOL;
use skyhaul_units::{ByteCount, Instant, Rate};

/// The ceiling of one path; open while there is no hint.
#[derive(Debug, Default)]
pub struct PathCeiling(Option<Bucket>);

/// The part of a path's most that symbols and FEC repair may take: the rest is for
/// acknowledgements and the path's own packets.
const USED: (u64, u64) = (97, 100);

impl PathCeiling {
    /// The path carries at most this from now on.
    pub fn set(&mut self, now: Instant, most: Option<Rate>) {
        let most = most.map(|most| most.scaled(USED.0, USED.1));
        match (most, &mut self.0) {
            (Some(most), Some(bucket)) => bucket.set_rate(now, most),
            (most, bucket) => *bucket = most.and_then(|most| Bucket::new(most, None)),
        }
    }

    /// Whether a symbol may go.
    pub fn is_open(&self, now: Instant) -> bool {
        self.0.as_ref().is_none_or(|bucket| bucket.is_open(now))
    }

    /// When the next symbol may go; none where it may at `now`.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        self.0.as_ref().filter(|bucket| !bucket.is_open(now)).map(Bucket::serve_at)
    }

    /// A datagram of so many bytes goes out.
    pub fn spend(&mut self, now: Instant, bytes: usize) {
        if let Some(bucket) = &mut self.0 {
            bucket.spend(now, ByteCount::of(bytes + UNDER_SYMBOL));
        }
    }
}
