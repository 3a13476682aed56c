//! Messages of a conversation: small, most important, of use for 0.8 s.
//!
//! ```text
//! cargo run -p skyhaul --example text -- receive 127.0.0.1:4710
//! cargo run -p skyhaul --example text -- send 10 127.0.0.1:4710
//! ```

mod ends;

use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    ends::run(&ends::Stream {
        name: "text",
        period: Duration::from_millis(50),
        life: Duration::from_millis(800),
        group: 1,
        sizes: (1_000, 1_000),
        priority: 0,
    })
}
