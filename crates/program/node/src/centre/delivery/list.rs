//! The list of deliveries and their states: durable, so that nothing is forgotten or delivered
//! twice whatever dies.

use crate::status::{DeliveryState, DeliveryStatus};
use serde::{Deserialize, Serialize};
use skyhaul_config::{DeliveryEntry, DeliveryMode};
use skyhaul_dispatch::{Notice, NoticeContent};
use skyhaul_level0::construction::ProductKind;
use skyhaul_level0::report::Product;
use skyhaul_store::{Disk, LedgerError, RecordDirectory};
use skyhaul_units::Utc;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One product for one consumer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProductDelivery {
    /// The consumer's name in the configuration.
    pub consumer: String,
    /// Counts deliveries.
    pub sequence: u32,
    /// The construction record's name without suffix, which names the delivery.
    pub stem: String,
    /// The mission.
    pub mission: String,
    /// The product's name.
    pub product: String,
    /// The series of its versions.
    pub lineage: String,
    /// The version.
    pub version: u32,
    /// Whether it is an expedited data set.
    pub is_expedited: bool,
    /// Whether nothing is missing from it.
    pub is_complete: bool,
    /// The first and the last packet's time, in microseconds since 1970.
    pub span_us: Option<(i64, i64)>,
    /// The files, in the order of publication.
    pub files: Vec<ItemFile>,
    /// When it was published, in microseconds since 1970.
    pub offered_us: i64,
    /// Its state.
    pub state: DeliveryState,
    /// How often it was copied.
    pub attempts: u32,
    /// The reason that the consumer gave.
    pub reason: Option<String>,
}

/// A file of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemFile {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256, lower-case hexadecimal.
    pub sha256: String,
}

/// All deliveries.
#[derive(Debug)]
pub struct DeliveryList {
    ledger: RecordDirectory,
    consumers: Vec<DeliveryEntry>,
    items: BTreeMap<String, ProductDelivery>,
    next: u32,
    damaged: Vec<String>,
}

/// The most deliveries in the list: seven months of 30 a day for ten consumers. Beyond that the
/// oldest finished ones are forgotten.
const ITEMS_MAX: usize = 65_536;

impl ProductDelivery {
    /// The name of its record in the state folder.
    pub fn key(&self) -> String {
        format!("{}.{}", self.consumer, self.stem)
    }

    /// Its status.
    pub fn shown(&self) -> DeliveryStatus {
        DeliveryStatus {
            consumer: self.consumer.clone(),
            sequence: self.sequence,
            product: self.product.clone(),
            name: self.stem.clone(),
            version: self.version,
            state: self.state,
            attempts: self.attempts,
            reason: self.reason.clone(),
        }
    }

    const fn is_settled(&self) -> bool {
        !matches!(self.state, DeliveryState::Waiting)
    }
}

impl DeliveryList {
    /// Opens the list in the state folder.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn open(disk: &Arc<dyn Disk>, consumers: Vec<DeliveryEntry>) -> Result<Self, LedgerError> {
        let ledger = RecordDirectory::open(disk.clone(), "level0/deliveries")?;
        let loaded = ledger.load()?;
        let mended = ledger.mend(&loaded)?;
        let (mut items, mut damaged) = (BTreeMap::new(), [loaded.damaged, mended].concat());
        for (name, body) in loaded.records {
            match serde_json::from_slice::<ProductDelivery>(&body) {
                Ok(item) => drop(items.insert(item.key(), item)),
                Err(_) => damaged.push(name),
            }
        }
        let next =
            items.values().map(|item: &ProductDelivery| item.sequence).max().unwrap_or_default()
                + 1;
        Ok(Self { ledger, consumers, items, next, damaged })
    }

    /// Records that were damaged on disk.
    pub fn damaged(&self) -> &[String] {
        &self.damaged
    }

    /// Adds a delivery of a published product for each consumer that wants it. An existing delivery
    /// stays as it is.
    ///
    /// # Errors
    /// The disk refuses: offer it again.
    pub fn offer(&mut self, product: &Product, now: Utc) -> Result<(), LedgerError> {
        let (sidecar, accounting) = (&product.sidecar, &product.sidecar.accounting);
        if accounting.delivered == 0 || sidecar.product.packet_file.is_none() {
            return Ok(());
        }
        let contact = sidecar.contacts.first();
        let mission = contact.map_or_else(String::new, |contact| contact.mission.clone());
        let of = match sidecar.product.window {
            Some(window) => window.from.to_string(),
            None => contact.map_or_else(String::new, |contact| contact.name.clone()),
        };
        let stamp =
            |stamp: Option<skyhaul_level0::PacketTimestamps>| Some(stamp?.time?.as_micros());
        let is_expedited = sidecar.product.kind != ProductKind::Pds;
        let lineage = format!("{mission}/{}/{of}/{is_expedited}", sidecar.product.name);
        for consumer in
            self.consumers.clone().iter().filter(|entry| entry.takes(&sidecar.product.name))
        {
            let item = ProductDelivery {
                consumer: consumer.name.to_string(),
                sequence: self.next,
                stem: product.name.stem(),
                mission: mission.clone(),
                product: sidecar.product.name.clone(),
                lineage: lineage.clone(),
                version: sidecar.product.version,
                is_expedited,
                is_complete: accounting.missing == 0 || is_expedited,
                span_us: stamp(sidecar.product.first).zip(stamp(sidecar.product.last)),
                files: product
                    .files
                    .iter()
                    .map(|file| ItemFile {
                        name: file.name.clone(),
                        bytes: file.bytes,
                        sha256: file.sha256.clone(),
                    })
                    .collect(),
                offered_us: now.as_micros(),
                state: DeliveryState::Waiting,
                attempts: 0,
                reason: None,
            };
            if !self.items.contains_key(&item.key()) {
                self.supersede(&item, consumer.mode)?;
                self.next = self.next.saturating_add(1);
                self.put(item)?;
            }
        }
        self.forget()
    }

    /// A consumer of complete products does not get a version that a newer one replaced before it
    /// was due.
    fn supersede(
        &mut self,
        newer: &ProductDelivery,
        mode: DeliveryMode,
    ) -> Result<(), LedgerError> {
        if mode == DeliveryMode::First || newer.is_expedited {
            return Ok(());
        }
        let older = self.items.values().filter(|item| {
            item.consumer == newer.consumer && item.lineage == newer.lineage && !item.is_settled()
        });
        for item in older.cloned().collect::<Vec<_>>() {
            self.put(ProductDelivery { state: DeliveryState::Replaced, ..item })?;
        }
        Ok(())
    }

    /// The due deliveries, in the order of publication.
    pub fn due(&self, now: Utc) -> Vec<ProductDelivery> {
        let is_due = |item: &&ProductDelivery| {
            let Some(consumer) = self.consumer(&item.consumer) else { return false };
            let is_ripe = match consumer.mode {
                DeliveryMode::First => true,
                DeliveryMode::Complete => {
                    item.is_complete || now >= Utc::from_micros(item.offered_us) + consumer.patience
                }
            };
            !item.is_settled() && is_ripe
        };
        let mut due: Vec<_> = self.items.values().filter(is_due).cloned().collect();
        due.sort_by_key(|item| item.sequence);
        due
    }

    /// The configuration of a consumer.
    pub fn consumer(&self, name: &str) -> Option<&DeliveryEntry> {
        self.consumers.iter().find(|entry| entry.name.as_str() == name)
    }

    /// All consumers.
    pub fn consumers(&self) -> &[DeliveryEntry] {
        &self.consumers
    }

    /// A delivery was copied.
    ///
    /// # Errors
    /// The disk refuses: it is copied again, with the same files and names.
    pub fn sent(&mut self, item: &ProductDelivery) -> Result<(), LedgerError> {
        self.put(ProductDelivery {
            state: DeliveryState::Delivered,
            attempts: item.attempts + 1,
            ..item.clone()
        })
    }

    /// A delivery is withheld, for this reason.
    ///
    /// # Errors
    /// The disk refuses: it is looked at again.
    pub fn withhold(&mut self, item: &ProductDelivery, reason: &str) -> Result<(), LedgerError> {
        let reason = Some(reason.to_owned());
        self.put(ProductDelivery { state: DeliveryState::Withheld, reason, ..item.clone() })
    }

    /// Takes a consumer's notice about the delivery called `stem`, where the notice names no
    /// number. Returns the delivery, where it is known.
    ///
    /// # Errors
    /// The disk refuses: read the notice again.
    pub fn answer(
        &mut self,
        consumer: &str,
        stem: Option<&str>,
        notice: &Notice,
    ) -> Result<Option<ProductDelivery>, LedgerError> {
        let Some(mut item) = self.answered(consumer, stem, notice).cloned() else {
            return Ok(None);
        };
        let most = self.consumer(consumer).map_or(1, |entry| entry.attempts);
        item.reason = notice.failure();
        item.state = match &item.reason {
            None => DeliveryState::Accepted,
            Some(_) if item.attempts < most => DeliveryState::Waiting,
            Some(_) => DeliveryState::Refused,
        };
        // A delivery that waits again was complete enough before.
        item.is_complete |= item.state == DeliveryState::Waiting;
        self.put(item.clone())?;
        Ok(Some(item))
    }

    fn answered(
        &self,
        consumer: &str,
        stem: Option<&str>,
        notice: &Notice,
    ) -> Option<&ProductDelivery> {
        let mut of_consumer =
            self.items.values().filter(|item| item.consumer == consumer && item.attempts > 0);
        if let Some(sequence) = notice.sequence {
            return of_consumer.find(|item| item.sequence == sequence);
        }
        let names = |item: &&ProductDelivery| match (&notice.answer, stem) {
            (_, Some(stem)) if stem.get(1..) == item.stem.get(1..) => true,
            (NoticeContent::Files(files), _) => {
                files.iter().any(|answer| item.files.iter().any(|file| file.name == answer.name))
            }
            _ => false,
        };
        of_consumer.find(names)
    }

    /// The status of the newest deliveries, oldest first.
    pub fn shown(&self) -> Vec<DeliveryStatus> {
        let mut newest: Vec<_> = self.items.values().collect();
        newest.sort_by_key(|item| item.sequence);
        newest.iter().rev().take(SHOWN).rev().map(|item| item.shown()).collect()
    }

    /// Removes the oldest finished deliveries, where there are too many.
    fn forget(&mut self) -> Result<(), LedgerError> {
        while self.items.len() > ITEMS_MAX {
            let settled = self.items.iter().filter(|(_, item)| item.is_settled());
            let Some(oldest) =
                settled.min_by_key(|(_, item)| item.sequence).map(|(key, _)| key.clone())
            else {
                break;
            };
            self.ledger.remove(&oldest)?;
            self.items.remove(&oldest);
        }
        Ok(())
    }

    fn put(&mut self, item: ProductDelivery) -> Result<(), LedgerError> {
        let body = serde_json::to_vec(&item).expect("records have text keys only");
        self.ledger.put(&item.key(), &body)?;
        self.items.insert(item.key(), item);
        Ok(())
    }
}

/// The most deliveries in the status.
const SHOWN: usize = 1_000;

#[cfg(test)]
mod tests;
