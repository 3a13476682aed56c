//! Outages, rates and losses that an operator, the configuration, a program, a feed or a contact
//! plan forecasts for a path.
//!
//! An outage holds whoever says so. For the rate, and for the loss, the operator's hint counts
//! while it is in force, then the newest of a program, then the feed's, then that of the plan.

use crate::station::outside::board::PathKnowledge;
use crate::status::{HintOrigin, HintSays, HintStatus, PathHint, PathOutlook, seconds};
use skyhaul_config::LinePath as PathConfig;
use skyhaul_hints::{PlanWindow, check_loss, check_rate};
use skyhaul_net::Clock;
use skyhaul_transport::{Hint, PathId, Session};
use skyhaul_units::{Duration, Instant, Probability, Rate, Utc};
use std::collections::VecDeque;
use std::sync::Arc;

/// Who gives a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HintGiver {
    /// The operator, by a command.
    Operator,
    /// A program of the block service, by its name for people.
    Program(Arc<str>),
}

/// A hint, and who gives it.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenHint {
    /// Who.
    pub by: HintGiver,
    /// What it says.
    pub says: PathHint,
}

impl GivenHint {
    /// Checks that what it says is in the range of what a path may have.
    ///
    /// # Errors
    /// A sentence: it is not.
    pub fn check(&self) -> Result<(), String> {
        match self.says {
            PathHint::Rate { rate, .. } => check_rate(rate),
            PathHint::Loss { loss, .. } => check_loss(loss),
            PathHint::Outage { .. } | PathHint::Withdraw => Ok(()),
        }
    }
}

/// The forecasts for one path.
#[derive(Debug, Default)]
pub struct PathForecasts {
    /// What the configuration and the operator give.
    given: Vec<PathForecast>,
    /// What programs of the block service give, the oldest first: of each program a rate and a loss
    /// at most.
    programs: VecDeque<(Arc<str>, PathForecast)>,
    /// What the feed and the plan of the path say.
    knowledge: PathKnowledge,
    /// All of it, as far as it counts.
    effective: Vec<Effective>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathForecast {
    Outage { from: Utc, until: Utc },
    Rate { from: Utc, until: Option<Utc>, rate: Rate },
    Loss { from: Utc, until: Utc, loss: Probability },
}

/// A forecast that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Effective {
    by: HintOrigin,
    /// The program that says so, where one does.
    program: Option<Arc<str>>,
    forecast: PathForecast,
}

/// Why a forecast is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForecastRefused {
    /// The reason.
    pub reason: String,
    /// What the operator can do.
    pub help: &'static str,
}

impl ForecastRefused {
    fn new(reason: impl Into<String>, help: &'static str) -> Self {
        Self { reason: reason.into(), help }
    }

    /// From a sentence of the form `WHAT; HELP`.
    fn out_of_range(sentence: &str) -> Self {
        let reason = sentence.split_once("; ").map_or(sentence, |(reason, _)| reason);
        Self::new(reason, "see `skyhaul path hint --help` for what can be given")
    }
}

/// Forecasts of one path: as many as a session takes.
const FORECASTS_MAX: usize = 64;
/// Hints of programs, beside those: the oldest gives way, so that a program that dies and comes
/// back under other names shuts nobody out.
const FROM_PROGRAMS_MAX: usize = 16;
/// A rate without an end holds for eight round trips, and one second at least: this is longer on
/// any line.
const BELIEVED: Duration = Duration::from_secs(20);

impl PathForecasts {
    /// The outages of a configuration.
    pub fn of(config: &PathConfig) -> Self {
        let outages = config.outages().iter();
        let forecast = outages.map(|outage| PathForecast::Outage {
            from: outage.from.utc(),
            until: outage.until.utc(),
        });
        let mut forecasts = Self { given: forecast.collect(), ..Self::default() };
        forecasts.effective = forecasts.all(Utc::from_nanos(0));
        forecasts
    }

    /// Adds a forecast of the path `name`, or withdraws what a program has said of it, or all if
    /// the operator says so. Returns a sentence for people.
    ///
    /// # Errors
    /// There are too many, one ends before it begins or is over, or it is out of range.
    pub fn apply(
        &mut self,
        name: &str,
        hint: &GivenHint,
        now: Utc,
    ) -> Result<String, ForecastRefused> {
        self.given.retain(|forecast| !forecast.is_over(now));
        self.programs.retain(|(_, forecast)| !forecast.is_over(now));
        let said = match &hint.by {
            HintGiver::Operator => self.take(name, hint.says, now),
            HintGiver::Program(program) => self.take_of(program, name, hint.says, now),
        };
        self.effective = self.all(now);
        said
    }

    fn take(&mut self, name: &str, hint: PathHint, now: Utc) -> Result<String, ForecastRefused> {
        let Some((forecast, said)) = PathForecast::read(name, hint, now)? else {
            // The operator has the last word: what programs said goes too.
            self.given.clear();
            self.programs.clear();
            return Ok(format!("path {name} has no forecasts"));
        };
        if self.given.len() >= FORECASTS_MAX {
            let what = format!("it already has {FORECASTS_MAX} forecasts");
            return Err(ForecastRefused::new(what, "withdraw them, then give the next ones"));
        }
        self.given.push(forecast);
        Ok(said)
    }

    /// Takes what a program says, in place of what it said before of the same.
    fn take_of(
        &mut self,
        program: &Arc<str>,
        name: &str,
        hint: PathHint,
        now: Utc,
    ) -> Result<String, ForecastRefused> {
        let read = PathForecast::read(name, hint, now)?;
        self.programs.retain(|(by, before)| {
            let is_other = |(new, _): &(PathForecast, String)| new.name() != before.name();
            by != program || read.as_ref().is_some_and(is_other)
        });
        let Some((forecast, said)) = read else {
            return Ok(format!("program {program} withdraws its hints for path {name}"));
        };
        if self.programs.len() == FROM_PROGRAMS_MAX {
            self.programs.pop_front();
        }
        self.programs.push_back((Arc::clone(program), forecast));
        Ok(format!("program {program}: {said}"))
    }

    /// Takes what the feed and the plan say now. Returns whether other forecasts count than before.
    pub fn learn(&mut self, knowledge: PathKnowledge, now: Utc) -> bool {
        self.knowledge = knowledge;
        let effective = self.all(now);
        let differs = effective != self.effective;
        self.effective = effective;
        differs
    }

    /// All that counts at `now`, and afterwards.
    fn all(&self, now: Utc) -> Vec<Effective> {
        let given = self.given.iter().filter(|forecast| !forecast.is_over(now));
        let by = |by| move |forecast| Effective { by, program: None, forecast };
        let mut all: Vec<Effective> = given.copied().map(by(HintOrigin::Operator)).collect();
        let said = Says::of(&all, now);
        let counts = |(_, forecast): &&(Arc<str>, PathForecast)| {
            !forecast.is_over(now) && !said.has(*forecast)
        };
        all.extend(self.programs.iter().filter(counts).map(|(program, forecast)| Effective {
            by: HintOrigin::Program,
            program: Some(Arc::clone(program)),
            forecast: *forecast,
        }));
        let mut says = Says::of(&all, now);
        if let Some(feed) = self.knowledge.feed.as_ref().and_then(|feed| feed.hint)
            && now < feed.until
        {
            let (from, until) = (feed.since, feed.until);
            let rate = feed.values.rate.filter(|_| !says.rate).map(|rate| match rate {
                Rate::ZERO => PathForecast::Outage { from, until },
                rate => PathForecast::Rate { from, until: Some(until), rate },
            });
            let loss = feed.values.loss.filter(|_| !says.loss);
            let loss = loss.map(|loss| PathForecast::Loss { from, until, loss });
            says.rate |= rate.is_some();
            says.loss |= loss.is_some();
            all.extend(rate.into_iter().chain(loss).map(by(HintOrigin::Feed)));
        }
        let Some(plan) = &self.knowledge.plan else { return all };
        let mut gone = plan.gone_since;
        for PlanWindow { start, end, rate, loss } in plan.ahead.iter().copied() {
            if gone < start {
                all.push(by(HintOrigin::Plan)(PathForecast::Outage { from: gone, until: start }));
            }
            gone = end;
            let is_now = start <= now;
            let rate = PathForecast::Rate { from: start, until: Some(end), rate };
            let rate = Some(rate).filter(|_| !(is_now && says.rate));
            let loss = loss.filter(|_| !(is_now && says.loss));
            let loss = loss.map(|loss| PathForecast::Loss { from: start, until: end, loss });
            all.extend(rate.into_iter().chain(loss).map(by(HintOrigin::Plan)));
        }
        all
    }

    /// When the outage ends that the path is in at `now`; none where it is in none.
    pub fn out_until(&self, now: Utc) -> Option<Utc> {
        let ends = self.effective.iter().filter_map(|one| match one.forecast {
            PathForecast::Outage { from, until } if from <= now && now < until => Some(until),
            _ => None,
        });
        ends.max()
    }

    /// What the path carries at most at `now`; none where no forecast says. Of several, the one
    /// that begins last.
    pub fn ceiling(&self, now: Utc) -> Option<Rate> {
        let forecasts = self.effective.iter().map(|one| one.forecast);
        let in_force = forecasts.filter(|forecast| forecast.is_in_force(now));
        let ceilings = in_force.filter_map(|forecast| match forecast {
            PathForecast::Rate { from, until: Some(_), rate } => Some((from, rate)),
            _ => None,
        });
        ceilings.max_by_key(|(from, _)| *from).map(|(_, rate)| rate)
    }

    /// Replaces the forecasts that the session has for this path.
    pub fn send_to(&self, session: &mut Session, path: PathId, clock: Clock) {
        self.send_beside(None, session, path, clock);
    }

    /// The same, with further ones.
    pub fn send_beside(
        &self,
        further: Option<&Self>,
        session: &mut Session,
        path: PathId,
        clock: Clock,
    ) {
        let all = self.effective.iter().chain(further.iter().flat_map(|more| &more.effective));
        let hints = all.map(|one| one.forecast.hint(clock));
        // Those that do not fit are the farthest.
        let _ = session.hint(path, std::iter::once(Hint::Withdraw).chain(hints));
    }

    /// Whether there is nothing that counts, now or later.
    pub fn is_empty(&self) -> bool {
        self.effective.is_empty()
    }

    /// What is known of the path from outside, for status output.
    pub fn outlook(&self, now: Utc) -> PathOutlook {
        let in_force = self.effective.iter().filter(|one| one.forecast.is_in_force(now));
        PathOutlook {
            hints: in_force.map(Effective::shown).collect(),
            feed: self.knowledge.feed.as_ref().map(|feed| feed.status.clone()),
            plan: self.knowledge.plan.as_ref().map(|plan| plan.status.clone()),
        }
    }
}

/// What is said already of the present.
struct Says {
    rate: bool,
    loss: bool,
}

impl Says {
    const fn has(&self, forecast: PathForecast) -> bool {
        match forecast {
            PathForecast::Rate { .. } => self.rate,
            PathForecast::Loss { .. } => self.loss,
            PathForecast::Outage { .. } => false,
        }
    }

    fn of(all: &[Effective], now: Utc) -> Self {
        let mut in_force =
            all.iter().map(|one| one.forecast).filter(|forecast| forecast.is_in_force(now));
        let is_rate = |forecast| matches!(forecast, PathForecast::Rate { .. });
        let is_loss = |forecast| matches!(forecast, PathForecast::Loss { .. });
        Self { rate: in_force.clone().any(is_rate), loss: in_force.any(is_loss) }
    }
}

impl Effective {
    fn shown(&self) -> HintStatus {
        let says = match self.forecast {
            PathForecast::Outage { .. } => HintSays::Outage,
            PathForecast::Rate { rate, .. } => HintSays::Rate { rate_bps: rate.as_bps() },
            PathForecast::Loss { loss, .. } => HintSays::Loss { loss: loss.as_f64() },
        };
        let program = self.program.as_ref().map(ToString::to_string);
        HintStatus { says, by: self.by, program, until: self.forecast.until().map(seconds) }
    }
}

impl PathForecast {
    /// Reads a hint for the path `name`, with a sentence about it; none where it withdraws all.
    fn read(
        name: &str,
        hint: PathHint,
        now: Utc,
    ) -> Result<Option<(Self, String)>, ForecastRefused> {
        let (forecast, said) = match hint {
            PathHint::Withdraw => return Ok(None),
            PathHint::Outage { from, until } => (
                Self::Outage { from: from.utc(), until: until.utc() },
                format!("path {name} is expected to be out from {from} until {until}"),
            ),
            PathHint::Rate { from, until, rate } => {
                check_rate(rate).map_err(|refused| ForecastRefused::out_of_range(&refused))?;
                let from = from.map_or(now, |from| from.utc());
                let end = until.map(|until| format!(" until {until}")).unwrap_or_default();
                (
                    Self::Rate { from, until: until.map(|until| until.utc()), rate },
                    format!("path {name} is expected to carry {rate}{end}"),
                )
            }
            PathHint::Loss { from, until, loss } => {
                check_loss(loss).map_err(|refused| ForecastRefused::out_of_range(&refused))?;
                let from = from.map_or(now, |from| from.utc());
                (
                    Self::Loss { from, until: until.utc(), loss },
                    format!("path {name} is expected to lose {loss} until {until}"),
                )
            }
        };
        let Some(until) = forecast.until() else { return Ok(Some((forecast, said))) };
        if until <= forecast.from() {
            let what = format!("the {} would end before it begins", forecast.name());
            return Err(ForecastRefused::new(what, "give --until a time after --from"));
        }
        if until <= now {
            let what = format!("the {} is over", forecast.name());
            return Err(ForecastRefused::new(what, "give --until a time to come, in UTC"));
        }
        Ok(Some((forecast, said)))
    }

    fn hint(self, clock: Clock) -> Hint {
        let at = |utc: Utc| Instant::ZERO + utc.since(clock.utc_at_start());
        match self {
            Self::Outage { from, until } => Hint::Outage { from: at(from), until: at(until) },
            Self::Rate { from, until, rate } => {
                Hint::Rate { from: at(from), until: until.map(at), rate }
            }
            Self::Loss { from, until, loss } => {
                Hint::Loss { from: at(from), until: at(until), loss }
            }
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Outage { .. } => "outage",
            Self::Rate { .. } => "rate",
            Self::Loss { .. } => "loss",
        }
    }

    const fn from(self) -> Utc {
        match self {
            Self::Outage { from, .. } | Self::Rate { from, .. } | Self::Loss { from, .. } => from,
        }
    }

    const fn until(self) -> Option<Utc> {
        match self {
            Self::Outage { until, .. } | Self::Loss { until, .. } => Some(until),
            Self::Rate { until, .. } => until,
        }
    }

    fn is_in_force(self, now: Utc) -> bool {
        self.from() <= now && !self.is_over(now)
    }

    /// Whether it has no more effect on what follows it.
    fn is_over(self, now: Utc) -> bool {
        now >= self.until().unwrap_or(self.from() + BELIEVED)
    }
}

#[cfg(test)]
mod tests;
