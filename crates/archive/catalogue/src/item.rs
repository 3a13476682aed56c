//! An item: a version of a product, with its files.

use skyhaul_units::Utc;

/// A version of a product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The name of the product without version: it is the same for all versions.
    pub name: String,
    /// The version, from 1.
    pub version: u32,
    /// What it is.
    pub form: ItemForm,
    /// The mission.
    pub mission: String,
    /// The product of the mission.
    pub product: String,
    /// The stations whose data it has.
    pub stations: Vec<String>,
    /// The applications whose packets it has.
    pub apids: Vec<u16>,
    /// The time of the first packet.
    pub start: Option<Utc>,
    /// The time of the last packet.
    pub end: Option<Utc>,
    /// When it was published.
    pub published: Utc,
    /// Its packets.
    pub packets: u64,
    /// Packets that are missing from it.
    pub missing: u64,
    /// Whether its files are there.
    pub state: ItemState,
    /// Its files, in the order of publication.
    pub files: Vec<ItemFile>,
}

/// A file of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemFile {
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub size: u64,
    /// Its SHA-256.
    pub sha256: [u8; 32],
    /// Its MD5 (RFC 1321), where it was taken.
    pub md5: Option<[u8; 16]>,
    /// Its check as the utility `cksum` prints it (POSIX.1-2017), where it was taken.
    pub cksum: Option<u32>,
    /// Whether it says what the others hold: a construction record or an account.
    pub is_metadata: bool,
}

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ItemForm {
    /// A contact as it was received.
    Contact,
    /// A product of one contact.
    Session,
    /// A product of a time window.
    Time,
    /// A part of a contact that was published while the contact was open.
    Expedited,
    /// A file that is no product.
    File,
}

/// Whether the files of an item are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ItemState {
    /// They are.
    Present,
    /// They are being removed.
    Removing,
    /// Retention or an operator removed them.
    Removed,
}

impl Item {
    /// Its collection: mission and product.
    pub fn collection(&self) -> String {
        format!("{}-{}", self.mission, self.product)
    }

    /// Its name with its version, which no other item has.
    pub fn versioned_id(&self) -> String {
        format!("{}-v{}", self.name, self.version)
    }

    /// The bytes of its files.
    pub fn size(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }
}

impl ItemForm {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Contact, Self::Session, Self::Time, Self::Expedited, Self::File];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Contact => "contact",
            Self::Session => "session",
            Self::Time => "time",
            Self::Expedited => "expedited",
            Self::File => "file",
        }
    }

    /// The form of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.name() == name)
    }
}

impl ItemState {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Removing => "removing",
            Self::Removed => "removed",
        }
    }

    /// The state of this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Present, Self::Removing, Self::Removed]
            .into_iter()
            .find(|state| state.name() == name)
    }
}
