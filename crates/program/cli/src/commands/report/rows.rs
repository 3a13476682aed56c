//! Each product at each consumer as a line of comma-separated values (RFC 4180).

use skyhaul_catalogue::{AccountRow, LatencyElement};
use skyhaul_units::{Duration, Utc};
use std::io::{self, Write};

/// Writes lines; the first one names the columns.
pub struct CsvRows<W> {
    out: W,
    is_begun: bool,
}

impl<W: Write> CsvRows<W> {
    /// Of a file that is empty.
    pub const fn begin(out: W) -> Self {
        Self { out, is_begun: false }
    }

    /// Writes a row.
    pub fn row(&mut self, row: &AccountRow, within: Option<Duration>) -> io::Result<()> {
        self.head()?;
        let seconds = |micros: i64| format!("{:.6}", micros as f64 / 1e6);
        let time = |time: Option<Utc>| time.map_or_else(String::new, |time| time.to_string());
        let consumer = row.consumer.as_ref();
        let times = row.times.as_ref();
        let text = |text: &str| text.to_owned();
        let total = row.total();
        let is_on_time = within.zip(total).map(|(within, total)| {
            i64::try_from(within.as_micros()).is_ok_and(|within| total <= within)
        });
        let mut cells = vec![
            text(&row.mission),
            text(&row.product),
            text(row.form.name()),
            row.stations.join("+"),
            text(&row.name),
            row.version.to_string(),
            times.map_or_else(String::new, |times| times.contact.clone()),
            consumer.map_or_else(String::new, |consumer| consumer.name.clone()),
            time(row.observed),
            time(times.map(|times| times.last_bit)),
            time(Some(row.published)),
            time(consumer.and_then(|consumer| consumer.handed)),
            time(consumer.and_then(|consumer| consumer.accepted)),
        ];
        let elements = row.elements();
        cells.extend(LatencyElement::ALL.iter().map(|wanted| {
            let found = elements.iter().find(|(element, _)| element == wanted);
            found.map_or_else(String::new, |(_, took)| seconds(*took))
        }));
        cells.push(total.map_or_else(String::new, seconds));
        cells.push(row.acceptance().map_or_else(String::new, seconds));
        cells.push(within.map_or_else(String::new, |within| within.as_secs_f64().to_string()));
        cells.push(is_on_time.map_or_else(String::new, |is_so| is_so.to_string()));
        self.line(&cells)
    }

    /// Writes everything through.
    pub fn end(mut self) -> io::Result<()> {
        self.head()?;
        self.out.flush()
    }

    fn head(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.is_begun, true) {
            return Ok(());
        }
        let before = [
            "mission",
            "product",
            "kind",
            "station",
            "name",
            "version",
            "contact",
            "consumer",
            "observed",
            "last_bit",
            "published",
            "handed",
            "accepted",
        ];
        let elements = LatencyElement::ALL.iter().map(|element| format!("{}_s", element.name()));
        let behind = ["total_s", "acceptance_s", "budget_s", "on_time"];
        let names = before.iter().map(ToString::to_string).chain(elements);
        let names: Vec<String> = names.chain(behind.map(str::to_owned)).collect();
        self.line(&names)
    }

    fn line(&mut self, cells: &[String]) -> io::Result<()> {
        for (place, cell) in cells.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            if cell.contains(['"', ',', '\n', '\r']) {
                write!(self.out, "{comma}\"{}\"", cell.replace('"', "\"\""))?;
            } else {
                write!(self.out, "{comma}{cell}")?;
            }
        }
        self.out.write_all(b"\r\n")
    }
}
