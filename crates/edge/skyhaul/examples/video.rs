//! Moving pictures of 1.9 Mbit/s, 30 frames a second, of use for 3 s. One frame a second stands
//! alone, and the others are worth nothing without it: where it cannot be in time, nothing more is
//! spent on them.
//!
//! ```text
//! cargo run -p skyhaul --example video -- receive 127.0.0.1:4710 127.0.0.1:4711
//! cargo run -p skyhaul --example video -- send 10 127.0.0.1:4710 127.0.0.1:4711
//! ```

mod ends;

use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    ends::run(&ends::Stream {
        name: "video",
        period: Duration::from_nanos(33_333_333),
        life: Duration::from_secs(3),
        group: 30,
        sizes: (60_000, 6_000),
        priority: 2,
    })
}
