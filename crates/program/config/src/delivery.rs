//! `[[expedited]]` and `[[delivery]]`: what is published while a contact goes on, and to whom
//! products are handed over.

use crate::name::{Name, from_text};
use crate::section::section;
use skyhaul_ccsds::id::Apid;
use skyhaul_ccsds::mission::ApidRange;
use skyhaul_dispatch::ChecksumKind;
use skyhaul_dispatch::sips::{self, FileType, Terms};
use skyhaul_remote::{DeliveryPace, RemoteAccess, RemotePlace, S3Access};
use skyhaul_units::{Duration, Rate};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

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
    /// Another system that receives products: the files, a delivery record, and a signal file.
    "[[delivery]]" DeliveryEntry {
        /// Its name in status output, and the consumer's name in delivery records.
        name: Name => required,
        /// Where: `folder:PATH`, a folder of this machine or mounted here, which the centre
        /// creates at its start if it does not exist; `sftp://USER@HOST[:PORT]/DIR`;
        /// `ftps://USER@HOST[:PORT]/DIR`; `https://[USER@]HOST[:PORT]/DIR` (PUT, and WebDAV where
        /// the server has it); or `s3://BUCKET[/PREFIX]`.
        to: DeliveryPlace => required,
        /// The private key for `sftp://`, as OpenSSH writes it, without a passphrase.
        key: PathBuf => optional,
        /// A file with the password of the user in its first line; of `https://` without a user it
        /// is a bearer token.
        password: PathBuf => optional,
        /// The keys that the `sftp://` server may have, `SHA256:…`, as `ssh-keygen -l` prints them.
        host_keys: Vec<String> => optional,
        /// Certificates (PEM) that vouch for an `ftps://`, `https://` or `s3://` server. Default:
        /// those of this machine.
        ca: PathBuf => optional,
        /// The object store, `https://HOST[:PORT]`, or `http://` in a closed network. Default:
        /// Amazon's.
        endpoint: String => optional,
        /// The region of the object store. Default: `us-east-1`.
        region: Name => optional,
        /// The file with the keys of the object store, in the form of Amazon's `credentials`.
        profile_file: PathBuf => optional,
        /// The profile in that file. Default: `default`.
        profile: Name => optional,
        /// The most that goes there. Default: no limit.
        rate: Rate => optional,
        /// The folder by which delivery records name the place. Default: its path.
        directory: String => optional,
        /// `edos`: binary records and notices; `sips`: records and notices in PVL.
        format: DeliveryFormat => "sips",
        /// `first`: delivers each version as soon as it is made; `complete`: delivers a product
        /// only when nothing is missing from it, or when `patience` is over.
        mode: DeliveryMode => "first",
        /// How long an incomplete product waits for missing data. 6 hours are four orbits.
        patience: Duration => "6 h",
        /// The products, such as `"viirs-science, other"`. Default: all.
        products: Products => optional,
        /// The folder below the place where the consumer writes its notices. The centre moves them
        /// to `read` there.
        notices: String => "notices",
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

/// Where products go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryPlace(pub RemotePlace);

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
    /// How the place is entered.
    pub fn access(&self) -> RemoteAccess {
        let usual = RemoteAccess::default();
        RemoteAccess {
            key_file: self.key.clone(),
            password_file: self.password.clone(),
            host_keys: self.host_keys.clone().unwrap_or_default(),
            ca_file: self.ca.clone(),
            s3: S3Access {
                endpoint: self.endpoint.clone(),
                region: self.region.as_ref().map(ToString::to_string),
                profile_file: self.profile_file.clone(),
                profile: self.profile.as_ref().map(ToString::to_string),
                ..usual.s3
            },
            pace: self.rate.map(|rate| Arc::new(DeliveryPace::new(rate))),
            stall: usual.stall,
        }
    }

    /// The folder of this machine that it is, if it is one.
    pub fn folder(&self) -> Option<&Path> {
        match &self.to.0 {
            RemotePlace::Folder(path) => Some(path),
            _ => None,
        }
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
        if let Some(directory) = &self.directory {
            return directory.clone();
        }
        match &self.to.0 {
            RemotePlace::Folder(path) => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                path.to_string_lossy().into_owned()
            }
            RemotePlace::Sftp(server) | RemotePlace::Ftps(server) | RemotePlace::Https(server) => {
                server.folder.clone()
            }
            RemotePlace::S3 { bucket, prefix } => format!("{bucket}/{prefix}"),
        }
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
        if let RemotePlace::Folder(path) = &mut self.to.0 {
            crate::from_base(base, path);
        }
        let files =
            [&mut self.key, &mut self.password, &mut self.ca, &mut self.profile_file].into_iter();
        files.flatten().for_each(|file| crate::from_base(base, file));
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

impl FromStr for DeliveryPlace {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        // Paths begin at the file's own folder.
        if let Some(path) = text.strip_prefix("folder:").filter(|path| !path.is_empty()) {
            return Ok(Self(RemotePlace::Folder(PathBuf::from(path))));
        }
        text.parse().map(Self).map_err(|error: skyhaul_remote::PlaceError| error.to_string())
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

from_text!(Apids, DeliveryPlace, Products, DeliveryFormat, DeliveryMode);
