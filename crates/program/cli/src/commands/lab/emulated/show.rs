//! A lab, shown as text.

use crate::commands::output::OutputFormat;
use crate::commands::rate::share_text;
use serde_json::{Value, json};
use skyhaul_emulator::{
    EmulatorOrder, LabDescription, LabFolder, LinkEnd, Namespace, SpreadStatus,
};
use skyhaul_exit::{Exit, Failure};
use skyhaul_units::{Duration, Probability};
use std::io::Write;

/// That a lab behind us is up, and how to use it.
pub fn up(folder: &LabFolder, announcement: &str, out: &mut dyn Write) -> Result<(), Failure> {
    let status = folder.ask(&EmulatorOrder::Status)?;
    let announced: Value = serde_json::from_str(announcement).unwrap_or_default();
    notes(announced["notes"].as_array().into_iter().flatten().filter_map(Value::as_str));
    greet(folder, out)?;
    links(&status, out)?;
    let lab = folder.flag();
    writeln!(out, "a program in a place:  skyhaul lab exec{lab} a -- CMD")?;
    Ok(writeln!(out, "the end:               skyhaul lab down{lab}")?)
}

/// That a lab in this process is up.
pub fn description(
    folder: &LabFolder,
    description: &LabDescription,
    notes: &[String],
    format: OutputFormat,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if format == OutputFormat::Json {
        let [a, b] =
            LinkEnd::ALL.map(|place| Namespace::new(folder.lab(), place).name().to_owned());
        let links = description.links.iter().enumerate().map(|(number, link)| {
            let of = |place: LinkEnd| json!([place.ipv4(number), place.ipv6(number)]);
            json!({ "name": link.name, "a": of(LinkEnd::A), "b": of(LinkEnd::B), "mtu": link.mtu,
                "up": link.up, "down": link.down })
        });
        let links: Vec<Value> = links.collect();
        let mut announced = json!({ "lab": folder.lab(), "namespaces": { "a": a, "b": b },
            "links": links, "notes": notes });
        if let Some(spread) = SpreadStatus::over(&description.spread) {
            announced["spread"] = json!(spread);
        }
        writeln!(out, "{announced}")?;
    } else {
        self::notes(notes.iter().map(String::as_str));
        greet(folder, out)?;
        for (number, link) in description.links.iter().enumerate() {
            let (a, b) = (LinkEnd::A.ipv4(number), LinkEnd::B.ipv4(number));
            writeln!(out, "  {:<15} a {a}  b {b}", link.name)?;
        }
        if let Some(spread) = SpreadStatus::over(&description.spread) {
            self::spread(&json!(spread), out)?;
        }
        writeln!(out, "interrupt it to remove it")?;
    }
    Ok(out.flush()?)
}

/// Prints the notes for the user.
pub fn notes<'a>(notes: impl Iterator<Item = &'a str>) {
    for note in notes {
        // Standard error may be closed; the lab is up.
        let _ = writeln!(std::io::stderr(), "note: {note}");
    }
}

fn greet(folder: &LabFolder, out: &mut dyn Write) -> Result<(), Failure> {
    let [a, b] = LinkEnd::ALL.map(|place| Namespace::new(folder.lab(), place).name().to_owned());
    Ok(writeln!(out, "the lab `{}` is up: a is the network namespace {a}, b is {b}", folder.lab())?)
}

/// The link of a name, or the only one, and its status.
pub fn link<'a>(status: &'a Value, name: Option<&str>) -> Result<(String, &'a Value), Failure> {
    let links =
        status.pointer("/status/links").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let names: Vec<&str> = links.iter().filter_map(|link| link["name"].as_str()).collect();
    let found = match name {
        Some(name) => names.iter().position(|known| *known == name),
        None => Some(0).filter(|_| names.len() == 1),
    };
    let found = found.ok_or_else(|| {
        let what = match name {
            None => "there are several links".to_owned(),
            Some(name) => format!("there is no link `{name}`"),
        };
        Failure::new(Exit::Usage, &what, &format!("give --link with one of: {}", names.join(", ")))
    })?;
    Ok((names[found].to_owned(), &links[found]))
}

/// The links with what became of their packets.
pub fn links(status: &Value, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(
        out,
        "{:<15} {:<4} {:>12} {:>9} {:>8} {:>10} {:>10} {:>8} {:>8} {:>14} {:>9}  from → to",
        "link",
        "",
        "rate",
        "delay",
        "loss",
        "offered",
        "forwarded",
        "lost",
        "dropped",
        "bytes",
        "queue p99"
    )?;
    for link in status.pointer("/status/links").and_then(Value::as_array).into_iter().flatten() {
        for (direction, from, to) in [("up", "a", "b"), ("down", "b", "a")] {
            let way = &link[direction];
            let number = |key: &str| way[key].as_u64().unwrap_or(0);
            let text = |key: &str| way["config"][key].as_str().unwrap_or("-").to_owned();
            let dropped = [
                "policed",
                "oversized",
                "queue_dropped",
                "outage_dropped",
                "overflow_dropped",
                "refused",
                "device_dropped",
            ];
            let wait = Duration::from_nanos(
                (way["queue_delay_histogram"]["p99_s"].as_f64().unwrap_or(0.0) * 1e9) as u64,
            );
            writeln!(
                out,
                "{:<15} {:<4} {:>12} {:>9} {:>8} {:>10} {:>10} {:>8} {:>8} {:>14} {:>9}  {} → {}",
                if direction == "up" { link["name"].as_str().unwrap_or("-") } else { "" },
                direction,
                text("rate"),
                text("one_way_delay"),
                loss(&way["config"]["loss"]),
                number("offered"),
                number("forwarded"),
                number("lost"),
                dropped.map(number).iter().sum::<u64>(),
                number("forwarded_bytes"),
                wait.to_string(),
                link[from].as_str().unwrap_or("-"),
                link[to].as_str().unwrap_or("-"),
            )?;
        }
    }
    match status.pointer("/status/spread") {
        Some(told) => spread(told, out),
        None => Ok(()),
    }
}

/// Between which addresses flows are spread, and over what.
fn spread(told: &Value, out: &mut dyn Write) -> Result<(), Failure> {
    let links: Vec<&str> =
        told["links"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let at = |place: &str| told[place].as_str().unwrap_or("-").to_owned();
    Ok(writeln!(
        out,
        "flows between {} at a and {} at b are spread over {} by their ports",
        at("a"),
        at("b"),
        links.join(", ")
    )?)
}

fn loss(loss: &Value) -> String {
    let known = ["probability", "mean"].iter().find_map(|key| loss[*key].as_str());
    match (known, loss["kind"].as_str()) {
        // In percent, whatever the exact form is.
        (Some(probability), _) => match probability.parse::<Probability>() {
            Ok(probability) => share_text(probability),
            Err(_) => probability.to_owned(),
        },
        (None, Some("none") | None) => "-".to_owned(),
        (None, Some(kind)) => kind.to_owned(),
    }
}
