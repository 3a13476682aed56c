//! The flags that describe the line and its rate control.

use super::report::ControlSummary;
use crate::commands::ip::IpVersion;
use crate::commands::one_way::line::OneWayLine;
use skyhaul_congestion::{ControllerConfig, ControllerNameError};
use skyhaul_exit::{Exit, Failure};
use skyhaul_quic::PathConfig;
use skyhaul_units::{ByteCount, Rate};

/// The line and its rate control.
#[derive(clap::Args)]
pub struct LineFlags {
    /// The rate control: `adaptive` measures the rate, `line` uses --rate; others, such as `cubic`,
    /// are for comparison.
    #[arg(long, value_name = "NAME", default_value = "adaptive")]
    cc: String,
    /// The line's rate for `--cc line`, including IP headers.
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// The largest IP packet of the line; both ends need the same value.
    #[arg(long, value_name = "SIZE", default_value = "1500 B")]
    mtu: ByteCount,
}

impl LineFlags {
    /// The rate and the largest IP packet of a line without return, whose rate must be given.
    ///
    /// # Errors
    /// There is no rate.
    pub fn one_way(&self) -> Result<OneWayLine, Failure> {
        let rate = self.rate.filter(|rate| *rate > Rate::ZERO).ok_or_else(|| {
            let what = "without a return path the rate cannot be found";
            Failure::new(Exit::Usage, what, "give --rate, such as --rate 93mbit")
        })?;
        Ok(OneWayLine { rate, mtu: self.mtu })
    }

    /// The configuration of a path over this line.
    ///
    /// # Errors
    /// The controller is not known, or rate and controller do not go together; the packet size is
    /// not possible.
    pub fn path(&self, ip: IpVersion) -> Result<PathConfig, Failure> {
        // IP and UDP headers.
        let headers = match ip {
            IpVersion::V4 => 28,
            IpVersion::V6 => 48,
        };
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

    /// The rate control of such a path, as a report names it.
    ///
    /// # Errors
    /// As [`Self::path`].
    pub fn control(&self, ip: IpVersion) -> Result<ControlSummary, Failure> {
        let path = self.path(ip)?;
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
