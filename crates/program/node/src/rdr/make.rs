//! Packet files to Raw Data Record files, one for each sensor.

use super::error::RdrError;
use super::source::PacketFileSource;
use sha2::{Digest, Sha256};
use skyhaul_ccsds::mission::Mission;
use skyhaul_hdf5::{Library, RdrWriter};
use skyhaul_level0::rdr::{
    FileFacts, GranuleBuilder, GranulePlan, GranuleSpan, Iet, IndexAccount, PackedGranule,
    PacketIndex, RdrPlan, Sorted, TypeAccount, file_name,
};
use skyhaul_units::Utc;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What is to be made.
#[derive(Debug, Clone)]
pub struct RdrJob<'a> {
    /// The mission, for the packets' times.
    pub mission: &'a Mission,
    /// The mission's collections.
    pub plan: &'a RdrPlan,
    /// Names of the collections that get a file each.
    pub sensors: Vec<&'a str>,
    /// Granules that have time in common with this span only; all where there is none.
    pub within: Option<GranuleSpan>,
    /// Whether a file also has the collection packed with its sensor: the spacecraft's diary.
    pub packed: bool,
    /// What is the same for all files.
    pub facts: FileFacts,
    /// Where the files appear; made where it does not exist.
    pub dir: &'a Path,
}

/// What was made.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Made {
    /// The files, in the order of the plan; sensors without packets have none.
    pub files: Vec<MadeFile>,
    /// What became of the packets.
    pub packets: IndexAccount,
    /// Bytes at the ends of packet files that are parts of cut packets.
    pub cut_bytes: u64,
}

/// A Raw Data Record file, as its JSON sidecar describes it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct MadeFile {
    /// Format of this description.
    pub format: &'static str,
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Of its bytes.
    pub sha256: String,
    /// The mission.
    pub mission: String,
    /// When it was made.
    pub created: Utc,
    /// Start of the sensor's first granule.
    pub start: Utc,
    /// End of the sensor's last granule.
    pub end: Utc,
    /// What it holds; the sensor's collection first.
    pub collections: Vec<MadeCollection>,
}

/// A collection in a file.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct MadeCollection {
    /// Short name.
    pub name: String,
    /// Its granules, by time.
    pub granules: Vec<GranuleReport>,
}

/// A granule in a file.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct GranuleReport {
    /// Its id.
    pub id: String,
    /// Its first microsecond.
    pub start: Utc,
    /// The first microsecond after it.
    pub end: Utc,
    /// Packets received.
    pub packets: u64,
    /// Packets known to be missing.
    pub missing: u64,
    /// These in percent of both.
    pub percent_missing: f32,
    /// By kind of packets, those of which there are or are missing any.
    pub types: Vec<TypeAccount>,
}

/// Makes the files that `job` asks for of the packets in `inputs`. Each appears, with its sidecar
/// `NAME.json` before it, when it is whole; one of the same name is replaced.
///
/// # Errors
/// [`RdrError`]; files that were finished before stay.
pub fn make(library: Library, inputs: &[PathBuf], job: &RdrJob<'_>) -> Result<Made, RdrError> {
    let mut index = PacketIndex::new(job.mission, job.plan, &job.sensors);
    let (mut sources, mut cut_bytes) = (Vec::new(), 0);
    for (number, path) in (0u32..).zip(inputs) {
        let mut source = PacketFileSource::open(path)?;
        cut_bytes += source.read(|offset, packet| Ok(index.push(number, offset, packet)?))? as u64;
        sources.push(source);
    }
    let sorted = index.finish()?;
    fs::create_dir_all(job.dir).map_err(unwritable(job.dir))?;
    let maker = Maker { hdf5: library, job, sorted: &sorted, sources: &sources };
    let mut files = Vec::new();
    for (place, collection) in job.plan.collections.iter().enumerate() {
        if job.sensors.contains(&collection.name.as_str()) {
            files.extend(maker.file(place)?);
        }
    }
    Ok(Made { files, packets: sorted.account, cut_bytes })
}

struct Maker<'a> {
    hdf5: Library,
    job: &'a RdrJob<'a>,
    sorted: &'a Sorted,
    sources: &'a [PacketFileSource],
}

impl Maker<'_> {
    /// The file of a collection; `None` where there are no packets for it.
    fn file(&self, place: usize) -> Result<Option<MadeFile>, RdrError> {
        let granules = if self.job.packed {
            self.sorted.packed_file(self.job.plan, place, self.job.within)
        } else {
            self.sorted.file_alone(place, self.job.within)
        };
        let mut own = granules.iter().filter(|granule| granule.collection == place);
        let Some(first) = own.next() else { return Ok(None) };
        let span =
            GranuleSpan { start: first.span.start, end: own.next_back().unwrap_or(first).span.end };
        let mut ids: Vec<&str> =
            granules.iter().map(|granule| self.collection(granule).product_id.as_str()).collect();
        ids.dedup();
        let name = file_name(&ids, &self.job.plan.satellite, span, &self.job.facts);
        let working = self.job.dir.join(format!(".{name}.part"));
        let written = self.write(&working, &granules).and_then(|collections| {
            let described = self.describe(&working, name.clone(), span, collections)?;
            self.publish(&working, &described)?;
            Ok(described)
        });
        if written.is_err() {
            // The earlier fault is reported.
            let _ = fs::remove_file(&working);
        }
        written.map(Some)
    }

    fn write(
        &self,
        working: &Path,
        granules: &[&GranulePlan],
    ) -> Result<Vec<MadeCollection>, RdrError> {
        let facts = self.job.facts.clone();
        let mut writer = RdrWriter::create(self.hdf5, working, &self.job.plan.satellite, facts)?;
        let mut collections: Vec<MadeCollection> = Vec::new();
        for granule in granules {
            let collection = self.collection(granule);
            let packed = self.pack(granule)?;
            writer.granule(collection, &packed)?;
            if collections.last().is_none_or(|last| last.name != collection.short_name) {
                collections.push(MadeCollection {
                    name: collection.short_name.clone(),
                    granules: Vec::new(),
                });
            }
            if let Some(last) = collections.last_mut() {
                last.granules.push(GranuleReport::of(&packed));
            }
        }
        writer.finish()?;
        Ok(collections)
    }

    fn pack(&self, granule: &GranulePlan) -> Result<PackedGranule, RdrError> {
        let mut builder =
            GranuleBuilder::new(self.job.plan, self.collection(granule), granule.span);
        let mut packet = Vec::new();
        for indexed in self.sorted.packets(granule) {
            let source = &self.sources[indexed.source as usize];
            source.packet(indexed.offset, indexed.len, &mut packet)?;
            builder.add(indexed.time, &packet)?;
        }
        Ok(builder.finish())
    }

    fn collection(&self, granule: &GranulePlan) -> &skyhaul_level0::rdr::Collection {
        &self.job.plan.collections[granule.collection]
    }

    fn describe(
        &self,
        working: &Path,
        name: String,
        span: GranuleSpan,
        collections: Vec<MadeCollection>,
    ) -> Result<MadeFile, RdrError> {
        let (bytes, sha256) = digest(working).map_err(unwritable(working))?;
        Ok(MadeFile {
            format: FORMAT,
            name,
            bytes,
            sha256,
            mission: self.job.mission.name().to_owned(),
            created: self.job.facts.created,
            start: span.start.utc(),
            end: span.end.utc(),
            collections,
        })
    }

    /// Shows the file once it, and what describes it, is on disk.
    fn publish(&self, working: &Path, described: &MadeFile) -> Result<(), RdrError> {
        let dir = self.job.dir;
        let json =
            serde_json::to_vec_pretty(described).expect("the description has text keys only");
        let part = dir.join(format!(".{}.json.part", described.name));
        let write = || {
            fs::write(&part, json)?;
            File::open(&part)?.sync_all()?;
            File::open(working)?.sync_all()?;
            fs::rename(&part, dir.join(format!("{}.json", described.name)))?;
            fs::rename(working, dir.join(&described.name))?;
            File::open(dir)?.sync_all()
        };
        write().map_err(unwritable(&dir.join(&described.name)))
    }
}

impl GranuleReport {
    fn of(granule: &PackedGranule) -> Self {
        let sum = |of: fn(&TypeAccount) -> u64| granule.types.iter().map(of).sum();
        let is_told = |kind: &&TypeAccount| kind.received + kind.missing > 0;
        Self {
            id: granule.id.as_str().to_owned(),
            start: Iet::utc(granule.span.start),
            end: Iet::utc(granule.span.end),
            packets: sum(|kind| kind.received),
            missing: sum(|kind| kind.missing),
            percent_missing: granule.percent_missing(),
            types: granule.types.iter().filter(is_told).cloned().collect(),
        }
    }
}

/// Length and SHA-256 of a file.
fn digest(path: &Path) -> io::Result<(u64, String)> {
    let (mut file, mut hash, mut len) = (File::open(path)?, Sha256::new(), 0);
    let mut buffer = vec![0; 256 << 10];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok((len, hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()));
        }
        hash.update(&buffer[..read]);
        len += read as u64;
    }
}

fn unwritable(file: &Path) -> impl FnOnce(io::Error) -> RdrError {
    let file = file.to_owned();
    move |source| RdrError::Write { file, source }
}

const FORMAT: &str = "skyhaul-rdr-1";
