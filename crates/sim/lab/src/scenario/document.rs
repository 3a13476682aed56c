//! A scenario file: its text, read into cells that can be run.

use super::axis::Axis;
use super::bar::{Bar, BarText};
use super::error::{ScenarioError, Source};
use super::kind::{Experiment, KINDS, Kind};
use super::known::Known;
use super::metric::Metric;
use super::parameters::{CellParameters, ParametersRefused};
use super::selection::CellSelection;
use super::view::{Pivot, PivotText, Plot, PlotText};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue, Deserializer, ValueDeserializer};

/// What is run, over what it is swept, and what must come out.
#[derive(Debug)]
pub struct Scenario {
    /// By what it is called on the command line.
    pub name: String,
    /// What it shows, in one line.
    pub title: String,
    /// Where the figures it must reach come from.
    pub source: String,
    /// What its cells are.
    pub kind: &'static dyn Kind,
    /// The parameters that all cells share, as they stand in the file.
    pub parameters: toml::Table,
    /// Over what it is swept.
    pub axes: Vec<Axis>,
    /// The product of the axes, the last one running fastest.
    pub cells: Vec<Cell>,
    /// Every cell is run with each.
    pub seeds: Vec<u64>,
    /// What must come out.
    pub bars: Vec<Bar>,
    /// Figures listed for each cell.
    pub columns: Vec<&'static Metric>,
    /// How its figures are tabulated; where there are none, as a list.
    pub tables: Vec<Pivot>,
    /// How its figures are drawn.
    pub plots: Vec<Plot>,
    /// Figures that others have published for some cells.
    pub published: Option<Published>,
}

/// A point of a sweep.
#[derive(Debug)]
pub struct Cell {
    /// One label for each axis.
    pub labels: Vec<String>,
    /// What is run.
    pub experiment: Box<dyn Experiment>,
}

/// Figures that others have published.
#[derive(Debug)]
pub struct Published {
    /// Where.
    pub source: String,
    /// What they are figures of.
    pub metric: &'static Metric,
    /// The figures, in the metric's unit, and the cells that they are for.
    pub values: Vec<(CellSelection, f64)>,
}

impl Scenario {
    /// Reads a scenario; `name` says in errors where the text came from.
    ///
    /// # Errors
    /// The text is not a scenario; what, where and what to do are in the error.
    pub fn parse(text: &str, name: &str) -> Result<Self, ScenarioError> {
        let source = Source { text, name };
        if text.len() > MAX_FILE {
            let help = "give the path of a scenario file";
            return Err(
                source.refuse_whole(format!("the file has more than {MAX_FILE} bytes"), help)
            );
        }
        let mut root =
            DeTable::parse(text).map_err(|error| source.refuse_toml(&error))?.into_inner();
        let parameters = take(&mut root, "parameters");
        let sweep = take(&mut root, "axis");
        let head: Head = Head::deserialize(Deserializer::from(Spanned::new(0..text.len(), root)))
            .map_err(|error| source.refuse_toml(&error))?;
        let kind =
            *KINDS.iter().find(|kind| kind.name() == *head.kind.get_ref()).ok_or_else(|| {
                let known: Vec<_> = KINDS.iter().map(|kind| format!("`{}`", kind.name())).collect();
                let what = format!("no kind of experiment is called `{}`", head.kind.get_ref());
                source.refuse(
                    head.kind.span().start,
                    what,
                    format!("the kinds are {}", known.join(", ")),
                )
            })?;
        let fixed = Fixed::of(&source, parameters)?;
        let axes = read_axes(&source, sweep)?;
        let cells = product(&source, kind, &fixed, &axes)?;
        let axes: Vec<Axis> = axes.into_iter().map(SweepAxis::into_axis).collect();
        head.finish(&source, kind, Sweep { parameters: fixed.plain, axes, cells })
    }

    /// Virtual time of all its runs.
    pub fn virtual_time(&self) -> skyhaul_units::Duration {
        let one = self
            .cells
            .iter()
            .fold(skyhaul_units::Duration::ZERO, |sum, cell| sum + cell.experiment.virtual_time());
        one * self.seeds.len() as u64
    }

    /// About how long all its runs keep one processor busy.
    pub fn cost(&self) -> skyhaul_units::Duration {
        let one = self
            .cells
            .iter()
            .fold(skyhaul_units::Duration::ZERO, |sum, cell| sum + cell.experiment.cost());
        one * self.seeds.len() as u64
    }
}

/// The keys of a scenario file but `parameters` and `axis`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    name: String,
    title: String,
    source: String,
    kind: Spanned<String>,
    seeds: Option<Spanned<Seeds>>,
    columns: Option<Vec<Spanned<String>>>,
    #[serde(default, rename = "bar")]
    bars: Vec<BarText>,
    #[serde(default, rename = "table")]
    tables: Vec<PivotText>,
    #[serde(default, rename = "plot")]
    plots: Vec<PlotText>,
    published: Option<PublishedText>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a list of seeds or { from = 1, count = 500 }")]
enum Seeds {
    List(Vec<u64>),
    Range(SeedRange),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SeedRange {
    from: u64,
    count: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedText {
    source: String,
    metric: Spanned<String>,
    values: Vec<PublishedValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedValue {
    cells: Spanned<CellSelection>,
    value: f64,
}

/// What the keys `parameters` and `axis` make.
struct Sweep {
    parameters: toml::Table,
    axes: Vec<Axis>,
    cells: Vec<Cell>,
}

impl Head {
    fn finish(
        self,
        source: &Source<'_>,
        kind: &'static dyn Kind,
        Sweep { parameters, axes, cells }: Sweep,
    ) -> Result<Scenario, ScenarioError> {
        let seeds = seeds(source, self.seeds)?;
        if cells.len() * seeds.len() > MAX_RUNS {
            let what = format!(
                "{} cells with {} seeds each are more than {MAX_RUNS} runs",
                cells.len(),
                seeds.len()
            );
            return Err(source.refuse_whole(what, "shorten an axis or the list of seeds"));
        }
        let known = Known { source, kind, axes: &axes, is_compared: self.published.is_some() };
        let columns = self.columns.unwrap_or_default();
        let columns = columns.iter().map(|key| known.metric(key)).collect::<Result<_, _>>()?;
        let bars = self.bars.into_iter().map(|bar| bar.read(&known)).collect::<Result<_, _>>()?;
        let tables =
            self.tables.into_iter().map(|table| table.read(&known)).collect::<Result<_, _>>()?;
        let plots =
            self.plots.into_iter().map(|plot| plot.read(&known)).collect::<Result<_, _>>()?;
        let published = self.published.map(|published| published.read(&known)).transpose()?;
        Ok(Scenario {
            name: self.name,
            title: self.title,
            source: self.source,
            kind,
            parameters,
            axes,
            cells,
            seeds,
            bars,
            columns,
            tables,
            plots,
            published,
        })
    }
}

impl PublishedText {
    fn read(self, known: &Known<'_>) -> Result<Published, ScenarioError> {
        let metric = known.metric(&self.metric)?;
        let values = self.values.into_iter().map(|PublishedValue { cells, value }| {
            known.selection(&cells)?;
            Ok((cells.into_inner(), value))
        });
        Ok(Published { source: self.source, metric, values: values.collect::<Result<_, _>>()? })
    }
}

/// The parameters that all cells share.
struct Fixed<'a> {
    table: DeTable<'a>,
    span: core::ops::Range<usize>,
    plain: toml::Table,
}

impl<'a> Fixed<'a> {
    fn of(source: &Source<'_>, value: Option<Spanned<DeValue<'a>>>) -> Result<Self, ScenarioError> {
        let Some(value) = value else {
            return Ok(Self { table: DeTable::new(), span: 0..0, plain: toml::Table::new() });
        };
        let span = value.span();
        let plain = toml::Table::deserialize(ValueDeserializer::from(value.clone()))
            .map_err(|error| source.refuse_toml(&error))?;
        match value.into_inner() {
            DeValue::Table(table) => Ok(Self { table, span, plain }),
            _ => Err(source.refuse(
                span.start,
                "`parameters` is no table",
                "begin it with [parameters]",
            )),
        }
    }
}

/// An axis and what each of its values sets.
struct SweepAxis<'a> {
    name: String,
    values: Vec<(String, DeTable<'a>)>,
}

impl SweepAxis<'_> {
    fn into_axis(self) -> Axis {
        Axis { name: self.name, labels: self.values.into_iter().map(|(label, _)| label).collect() }
    }
}

fn read_axes<'a>(
    source: &Source<'_>,
    sweep: Option<Spanned<DeValue<'a>>>,
) -> Result<Vec<SweepAxis<'a>>, ScenarioError> {
    let Some(sweep) = sweep else { return Ok(Vec::new()) };
    let at = sweep.span().start;
    let DeValue::Array(tables) = sweep.into_inner() else {
        return Err(source.refuse(
            at,
            "`axis` is no list of tables",
            "begin each axis with [[axis]]",
        ));
    };
    let axes =
        tables.into_iter().map(|axis| read_axis(source, axis)).collect::<Result<Vec<_>, _>>()?;
    for (index, axis) in axes.iter().enumerate() {
        if axes[..index].iter().any(|before| before.name == axis.name) {
            return Err(source.refuse(
                at,
                format!("axis `{}` stands twice", axis.name),
                "give each axis once",
            ));
        }
    }
    Ok(axes)
}

fn read_axis<'a>(
    source: &Source<'_>,
    axis: Spanned<DeValue<'a>>,
) -> Result<SweepAxis<'a>, ScenarioError> {
    let at = axis.span().start;
    let DeValue::Table(mut table) = axis.into_inner() else {
        return Err(source.refuse(at, "an axis is no table", "begin each axis with [[axis]]"));
    };
    let (name, values) = (take(&mut table, "name"), take(&mut table, "values"));
    if let Some((key, _)) = table.iter().next() {
        let what = format!("unknown key `{}`", key.get_ref());
        return Err(source.refuse(key.span().start, what, "the keys here are `name`, `values`"));
    }
    let (Some(name), Some(values)) = (name, values) else {
        return Err(source.refuse(
            at,
            "an axis has no name or no values",
            "give it `name` and `values`",
        ));
    };
    let (name_span, values_at) = (name.span(), values.span().start);
    let (DeValue::String(name), DeValue::Array(values)) = (name.into_inner(), values.into_inner())
    else {
        let help = "write name = \"loss\" and values = [\"0 %\", \"1 %\"]";
        return Err(source.refuse(
            name_span.start,
            "an axis' name is no text, or its values are no list",
            help,
        ));
    };
    if values.is_empty() {
        return Err(source.refuse(
            values_at,
            format!("axis `{name}` has no values"),
            "give it at least one",
        ));
    }
    let key = Spanned::new(name_span, name.clone());
    let values = read_values(source, &key, values)?;
    Ok(SweepAxis { name: name.into_owned(), values })
}

/// Each value with its label: `{ label = "…", set = { … } }` sets parameters of any name, anything
/// else the one that the axis is called after.
fn read_values<'a>(
    source: &Source<'_>,
    axis: &Spanned<std::borrow::Cow<'a, str>>,
    values: DeArray<'a>,
) -> Result<Vec<(String, DeTable<'a>)>, ScenarioError> {
    let mut read = Vec::<(String, DeTable<'a>)>::new();
    for value in values {
        let at = value.span().start;
        let (label, set) = match value.get_ref() {
            DeValue::Table(table) => {
                let mut table = table.clone();
                match (take(&mut table, "label"), take(&mut table, "set"), table.is_empty()) {
                    (Some(label), Some(set), true) => labelled(source, label, set)?,
                    _ => {
                        let help = "write { label = \"…\", set = { PARAMETER = … } }";
                        return Err(source.refuse(
                            at,
                            "a table as a value of an axis needs a label",
                            help,
                        ));
                    }
                }
            }
            DeValue::String(text) => (text.to_string(), one(axis, &value)),
            DeValue::Integer(number) => (number.to_string(), one(axis, &value)),
            DeValue::Float(number) => (number.to_string(), one(axis, &value)),
            DeValue::Boolean(is_so) => (is_so.to_string(), one(axis, &value)),
            _ => {
                let help = "write text, a number, or { label = \"…\", set = { … } }";
                return Err(source.refuse(at, "this cannot be a value of an axis", help));
            }
        };
        if read.iter().any(|(before, _)| *before == label) {
            return Err(source.refuse(
                at,
                format!("`{label}` stands twice on the axis"),
                "give each value once",
            ));
        }
        read.push((label, set));
    }
    Ok(read)
}

fn labelled<'a>(
    source: &Source<'_>,
    label: Spanned<DeValue<'a>>,
    set: Spanned<DeValue<'a>>,
) -> Result<(String, DeTable<'a>), ScenarioError> {
    let at = label.span().start;
    match (label.into_inner(), set.into_inner()) {
        (DeValue::String(label), DeValue::Table(set)) => Ok((label.into_owned(), set)),
        _ => {
            let help = "write { label = \"…\", set = { PARAMETER = … } }";
            Err(source.refuse(at, "the label is no text, or `set` is no table", help))
        }
    }
}

fn one<'a>(axis: &Spanned<std::borrow::Cow<'a, str>>, value: &Spanned<DeValue<'a>>) -> DeTable<'a> {
    DeTable::from_iter([(axis.clone(), value.clone())])
}

/// The cells: each combination of values, the last axis running fastest.
fn product(
    source: &Source<'_>,
    kind: &'static dyn Kind,
    fixed: &Fixed<'_>,
    axes: &[SweepAxis<'_>],
) -> Result<Vec<Cell>, ScenarioError> {
    let count = axes.iter().try_fold(1usize, |count, axis| count.checked_mul(axis.values.len()));
    let count = count.filter(|count| *count <= MAX_RUNS).ok_or_else(|| {
        source.refuse_whole(format!("the axes make more than {MAX_RUNS} cells"), "shorten an axis")
    })?;
    let mut cells = Vec::with_capacity(count);
    for index in 0..count {
        let mut parameters =
            CellParameters { table: fixed.table.clone(), span: fixed.span.clone() };
        let mut labels = Vec::with_capacity(axes.len());
        let mut block = count;
        for axis in axes {
            block /= axis.values.len();
            let (label, set) = &axis.values[index / block % axis.values.len()];
            labels.push(label.clone());
            for (key, value) in set {
                if parameters.table.insert(key.clone(), value.clone()).is_some() {
                    let what = format!("parameter `{}` is set twice", key.get_ref());
                    let help = "set each parameter in [parameters] or on one axis";
                    return Err(source.refuse(value.span().start, what, help));
                }
            }
        }
        let refuse = |refused: ParametersRefused| {
            source.refuse_sentence(&refused.sentence, refused.at.or(Some(fixed.span.start)))
        };
        let experiment = kind.cell(parameters).map_err(refuse)?;
        cells.push(Cell { labels, experiment });
    }
    Ok(cells)
}

fn seeds(source: &Source<'_>, seeds: Option<Spanned<Seeds>>) -> Result<Vec<u64>, ScenarioError> {
    let Some(seeds) = seeds else { return Ok(vec![1]) };
    let at = seeds.span().start;
    let seeds = match seeds.into_inner() {
        Seeds::List(seeds) => seeds,
        Seeds::Range(range) => {
            let most = u64::try_from(MAX_RUNS).unwrap_or(u64::MAX);
            (0..range.count.min(most + 1)).map(|step| range.from.wrapping_add(step)).collect()
        }
    };
    match seeds.len() {
        1..=MAX_RUNS => Ok(seeds),
        0 => Err(source.refuse(
            at,
            "there is no seed",
            "give at least one, or leave `seeds` out for 1",
        )),
        _ => Err(source.refuse(at, format!("there are more than {MAX_RUNS} seeds"), "give fewer")),
    }
}

fn take<'a>(table: &mut DeTable<'a>, key: &str) -> Option<Spanned<DeValue<'a>>> {
    table.remove(key)
}

/// 1 MiB: hundreds of axes and bars with room for comments.
pub const MAX_FILE: usize = 1 << 20;

/// Cells times seeds. Ten thousand of the shortest take minutes.
pub const MAX_RUNS: usize = 10_000;
