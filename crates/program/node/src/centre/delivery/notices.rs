//! The notices of a consumer, in its folder of notices.

use super::named::names;
use super::worker::ConsumerWorker;
use skyhaul_catalogue_io::CatalogueReader;
use skyhaul_dispatch::{DeliveryFailure, DeliveryInput, DeliveryState, Notice};
use skyhaul_units::{ByteCount, Duration};

const NOTICES: [&str; 3] = [".PAN", ".EAN", ".PDRD"];
/// Further notices are read with the next look.
const NOTICES_AT_ONCE: usize = 256;
/// 4,000 files.
const LONGEST_NOTICE: ByteCount = ByteCount::mib(1);
/// Between two looks into a folder of another machine.
const FAR_LOOK: Duration = Duration::from_secs(30);

impl ConsumerWorker {
    /// Reads the consumer's notices.
    pub(super) fn notices(&mut self, reader: &CatalogueReader) -> Result<(), String> {
        let now = self.clock.now();
        if now < self.look {
            return Ok(());
        }
        if self.consumer.folder().is_none() {
            self.look = now + FAR_LOOK;
        }
        let folder = self.consumer.notices.clone();
        let say = |failure: DeliveryFailure| failure.sentence;
        let entries = self.sink().and_then(|sink| sink.list(&folder)).map_err(say)?;
        let is_notice = |name: &String| NOTICES.iter().any(|suffix| name.ends_with(suffix));
        let names = entries.into_iter().map(|entry| entry.name).filter(is_notice);
        let mut names: Vec<String> = names.take(NOTICES_AT_ONCE).collect();
        names.sort();
        for name in names {
            let to = self.notice(reader, &folder, &name)?;
            let (from, to) = (format!("{folder}/{name}"), format!("{folder}/{to}/{name}"));
            self.sink().and_then(|sink| sink.rename(&from, &to)).map_err(say)?;
        }
        Ok(())
    }

    /// Reads a notice. Returns the name of the folder where it is put away.
    fn notice(
        &mut self,
        reader: &CatalogueReader,
        folder: &str,
        name: &str,
    ) -> Result<&'static str, String> {
        let path = format!("{folder}/{name}");
        let read = self.sink().and_then(|sink| sink.read(&path, LONGEST_NOTICE));
        let bytes = read.map_err(|failure| failure.sentence)?.unwrap_or_default();
        let notice = match Notice::parse(&bytes) {
            Ok(notice) => notice,
            Err(error) => {
                tracing::warn!("{path} of {}: {error}", self.consumer.name);
                return Ok("unknown");
            }
        };
        let (stem, consumer) = (name.split('.').next(), self.consumer.name.as_str());
        let ledger = self.ledger();
        let answered = reader
            .delivery_named_by(consumer, &names(stem, &notice))
            .map_err(|error| error.to_string())?;
        let Some(id) = answered else {
            tracing::warn!("{path} of {consumer}: notice for an unknown delivery");
            return Ok("unknown");
        };
        let input = DeliveryInput::Noticed(notice);
        let step = ledger.step(id, input, self.clock.utc()).map_err(|error| error.to_string())?;
        if let Some((row, _)) = step {
            let reason = row.delivery.reason.as_deref().unwrap_or("accepted");
            tracing::info!(consumer, delivery = id, "{reason}");
            if row.delivery.state == DeliveryState::Refused {
                // One alarm a consumer, with the newest notice: the list of deliveries has all.
                let what = format!("{consumer} refuses products");
                self.shared.alarms.raise(&what, &format!("delivery {id}: {reason}"));
            }
            ledger.look_again(consumer, id);
        }
        Ok("read")
    }
}
