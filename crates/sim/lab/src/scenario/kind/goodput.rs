//! `goodput`: the production session manager over QUIC, one flow of blocks as fast as it may,
//! beside bare packets on the same line.

mod transfer;

use super::flow;
use super::line::{Ends, Line};
use super::medium::{OFF_PLAIN, off};
use super::{Broken, CellParameters, Experiment, Kind, ParametersRefused};
use crate::scenario::metric::{GOODPUT, LIMIT, Measured, Metric, PointSeries, RATIO, Unit};
use skyhaul_units::{ByteCount, Duration, Instant, Rate};
use transfer::Transfer;

/// The kind.
pub(super) struct Goodput;

impl Kind for Goodput {
    fn name(&self) -> &'static str {
        "goodput"
    }

    fn about(&self) -> &'static str {
        "blocks in order over the production engine and QUIC, and how far bare packets on the same \
        line agree"
    }

    fn metrics(&self) -> &'static [&'static Metric] {
        METRICS
    }

    fn cell(
        &self,
        parameters: CellParameters<'_>,
    ) -> Result<Box<dyn Experiment>, ParametersRefused> {
        let line: Line = parameters.read()?;
        let Some(controller) = line.controller else {
            return Err(ParametersRefused::new("nobody sends; give `controller`"));
        };
        let is_plain_only = line.offered.is_some()
            || line.remembered.is_some()
            || line.acknowledging == Ends::Kernel;
        if is_plain_only {
            let what = "`offered`, `remembered` and `acknowledging` are for bare packets";
            return Err(ParametersRefused::new(format!(
                "{what}; use the kind `flow`, or leave them out"
            )));
        }
        Ok(Box::new(Cell {
            controller: controller.config(line.rate),
            plain: flow::Cell::new(line.clone())?,
            line,
        }))
    }
}

struct Cell {
    line: Line,
    controller: skyhaul_congestion::ControllerConfig,
    plain: flow::Cell,
}

impl Experiment for Cell {
    fn virtual_time(&self) -> Duration {
        self.line.duration * 2
    }

    fn cost(&self) -> Duration {
        PER_PACKET * self.line.packets() + self.plain.cost()
    }

    fn run(&self, seed: u64) -> Result<Measured, Broken> {
        let mut transfer = Transfer::new(&self.line, self.controller, seed)?;
        let (goodput, course) = self.pace(&mut transfer)?;
        let limit = self.plain.limit();
        let plain = self.plain.goodput(seed);
        let over = |rate: Rate, of: Rate| rate.as_bps() as f64 / of.as_bps() as f64;
        let mut measured = Measured::default();
        measured.add_rate(&GOODPUT, goodput);
        measured.add_rate(&LIMIT, limit);
        measured.add(&RATIO, over(goodput, limit));
        measured.add(&PLAIN_RATIO, over(plain, limit));
        measured.add(&OFF_PLAIN, off(goodput.as_bps() as f64, plain.as_bps() as f64));
        measured.add(&BLOCKS, transfer.blocks()? as f64);
        measured.series.push(course);
        Ok(measured)
    }
}

impl Cell {
    /// The pace of blocks given out in order, between the mean positions in the two halves of the
    /// watch: by how much the order happens to lag at one instant, several round trips at heavy
    /// loss, does not count.
    fn pace(&self, transfer: &mut Transfer) -> Result<(Rate, PointSeries), Broken> {
        let from = self.line.warm_up();
        let half = self.line.duration.saturating_sub(from) / 2;
        let samples = (half.as_nanos() / SAMPLE.as_nanos()).max(1);
        let (mut points, mut before) = (Vec::new(), ByteCount::ZERO);
        let mut mean = |start: Duration| {
            let mut sum = 0;
            for sample in 1..=samples {
                let at = start + SAMPLE * sample;
                let position = transfer.run_until(Instant::ZERO + at)?;
                let arrived = Rate::over(position - before, SAMPLE).as_bps();
                points.extend(
                    (before > ByteCount::ZERO).then_some((at.as_secs_f64(), arrived as f64)),
                );
                before = position;
                sum += u128::from(position.as_u64());
            }
            Ok::<_, Broken>(sum / u128::from(samples))
        };
        let (first, second) = (mean(from)?, mean(from + half)?);
        let bytes = u64::try_from(second.saturating_sub(first)).unwrap_or(u64::MAX);
        let course = PointSeries {
            name: "rate".to_owned(),
            part: String::new(),
            x: Unit::Seconds,
            y: Unit::BitRate,
            points,
        };
        Ok((Rate::over(ByteCount::new(bytes), half), course))
    }
}

const PLAIN_RATIO: Metric = Metric {
    key: "plain_ratio",
    heading: "plain ratio",
    unit: Unit::Share,
    meaning: "the ratio that bare packets reach on the same line with the same controller and seed",
};
const BLOCKS: Metric = Metric {
    key: "blocks.delivered",
    heading: "blocks",
    unit: Unit::Count,
    meaning: "blocks given out in order",
};

const METRICS: &[&Metric] = &[&GOODPUT, &LIMIT, &RATIO, &PLAIN_RATIO, &OFF_PLAIN, &BLOCKS];

/// How often the position is looked at.
const SAMPLE: Duration = Duration::from_millis(50);

/// What a packet costs a processor core with all that QUIC does, measured.
const PER_PACKET: Duration = Duration::from_nanos(7_000);
