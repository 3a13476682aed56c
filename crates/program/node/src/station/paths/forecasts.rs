//! Outages and rates that an operator or the configuration forecasts for a path.

use crate::status::PathHint;
use skyhaul_config::LinePath as PathConfig;
use skyhaul_net::Clock;
use skyhaul_transport::{Hint, PathId, Session};
use skyhaul_units::{Instant, Rate, Utc};

/// The forecasts for one path.
#[derive(Debug)]
pub struct PathForecasts(Vec<PathForecast>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathForecast {
    Outage { from: Utc, until: Utc },
    Rate { from: Utc, rate: Rate },
}

/// Why a forecast is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForecastRefused {
    /// The reason.
    pub reason: String,
    /// What the operator can do.
    pub help: &'static str,
}

/// Forecasts of one path: as many as a session takes.
const FORECASTS_MAX: usize = 64;

impl PathForecasts {
    /// The outages of a configuration.
    pub fn of(config: &PathConfig) -> Self {
        let outages = config.outages().iter();
        let forecast = outages.map(|outage| PathForecast::Outage {
            from: outage.from.utc(),
            until: outage.until.utc(),
        });
        Self(forecast.collect())
    }

    /// Adds a forecast of the path `name`, or withdraws all. Returns a sentence for the operator.
    ///
    /// # Errors
    /// There are too many, or an outage ends before it begins.
    pub fn apply(
        &mut self,
        name: &str,
        hint: PathHint,
        now: Utc,
    ) -> Result<String, ForecastRefused> {
        self.0.retain(|forecast| !forecast.is_over(now));
        match hint {
            PathHint::Withdraw => {
                self.0.clear();
                Ok(format!("path {name} has no forecasts"))
            }
            _ if self.0.len() >= FORECASTS_MAX => Err(ForecastRefused {
                reason: format!("it already has {FORECASTS_MAX} forecasts"),
                help: "withdraw them, then give the next ones",
            }),
            PathHint::Outage { from, until } if from >= until => Err(ForecastRefused {
                reason: "the outage would end before it begins".to_owned(),
                help: "give --until a time after --from",
            }),
            PathHint::Outage { from, until } => {
                self.0.push(PathForecast::Outage { from: from.utc(), until: until.utc() });
                Ok(format!("path {name} is expected to be out from {from} until {until}"))
            }
            PathHint::Rate { from, rate } => {
                let from = from.map_or(now, |from| from.utc());
                self.0.push(PathForecast::Rate { from, rate });
                Ok(format!("path {name} is expected to carry {rate}"))
            }
        }
    }

    /// When the outage ends that the path is in at `now`; none where it is in none.
    pub fn out_until(&self, now: Utc) -> Option<Utc> {
        let ends = self.0.iter().filter_map(|forecast| match *forecast {
            PathForecast::Outage { from, until } if from <= now && now < until => Some(until),
            PathForecast::Outage { .. } | PathForecast::Rate { .. } => None,
        });
        ends.max()
    }

    /// Replaces the forecasts that the session has for this path.
    pub fn send_to(&self, session: &mut Session, path: PathId, clock: Clock) {
        session.hint(path, Hint::Withdraw);
        for forecast in &self.0 {
            session.hint(path, forecast.hint(clock));
        }
    }

    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl PathForecast {
    fn hint(self, clock: Clock) -> Hint {
        let at = |utc: Utc| Instant::ZERO + utc.since(clock.utc_at_start());
        match self {
            Self::Outage { from, until } => Hint::Outage { from: at(from), until: at(until) },
            Self::Rate { from, rate } => Hint::Rate { from: at(from), rate },
        }
    }

    /// Whether it has no more effect on what follows it.
    fn is_over(&self, now: Utc) -> bool {
        match self {
            Self::Outage { until, .. } => now >= *until,
            Self::Rate { from, .. } => now >= *from,
        }
    }
}
