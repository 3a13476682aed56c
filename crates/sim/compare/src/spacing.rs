//! Experiments with a `[spacing]`: the effect of a line on datagrams of one size at many spacings,
//! and its loss process. `skyhaul probe` measures both, with a program in each namespace.

mod draw;
mod judge;

use crate::bench::{Bench, Site};
use crate::gone::Gone;
use crate::notes::note;
use crate::quiet::Conditions;
use crate::sheet::Sheet;
use crate::study::{Bars, Study, refused};
use crate::tool_run::own_program;
use judge::{LossResult, SpacingResult};
use serde::Deserialize;
use serde_json::{Value, json};
use skyhaul_emulator::LabDescription;
use skyhaul_exit::{Exit, Failure};
use skyhaul_link::Loss;
use skyhaul_units::{ByteCount, Duration, Rate};

/// A file of this kind.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spacing {
    pub name: String,
    pub title: String,
    /// Where the measurement and its published shape come from.
    pub source: String,
    pub line: LabDescription,
    pub spacing: StreamPlan,
}

/// Which streams.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamPlan {
    /// UDP payload of every datagram.
    pub payload: ByteCount,
    /// From the beginning of one datagram to that of the next, the least first.
    pub spacings: Vec<Duration>,
    /// The number of datagrams of each stream.
    pub datagrams: u32,
    /// Losses whose process is looked at, each on a line of its own.
    #[serde(default, rename = "process")]
    pub processes: Vec<LossSeries>,
}

/// One long stream over the line with other losses.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LossSeries {
    pub label: String,
    /// Towards the receiver.
    pub loss: Loss,
    /// UDP payload sent.
    pub rate: Rate,
    pub duration: Duration,
}

impl Spacing {
    /// Parses `text`, which comes from `place`.
    pub fn parse(text: &str, place: &str) -> Result<Self, Failure> {
        let read: Self = toml::from_str(text).map_err(|error| refused(text, place, &error))?;
        read.contradiction().map_or(Ok(read), |what| {
            Err(Failure::new(Exit::Usage, what, "docs/how-to/compare.md shows every key")
                .at(&format!("{place}:1")))
        })
    }

    fn contradiction(&self) -> Option<&'static str> {
        let plan = &self.spacing;
        let [link] = &self.line.links[..] else { return Some("it needs one link") };
        if link.up.rate.is_none() {
            return Some("its link needs a rate, which is the narrowest place");
        }
        if !(40..=8_972).contains(&plan.payload.as_u64()) {
            return Some("a payload is 40 to 8972 bytes");
        }
        if plan.spacings.is_empty() || plan.spacings.contains(&Duration::ZERO) {
            return Some("it needs spacings of more than nothing");
        }
        if !(100..=1_000_000).contains(&plan.datagrams) {
            return Some("a stream has 100 to 1000000 datagrams");
        }
        if plan
            .processes
            .iter()
            .any(|process| process.duration < SECOND || process.rate == Rate::ZERO)
        {
            return Some("a process needs a rate, and a second at least");
        }
        None
    }

    /// The time that a datagram takes on the line, IP and UDP headers included.
    pub fn wire_time(&self) -> Duration {
        let rate = self.line.links.first().and_then(|link| link.up.rate).unwrap_or(Rate::ZERO);
        rate.time_for(self.spacing.payload + HEADERS)
    }

    /// The rate of its link.
    pub fn needs(&self) -> Rate {
        self.line
            .links
            .iter()
            .filter_map(|link| link.up.rate.max(link.down.rate))
            .max()
            .unwrap_or(Rate::ZERO)
    }

    /// About how long it takes.
    pub fn estimate(&self) -> Duration {
        let streams =
            self.spacing.spacings.iter().map(|spacing| {
                spacing.scaled(u64::from(self.spacing.datagrams), 1) + AROUND_STREAM
            });
        let processes =
            self.spacing.processes.iter().map(|process| process.duration + AROUND_PROCESS);
        streams.chain(processes).fold(AROUND_PROCESS, |sum, span| sum + span)
    }
}

/// The measurement of one such experiment.
pub struct SpacingSweep<'a> {
    pub experiment: &'a Spacing,
    pub points: Vec<SpacingResult>,
    /// With the place of each in the plan.
    pub processes: Vec<(usize, LossResult)>,
    failures: Vec<String>,
    /// Notes beside it.
    notes: Vec<String>,
    conditions: Conditions,
}

impl<'a> SpacingSweep<'a> {
    pub fn new(experiment: &'a Spacing, notes: Vec<String>) -> Self {
        let (points, processes, failures) = (Vec::new(), Vec::new(), Vec::new());
        Self { experiment, points, processes, failures, notes, conditions: Conditions::default() }
    }

    /// Streams of all spacings, over the unchanged line.
    fn sweep(&mut self, site: &Site<'_>) -> Result<(), Gone> {
        let plan = &self.experiment.spacing;
        let spacings: Vec<String> =
            plan.spacings.iter().map(|spacing| format!("{} ns", spacing.as_nanos())).collect();
        let words = [
            "sweep".to_owned(),
            "--payload".to_owned(),
            plan.payload.as_u64().to_string(),
            "--spacing".to_owned(),
            spacings.join(","),
            "--count".to_owned(),
            plan.datagrams.to_string(),
        ];
        let found = self.probed(site, &self.experiment.line, &words, self.experiment.estimate())?;
        self.points = SpacingResult::all(&found).ok_or_else(|| unreadable("sweep"))?;
        if self.points.len() < plan.spacings.len() {
            let missing = plan.spacings.len() - self.points.len();
            self.failures
                .push(format!("{missing} spacings are shorter than this machine can send"));
        }
        Ok(())
    }

    /// One long stream over the line with other losses.
    fn process(&mut self, site: &Site<'_>, at: usize) -> Result<(), Gone> {
        let (plan, mut line) = (&self.experiment.spacing, self.experiment.line.clone());
        let wanted = &plan.processes[at];
        for link in &mut line.links {
            (link.up.loss, link.up.reordering) = (wanted.loss, None);
        }
        let words = [
            "loss".to_owned(),
            "--payload".to_owned(),
            plan.payload.as_u64().to_string(),
            "--rate".to_owned(),
            format!("{} bit/s", wanted.rate.as_bps()),
            "--seconds".to_owned(),
            (wanted.duration.as_nanos() / SECOND.as_nanos()).to_string(),
        ];
        let found = self.probed(site, &line, &words, wanted.duration + AROUND_PROCESS)?;
        self.processes.push((at, LossResult::of(&found).ok_or_else(|| unreadable("loss"))?));
        Ok(())
    }

    /// What `skyhaul probe` finds while others leave the machine alone.
    fn probed(
        &mut self,
        site: &Site<'_>,
        line: &LabDescription,
        words: &[String],
        takes: Duration,
    ) -> Result<Value, Gone> {
        let what = format!("{}: {}", self.experiment.name, words[0]);
        site.watch.run(site.stop, &what, &mut self.conditions, || probe(site, line, words, takes))
    }

    /// Keeps a failure that is not an interruption, and goes on with the next measurement.
    fn keep(&mut self, what: &str, outcome: Result<(), Gone>) -> Result<(), Failure> {
        match outcome {
            Ok(()) => Ok(()),
            Err(Gone::Failed(why)) => {
                self.failures.push(format!("{what}: {why}"));
                Ok(())
            }
            Err(Gone::Interrupted) => Err(Gone::Interrupted.into_failure()),
        }
    }

    fn sheet(&self) -> Sheet {
        let experiment = self.experiment;
        let mut remarks: Vec<String> =
            self.failures.iter().map(|why| format!("failed: {why}")).collect();
        remarks.extend(self.notes.iter().map(|note| format!("note: {note}")));
        remarks.push(format!("machine: {}", self.conditions.words()));
        remarks.push(format!("versions: skyhaul {}", env!("CARGO_PKG_VERSION")));
        Sheet {
            name: experiment.name.clone(),
            title: experiment.title.clone(),
            source: experiment.source.clone(),
            tables: judge::tables(self),
            verdicts: judge::verdicts(self),
            remarks,
            drawings: draw::drawings(self),
        }
    }
}

impl Study for SpacingSweep<'_> {
    fn name(&self) -> &str {
        &self.experiment.name
    }

    fn estimate(&self) -> Duration {
        self.experiment.estimate()
    }

    fn measure(&mut self, site: &Site<'_>) -> Result<(), Failure> {
        let name = &self.experiment.name;
        let plan = &self.experiment.spacing;
        note(&format!("{name}: {} spacings of {} …", plan.spacings.len(), plan.payload));
        let outcome = self.sweep(site);
        self.keep("spacings", outcome)?;
        for (at, process) in plan.processes.iter().enumerate() {
            note(&format!("{name}: losses, {}, {} …", process.label, process.duration));
            let outcome = self.process(site, at);
            self.keep(&process.label, outcome)?;
        }
        Ok(())
    }

    fn text(&self) -> String {
        self.sheet().text()
    }

    fn json(&self) -> Value {
        let experiment = self.experiment;
        let processes = self.processes.iter().map(|(at, process)| {
            let label = &experiment.spacing.processes[*at].label;
            json!({ "process": label, "found": process })
        });
        let bars = judge::verdicts(self).into_iter();
        let bars = bars.map(|bar| json!({ "bar": bar.words, "reached": bar.is_reached }));
        json!({
            "name": experiment.name, "title": experiment.title, "source": experiment.source,
            "machine": self.conditions.words(),
            "conditions": self.conditions.json(),
            "payload_bytes": experiment.spacing.payload.as_u64(),
            "wire_time_us": experiment.wire_time().as_secs_f64() * 1e6,
            "points": self.points, "processes": processes.collect::<Vec<_>>(),
            "failures": self.failures, "notes": self.notes, "bars": bars.collect::<Vec<_>>(),
        })
    }

    fn markdown(&self, folder: &str) -> String {
        self.sheet().markdown(folder)
    }

    fn html(&self) -> String {
        self.sheet().html()
    }

    fn drawings(&self) -> Vec<(String, String)> {
        draw::drawings(self).into_iter().map(|drawing| (drawing.name, drawing.svg)).collect()
    }

    fn conditions(&self) -> &Conditions {
        &self.conditions
    }

    fn bars(&self) -> Bars {
        let verdicts = judge::verdicts(self);
        // A figure that could not be measured counts as a missed bar.
        let missed =
            verdicts.iter().filter(|verdict| !verdict.is_reached).count() + self.failures.len();
        Bars { judged: verdicts.len() + self.failures.len(), missed }
    }
}

/// Runs `skyhaul probe` from the near place to one that serves at the far place, over a line of its
/// own. Gives what it found.
fn probe(
    site: &Site<'_>,
    line: &LabDescription,
    words: &[String],
    takes: Duration,
) -> Result<Value, Gone> {
    let bench = Bench::over(site, line.clone(), takes)?;
    let program = own_program();
    let at = format!("{}:{PORT}", bench.far(0));
    let serve = [&program, "probe", "serve", "--bind", &at].map(str::to_owned);
    let mut serving = bench.serve(&serve, "udp", PORT)?;
    let mut command = vec![program, "probe".to_owned()];
    command.extend_from_slice(words);
    command.extend([at, "--json".to_owned()]);
    let said = bench.send(&command, &mut serving)?;
    serde_json::from_str(&said).map_err(|_| unreadable(&words[0]))
}

fn unreadable(what: &str) -> Gone {
    Gone::Failed(format!("what `skyhaul probe {what}` found cannot be read"))
}

/// IP and UDP headers of a datagram.
const HEADERS: ByteCount = ByteCount::new(28);

/// Where the far end of the probe listens.
const PORT: u16 = 4720;

const SECOND: Duration = Duration::from_secs(1);

/// The time of a stream beside its datagrams: the requests to the far end before and after it.
const AROUND_STREAM: Duration = Duration::from_millis(400);

/// Of a program beside its streams: start, clocks, what the machine can.
const AROUND_PROCESS: Duration = Duration::from_secs(4);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::text_of;

    #[test]
    fn the_built_in_experiments_can_be_read_and_are_short() {
        let experiment = Spacing::parse(&text_of("evlbi").unwrap(), "evlbi").unwrap();
        assert!(experiment.estimate() < Duration::from_secs(240), "{}", experiment.estimate());
        let wire = experiment.wire_time();
        let spacings = &experiment.spacing.spacings;
        assert!(spacings.is_sorted() && spacings[0] < wire && spacings[spacings.len() - 1] > wire);
    }

    #[test]
    fn a_wrong_file_is_refused_with_the_fault() {
        let text = text_of("evlbi").unwrap();
        for (from, to, part) in [
            ("payload = \"1400 B\"", "payload = \"20 B\"", "40 to 8972"),
            ("datagrams = ", "number = ", "unknown field `number`"),
            ("datagrams = ", "datagrams = 1 # ", "100 to 1000000"),
        ] {
            let wrong = text.replacen(from, to, 1);
            let error = Spacing::parse(&wrong, "mine.toml").unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("mine.toml:"), "{error}");
        }
    }
}
