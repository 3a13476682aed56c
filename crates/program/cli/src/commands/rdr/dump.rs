//! `skyhaul rdr dump`: writes the packets of a Raw Data Record file to a packet file.

use super::{Hdf5, open, refused};
use skyhaul_ccsds::id::Apid;
use skyhaul_ccsds::mission::ApidRange;
use skyhaul_exit::{Exit, Failure};
use skyhaul_level0::rdr::CommonRdr;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The arguments of `skyhaul rdr dump`.
#[derive(clap::Args)]
#[command(after_help = "\
        The packets are in the order of collection, granule and position in the granule, which is \
        the order of time.

Example:
  skyhaul rdr dump RNSCA-RVIRS_npp_*.h5 --apid 800-828 -o viirs.packets
  skyhaul rdr dump RNSCA-RVIRS_npp_*.h5 --collection SPACECRAFT-DIARY-RDR -o diary.packets")]
pub struct Dump {
    /// The Raw Data Record file.
    file: PathBuf,
    /// Only packets of these applications: 800, or 800-828; separate several by commas.
    #[arg(long, value_name = "N|N-N", value_delimiter = ',')]
    apid: Vec<ApidRange>,
    /// Only this collection: VIIRS-SCIENCE-RDR.
    #[arg(long, value_name = "NAME")]
    collection: Option<String>,
    /// The packet file to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    hdf5: Hdf5,
    /// Prints the result as one line of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(serde::Serialize, Default)]
struct Report {
    packets: u64,
    bytes: u64,
    apids: BTreeMap<u32, u64>,
    damaged: u64,
}

/// Writes the packets and prints their number.
pub fn run(command: &Dump, out: &mut dyn Write) -> Result<(), Failure> {
    let reader = open(command.hdf5.load()?, &command.file)?;
    let known: Vec<&str> = reader.collections().collect();
    if let Some(wanted) = &command.collection
        && !known.contains(&wanted.as_str())
    {
        let what = format!("{} has no collection `{wanted}`", command.file.display());
        return Err(Failure::new(
            Exit::Usage,
            &what,
            &format!("write one of {}", known.join(", ")),
        ));
    }
    let unwritable = |source| unwritable(&command.output, source);
    let mut to = BufWriter::new(File::create(&command.output).map_err(unwritable)?);
    let mut report = Report::default();
    for collection in known
        .iter()
        .filter(|name| command.collection.as_deref().is_none_or(|wanted| wanted == **name))
    {
        for number in reader.granules(collection) {
            let bytes = reader.blob(collection, *number).map_err(|error| refused(&error))?;
            let granule = CommonRdr::parse(&bytes).map_err(|error| {
                let what = format!("granule {number} of {collection} is not a Common RDR: {error}");
                Failure::new(Exit::Result, &what, "get the file again from its source")
            })?;
            report.damaged += granule.damaged();
            for packet in granule.packets().iter().filter(|packet| command.wants(packet.apid)) {
                to.write_all(packet.bytes).map_err(unwritable)?;
                report.packets += 1;
                report.bytes += packet.bytes.len() as u64;
                *report.apids.entry(packet.apid).or_default() += 1;
            }
        }
    }
    to.flush().map_err(unwritable)?;
    if command.json {
        serde_json::to_writer(&mut *out, &report).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        writeln!(
            out,
            "{}: {} packets, {} bytes",
            command.output.display(),
            report.packets,
            report.bytes
        )?;
    }
    match report {
        Report { damaged: 1.., .. } => {
            let what = format!("{} packets are damaged or missing", report.damaged);
            Err(Failure::new(Exit::Result, &what, "list the granules with `skyhaul rdr info`"))
        }
        Report { packets: 0, .. } => {
            let help = "list the contents of the file with `skyhaul rdr info`";
            Err(Failure::new(Exit::Result, "the file has none of the requested packets", help))
        }
        _ => Ok(()),
    }
}

impl Dump {
    fn wants(&self, apid: u32) -> bool {
        let apid = u16::try_from(apid).ok().and_then(Apid::new);
        self.apid.is_empty()
            || apid.is_some_and(|apid| self.apid.iter().any(|range| range.contains(apid)))
    }
}

fn unwritable(file: &Path, source: io::Error) -> Failure {
    Failure::io(
        "the packet file cannot be written",
        &file.display().to_string(),
        "name a file on a disk with free space",
        source,
    )
}
