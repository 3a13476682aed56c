//! What is known of a path from outside. No IO.
//!
//! A [`PathFeed`] takes the lines of a modem, one a second, each with its readings
//! ([`FeedLine`]); a [`FeedMap`] turns readings into a rate and a loss. What the newest line says
//! holds until the feed is stale. A [`ContactPlan`] has the windows in which a path carries data.
//! The transport takes both as hints; this crate knows neither the transport nor where lines and
//! plans come from.
//!
//! ```
//! use skyhaul_hints::{FeedMap, FeedRow, PathFeed};
//! use skyhaul_units::{Duration, Instant, Rate};
//!
//! let row = FeedRow {
//!     when: "snr>=8".parse()?,
//!     rate: Some(Rate::from_mbps(40)),
//!     loss: Some("0.1 %".parse()?),
//! };
//! let mut feed = PathFeed::new(FeedMap::new(vec![row]), Duration::from_secs(5));
//! let now = Instant::ZERO + Duration::from_secs(10);
//! feed.take(now, b"snr=11.5dB modcod=8PSK-3/4\n");
//! let hint = feed.hint(now).ok_or("no hint")?;
//! assert_eq!(hint.values.rate, Some(Rate::from_mbps(40)));
//! assert!(feed.hint(now + Duration::from_secs(5)).is_none(), "stale");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bounds;
mod condition;
mod feed;
mod line;
mod map;
mod plan;
mod source;

pub use bounds::{LOSS_MAX, RATE_MAX, RATE_MIN, check_loss, check_rate};
pub use condition::{ConditionRefused, FeedCondition};
pub use feed::{FeedCounters, FeedGarbage, FeedHint, PathFeed};
pub use line::{FeedLine, FeedLineError, LINE_MAX};
pub use map::{FeedMap, FeedRow, FeedValues};
pub use plan::{ContactPlan, PLAN_BYTES_MAX, PlanError, PlanWindow};
pub use source::{FeedSource, FeedSourceRefused};
