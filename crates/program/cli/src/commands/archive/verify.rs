//! `skyhaul archive verify` and `restore`: compares products with the digests in the catalogue, and
//! brings back what is damaged or lacking from a copy.

use super::copies::ProductCopy;
use super::shelf::{FileVerdict, ReadPace, Shelf, compare, filter};
use serde::Serialize;
use skyhaul_catalogue::{ItemFile, ItemState};
use skyhaul_catalogue_io::ItemRow;
use skyhaul_exit::{Exit, Failure};
use skyhaul_node::status::{ArchiveRequest, StatusRequest, order};
use skyhaul_units::{ByteCount, Rate};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The arguments of `skyhaul archive verify`.
#[derive(clap::Args)]
pub struct Verify {
    /// The node's configuration.
    #[arg(long, value_name = "FILE", required_unless_present = "volume")]
    config: Option<PathBuf>,
    /// Only products that this CQL2 text takes.
    #[arg(long, value_name = "CQL2")]
    filter: Option<String>,
    /// Also the copies at destinations that have them.
    #[arg(long)]
    copies: bool,
    /// Reads no faster than this.
    #[arg(long, value_name = "RATE", default_value = "400 Mbit/s")]
    rate: Rate,
    /// Prints one line of JSON.
    #[arg(long)]
    json: bool,
}

/// The arguments of `skyhaul archive restore`.
#[derive(clap::Args)]
pub struct Restore {
    /// Their names: all versions, or with a version, such as NAME-v2.
    #[arg(required = true)]
    names: Vec<String>,
    /// The node's configuration.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// From this folder, such as the `data` of a volume. Default: from the destinations that have
    /// the product.
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// Prints one line of JSON.
    #[arg(long)]
    json: bool,
}

/// What was found.
#[derive(Default, Serialize)]
struct Verification {
    /// Products that were read.
    products: u64,
    /// Files of them.
    files: u64,
    /// Bytes that were read.
    bytes: u64,
    /// Files that are not as they were published.
    damaged: Vec<Damaged>,
}

/// A file that is not as it was published.
#[derive(Serialize)]
struct Damaged {
    /// The product with its version.
    product: String,
    /// The file.
    file: String,
    /// Where: `products`, or a destination.
    copy: String,
    #[serde(flatten)]
    verdict: FileVerdict,
    /// Destinations that have the product.
    copies: Vec<String>,
}

/// What was restored.
#[derive(Serialize)]
struct Restored {
    /// The product with its version.
    product: String,
    /// Its files that were restored, each with the copy that it came from.
    files: Vec<(String, String)>,
}

/// Reads all products.
///
/// # Errors
/// Some are damaged, or the catalogue cannot be read.
pub fn verify(command: &Verify, out: &mut dyn Write) -> Result<(), Failure> {
    let Some(config) = &command.config else {
        return Err(Failure::new(Exit::Usage, "no node is named", "give --config or --volume"));
    };
    let shelf = Shelf::open(config)?;
    let taken = filter(command.filter.as_deref())?;
    let (mut pace, mut found) = (ReadPace::new(Some(command.rate)), Verification::default());
    shelf.each(taken.as_ref(), |row| {
        found.products += 1;
        let copies = shelf.copies(&row)?;
        let mut tell = |file: &ItemFile, copy: String, verdict: FileVerdict| {
            let damaged = Damaged {
                product: row.item.versioned_id(),
                file: file.name.clone(),
                copy,
                verdict,
                copies: copies.iter().map(ProductCopy::name).collect(),
            };
            if !command.json {
                write_damaged(&damaged, out)?;
            }
            found.damaged.push(damaged);
            Ok::<(), Failure>(())
        };
        for file in &row.item.files {
            found.files += 1;
            let own = compare(&shelf.products.join(&file.name), file, &mut pace, &mut io::sink());
            if own != FileVerdict::Good {
                tell(file, "products".to_owned(), own)?;
            }
            for copy in copies.iter().filter(|_| command.copies) {
                let verdict = copy.read(&shelf, file, &mut pace, &mut io::sink());
                if verdict != FileVerdict::Good {
                    tell(file, copy.name(), verdict)?;
                }
            }
        }
        Ok(())
    })?;
    found.bytes = pace.read();
    if command.json {
        let line = serde_json::to_string(&found).expect("it has text keys only");
        writeln!(out, "{line}")?;
    } else {
        let bytes = ByteCount::new(found.bytes);
        let (products, files) = (found.products, found.files);
        writeln!(out, "{products} products, {files} files, {bytes} read")?;
    }
    match found.damaged.len() {
        0 => Ok(()),
        count => {
            let what = format!("{count} files are not as they were published");
            let help = "`skyhaul archive restore NAME` brings each back from a copy";
            Err(Failure::new(Exit::Result, &what, help))
        }
    }
}

fn write_damaged(damaged: &Damaged, out: &mut dyn Write) -> Result<(), Failure> {
    let Damaged { product, file, copy, verdict, copies } = damaged;
    let place = if copy == "products" { String::new() } else { format!(" at {copy}") };
    let known = match &copies[..] {
        [] => "no copy is known".to_owned(),
        copies => format!("copies: {}", copies.join(", ")),
    };
    Ok(writeln!(out, "{product}: {file}{place} {verdict}; {known}")?)
}

/// Brings products back from copies.
///
/// # Errors
/// There is no such product, or no copy of it is good.
pub fn restore(command: &Restore, out: &mut dyn Write) -> Result<(), Failure> {
    let shelf = Shelf::open(&command.config)?;
    let mut done = Vec::new();
    for name in &command.names {
        for row in named(&shelf, name)? {
            let restored = restored(&shelf, &row, command.from.as_deref())?;
            if !command.json {
                match &restored.files[..] {
                    [] => writeln!(out, "{}: as it was published", restored.product)?,
                    files => {
                        for (file, copy) in files {
                            writeln!(out, "{}: {file} restored from {copy}", restored.product)?;
                        }
                    }
                }
            }
            done.push(restored);
        }
    }
    if command.json {
        let line = serde_json::to_string(&done).expect("it has text keys only");
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// The products of a name, in all versions, or in the version that the name has.
fn named(shelf: &Shelf, name: &str) -> Result<Vec<ItemRow>, Failure> {
    let quoted = name.replace('\'', "''");
    let text = format!("id = '{quoted}' OR versioned_id = '{quoted}'");
    let query = skyhaul_catalogue_io::ItemQuery {
        filter: filter(Some(&text))?,
        after: None,
        limit: VERSIONS,
    };
    let found = shelf.catalogue.search(&query).map_err(super::shelf::failed)?.items;
    if found.is_empty() {
        let what = format!("there is no product `{name}`");
        return Err(Failure::new(Exit::Usage, &what, "take a name from `skyhaul archive list`"));
    }
    Ok(found)
}

fn restored(shelf: &Shelf, row: &ItemRow, from: Option<&Path>) -> Result<Restored, Failure> {
    let product = row.item.versioned_id();
    let copies = match from {
        Some(folder) => vec![ProductCopy::Folder(folder.to_owned())],
        None => shelf.copies(row)?,
    };
    let mut files = Vec::new();
    for file in &row.item.files {
        let path = shelf.products.join(&file.name);
        let own = compare(&path, file, &mut ReadPace::new(None), &mut io::sink());
        if own != FileVerdict::Good {
            files.push((file.name.clone(), bring(shelf, &product, file, &copies)?));
        }
    }
    if row.item.state != ItemState::Present {
        let from = files.first().map_or("the folder of products", |(_, copy)| copy.as_str());
        let request = ArchiveRequest::Restored { item: row.id, from: from.to_owned() };
        order(&shelf.socket, &StatusRequest::Archive { order: request })?;
    }
    Ok(Restored { product, files })
}

/// Brings a file back from the first copy that is good. Returns its name.
fn bring(
    shelf: &Shelf,
    product: &str,
    file: &ItemFile,
    copies: &[ProductCopy],
) -> Result<String, Failure> {
    let (path, part) =
        (shelf.products.join(&file.name), shelf.products.join(format!(".{}.restore", file.name)));
    let unwritten = |error: io::Error| {
        let help = "free space there, or give this user write permission";
        Failure::io("a file cannot be restored", &path.display().to_string(), help, error)
    };
    let mut tried = Vec::new();
    for copy in copies {
        let mut to = File::create(&part).map_err(unwritten)?;
        let verdict = copy.read(shelf, file, &mut ReadPace::new(None), &mut to);
        if verdict == FileVerdict::Good {
            to.sync_all().and_then(|()| fs::rename(&part, &path)).map_err(unwritten)?;
            let folder = File::open(&shelf.products).and_then(|folder| folder.sync_all());
            folder.map_err(unwritten)?;
            return Ok(copy.name());
        }
        tried.push(format!("at {} it {verdict}", copy.name()));
    }
    let _ = fs::remove_file(&part);
    let why = if tried.is_empty() { "no copy is known".to_owned() } else { tried.join("; ") };
    let what = format!("{product}: {} cannot be restored: {why}", file.name);
    let help = "name a folder that has it by --from, or `skyhaul reprocess` its contact";
    Err(Failure::new(Exit::Result, &what, help))
}

/// Versions of one product.
const VERSIONS: usize = 1_000;
