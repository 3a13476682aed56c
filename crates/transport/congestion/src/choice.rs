//! The choice of a path's controller, by name.

use crate::bbr::{Bbr, BbrConfig};
use crate::bbr3::{Bbr3, Bbr3Config};
use crate::cubic::{Cubic, CubicConfig};
use crate::highspeed::{HighSpeed, HighSpeedConfig};
use crate::hybla::{Hybla, HyblaConfig};
use crate::illinois::{Illinois, IllinoisConfig};
use crate::reno::{Reno, RenoConfig};
use crate::scalable::{Scalable, ScalableCapped, ScalableCappedConfig, ScalableConfig};
use crate::westwood::{Westwood, WestwoodConfig};
use crate::{Adaptive, Controller, Line, LineConfig, Memory};
use core::str::FromStr;
use serde::{Deserialize, Serialize};
use skyhaul_units::Rate;

/// A controller and its parameters, as a configuration or a scenario states them: `{ kind = "cubic"
/// }`, `{ kind = "line", rate = "93 Mbit/s" }`. Its [`FromStr`] form is the name alone, every
/// parameter at its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ControllerConfig {
    /// The line's rate is declared.
    Line(LineConfig),
    /// Nothing is declared: the rate is found, and shared.
    Adaptive,
    /// For comparison: RFC 5681.
    Reno(RenoConfig),
    /// For comparison: RFC 9438.
    Cubic(CubicConfig),
    /// For comparison: Scalable TCP.
    Scalable(ScalableConfig),
    /// For comparison: Scalable TCP driven to a fixed window.
    ScalableCapped(ScalableCappedConfig),
    /// For comparison: RFC 3649.
    #[serde(rename = "highspeed")]
    HighSpeed(HighSpeedConfig),
    /// For comparison: TCP Hybla.
    Hybla(HyblaConfig),
    /// For comparison: TCP-Illinois.
    Illinois(IllinoisConfig),
    /// For comparison: TCP Westwood+.
    Westwood(WestwoodConfig),
    /// For comparison: BBR version 1.
    Bbr(BbrConfig),
    /// For comparison: BBR version 3.
    Bbr3(Bbr3Config),
}

impl ControllerConfig {
    /// Every controller's name.
    pub const NAMES: [&str; 12] = [
        "line",
        "adaptive",
        "reno",
        "cubic",
        "scalable",
        "scalable-capped",
        "highspeed",
        "hybla",
        "illinois",
        "westwood",
        "bbr",
        "bbr3",
    ];

    /// A line of declared rate.
    pub const fn declared(rate: Rate) -> Self {
        Self::Line(LineConfig::declared(rate))
    }

    /// The rate that is declared, where one is.
    pub const fn declared_rate(&self) -> Option<Rate> {
        match self {
            Self::Line(line) => Some(line.rate),
            _ => None,
        }
    }

    /// The controller's name, one of [`NAMES`](Self::NAMES).
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Line(_) => "line",
            Self::Adaptive => "adaptive",
            Self::Reno(_) => "reno",
            Self::Cubic(_) => "cubic",
            Self::Scalable(_) => "scalable",
            Self::ScalableCapped(_) => "scalable-capped",
            Self::HighSpeed(_) => "highspeed",
            Self::Hybla(_) => "hybla",
            Self::Illinois(_) => "illinois",
            Self::Westwood(_) => "westwood",
            Self::Bbr(_) => "bbr",
            Self::Bbr3(_) => "bbr3",
        }
    }

    /// A new controller; `memory` is what is remembered of an earlier use of the path.
    pub fn build(&self, memory: Option<Memory>) -> Box<dyn Controller> {
        match *self {
            Self::Line(line) => Box::new(Line::new(line)),
            Self::Adaptive => Box::new(Adaptive::new(memory)),
            Self::Reno(config) => Box::new(Reno::controller(config)),
            Self::Cubic(config) => Box::new(Cubic::controller(config)),
            Self::Scalable(config) => Box::new(Scalable::controller(config)),
            Self::ScalableCapped(config) => Box::new(ScalableCapped::controller(config)),
            Self::HighSpeed(config) => Box::new(HighSpeed::controller(config)),
            Self::Hybla(config) => Box::new(Hybla::controller(config)),
            Self::Illinois(config) => Box::new(Illinois::controller(config)),
            Self::Westwood(config) => Box::new(Westwood::controller(config)),
            Self::Bbr(config) => Box::new(Bbr::new(config)),
            Self::Bbr3(config) => Box::new(Bbr3::new(config)),
        }
    }
}

impl core::fmt::Display for ControllerConfig {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ControllerConfig {
    type Err = ControllerNameError;

    fn from_str(name: &str) -> Result<Self, ControllerNameError> {
        Ok(match name {
            "line" => return Err(ControllerNameError::NeedsRate),
            "adaptive" => Self::Adaptive,
            "reno" => Self::Reno(RenoConfig::default()),
            "cubic" => Self::Cubic(CubicConfig::default()),
            "scalable" => Self::Scalable(ScalableConfig::default()),
            "scalable-capped" => Self::ScalableCapped(ScalableCappedConfig::default()),
            "highspeed" => Self::HighSpeed(HighSpeedConfig::default()),
            "hybla" => Self::Hybla(HyblaConfig::default()),
            "illinois" => Self::Illinois(IllinoisConfig::default()),
            "westwood" => Self::Westwood(WestwoodConfig::default()),
            "bbr" => Self::Bbr(BbrConfig::default()),
            "bbr3" => Self::Bbr3(Bbr3Config::default()),
            _ => return Err(ControllerNameError::Unknown(name.chars().take(40).collect())),
        })
    }
}

/// Why a name alone makes no controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControllerNameError {
    /// There is no controller of this name.
    Unknown(String),
    /// `line` is nothing without its rate.
    NeedsRate,
}

impl core::fmt::Display for ControllerNameError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Unknown(name) => {
                write!(f, "no congestion controller is called {name:?}: use one of ")?;
                f.write_str(&ControllerConfig::NAMES.join(", "))
            }
            Self::NeedsRate => f.write_str(
                "the controller \"line\" needs the line's rate: declare it, or use \"adaptive\"",
            ),
        }
    }
}

impl core::error::Error for ControllerNameError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ack, LossEvent, RateSample};
    use proptest::prelude::*;
    use skyhaul_units::{ByteCount, Duration, Instant};

    #[test]
    fn every_name_makes_the_controller_that_bears_it() {
        for name in ControllerConfig::NAMES {
            match name.parse::<ControllerConfig>() {
                Ok(config) => {
                    assert_eq!(config.to_string(), name);
                    assert!(config.build(None).window().as_u64() > 0, "{name}");
                }
                Err(error) => assert_eq!((name, error), ("line", ControllerNameError::NeedsRate)),
            }
        }
        assert_eq!(ControllerConfig::declared(Rate::from_mbps(1)).name(), "line");
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_list() {
        let error = "cubik".parse::<ControllerConfig>().unwrap_err().to_string();
        assert!(
            error.contains("\"cubik\"") && error.contains("cubic, scalable, scalable-capped"),
            "{error}"
        );
    }

    #[test]
    fn the_text_form_names_the_kind_and_refuses_unknown_parameters() {
        #[derive(Debug, Serialize, Deserialize, PartialEq)]
        struct Table {
            controller: ControllerConfig,
        }
        for name in ControllerConfig::NAMES {
            let rate = if name == "line" { ", rate = \"93 Mbit/s\"" } else { "" };
            let text = format!("controller = {{ kind = \"{name}\"{rate} }}");
            let table: Table = toml::from_str(&text).unwrap();
            assert_eq!(table.controller.name(), name);
            assert_eq!(toml::from_str::<Table>(&toml::to_string(&table).unwrap()).unwrap(), table);
        }
        let capped: Table =
            toml::from_str("controller = { kind = \"scalable-capped\", bound = \"2 MiB\" }")
                .unwrap();
        let expected = ScalableCappedConfig { bound: ByteCount::mib(2), ..Default::default() };
        assert_eq!(capped.controller, ControllerConfig::ScalableCapped(expected));
        let error =
            toml::from_str::<Table>("controller = { kind = \"cubic\", beta = 1 }").unwrap_err();
        assert!(error.to_string().contains("unknown field `beta`"), "{error}");
    }

    /// Any number, the ends of the range and the likely ones more often.
    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![Just(0), Just(1), Just(1_500), Just(u64::MAX), 0u64..100_000_000, any::<u64>()]
    }

    prop_compose! {
        fn any_ack()(
            (bytes, rtt, smoothed, in_flight) in (number(), prop::option::of(number()), number(),
                number()),
            (delivered, interval, total, prior) in (number(), number(), number(), number()),
            (flight, lost, sent) in (number(), number(), number()),
            (prompt, is_app_limited) in (any::<bool>(), any::<bool>()),
        ) -> Ack {
            Ack {
                bytes: ByteCount::new(bytes),
                packets: 1,
                sent: Instant::from_nanos(sent),
                rtt: rtt.map(Duration::from_nanos),
                smoothed: Duration::from_nanos(smoothed),
                prompt,
                in_flight: ByteCount::new(in_flight),
                sample: RateSample {
                    delivered: ByteCount::new(delivered),
                    interval: Duration::from_nanos(interval),
                    total: ByteCount::new(total),
                    prior: ByteCount::new(prior),
                    in_flight_when_sent: ByteCount::new(flight),
                    lost: ByteCount::new(lost),
                    is_app_limited,
                },
                ..Ack::default()
            }
        }
    }

    prop_compose! {
        fn any_loss()(
            (bytes, sent, flight, lost) in (number(), number(), number(), number()),
            (in_flight, continues) in (number(), any::<bool>()),
        ) -> LossEvent {
            LossEvent {
                bytes: ByteCount::new(bytes),
                sent: Instant::from_nanos(sent),
                in_flight_when_sent: ByteCount::new(flight),
                continues,
                lost_since_sent: ByteCount::new(lost),
                in_flight: ByteCount::new(in_flight),
                ..LossEvent::default()
            }
        }
    }

    proptest! {
        #[test]
        fn whatever_is_reported_a_comparison_controller_lets_something_under_way(
            steps in prop::collection::vec((number(), any_ack(), prop::option::of(any_loss())),
                1..40),
        ) {
            for name in &ControllerConfig::NAMES[2..] {
                let mut controller = name.parse::<ControllerConfig>().unwrap().build(None);
                let mut now = Instant::ZERO;
                for (gap, ack, loss) in &steps {
                    now += Duration::from_nanos(gap % 1_000_000_000);
                    controller.on_sent(now, ByteCount::new(1_500), ack.in_flight);
                    controller.on_ack(now, ack);
                    if let Some(loss) = loss {
                        controller.on_loss(now, loss);
                    }
                    let _ = (controller.pacing_rate(), controller.status(),
                        controller.next_timeout());
                    prop_assert!(controller.window() >= ByteCount::new(1_500), "{name}: \
                                                                               {controller:?}");
                }
            }
        }
    }
}
