//! The copies of a product elsewhere: destinations that have it, and volumes.

use super::shelf::{FileVerdict, ReadPace, Shelf, compare, compare_bytes, failed};
use skyhaul_catalogue::ItemFile;
use skyhaul_catalogue_io::{DeliveryQuery, ItemRow};
use skyhaul_config::{OutletPlace, ProductDestination};
use skyhaul_dispatch::DeliveryState;
use skyhaul_exit::Failure;
use skyhaul_remote::RemotePlace;
use skyhaul_units::ByteCount;
use std::io::Write;
use std::path::PathBuf;

/// A copy of a product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProductCopy {
    /// At a destination.
    Destination {
        /// Its name.
        name: String,
        /// The folder below it; empty where it is the destination itself.
        into: String,
    },
    /// In a folder, such as the content of a volume.
    Folder(PathBuf),
}

/// The most bytes of a file that come through memory: files at destinations that are not folders
/// of this machine.
const FETCHED_MAX: ByteCount = ByteCount::mib(1_024);
/// Deliveries of a product that are looked at.
const DELIVERIES: usize = 1_000;

impl Shelf {
    /// The copies of a product that its deliveries know.
    ///
    /// # Errors
    /// The catalogue cannot be read.
    pub fn copies(&self, row: &ItemRow) -> Result<Vec<ProductCopy>, Failure> {
        let query = DeliveryQuery {
            item: Some(row.item.name.clone()),
            limit: DELIVERIES,
            ..DeliveryQuery::default()
        };
        let deliveries = self.catalogue.deliveries(&query).map_err(failed)?;
        let is_there = |state: DeliveryState| state.is_there();
        let its = deliveries.into_iter().map(|(delivery, _)| delivery);
        let its = its.filter(|one| one.item == row.id && is_there(one.delivery.state));
        let outlets = &self.centre.outlets;
        Ok(its
            .map(|delivery| {
                let subscription = outlets.subscription(&delivery.subscription);
                let into = subscription.map_or("", |one| one.folder().as_str()).to_owned();
                ProductCopy::Destination { name: delivery.destination, into }
            })
            .collect())
    }

    fn destination(&self, name: &str) -> Option<&ProductDestination> {
        self.centre.outlets.destinations.iter().find(|one| one.name.as_str() == name)
    }
}

impl ProductCopy {
    /// Its name, for people.
    pub fn name(&self) -> String {
        match self {
            Self::Destination { name, .. } => name.clone(),
            Self::Folder(path) => path.display().to_string(),
        }
    }

    /// Compares a file of the copy with what was published, and copies it meanwhile.
    pub fn read(
        &self,
        shelf: &Shelf,
        file: &ItemFile,
        pace: &mut ReadPace,
        to: &mut dyn Write,
    ) -> FileVerdict {
        let (name, into) = match self {
            Self::Folder(path) => return compare(&path.join(&file.name), file, pace, to),
            Self::Destination { name, into } => (name, into),
        };
        let Some(destination) = shelf.destination(name) else {
            return FileVerdict::Unreadable("the file of the node has no such destination".into());
        };
        let below = match into.as_str() {
            "" => file.name.clone(),
            into => format!("{into}/{}", file.name),
        };
        let place = match &destination.place {
            OutletPlace::Node(_) => {
                let what = "it is at another node; copy it from there with `skyhaul cp`, and give \
                            the folder";
                return FileVerdict::Unreadable(what.to_owned());
            }
            OutletPlace::Remote(RemotePlace::Folder(root)) => {
                return compare(&root.join(below), file, pace, to);
            }
            OutletPlace::Remote(place) => place,
        };
        if file.size > FETCHED_MAX.as_u64() {
            let what =
                format!("it has more than {FETCHED_MAX}; fetch it, and restore from a folder");
            return FileVerdict::Unreadable(what);
        }
        let sink = skyhaul_remote::open(place, &destination.access("archive"), None);
        let read = sink.and_then(|mut sink| sink.read(&below, FETCHED_MAX));
        match read {
            Ok(Some(bytes)) => compare_bytes(&bytes[..], file, pace, to),
            Ok(None) => FileVerdict::Absent,
            Err(failure) => FileVerdict::Unreadable(failure.sentence),
        }
    }
}
