//! `[[expedited]]` and `[[delivery]]`: what is published while a contact goes on, and to whom
//! products are handed over.

use crate::name::{Name, from_text};
use crate::section::section;
use skyhaul_ccsds::id::Apid;
use skyhaul_ccsds::mission::ApidRange;
use skyhaul_dispatch::ChecksumKind;
use skyhaul_dispatch::sips::{self, FileType, Terms};
use skyhaul_units::Duration;
use std::path::{Path, PathBuf};
use std::str::FromStr;

section! {
    /// An expedited data set (EDS): a part of a contact that is published while the contact is
    /// open.
    "[[expedited]]" ExpeditedEntry checked by ExpeditedEntry::check {
        /// The product that it is made of, by its name in the mission file. Default: all.
        product: Name => optional,
        /// The mission. Default: every mission.
        mission: Name => optional,
        /// The applications, such as `"800-805, 826"`. Default: all of the product.
        apids: Apids => optional,
        /// The reception time that one data set covers: a second or more.
        slice: Duration => "1 min",
        /// Marks the data sets as quick look in construction records.
        quick_look: bool => "false",
    }
}

section! {
    /// A folder of another system that receives products: the files, a delivery record, and a
    /// signal file.
    "[[delivery]]" DeliveryEntry {
        /// Its name in status output, and the consumer's name in delivery records.
        name: Name => required,
        /// The folder. The centre creates it at its start if it does not exist.
        dir: PathBuf => required,
        /// `edos`: binary records and notices; `sips`: records and notices in PVL.
        format: DeliveryFormat => "sips",
        /// `first`: delivers each version as soon as it is made; `complete`: delivers a product
        /// only when nothing is missing from it, or when `patience` is over.
        mode: DeliveryMode => "first",
        /// How long an incomplete product waits for missing data. 6 hours are four orbits.
        patience: Duration => "6 h",
        /// The products, such as `"viirs-science, other"`. Default: all.
        products: Products => optional,
        /// The folder where the consumer writes its notices. Default: `notices` in the delivery
        /// folder. The centre moves them to `read` there.
        notices: PathBuf => optional,
        /// The most attempts to deliver a product if the consumer reports that it could not take
        /// it.
        attempts: u32 => "3",
        /// How long the files stay for the consumer, as stated in delivery records.
        expires: Duration => "7 d",
        /// The checksum in `sips` records: `md5` or `cksum`, as the utilities of these names print
        /// them.
        checksum: ChecksumKind => "md5",
        /// The type of data files in `sips` records, from the consumers' list: `SCIENCE`, `HDF`,
        /// `HDF-EOS`, `BROWSE`, `QA`, `TGZ` and others. Construction records and accounts are
        /// `METADATA`.
        file_type: FileType => "SCIENCE",
        /// The version of the collection at the consumer. `sips` records give it with the
        /// collection's name, which is that of the product.
        data_version: Name => "001",
        /// The host from which the consumer fetches, by the consumer's name for it. Default: `sips`
        /// records name no host, and the consumer uses the host where it found the record.
        node_name: Name => optional,
    }
}

/// Applications of an expedited data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Apids(pub Vec<ApidRange>);

/// Names of products.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Products(pub Vec<String>);

/// How delivery records and notices are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryFormat {
    /// Binary, as EDOS does.
    Edos,
    /// PVL text.
    Sips,
}

/// Which versions of a product are handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryMode {
    /// Each, at once.
    First,
    /// One from which nothing is missing.
    Complete,
}

impl ExpeditedEntry {
    fn check(&self) -> Result<(), String> {
        if self.slice >= Duration::from_secs(1) {
            return Ok(());
        }
        Err(format!("a slice of {} is too short; write one of \"1 s\" or more", self.slice))
    }
}

impl DeliveryEntry {
    /// Where the consumer writes its notices.
    pub fn notices(&self) -> PathBuf {
        self.notices.clone().unwrap_or_else(|| self.dir.join("notices"))
    }

    /// Whether it gets products of this name.
    pub fn takes(&self, product: &str) -> bool {
        self.products.as_ref().is_none_or(|products| products.0.iter().any(|name| name == product))
    }

    /// What its records in PVL say beside the product.
    pub fn terms(&self) -> Terms {
        Terms {
            node_name: self.node_name.as_ref().map(ToString::to_string),
            data_version: self.data_version.to_string(),
            file_type: self.file_type,
        }
    }

    /// The folder as delivery records name it.
    pub fn directory(&self) -> String {
        let path = std::path::absolute(&self.dir).unwrap_or_else(|_| self.dir.clone());
        path.to_string_lossy().into_owned()
    }

    /// Whether its delivery records can name a folder, seen from the configuration's.
    pub(super) fn check_folder(&self, base: &Path) -> Result<(), String> {
        if self.format == DeliveryFormat::Edos {
            return Ok(());
        }
        let mut seen = self.clone();
        seen.resolve(base);
        sips::check_folder(&seen.directory()).map_err(|error| error.to_string())
    }

    pub(super) fn resolve(&mut self, base: &Path) {
        crate::from_base(base, &mut self.dir);
        if let Some(notices) = &mut self.notices {
            crate::from_base(base, notices);
        }
    }
}

impl FromStr for Apids {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || {
            format!(
                "`{text}` is not a list of applications; write them like \"800-805, 826\", 0 to \
                2046"
            )
        };
        let range = |part: &str| {
            part.trim().parse().ok().filter(|range: &ApidRange| range.last < Apid::MAX)
        };
        let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
        ranges.map(Self).ok_or_else(refuse)
    }
}

impl FromStr for Products {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let names: Result<Vec<Name>, _> = text.split(',').map(|name| name.trim().parse()).collect();
        let names = names.map_err(|error| error.to_string())?;
        Ok(Self(names.iter().map(ToString::to_string).collect()))
    }
}

impl FromStr for DeliveryFormat {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "edos" => Ok(Self::Edos),
            "sips" => Ok(Self::Sips),
            other => {
                Err(format!("`{other}` is not a form of delivery; write \"edos\" or \"sips\""))
            }
        }
    }
}

impl FromStr for DeliveryMode {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "first" => Ok(Self::First),
            "complete" => Ok(Self::Complete),
            other => {
                Err(format!("`{other}` is not a mode of delivery; write \"first\" or \"complete\""))
            }
        }
    }
}

from_text!(Apids, Products, DeliveryFormat, DeliveryMode);
