//! Metrics as text: the classic form of Prometheus (0.0.4), and OpenMetrics 1.0.

/// Figures of one name.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricFamily {
    name: String,
    kind: MetricKind,
    unit: &'static str,
    help: &'static str,
    samples: Vec<Sample>,
}

/// What a family's figures are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// They only grow, until the node starts again.
    Counter,
    /// They rise and fall.
    Gauge,
}

/// Which text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpositionForm {
    /// The text form 0.0.4.
    Classic,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

#[derive(Debug, Clone, PartialEq)]
struct Sample {
    labels: Vec<(&'static str, String)>,
    value: f64,
}

/// Every name begins so.
const PREFIX: &str = "skyhaul_";
/// The base units; a name that ends with one says so in OpenMetrics.
const UNITS: [&str; 3] = ["seconds", "bytes", "ratio"];
/// The bytes of a label's value.
const LABEL_MAX: usize = 128;

impl MetricFamily {
    /// A family of counters. `name` has neither the prefix nor `_total`.
    pub fn counter(name: &str, help: &'static str) -> Self {
        Self::new(name, MetricKind::Counter, help)
    }

    /// A family of gauges.
    pub fn gauge(name: &str, help: &'static str) -> Self {
        Self::new(name, MetricKind::Gauge, help)
    }

    fn new(name: &str, kind: MetricKind, help: &'static str) -> Self {
        let unit = UNITS.into_iter().find(|unit| name.ends_with(&format!("_{unit}")));
        Self {
            name: format!("{PREFIX}{name}"),
            kind,
            unit: unit.unwrap_or_default(),
            help,
            samples: Vec::new(),
        }
    }

    /// With its only figure.
    pub fn value(mut self, value: f64) -> Self {
        self.add(&[], value);
        self
    }

    /// Adds a figure under labels. A figure under labels that are there already is left out: a
    /// series has one value.
    pub fn add(&mut self, labels: &[(&'static str, &str)], value: f64) {
        let plain = |(name, text): &(&'static str, &str)| {
            (*name, skyhaul_units::printable(text, LABEL_MAX))
        };
        let labels: Vec<(&'static str, String)> = labels.iter().map(plain).collect();
        if !self.samples.iter().rev().take(NEAR).any(|known| known.labels == labels) {
            self.samples.push(Sample { labels, value });
        }
    }

    /// How many figures it has.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    fn write(&self, form: ExpositionForm, out: &mut String) {
        if self.is_empty() {
            return;
        }
        let total = match self.kind {
            MetricKind::Counter => "_total",
            MetricKind::Gauge => "",
        };
        let kind = match self.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
        };
        // In OpenMetrics the family has the name without the suffix of its samples.
        let family = match form {
            ExpositionForm::Classic => format!("{}{total}", self.name),
            ExpositionForm::OpenMetrics => self.name.clone(),
        };
        let help = escaped(self.help, Quotes::Plain);
        out.push_str(&format!("# HELP {family} {help}\n# TYPE {family} {kind}\n"));
        if form == ExpositionForm::OpenMetrics && !self.unit.is_empty() {
            out.push_str(&format!("# UNIT {family} {}\n", self.unit));
        }
        for Sample { labels, value } in &self.samples {
            out.push_str(&self.name);
            out.push_str(total);
            if !labels.is_empty() {
                let pair = |(name, text): &(&str, String)| {
                    format!("{name}=\"{}\"", escaped(text, Quotes::Escaped))
                };
                let pairs: Vec<String> = labels.iter().map(pair).collect();
                out.push_str(&format!("{{{}}}", pairs.join(",")));
            }
            out.push_str(&format!(" {}\n", number(*value)));
        }
    }
}

/// Labels that come twice come near each other: two paths of one name.
const NEAR: usize = 32;

/// All families as text.
pub fn exposition(families: &[MetricFamily], form: ExpositionForm) -> String {
    let mut out = String::new();
    families.iter().for_each(|family| family.write(form, &mut out));
    if form == ExpositionForm::OpenMetrics {
        out.push_str("# EOF\n");
    }
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    Plain,
    Escaped,
}

fn escaped(text: &str, quotes: Quotes) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    match quotes {
        Quotes::Plain => text,
        Quotes::Escaped => text.replace('"', "\\\""),
    }
}

fn number(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        (if value > 0.0 { "+Inf" } else { "-Inf" }).to_owned()
    } else {
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_have_the_same_figures_under_the_names_that_they_want() {
        let mut family = MetricFamily::counter("path_sent_bytes", "Bytes sent.");
        family.add(&[("path", "a\"b\\c\nd")], 3.0);
        family.add(&[("path", "e")], 0.5);
        family.add(&[("path", "e")], 1.0);
        assert_eq!(family.len(), 2);
        let classic = exposition(core::slice::from_ref(&family), ExpositionForm::Classic);
        let open = exposition(&[family], ExpositionForm::OpenMetrics);
        assert!(classic.starts_with(
            "# HELP skyhaul_path_sent_bytes_total Bytes sent.\n\
             # TYPE skyhaul_path_sent_bytes_total counter\n\
             skyhaul_path_sent_bytes_total{path=\"a\\\"b\\\\c"
        ));
        assert!(classic.ends_with("skyhaul_path_sent_bytes_total{path=\"e\"} 0.5\n"));
        assert!(open.starts_with(
            "# HELP skyhaul_path_sent_bytes Bytes sent.\n\
             # TYPE skyhaul_path_sent_bytes counter\n# UNIT skyhaul_path_sent_bytes bytes\n\
             skyhaul_path_sent_bytes_total{path="
        ));
        assert!(open.ends_with("# EOF\n"));
        let figures = |text: &str| {
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(figures(&classic), figures(&open));
    }

    #[test]
    fn a_family_without_figures_is_not_written_and_numbers_are_those_of_the_form() {
        let none = MetricFamily::gauge("nothing", "Nothing.");
        assert_eq!(exposition(&[none], ExpositionForm::Classic), "");
        let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e21, 0.25];
        let texts = values.map(number);
        assert_eq!(texts, ["NaN", "+Inf", "-Inf", "1000000000000000000000", "0.25"]);
    }
}
