//! `skyhaul rdr info`: shows the content of Raw Data Record files.

use super::{Hdf5, open, refused};
use serde::Serialize;
use skyhaul_exit::{Exit, Failure};
use skyhaul_hdf5::RdrReader;
use skyhaul_level0::rdr::{ApidEntry, BlobHeader, CommonRdr, Value};
use skyhaul_units::Utc;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

/// The arguments of `skyhaul rdr info`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  skyhaul rdr info RNSCA-RVIRS_npp_*.h5 --json")]
pub struct Info {
    /// The Raw Data Record files.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    hdf5: Hdf5,
    /// Prints the content as one line of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    files: Vec<FileInfo>,
}

#[derive(Serialize)]
struct FileInfo {
    file: String,
    attributes: BTreeMap<&'static str, Value>,
    collections: Vec<CollectionInfo>,
}

#[derive(Serialize)]
struct CollectionInfo {
    name: String,
    granules: Vec<GranuleInfo>,
}

#[derive(Serialize)]
struct GranuleInfo {
    number: u32,
    /// Its description in the file.
    attributes: BTreeMap<&'static str, Value>,
    /// Its first microsecond and the first after it, in UTC.
    start: Option<Utc>,
    end: Option<Utc>,
    /// Packets that were received.
    packets: u64,
    /// Trackers that lead to no packet of their application.
    damaged_trackers: u64,
    #[serde(flatten)]
    blob: Option<BlobInfo>,
    /// Why its packets cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<String>,
}

#[derive(Serialize)]
struct BlobInfo {
    header: BlobHeader,
    apids: Vec<ApidEntry>,
}

/// Prints what the files hold.
pub fn run(command: &Info, out: &mut dyn Write) -> Result<(), Failure> {
    let library = command.hdf5.load()?;
    let mut report = Report { files: Vec::new() };
    for file in &command.files {
        let reader = open(library, file)?;
        report.files.push(describe(&reader, file.display().to_string())?);
    }
    if command.json {
        serde_json::to_writer(&mut *out, &report).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        report.files.iter().try_for_each(|file| write_file(file, out))?;
    }
    let granules =
        || report.files.iter().flat_map(|file| &file.collections).flat_map(|known| &known.granules);
    let damaged =
        granules().filter(|granule| granule.damaged_trackers > 0 || granule.unreadable.is_some());
    match damaged.count() {
        0 => Ok(()),
        count => {
            let what = format!("{count} granules are damaged");
            Err(Failure::new(Exit::Result, &what, "get the file again from its source"))
        }
    }
}

fn describe(reader: &RdrReader, file: String) -> Result<FileInfo, Failure> {
    let mut attributes = BTreeMap::new();
    for name in OF_FILES {
        attributes.extend(
            reader.attribute(name).map_err(|error| refused(&error))?.map(|value| (*name, value)),
        );
    }
    let mut collections = Vec::new();
    for name in reader.collections() {
        let granule = |number: &u32| granule(reader, name, *number);
        let granules = reader.granules(name).iter().map(granule).collect::<Result<_, _>>()?;
        collections.push(CollectionInfo { name: name.to_owned(), granules });
    }
    Ok(FileInfo { file, attributes, collections })
}

fn granule(reader: &RdrReader, collection: &str, number: u32) -> Result<GranuleInfo, Failure> {
    let mut attributes = BTreeMap::new();
    for name in OF_GRANULES {
        let value =
            reader.granule_attribute(collection, number, name).map_err(|error| refused(&error))?;
        attributes.extend(value.map(|value| (*name, value)));
    }
    let bytes = reader.blob(collection, number).map_err(|error| refused(&error))?;
    let parsed = CommonRdr::parse(&bytes);
    let mut info = GranuleInfo {
        number,
        attributes,
        start: None,
        end: None,
        packets: 0,
        damaged_trackers: 0,
        blob: None,
        unreadable: parsed.as_ref().err().map(ToString::to_string),
    };
    if let Ok(parsed) = parsed {
        (info.start, info.end) = (Some(parsed.header.start.utc()), Some(parsed.header.end.utc()));
        info.packets = parsed.apids.iter().map(|entry| u64::from(entry.received)).sum();
        info.damaged_trackers = parsed.damaged();
        info.blob = Some(BlobInfo { header: parsed.header, apids: parsed.apids });
    }
    Ok(info)
}

fn write_file(file: &FileInfo, out: &mut dyn Write) -> io::Result<()> {
    let said = |attributes: &BTreeMap<&str, Value>, name| {
        attributes.get(name).map_or("?".to_owned(), text)
    };
    let platform = said(&file.attributes, "Platform_Short_Name");
    writeln!(out, "{}: {platform}, made by {}", file.file, said(&file.attributes, "Distributor"))?;
    for collection in &file.collections {
        writeln!(out, "  {}", collection.name)?;
        writeln!(
            out,
            "    granule          begins                       packets  missing  packets by kind"
        )?;
        for granule in &collection.granules {
            let id = said(&granule.attributes, "N_Granule_ID");
            if let Some(reason) = &granule.unreadable {
                writeln!(out, "    {id:<15}  unreadable: {reason}")?;
                continue;
            }
            let kinds =
                granule.blob.iter().flat_map(|blob| &blob.apids).filter(|entry| entry.received > 0);
            let kinds: Vec<String> =
                kinds.map(|entry| format!("{}: {}", entry.name, entry.received)).collect();
            let missing = match granule.attributes.get("N_Percent_Missing_Data") {
                Some(Value::F32(values)) => values.first().map(|value| format!("{value:.1} %")),
                _ => None,
            };
            writeln!(
                out,
                "    {id:<15}  {:<27} {:>8}  {:>7}  {}",
                granule.start.map_or("?".to_owned(), |start| start.to_string()),
                granule.packets,
                missing.unwrap_or("?".to_owned()),
                kinds.join(", ")
            )?;
            if granule.damaged_trackers > 0 {
                writeln!(
                    out,
                    "    note: {} packets are damaged or missing",
                    granule.damaged_trackers
                )?;
            }
        }
    }
    Ok(())
}

fn text(value: &Value) -> String {
    match value {
        Value::Text(texts) => texts.join(", "),
        Value::U32(numbers) => numbers.first().map_or(String::new(), u32::to_string),
        Value::U64(numbers) => numbers.first().map_or(String::new(), u64::to_string),
        Value::F32(numbers) => numbers.first().map_or(String::new(), f32::to_string),
    }
}

const OF_FILES: &[&str] = &[
    "Distributor",
    "Mission_Name",
    "N_Dataset_Source",
    "N_HDF_Creation_Date",
    "N_HDF_Creation_Time",
    "Platform_Short_Name",
];
const OF_GRANULES: &[&str] = &[
    "Beginning_Date",
    "Beginning_Time",
    "Ending_Date",
    "Ending_Time",
    "N_Beginning_Orbit_Number",
    "N_Beginning_Time_IET",
    "N_Ending_Time_IET",
    "N_Granule_ID",
    "N_Granule_Version",
    "N_Packet_Type",
    "N_Packet_Type_Count",
    "N_Percent_Missing_Data",
    "N_Reference_ID",
    "N_Software_Version",
];
