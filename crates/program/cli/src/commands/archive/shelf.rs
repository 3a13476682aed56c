//! The products of a node as its files have them: the catalogue and the folder of products. The
//! node may run meanwhile.

use sha2::{Digest, Sha256};
use skyhaul_catalogue::{Filter, ItemFile, RetentionStart};
use skyhaul_catalogue_io::{
    CandidatePlace, CatalogueError, CatalogueReader, ItemRow, RetentionScope,
};
use skyhaul_config::CentreConfig;
use skyhaul_exit::{Exit, Failure};
use skyhaul_units::{Duration, Instant, Rate};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The products of a node.
pub struct Shelf {
    /// What the node is.
    pub centre: CentreConfig,
    /// Its catalogue.
    pub catalogue: CatalogueReader,
    /// Where its products are.
    pub products: PathBuf,
    /// Where it is asked.
    pub socket: PathBuf,
}

/// What a file was found to be.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "verdict", content = "detail", rename_all = "kebab-case")]
pub enum FileVerdict {
    /// As it was published.
    Good,
    /// It is not there.
    Absent,
    /// It has so many bytes.
    Size(u64),
    /// It has other bytes: this digest.
    Digest(String),
    /// It cannot be read.
    Unreadable(String),
}

/// Reads no faster than a rate.
pub struct ReadPace {
    rate: Option<Rate>,
    clock: skyhaul_net::Clock,
    began: Instant,
    read: u64,
}

/// The catalogue's file in the state folder.
const CATALOGUE: &str = "catalogue.db";
/// The size of a read.
const CHUNK: usize = 1 << 20;
/// Items of one look.
const PAGE: usize = 500;

impl Shelf {
    /// Of the node with this configuration.
    ///
    /// # Errors
    /// It makes no products, or has no catalogue.
    pub fn open(file: &Path) -> Result<Self, Failure> {
        let config = skyhaul_config::load(file)?;
        let socket = config.node.status_socket();
        let Some(centre) = config.centre else {
            let what = "this node makes no products";
            let failure =
                Failure::new(Exit::Usage, what, "name the file of a node with [products]");
            return Err(failure.at(&file.display().to_string()));
        };
        let Some(products) = &centre.products else {
            let what = "this node makes no products";
            let failure =
                Failure::new(Exit::Usage, what, "name the file of a node with [products]");
            return Err(failure.at(&file.display().to_string()));
        };
        let products = products.dir.clone();
        let path = centre.node.state.join(CATALOGUE);
        if !path.exists() {
            let help = "start the node: it makes one; or correct `state` in [node]";
            let failure = Failure::new(Exit::Environment, "there is no catalogue", help);
            return Err(failure.at(&path.display().to_string()));
        }
        let catalogue = CatalogueReader::open(&path).map_err(failed)?;
        Ok(Self { centre: *centre, catalogue, products, socket })
    }

    /// Visits the products that are there and that a filter takes, oldest first.
    ///
    /// # Errors
    /// The catalogue cannot be read, or the visit fails.
    pub fn each(
        &self,
        filter: Option<&Filter>,
        mut visit: impl FnMut(ItemRow) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let scope = RetentionScope { before: &[], own: filter, from: RetentionStart::Published };
        let mut after = None;
        loop {
            let page = self.catalogue.archive().candidates(scope, after, PAGE).map_err(failed)?;
            let is_last = page.len() < PAGE;
            for candidate in page {
                after = Some(CandidatePlace { at: candidate.at, id: candidate.row.id });
                visit(candidate.row)?;
            }
            if is_last {
                return Ok(());
            }
        }
    }
}

/// A filter of the command line.
///
/// # Errors
/// It is none.
pub fn filter(text: Option<&str>) -> Result<Option<Filter>, Failure> {
    let parsed = text.map(str::parse::<Filter>).transpose();
    parsed.map_err(|error| {
        let help = "write it as CQL2 text, such as mission = 'aqua'";
        Failure::new(Exit::Usage, &format!("the filter is wrong: {error}"), help)
    })
}

/// What a catalogue says.
pub fn failed(error: CatalogueError) -> Failure {
    Failure::from_sentence(Exit::Environment, &error.to_string())
}

impl ReadPace {
    /// No faster than `rate`.
    pub fn new(rate: Option<Rate>) -> Self {
        let clock = skyhaul_net::Clock::start();
        Self { rate, began: clock.now(), clock, read: 0 }
    }

    /// So many bytes were read.
    #[allow(clippy::disallowed_methods, reason = "a command that waits")]
    fn took(&mut self, bytes: usize) {
        self.read += bytes as u64;
        let Some(rate) = self.rate.filter(|rate| *rate > Rate::ZERO) else { return };
        let nanos = u128::from(self.read) * 8 * 1_000_000_000 / u128::from(rate.as_bps().max(1));
        let due = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let wait = due.saturating_sub(self.clock.now().since(self.began));
        if wait > Duration::from_millis(1) {
            std::thread::sleep(wait.to_std());
        }
    }

    /// How much was read.
    pub const fn read(&self) -> u64 {
        self.read
    }
}

/// Compares a file with what was published, and copies it meanwhile.
pub fn compare(
    path: &Path,
    file: &ItemFile,
    pace: &mut ReadPace,
    to: &mut dyn Write,
) -> FileVerdict {
    let source = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return FileVerdict::Absent,
        Err(error) => return FileVerdict::Unreadable(error.to_string()),
        Ok(source) => source,
    };
    compare_bytes(source, file, pace, to)
}

/// Compares bytes with a file that was published, and copies them meanwhile.
pub fn compare_bytes(
    mut source: impl Read,
    file: &ItemFile,
    pace: &mut ReadPace,
    to: &mut dyn Write,
) -> FileVerdict {
    let (mut hash, mut size, mut buffer) = (Sha256::new(), 0u64, vec![0; CHUNK]);
    loop {
        let count = match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return FileVerdict::Unreadable(error.to_string()),
        };
        hash.update(&buffer[..count]);
        size += count as u64;
        if let Err(error) = to.write_all(&buffer[..count]) {
            return FileVerdict::Unreadable(error.to_string());
        }
        pace.took(count);
    }
    let digest: [u8; 32] = hash.finalize().into();
    match (size == file.size, digest == file.sha256) {
        (false, _) => FileVerdict::Size(size),
        (true, false) => FileVerdict::Digest(hex(&digest)),
        (true, true) => FileVerdict::Good,
    }
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl core::fmt::Display for FileVerdict {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Good => f.write_str("as it was published"),
            Self::Absent => f.write_str("is not there"),
            Self::Size(size) => write!(f, "has {size} bytes"),
            Self::Digest(digest) => write!(f, "has other bytes (SHA-256 {digest})"),
            Self::Unreadable(reason) => write!(f, "cannot be read ({reason})"),
        }
    }
}
