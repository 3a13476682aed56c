//! Delivery of products to consumers: copies the files, then the delivery record, then its signal
//! file, into the consumer's folder; and reads the notices that come back.

mod copy;
mod list;

use super::shared::CentreShared;
use crate::status::DeliveryState;
use list::{ItemFile, ProductDelivery};
use skyhaul_config::{DeliveryEntry, DeliveryFormat};
use skyhaul_dispatch::{Checksum, DeliveredFile, DeliveryRecord, Notice, edos, sips};
use skyhaul_level0::naming::{ProductName, Series};
use skyhaul_net::Clock;
use skyhaul_units::{ByteCount, Duration, Utc};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use list::DeliveryList;

/// The delivery thread.
#[derive(Debug)]
pub struct Deliverer {
    shared: Arc<CentreShared>,
    clock: Clock,
    /// This centre's name.
    name: String,
    /// Where products are published.
    products: PathBuf,
}

/// Between two looks for due deliveries and new notices.
const LOOK: Duration = Duration::from_millis(500);
/// Between two attempts while a folder cannot be used.
const RETRY: Duration = Duration::from_secs(2);

impl Deliverer {
    /// Delivers what is published in the folder `products`, as the centre called `name`.
    pub const fn new(
        shared: Arc<CentreShared>,
        clock: Clock,
        name: String,
        products: PathBuf,
    ) -> Self {
        Self { shared, clock, name, products }
    }

    /// Runs until the centre stops.
    pub fn run(self) {
        while !self.shared.shutdown.is_requested() {
            let mut pause = LOOK;
            let consumers = self.shared.deliveries().consumers().to_vec();
            for consumer in &consumers {
                let alarm = format!("products cannot be delivered to {}, retrying", consumer.name);
                match self.deliver(consumer).and_then(|()| self.notices(consumer)) {
                    Ok(()) => drop(self.shared.alarms.clear(&alarm)),
                    Err(reason) => {
                        self.shared.alarms.raise(&alarm, &reason);
                        pause = RETRY;
                    }
                }
            }
            self.shared.shutdown.pause(pause);
        }
    }

    /// Copies the due deliveries of a consumer.
    fn deliver(&self, consumer: &DeliveryEntry) -> Result<(), String> {
        let due = self.shared.deliveries().due(self.clock.utc());
        for item in due.iter().filter(|item| item.consumer == consumer.name.as_str()) {
            if self.shared.shutdown.is_requested() {
                return Ok(());
            }
            if !consumer.dir.is_dir() {
                return Err(format!(
                    "{}: the folder is missing; mount or create it, no data is lost",
                    consumer.dir.display()
                ));
            }
            if let Some(damaged) = self.hand_over(consumer, item)? {
                self.withhold(item, &damaged)?;
                continue;
            }
            self.shared.deliveries().sent(item).map_err(|error| error.to_string())?;
            tracing::info!(consumer = item.consumer, name = item.stem, "delivered");
        }
        Ok(())
    }

    /// Copies the files of a product and its delivery record. Returns the name of a file that
    /// differs from the published one: then there is no record.
    fn hand_over(
        &self,
        consumer: &DeliveryEntry,
        item: &ProductDelivery,
    ) -> Result<Option<String>, String> {
        let unusable = |path: &Path, error: &dyn std::fmt::Display| {
            format!("{}: {error}; repair the folder, no data is lost", path.display())
        };
        let kind = (consumer.format == DeliveryFormat::Sips).then_some(consumer.checksum);
        let mut checksums = Vec::with_capacity(item.files.len());
        for file in &item.files {
            let (from, to) = (self.products.join(&file.name), consumer.dir.join(&file.name));
            let before = match item.attempts {
                0 => copy::there(&to, file, kind).map_err(|error| unusable(&to, &error))?,
                _ => None,
            };
            let seen = match before {
                Some(seen) => seen,
                None => copy::copy(&from, &consumer.dir, file, kind)
                    .map_err(|error| unusable(&from, &error))?,
            };
            if !seen.is_as_published {
                return Ok(Some(file.name.clone()));
            }
            checksums.push(seen.checksum);
        }
        let record = self.record(consumer, item, &checksums);
        let name = record_name(item);
        let bytes = match consumer.format {
            DeliveryFormat::Edos => edos::write_record(&record),
            DeliveryFormat::Sips => {
                sips::write_record(&record, &consumer.terms()).map_err(|error| error.to_string())?
            }
        };
        let written = copy::write(&consumer.dir, &name, &bytes)
            .and_then(|()| copy::write(&consumer.dir, &format!("{name}.XFR"), b""));
        written.map_err(|error| unusable(&consumer.dir.join(&name), &error))?;
        Ok(None)
    }

    /// Withholds a product of which a file changed after it was published.
    fn withhold(&self, item: &ProductDelivery, file: &str) -> Result<(), String> {
        let reason = format!("{file} differs from the published file");
        self.shared.deliveries().withhold(item, &reason).map_err(|error| error.to_string())?;
        let what = format!("a product is not delivered to {}", item.consumer);
        self.shared
            .alarms
            .raise(&what, &format!("{reason}; the published SHA-256 is in the account beside it"));
        Ok(())
    }

    /// The delivery record, with a checksum for each file.
    fn record(
        &self,
        consumer: &DeliveryEntry,
        item: &ProductDelivery,
        checksums: &[Option<Checksum>],
    ) -> DeliveryRecord {
        let directory = consumer.directory();
        let file = |(file, checksum): (&ItemFile, &Option<Checksum>)| DeliveredFile {
            directory: directory.clone(),
            name: file.name.clone(),
            size: ByteCount::new(file.bytes),
            checksum: *checksum,
            is_metadata: is_metadata(&file.name, item),
        };
        // The time of the product, not of now: a repeated delivery has the same record.
        let created = Utc::from_micros(item.offered_us);
        DeliveryRecord {
            originator: self.name.clone(),
            consumer: item.consumer.clone(),
            sequence: item.sequence,
            product: item.stem.clone(),
            mission: item.mission.clone(),
            data_type: item.product.clone(),
            version: item.version,
            is_expedited: item.is_expedited,
            created,
            expires: created + consumer.expires,
            span: item
                .span_us
                .map(|(first, last)| (Utc::from_micros(first), Utc::from_micros(last))),
            files: item.files.iter().zip(checksums).map(file).collect(),
        }
    }

    /// Reads a consumer's notices.
    fn notices(&self, consumer: &DeliveryEntry) -> Result<(), String> {
        let dir = consumer.notices();
        // The consumer may not have created it yet.
        let Ok(entries) = fs::read_dir(&dir) else { return Ok(()) };
        let is_notice = |name: &str| NOTICES.iter().any(|suffix| name.ends_with(suffix));
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> =
            names.filter(|name| is_notice(name)).take(NOTICES_AT_ONCE).collect();
        names.sort();
        for name in names {
            let path = dir.join(&name);
            self.notice(consumer, &path, &name)
                .map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    }

    fn notice(&self, consumer: &DeliveryEntry, path: &Path, name: &str) -> Result<(), String> {
        if fs::metadata(path).map_err(|error| error.to_string())?.len() > LONGEST_NOTICE {
            tracing::warn!("{}: too long for a notice", path.display());
            return put_away(path, "unknown");
        }
        let bytes = fs::read(path).map_err(|error| error.to_string())?;
        let notice = match Notice::parse(&bytes) {
            Ok(notice) => notice,
            Err(error) => {
                tracing::warn!("{}: {error}", path.display());
                return put_away(path, "unknown");
            }
        };
        let stem = name.split('.').next();
        let answered = self.shared.deliveries().answer(consumer.name.as_str(), stem, &notice);
        match answered.map_err(|error| error.to_string())? {
            None => {
                tracing::warn!("{}: notice for an unknown delivery", path.display());
                put_away(path, "unknown")
            }
            Some(item) => {
                let reason = item.reason.as_deref().unwrap_or("accepted");
                tracing::info!(consumer = item.consumer, name = item.stem, "{reason}");
                if item.state == DeliveryState::Refused {
                    // One alarm a consumer, with the newest notice: the list of deliveries has all.
                    let what = format!("{} refuses products", item.consumer);
                    self.shared.alarms.raise(&what, &format!("{}: {reason}", item.stem));
                }
                put_away(path, "read")
            }
        }
    }
}

/// The name of a delivery's record: that of the product in the series of delivery records.
fn record_name(item: &ProductDelivery) -> String {
    let suffix = if item.is_expedited { "EDS" } else { "PDS" };
    let series = if item.is_expedited { Series::EdsDelivery } else { Series::PdsDelivery };
    let name = ProductName::parse(&format!("{}.{suffix}", item.stem));
    name.map_or_else(|_| format!("{}.PDR", item.stem), |name| name.in_series(series).to_string())
}

/// Whether a file is a construction record or an account.
fn is_metadata(name: &str, item: &ProductDelivery) -> bool {
    name.starts_with(&item.stem) && !name.ends_with(".aside")
}

/// Moves a notice that was read into the folder `to`.
fn put_away(path: &Path, to: &str) -> Result<(), String> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let folder = dir.join(to);
    let moved = fs::create_dir_all(&folder).and_then(|()| fs::rename(path, folder.join(name)));
    moved.map_err(|error| error.to_string())
}

const NOTICES: [&str; 3] = [".PAN", ".EAN", ".PDRD"];
/// Further notices are read half a second later.
const NOTICES_AT_ONCE: usize = 256;
/// 1 MiB: 4,000 files.
const LONGEST_NOTICE: u64 = 1 << 20;
