//! The flags that say what the line is like, and how its rate is found.

use crate::failure::{Exit, Failure};
use skyhaul_quic::PathConfig;
use skyhaul_units::{Bytes, Rate};

/// The line and its rate control.
#[derive(clap::Args)]
pub struct LineFlags {
    /// How the rate is found: `line` (declared by --rate; loss is ignored, a queue is given way to).
    #[arg(long, value_name = "NAME", default_value = "line")]
    cc: String,
    /// The line's rate, counted in IP packets with their headers.
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// The largest IP packet that fits the line; both ends must be given the same.
    #[arg(long, value_name = "SIZE", default_value = "1500 B")]
    mtu: Bytes,
}

impl LineFlags {
    /// How a path over this line runs. `rate` is taken where none was given.
    ///
    /// # Errors
    /// The controller is not known or lacks its rate; the packet size is not possible.
    pub fn path(&self, is_ipv6: bool, rate: Option<Rate>) -> Result<PathConfig, Failure> {
        let headers = if is_ipv6 { 48 } else { 28 };
        let payload = self.mtu.as_u64().saturating_sub(headers);
        let udp_payload =
            u16::try_from(payload).ok().filter(|payload| *payload >= 1200).ok_or_else(|| {
                let help = "give 1280 B to 65000 B, such as 1500 B or 9000 B";
                Failure::new(Exit::Usage, &format!("an IP packet of {} is not possible", self.mtu), help)
            })?;
        if self.cc != "line" {
            let what = format!("the rate control `{}` is not known", self.cc);
            return Err(Failure::new(Exit::Usage, &what, "write one of line"));
        }
        let rate = self.rate.or(rate).filter(|rate| *rate > Rate::ZERO).ok_or_else(|| {
            let help = "give --rate, such as --rate 93mbit";
            Failure::new(Exit::Usage, "the rate control `line` needs the line's rate", help)
        })?;
        Ok(PathConfig { udp_payload, max_segments: BATCH, ..PathConfig::over(rate) })
    }
}

/// Datagrams that leave in one system call: the kernel's bound is 64.
const BATCH: usize = 64;
