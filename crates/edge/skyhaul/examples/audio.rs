//! Speech of 128 kbit/s in frames of 20 ms, of use for 1 s.
//!
//! ```text
//! cargo run -p skyhaul --example audio -- receive 127.0.0.1:4710
//! cargo run -p skyhaul --example audio -- send 10 127.0.0.1:4710
//! ```

mod ends;

use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    ends::run(&ends::Stream {
        name: "audio",
        period: Duration::from_millis(20),
        life: Duration::from_secs(1),
        group: 1,
        sizes: (320, 320),
        priority: 1,
    })
}
