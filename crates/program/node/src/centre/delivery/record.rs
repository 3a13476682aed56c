//! Writes delivery records.

use super::product::stem_of;
use super::worker::{DeliveryUnderWay, OutletWorker};
use skyhaul_catalogue::{Item, ItemForm};
use skyhaul_catalogue_io::DeliveryRow;
use skyhaul_config::RecordForm;
use skyhaul_dispatch::cnm::CnmTerms;
use skyhaul_dispatch::{
    DeliveredFile, DeliveryFailure, DeliveryRecord, FailureKind, cnm, edos, sips,
};
use skyhaul_level0::naming::{ProductName, Series};

impl OutletWorker {
    /// Writes the delivery record, and then its signal file, where the subscription wants one.
    pub(super) fn write_record(
        &mut self,
        of: &DeliveryUnderWay,
        files: Vec<DeliveredFile>,
    ) -> Result<(), DeliveryFailure> {
        let record = self.record(of, files);
        let folder = of.subscription.folder();
        let bytes = match of.subscription.record() {
            RecordForm::None => return Ok(()),
            RecordForm::Cnm => {
                // The message is whole or absent, and its readers know no signal files. The time is
                // that of the product: a repeated delivery has the same message.
                let data_version = of.subscription.entry.data_version.to_string();
                let terms = CnmTerms { data_version, submitted: record.created };
                let bytes = cnm::write_notification(&record, &terms);
                let name = folder.name(&format!("{}.cnm.json", stem_of(&of.item)));
                return self.sink()?.write(&name, &bytes);
            }
            RecordForm::Edos => edos::write_record(&record),
            RecordForm::Sips => sips::write_record(&record, &of.subscription.terms())
                .map_err(|error| DeliveryFailure::new(FailureKind::Refused, error.to_string()))?,
        };
        let name = match of.subscription.record() {
            RecordForm::Sips => numbered_name(&record_name(&of.item), &of.row),
            _ => record_name(&of.item),
        };
        let name = folder.name(&name);
        let sink = self.sink()?;
        sink.write(&name, &bytes)?;
        sink.write(&format!("{name}.XFR"), b"")
    }

    fn record(&self, of: &DeliveryUnderWay, files: Vec<DeliveredFile>) -> DeliveryRecord {
        let DeliveryUnderWay { row, item, subscription } = of;
        // The time of the product, not of now: a repeated delivery has the same record.
        let created = item.published;
        DeliveryRecord {
            originator: self.outlet.node.clone(),
            consumer: self.outlet.name().to_owned(),
            sequence: row.sequence,
            product: stem_of(item),
            mission: item.mission.clone(),
            data_type: item.product.clone(),
            version: item.version,
            is_expedited: item.form == ItemForm::Expedited,
            created,
            expires: created + subscription.entry.expires,
            span: item.start.zip(item.end),
            files,
        }
    }
}

/// The name of a record that has no number within: one that is ordered anew has its number in the
/// name, since consumers pass over a record whose name they have seen. The part before the first
/// dot stays, by which notices find their delivery.
fn numbered_name(name: &str, row: &DeliveryRow) -> String {
    match name.rsplit_once('.').filter(|_| row.repeats > 0) {
        Some((stem, suffix)) => format!("{stem}.{}.{suffix}", row.sequence),
        None => name.to_owned(),
    }
}

/// The name of a delivery's record: that of the product in the series of delivery records.
fn record_name(item: &Item) -> String {
    let (suffix, series) = match item.form {
        ItemForm::Expedited => ("EDS", Series::EdsDelivery),
        _ => ("PDS", Series::PdsDelivery),
    };
    let stem = stem_of(item);
    let name = ProductName::parse(&format!("{stem}.{suffix}"));
    name.map_or_else(|_| format!("{stem}.PDR"), |name| name.in_series(series).to_string())
}
