//! Writes delivery records.

use super::product::stem_of;
use super::worker::{DeliveryUnderWay, OutletWorker};
use skyhaul_catalogue::{Item, ItemForm};
use skyhaul_config::RecordForm;
use skyhaul_dispatch::{DeliveredFile, DeliveryFailure, DeliveryRecord, FailureKind, edos, sips};
use skyhaul_level0::naming::{ProductName, Series};

impl OutletWorker {
    /// Writes the delivery record, and then its signal file, where the subscription wants one.
    pub(super) fn write_record(
        &mut self,
        of: &DeliveryUnderWay,
        files: Vec<DeliveredFile>,
    ) -> Result<(), DeliveryFailure> {
        let record = self.record(of, files);
        let bytes = match of.subscription.record() {
            RecordForm::None => return Ok(()),
            RecordForm::Edos => edos::write_record(&record),
            RecordForm::Sips => sips::write_record(&record, &of.subscription.terms())
                .map_err(|error| DeliveryFailure::new(FailureKind::Refused, error.to_string()))?,
        };
        let name = of.subscription.folder().name(&record_name(&of.item));
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
