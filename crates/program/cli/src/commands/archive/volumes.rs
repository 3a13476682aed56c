//! `skyhaul archive write`: products on media, in volumes of a bounded size that are bags
//! (RFC 8493); and their verification.

use super::shelf::{FileVerdict, ReadPace, Shelf, compare, compare_bytes, failed, filter, hex};
use sha2::{Digest, Sha256};
use skyhaul_catalogue::{
    BAG_DECLARATION, BagEntry, BagInfo, ItemFile, bag_manifest, parse_bag_manifest, stac_item,
};
use skyhaul_catalogue_io::ItemRow;
use skyhaul_exit::{Exit, Failure};
use skyhaul_node::status::{ArchiveRequest, StatusRequest, order};
use skyhaul_units::{ByteCount, Rate, Utc};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The arguments of `skyhaul archive write`.
#[derive(clap::Args)]
pub struct WriteVolumes {
    /// The node's configuration.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The folder that gets the volumes, such as a mounted disk.
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// The most bytes of a volume.
    #[arg(long, value_name = "SIZE")]
    volume_size: ByteCount,
    /// Only products that this CQL2 text takes.
    #[arg(long, value_name = "CQL2")]
    filter: Option<String>,
    /// Also products that are on a volume already.
    #[arg(long)]
    again: bool,
    /// Reads no faster than this.
    #[arg(long, value_name = "RATE", default_value = "400 Mbit/s")]
    rate: Rate,
    /// Prints one line of JSON.
    #[arg(long)]
    json: bool,
}

/// A volume that was written.
#[derive(serde::Serialize)]
struct WrittenVolume {
    /// Its name.
    name: String,
    /// Its products.
    products: usize,
    /// Its bytes, with what describes it.
    bytes: u64,
}

/// A volume that is being gathered.
#[derive(Default)]
struct Gathered {
    rows: Vec<ItemRow>,
    bytes: u64,
}

/// What a file costs beside its content: its line in the manifest, and its share of the items.
const FILE_COST: u64 = 1_024;
/// What a volume costs beside its files.
const VOLUME_COST: u64 = 4_096;
/// Products of one message to the node.
const TOLD: usize = 500;
/// The items of a volume.
const ITEMS: &str = "data/items.ndjson";
const MANIFEST: &str = "manifest-sha256.txt";
const TAG_MANIFEST: &str = "tagmanifest-sha256.txt";
/// The longest manifest that is read.
const MANIFEST_MAX: u64 = 512 << 20;

/// Writes volumes one after the other.
struct VolumeWriter<'a> {
    command: &'a WriteVolumes,
    shelf: &'a Shelf,
    now: Utc,
    pace: ReadPace,
    gathered: Gathered,
    written: Vec<WrittenVolume>,
}

/// Writes volumes until every product is on one.
///
/// # Errors
/// A product is damaged or too large, the folder refuses, or no node records the volumes.
pub fn write(command: &WriteVolumes, out: &mut dyn Write) -> Result<(), Failure> {
    let shelf = Shelf::open(&command.config)?;
    let taken = filter(command.filter.as_deref())?;
    // A volume that nobody records would be written again: the node must run.
    let (volume, place) = (String::new(), String::new());
    let probe = ArchiveRequest::Placed { volume, place, items: Vec::new() };
    order(&shelf.socket, &StatusRequest::Archive { order: probe })?;
    let mut writer = VolumeWriter {
        command,
        shelf: &shelf,
        now: skyhaul_net::Clock::start().utc(),
        pace: ReadPace::new(Some(command.rate)),
        gathered: Gathered::default(),
        written: Vec::new(),
    };
    shelf.each(taken.as_ref(), |row| writer.take(row, out))?;
    writer.close(out)?;
    if command.json {
        let line = serde_json::to_string(&writer.written).expect("it has text keys only");
        writeln!(out, "{line}")?;
    } else if writer.written.is_empty() {
        writeln!(out, "every product is on a volume")?;
    }
    Ok(())
}

impl VolumeWriter<'_> {
    /// Takes a product: into the volume that is gathered, or into the next one.
    fn take(&mut self, row: ItemRow, out: &mut dyn Write) -> Result<(), Failure> {
        let places = self.shelf.catalogue.archive().volumes_of(row.id).map_err(failed)?;
        if !places.is_empty() && !self.command.again {
            return Ok(());
        }
        let most = self.command.volume_size;
        let cost = row.item.size() + FILE_COST * row.item.files.len() as u64;
        if VOLUME_COST + cost > most.as_u64() {
            let (name, size) = (row.item.versioned_id(), ByteCount::new(VOLUME_COST + cost));
            let what = format!("{name} needs {size}, more than a volume of {most}");
            return Err(Failure::new(Exit::Usage, &what, "give a larger --volume-size"));
        }
        if VOLUME_COST + self.gathered.bytes + cost > most.as_u64() {
            self.close(out)?;
        }
        self.gathered.bytes += cost;
        self.gathered.rows.push(row);
        Ok(())
    }

    /// Writes what is gathered as a volume.
    fn close(&mut self, out: &mut dyn Write) -> Result<(), Failure> {
        let Gathered { rows, .. } = core::mem::take(&mut self.gathered);
        if rows.is_empty() {
            return Ok(());
        }
        let volume = self.volume(&rows)?;
        if !self.command.json {
            let bytes = ByteCount::new(volume.bytes);
            writeln!(out, "{}: {} products, {bytes}, verified", volume.name, volume.products)?;
        }
        self.written.push(volume);
        Ok(())
    }

    fn volume(&mut self, rows: &[ItemRow]) -> Result<WrittenVolume, Failure> {
        let (node, number) = (&self.shelf.centre.node.name, self.written.len() + 1);
        let time = self.now.to_string();
        let time: String = time.chars().filter(char::is_ascii_alphanumeric).take(15).collect();
        let name = format!("{node}-{time}Z-{number:03}");
        let to = &self.command.to;
        let (part, whole) = (to.join(format!(".{name}.part")), to.join(&name));
        let refused = |error: io::Error| refused(&whole, error);
        if part.exists() {
            fs::remove_dir_all(&part).map_err(refused)?;
        }
        fs::create_dir_all(part.join("data")).map_err(refused)?;
        let entries = self.payload(&part, rows)?;
        self.describe(&part, &name, entries).map_err(refused)?;
        if let Some(first) = check(&part)?.first() {
            let what = format!("the medium gave back other bytes: {first}");
            let failure = Failure::new(Exit::Environment, &what, "use another medium");
            return Err(failure.at(&part.display().to_string()));
        }
        let kept = fs::rename(&part, &whole).and_then(|()| File::open(to)?.sync_all());
        kept.map_err(refused)?;
        record(self.shelf, &name, &whole, rows)?;
        let bytes = bytes_of(&whole).map_err(refused)?;
        Ok(WrittenVolume { name, products: rows.len(), bytes })
    }

    /// Copies the files of products into a bag, and their items.
    fn payload(&mut self, bag: &Path, rows: &[ItemRow]) -> Result<Vec<BagEntry>, Failure> {
        let refused = |error: io::Error| refused(bag, error);
        let mut entries = Vec::new();
        for row in rows {
            for file in &row.item.files {
                let mut copy = File::create(bag.join("data").join(&file.name)).map_err(refused)?;
                let from = self.shelf.products.join(&file.name);
                let verdict = compare(&from, file, &mut self.pace, &mut copy);
                if verdict != FileVerdict::Good {
                    let what = format!("{}: {} {verdict}", row.item.versioned_id(), file.name);
                    let help = "`skyhaul archive restore` brings it back; then write again";
                    return Err(Failure::new(Exit::Result, &what, help));
                }
                copy.sync_all().map_err(refused)?;
                let path = format!("data/{}", file.name);
                entries.push(BagEntry { sha256: file.sha256, path });
            }
        }
        let items: String =
            rows.iter().map(|row| format!("{}\n", stac_item(&row.item, str::to_owned))).collect();
        entries.push(tag(bag, ITEMS, &items).map_err(refused)?);
        Ok(entries)
    }

    /// Writes the tag files of a bag.
    fn describe(&self, bag: &Path, name: &str, entries: Vec<BagEntry>) -> io::Result<()> {
        let info = BagInfo {
            name: name.to_owned(),
            node: self.shelf.centre.node.name.to_string(),
            made: self.now,
            octets: bytes_of(&bag.join("data"))?,
            files: entries.len() as u64,
        };
        let tags = [
            tag(bag, "bagit.txt", BAG_DECLARATION)?,
            tag(bag, "bag-info.txt", &info.text())?,
            tag(bag, MANIFEST, &bag_manifest(&entries))?,
        ];
        tag(bag, TAG_MANIFEST, &bag_manifest(&tags))?;
        for folder in [bag.join("data"), bag.to_owned()] {
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    }
}

fn refused(place: &Path, error: io::Error) -> Failure {
    let help = "free space there, or give this user write permission";
    Failure::io("a volume cannot be written", &place.display().to_string(), help, error)
}

/// Has the node record which products are on a volume.
fn record(shelf: &Shelf, name: &str, whole: &Path, rows: &[ItemRow]) -> Result<(), Failure> {
    let place = std::path::absolute(whole).unwrap_or_else(|_| whole.to_owned());
    for part in rows.chunks(TOLD) {
        let items = part.iter().map(|row| row.id).collect();
        let (volume, place) = (name.to_owned(), place.display().to_string());
        order(
            &shelf.socket,
            &StatusRequest::Archive { order: ArchiveRequest::Placed { volume, place, items } },
        )?;
    }
    Ok(())
}

/// Writes a small file of a bag.
fn tag(bag: &Path, name: &str, text: &str) -> io::Result<BagEntry> {
    let mut file = File::create(bag.join(name))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(BagEntry { sha256: Sha256::digest(text).into(), path: name.to_owned() })
}

/// The bytes of all files of a folder.
fn bytes_of(folder: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        sum += if about.is_dir() { bytes_of(&entry.path())? } else { about.len() };
    }
    Ok(sum)
}

/// Verifies a volume, and prints what is wrong with it.
///
/// # Errors
/// It is no volume, or damaged.
pub fn verify(folder: &Path, out: &mut dyn Write) -> Result<(), Failure> {
    let damaged = check(folder)?;
    for what in &damaged {
        writeln!(out, "{what}")?;
    }
    if damaged.is_empty() {
        return Ok(writeln!(out, "{}: verified", folder.display())?);
    }
    let what = format!("{} files of the volume are damaged", damaged.len());
    let failure = Failure::new(Exit::Result, &what, "write the volume again, with --again");
    Err(failure.at(&folder.display().to_string()))
}

/// What is wrong with a bag: each file of its manifests is read.
fn check(bag: &Path) -> Result<Vec<String>, Failure> {
    let mut wrong = Vec::new();
    let mut known = BTreeSet::new();
    for name in [TAG_MANIFEST, MANIFEST] {
        for BagEntry { sha256, path } in manifest(bag, name)? {
            let at = bag.join(&path);
            let size = at.metadata().map_or(0, |about| about.len());
            let file = ItemFile {
                name: path.clone(),
                size,
                sha256,
                md5: None,
                cksum: None,
                is_metadata: false,
            };
            let verdict = match File::open(&at) {
                Ok(opened) => {
                    // From the medium, where the system lets go what it remembers.
                    let _ = rustix::fs::fadvise(&opened, 0, None, rustix::fs::Advice::DontNeed);
                    compare_bytes(opened, &file, &mut ReadPace::new(None), &mut io::sink())
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => FileVerdict::Absent,
                Err(error) => FileVerdict::Unreadable(error.to_string()),
            };
            if verdict != FileVerdict::Good {
                wrong.push(format!("{path} {verdict}, it should have {}", hex(&sha256)));
            }
            known.insert(path);
        }
    }
    let listed = fs::read_dir(bag.join("data")).into_iter().flatten().filter_map(Result::ok);
    for entry in listed {
        let path = format!("data/{}", entry.file_name().to_string_lossy());
        if !known.contains(&path) {
            wrong.push(format!("{path} is in no manifest"));
        }
    }
    Ok(wrong)
}

fn manifest(bag: &Path, name: &str) -> Result<Vec<BagEntry>, Failure> {
    let path = bag.join(name);
    let at = |failure: Failure| failure.at(&path.display().to_string());
    let unread = |what: String| at(Failure::new(Exit::Usage, &what, "name the folder of a volume"));
    let size =
        path.metadata().map_err(|error| unread(format!("this is no volume ({error})")))?.len();
    if size > MANIFEST_MAX {
        return Err(unread(format!("a manifest of {size} bytes is none of a volume")));
    }
    let text = fs::read_to_string(&path)
        .map_err(|error| unread(format!("the manifest cannot be read ({error})")))?;
    parse_bag_manifest(&text).map_err(|error| {
        at(Failure::new(
            Exit::Result,
            &format!("the manifest is damaged: {error}"),
            "use another copy",
        ))
    })
}
