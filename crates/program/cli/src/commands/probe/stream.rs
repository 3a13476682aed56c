//! The common parts of commands that send streams: their files, their beginning and end.

use super::far::{FarEnd, FarFlags, Heading, able};
use super::page::{PageFlag, ProbePageFile, subject};
use super::series;
use serde::Serialize;
use skyhaul_exit::Failure;
use skyhaul_probe::ProbeClient;
use skyhaul_probe::report::Subject;
use skyhaul_probe_io::{HostCapacity, SocketLine};
use skyhaul_units::{ByteCount, Rate};
use std::io::Write;
use std::path::PathBuf;

/// The files of a measurement.
#[derive(clap::Args)]
pub struct OutputFlags {
    /// Writes each datagram's delay to a file that ends in .csv or .jsonl.
    #[arg(long, value_name = "FILE")]
    series: Option<PathBuf>,
    /// Writes each ping's round trip and delays to a file that ends in .csv or .jsonl.
    #[arg(long, value_name = "FILE")]
    pings: Option<PathBuf>,
    #[command(flatten)]
    page: PageFlag,
    /// Prints the result as one JSON object, which has a schema (docs/reference/schema/).
    #[arg(long)]
    pub json: bool,
}

/// A measurement that has begun.
pub struct Measurement {
    /// Where it goes to.
    pub far: FarEnd,
    /// What this machine can do with such datagrams.
    pub ability: HostCapacity,
    /// Nothing faster is sent.
    pub rate_max: Rate,
    /// The session.
    pub near: ProbeClient<SocketLine>,
    heading: Heading,
    page: Option<ProbePageFile>,
    series: Option<PathBuf>,
    pings: Option<PathBuf>,
}

/// A measurement that is over, and of which the files are written.
pub struct StreamMeasurement {
    /// The destination.
    pub far: FarEnd,
    heading: Heading,
}

impl OutputFlags {
    /// Sees whether what is to be kept can be, tries this machine with datagrams of `payload`, and
    /// opens a session; no stream is to be faster than `wanted`.
    ///
    /// # Errors
    /// A file cannot be what it is called, the far end is not there, is none or refuses.
    pub fn begin(
        &self,
        far: &FarFlags,
        kind: &'static str,
        payload: ByteCount,
        wanted: Option<Rate>,
    ) -> Result<Measurement, Failure> {
        series::check(self.series.as_deref())?;
        series::check(self.pings.as_deref())?;
        let page = self.page.open(kind)?;
        let far = far.find()?;
        let (ability, rate_max) = able(payload, wanted)?;
        let near = far.open()?;
        let heading = Heading::of(kind, &far);
        let (series, pings) = (self.series.clone(), self.pings.clone());
        Ok(Measurement { far, ability, rate_max, near, heading, page, series, pings })
    }
}

impl Measurement {
    /// Writes the files that were asked for, and ends the session.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn end(
        self,
        courses: &[series::DelaySeries<'_>],
        page: impl FnOnce(&Subject) -> String,
    ) -> Result<StreamMeasurement, Failure> {
        series::write_pings(self.pings.as_deref(), self.near.comparison())?;
        self.near.close();
        if let Some(path) = &self.series {
            series::write(path, courses)?;
        }
        if let Some(file) = self.page {
            file.write(&page(&subject(&self.far, &self.heading)))?;
        }
        Ok(StreamMeasurement { far: self.far, heading: self.heading })
    }
}

impl StreamMeasurement {
    /// Writes the JSON form.
    ///
    /// # Errors
    /// The output is gone.
    pub fn write_json(&self, found: &impl Serialize, out: &mut dyn Write) -> Result<(), Failure> {
        self.heading.write_json(found, out)
    }
}
