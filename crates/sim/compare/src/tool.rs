//! The tools that are compared, and the figure of a run.

use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// What sends and receives.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Tool {
    /// Skyhaul's default: it finds the rate by itself.
    Adaptive,
    /// Skyhaul with the line's rate declared.
    Line,
    /// Kernel TCP with a congestion control of this name, by iperf3.
    Tcp(String),
    /// Kernel multipath TCP with a congestion control of this name.
    Mptcp(String),
    /// UDT 4.
    Udt,
    /// SRT in file mode.
    Srt,
    /// An application over two socat relays, between which TCP has this congestion control.
    Socat(String),
    /// An application over `skyhaul forward`.
    Forward,
}

impl FromStr for Tool {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let of = |prefix: &str| {
            text.strip_prefix(prefix).filter(|name| {
                !name.is_empty()
                    && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
            })
        };
        match text {
            "adaptive" => Ok(Self::Adaptive),
            "line" => Ok(Self::Line),
            "forward" => Ok(Self::Forward),
            "udt" => Ok(Self::Udt),
            "srt" => Ok(Self::Srt),
            _ => (of("tcp-").map(|name| Self::Tcp(name.to_owned())))
                .or_else(|| of("mptcp-").map(|name| Self::Mptcp(name.to_owned())))
                .or_else(|| of("socat-").map(|name| Self::Socat(name.to_owned())))
                .ok_or_else(|| {
                    format!(
                        "no tool is called `{text}`; take adaptive, line, tcp-bbr, mptcp-bbr, \
                            socat-bbr, forward, udt, srt"
                    )
                }),
        }
    }
}

impl TryFrom<String> for Tool {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Tool> for String {
    fn from(tool: Tool) -> Self {
        tool.to_string()
    }
}

impl core::fmt::Display for Tool {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Adaptive => f.write_str("adaptive"),
            Self::Line => f.write_str("line"),
            Self::Tcp(control) => write!(f, "tcp-{control}"),
            Self::Mptcp(control) => write!(f, "mptcp-{control}"),
            Self::Udt => f.write_str("udt"),
            Self::Srt => f.write_str("srt"),
            Self::Socat(control) => write!(f, "socat-{control}"),
            Self::Forward => f.write_str("forward"),
        }
    }
}

impl Tool {
    /// Whether it is this program.
    pub const fn is_ours(&self) -> bool {
        matches!(self, Self::Adaptive | Self::Line)
    }
}

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// At the receiver, the start included.
    pub goodput_bps: f64,
    /// The most bytes that all connections together could have in flight: the smaller of the far
    /// end's window and the congestion window. Only if the tool reports it.
    pub window: Option<f64>,
}
