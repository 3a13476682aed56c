//! The notices of a consumer, in its folder of notices.

use super::named::names;
use super::outlet::{Outlet, tell};
use super::read_notices::ReadNotice;
use super::worker::OutletWorker;
use sha2::{Digest, Sha256};
use skyhaul_catalogue_io::CatalogueReader;
use skyhaul_config::ProductSubscription;
use skyhaul_dispatch::{DeliveryFailure, DeliveryInput, DeliveryState, FailureKind, Notice};
use skyhaul_events::{AlarmKind, EventKind};
use skyhaul_units::ByteCount;
use std::sync::Arc;

const NOTICES: [&str; 4] = [".PAN", ".EAN", ".PDRD", ".cnmr.json"];
/// Further notices are read with the next look.
const NOTICES_AT_ONCE: usize = 256;
/// 4,000 files.
const LONGEST_NOTICE: ByteCount = ByteCount::mib(1);

impl OutletWorker {
    /// Reads the consumer's notices.
    pub(super) fn notices(&mut self, reader: &CatalogueReader) -> Result<(), String> {
        let folder = self.outlet.destination.entry.notices.clone();
        let say = |failure: DeliveryFailure| failure.sentence;
        let entries = match self.sink().and_then(|sink| sink.list(&folder)) {
            Err(DeliveryFailure { kind: FailureKind::Access, .. })
                if needs_no_notices(&self.outlet) =>
            {
                return Ok(());
            }
            entries => entries.map_err(say)?,
        };
        let is_notice = |name: &String| NOTICES.iter().any(|suffix| name.ends_with(suffix));
        let names = entries.into_iter().map(|entry| entry.name).filter(is_notice);
        let mut names: Vec<String> = names.take(NOTICES_AT_ONCE).collect();
        names.sort();
        self.outlet.read.keep(&names);
        let mut outcome = Ok(());
        for name in &names {
            // One that cannot be put away holds up no other.
            let to = self.notice(reader, &folder, name)?;
            let (from, to) = (format!("{folder}/{name}"), format!("{folder}/{to}/{name}"));
            if let Err(failure) = self.sink().and_then(|sink| sink.rename(&from, &to)) {
                outcome = Err(failure.sentence);
            }
        }
        outcome
    }

    /// Reads a notice, unless that was done already and its file could not be put away. Returns the
    /// name of the folder where it is put away.
    fn notice(
        &mut self,
        reader: &CatalogueReader,
        folder: &str,
        name: &str,
    ) -> Result<&'static str, String> {
        let path = format!("{folder}/{name}");
        let read = self.sink().and_then(|sink| sink.read(&path, LONGEST_NOTICE));
        let bytes = read.map_err(|failure| failure.sentence)?.unwrap_or_default();
        let digest: [u8; 32] = Sha256::digest(&bytes).into();
        if let Some(to) = self.outlet.read.was_read(name, &digest) {
            return Ok(to);
        }
        let to = self.answered(reader, &path, &bytes)?;
        self.outlet.read.add(name, ReadNotice { digest, to });
        Ok(to)
    }

    /// Does what a notice says.
    fn answered(
        &self,
        reader: &CatalogueReader,
        path: &str,
        bytes: &[u8],
    ) -> Result<&'static str, String> {
        let (_, name) = path.rsplit_once('/').unwrap_or(("", path));
        let notice = match Notice::parse(bytes) {
            Ok(notice) => notice,
            Err(error) => {
                tracing::warn!("{path} of {}: {error}", self.outlet.name());
                return Ok("unknown");
            }
        };
        let (stem, outlet) = (name.split('.').next(), Arc::clone(&self.outlet));
        let (consumer, ledger) = (outlet.name(), outlet.ledger());
        let answered = reader
            .delivery_named_by(consumer, &names(stem, &notice))
            .map_err(|error| error.to_string())?;
        let Some(id) = answered else {
            tracing::warn!("{path} of {consumer}: notice for an unknown delivery");
            return Ok("unknown");
        };
        let input = DeliveryInput::Noticed(notice);
        let step = ledger.step(id, input, outlet.clock.utc()).map_err(|error| error.to_string())?;
        if let Some((row, _)) = step {
            let reason = row.delivery.reason.as_deref().unwrap_or("accepted");
            tracing::info!(destination = consumer, delivery = id, "{reason}");
            let kind = match row.delivery.state {
                DeliveryState::Refused => EventKind::DeliveryRefused,
                _ => EventKind::DeliveryAccepted,
            };
            tell(&outlet, kind, id, format!("delivery {id} to {consumer}: {reason}"));
            if row.delivery.state == DeliveryState::Refused {
                outlet.shared.alarms.raise(
                    AlarmKind::DeliveryRefused,
                    consumer,
                    &format!("delivery {id}: {reason}"),
                );
            }
            ledger.look_again(consumer, id);
        }
        Ok("read")
    }
}

/// Whether it is no trouble that notices may not be read: a node gives the right to read apart from
/// that to write, and here no subscription awaits an answer.
fn needs_no_notices(outlet: &Outlet) -> bool {
    let awaits = |one: &ProductSubscription| one.entry.answer.is_some();
    outlet.destination.node().is_some() && !outlet.subscriptions.iter().any(awaits)
}
