//! The products: their accounts, and their files on the disk.

use serde::Deserialize;
use sha2::{Digest, Sha256};
use skyhaul_exit::Failure;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// The account beside a product: the parts that are checked here.
#[derive(Debug, Clone, Deserialize)]
pub struct ProductAccount {
    /// Where the data came from: one contact, as the demonstration has none that completes another.
    pub contacts: [ContactPart; 1],
    /// The product.
    pub product: ProductPart,
    /// What became of its packets.
    pub accounting: PacketOutcomes,
    /// Its applications.
    pub apids: Vec<ApidPart>,
    /// Packets set aside.
    pub set_aside: AsidePart,
    /// The frames of the whole contact.
    pub frames: FramePart,
}

/// The contact that a product comes from.
#[derive(Debug, Clone, Deserialize)]
pub struct ContactPart {
    /// `STATION-FLOW`.
    pub name: String,
    /// The mission's name.
    pub mission: String,
}

/// A product and its packet file.
#[derive(Debug, Clone, Deserialize)]
pub struct ProductPart {
    /// The mission's name for it.
    pub name: String,
    /// None where there is no packet in it.
    pub packet_file: Option<FilePart>,
}

/// A file.
#[derive(Debug, Clone, Deserialize)]
pub struct FilePart {
    /// Its name in the folder of products.
    pub name: String,
    /// Its digest.
    pub sha256: String,
}

/// What became of a product's packets.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct PacketOutcomes {
    /// Packets in the packet file.
    pub delivered: u64,
    /// Packets that were there already.
    pub duplicates: u64,
    /// Packets dropped for want of room.
    pub rejected: u64,
    /// Packets set aside with their bytes.
    pub set_aside: u64,
    /// Whether each packet is in one count.
    pub balanced: bool,
    /// Breaks in the sequence counts.
    pub gaps: u64,
}

/// An application.
#[derive(Debug, Clone, Deserialize)]
pub struct ApidPart {
    /// Its id.
    pub apid: u16,
    /// Packets in the product.
    pub packets: u64,
}

/// Packets set aside: the first thousand one by one.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct AsidePart {
    /// The packets.
    pub packets: Vec<SetAsideRow>,
}

/// A packet set aside.
#[derive(Debug, Clone, Deserialize)]
pub struct SetAsideRow {
    /// Its application.
    pub apid: Option<u16>,
    /// Why.
    pub reason: String,
}

/// The frames of a contact.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct FramePart {
    /// Good frames in which symbols were corrected.
    pub corrected: u64,
    /// Frames that could not be read although they are good.
    pub unreadable: u64,
    /// Idle packets, which no product holds.
    pub idle_packets: u64,
    /// Virtual channels.
    pub channels: Vec<ChannelPart>,
}

/// A virtual channel.
#[derive(Debug, Clone, Deserialize)]
pub struct ChannelPart {
    /// Its number.
    pub vcid: u8,
    /// Good frames.
    pub frames: u64,
    /// Frames missing by their counts.
    pub missing_frames: u64,
    /// Packets, idle ones included.
    pub packets: u64,
}

/// Reads all accounts in the folder, by their contact's name.
///
/// # Errors
/// The folder or an account cannot be read.
pub fn accounts(folder: &Path) -> Result<BTreeMap<String, Vec<ProductAccount>>, Failure> {
    let refused = |place: &Path, source: io::Error| {
        let help = "leave the folder as it is while the demonstration runs";
        Failure::io(
            "a product's account cannot be read",
            &place.display().to_string(),
            help,
            source,
        )
    };
    let mut found: BTreeMap<String, Vec<ProductAccount>> = BTreeMap::new();
    if !folder.exists() {
        return Ok(found);
    }
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut paths: Vec<_> =
        entries.map_err(|error| refused(folder, error))?.iter().map(fs::DirEntry::path).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    for path in paths {
        let text = fs::read_to_string(&path).map_err(|error| refused(&path, error))?;
        let account: ProductAccount =
            serde_json::from_str(&text).map_err(|error| refused(&path, io::Error::from(error)))?;
        found.entry(account.contacts[0].name.clone()).or_default().push(account);
    }
    Ok(found)
}

/// The digest of a file as it lies on the disk.
///
/// # Errors
/// It cannot be read.
pub fn digest(path: &Path) -> io::Result<String> {
    let mut digest = Sha256::new();
    io::copy(&mut File::open(path)?, &mut digest)?;
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
