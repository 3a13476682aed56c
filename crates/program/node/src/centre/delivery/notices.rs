//! The notices of a consumer, in its folder of notices.

use super::worker::ConsumerWorker;
use skyhaul_dispatch::{DeliveryInput, DeliveryState, Notice};
use std::fs;
use std::path::Path;

const NOTICES: [&str; 3] = [".PAN", ".EAN", ".PDRD"];
/// Further notices are read half a second later.
const NOTICES_AT_ONCE: usize = 256;
/// 1 MiB: 4,000 files.
const LONGEST_NOTICE: u64 = 1 << 20;

impl ConsumerWorker {
    /// Reads the consumer's notices.
    pub(super) fn notices(&self) -> Result<(), String> {
        let dir = self.consumer.notices();
        // The consumer may not have created it yet.
        let Ok(entries) = fs::read_dir(&dir) else { return Ok(()) };
        let is_notice = |name: &str| NOTICES.iter().any(|suffix| name.ends_with(suffix));
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> =
            names.filter(|name| is_notice(name)).take(NOTICES_AT_ONCE).collect();
        names.sort();
        for name in names {
            let path = dir.join(&name);
            self.notice(&path, &name).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    }

    fn notice(&self, path: &Path, name: &str) -> Result<(), String> {
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
        let (stem, consumer) = (name.split('.').next(), self.consumer.name.as_str());
        let ledger = self.ledger();
        let answered =
            ledger.answered(consumer, stem, &notice).map_err(|error| error.to_string())?;
        let Some(id) = answered else {
            tracing::warn!("{}: notice for an unknown delivery", path.display());
            return put_away(path, "unknown");
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
        put_away(path, "read")
    }
}

/// Moves a notice that was read into the folder `to`.
fn put_away(path: &Path, to: &str) -> Result<(), String> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let folder = dir.join(to);
    let moved = fs::create_dir_all(&folder).and_then(|()| fs::rename(path, folder.join(name)));
    moved.map_err(|error| error.to_string())
}
