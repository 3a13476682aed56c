//! The flags that say what the line is like, and how its rate is found.

use super::report::ControlSummary;
use crate::failure::{Exit, Failure};
use skyhaul_congestion::{ControllerConfig, ControllerNameError};
use skyhaul_quic::PathConfig;
use skyhaul_units::{ByteCount, Rate};

/// The line and its rate control.
#[derive(clap::Args)]
pub struct LineFlags {
    /// How the rate is found: `adaptive` by itself, `line` by --rate, or a controller for
    /// comparison, such as `cubic`.
    #[arg(long, value_name = "NAME", default_value = "adaptive")]
    cc: String,
    /// The line's rate for `--cc line`, counted in IP packets with their headers.
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// The largest IP packet that fits the line; both ends must be given the same.
    #[arg(long, value_name = "SIZE", default_value = "1500 B")]
    mtu: ByteCount,
}

impl LineFlags {
    /// The rate and the largest IP packet of a line without return, whose rate must be given.
    ///
    /// # Errors
    /// There is no rate.
    pub fn one_way(&self) -> Result<(Rate, ByteCount), Failure> {
        let rate = self.rate.filter(|rate| *rate > Rate::ZERO).ok_or_else(|| {
            let what = "without a return path the rate cannot be found";
            Failure::new(Exit::Usage, what, "give --rate, such as --rate 93mbit")
        })?;
        Ok((rate, self.mtu))
    }

    /// How a path over this line runs.
    ///
    /// # Errors
    /// The controller is not known, or rate and controller do not go together; the packet size is
    /// not possible.
    pub fn path(&self, is_ipv6: bool) -> Result<PathConfig, Failure> {
        let headers = if is_ipv6 { 48 } else { 28 };
        let payload = self.mtu.as_u64().saturating_sub(headers);
        let udp_payload =
            u16::try_from(payload).ok().filter(|payload| *payload >= 1200).ok_or_else(|| {
                let help = "give 1280 B to 65000 B, such as 1500 B or 9000 B";
                Failure::new(
                    Exit::Usage,
                    &format!("an IP packet of {} is not possible", self.mtu),
                    help,
                )
            })?;
        let controller = self.controller()?;
        Ok(PathConfig { udp_payload, controller, ..PathConfig::over(Rate::ZERO) })
    }

    /// The same, as a report names it.
    ///
    /// # Errors
    /// As [`Self::path`].
    pub fn control(&self, is_ipv6: bool) -> Result<ControlSummary, Failure> {
        let path = self.path(is_ipv6)?;
        Ok(ControlSummary {
            name: path.controller.name().to_owned(),
            declared_bps: path.controller.declared_rate().map(Rate::as_bps),
            payload: u64::from(path.udp_payload),
            payload_shrunk: None,
        })
    }

    fn controller(&self) -> Result<ControllerConfig, Failure> {
        match (&*self.cc, self.rate) {
            ("line", Some(rate)) if rate > Rate::ZERO => Ok(ControllerConfig::declared(rate)),
            ("line", _) => {
                let what = "the rate control `line` needs the line's rate";
                Err(Failure::new(Exit::Usage, what, "give --rate, such as --rate 93mbit"))
            }
            (other, Some(_)) => {
                let what = format!("the rate control `{other}` finds the rate by itself");
                Err(Failure::new(Exit::Usage, &what, "omit --rate, or give --cc line"))
            }
            (other, None) => other.parse().map_err(|error: ControllerNameError| {
                Failure::from_sentence(Exit::Usage, &error.to_string())
            }),
        }
    }
}
