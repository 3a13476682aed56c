//! How much the sending end hands over, in which blocks, and how fast.

use super::source::STAMP;
use skyhaul_exit::{Exit, Failure};
use skyhaul_transport::MAX_BLOCK;
use skyhaul_units::{ByteCount, Duration, Instant, Rate};

/// The flags of the load.
#[derive(clap::Args)]
pub struct LoadArguments {
    /// How long blocks are handed over.
    #[arg(long, value_name = "DURATION", default_value = "10 s")]
    duration: Duration,
    /// How much data is handed over, instead of a duration.
    #[arg(long, value_name = "SIZE", conflicts_with = "duration")]
    bytes: Option<ByteCount>,
    /// The size of a block.
    #[arg(long, value_name = "SIZE", default_value = "256 KiB")]
    block: ByteCount,
    /// A block that is not delivered within this time is given up.
    #[arg(long, value_name = "DURATION")]
    deadline: Option<Duration>,
    /// Hands over blocks at this rate instead of as fast as possible: measures latency without a
    /// queue at this end.
    #[arg(long, value_name = "RATE")]
    offer: Option<Rate>,
}

/// How much is handed over, and how fast.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Bytes of a block.
    pub block: usize,
    /// How long blocks are handed over, unless `bytes` sets an amount.
    pub duration: Duration,
    /// How much is handed over.
    pub bytes: Option<ByteCount>,
    /// From handing over a block until it is worth nothing.
    pub deadline: Option<Duration>,
    /// How fast blocks are handed over; `None` for as fast as possible.
    pub offer: Option<Rate>,
}

impl LoadArguments {
    /// The load.
    ///
    /// # Errors
    /// A block has no room for the time stamp, or is larger than the transport takes.
    pub fn load(&self) -> Result<Load, Failure> {
        let range = STAMP as u64..=MAX_BLOCK as u64;
        if !range.contains(&self.block.as_u64()) {
            let what = format!("a block of {} is not possible", self.block);
            return Err(Failure::new(Exit::Usage, &what, "give --block 8 B to 16383 KiB"));
        }
        let Self { duration, bytes, deadline, offer, .. } = *self;
        Ok(Load { block: self.block.as_usize(), duration, bytes, deadline, offer })
    }
}

impl Load {
    /// For `duration`, with everything else as the flags have it by default.
    pub const fn lasting(duration: Duration) -> Self {
        Self { block: BLOCK_DEFAULT, duration, bytes: None, deadline: None, offer: None }
    }

    /// Bytes that are still to be handed over `elapsed` after the beginning, when `handed_over`
    /// were.
    pub fn left(&self, elapsed: Duration, handed_over: u64) -> u64 {
        match self.bytes {
            Some(bytes) => bytes.as_u64().saturating_sub(handed_over),
            None if elapsed >= self.duration => 0,
            None => u64::MAX,
        }
    }

    /// When the block after `handed_over` bytes is due; `None` without a rate.
    pub fn next_due(&self, began: Instant, handed_over: u64) -> Option<Instant> {
        let offer = self.offer.filter(|offer| *offer > Rate::ZERO)?;
        Some(began + offer.time_for(ByteCount::new(handed_over)))
    }
}

/// As `--block` has it.
const BLOCK_DEFAULT: usize = 256 << 10;
