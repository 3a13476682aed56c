//! Reload of the configuration while the centre runs: stations, their permissions, classes and the
//! store's limits change; other changes are logged as needing a restart.

use super::admission::CentreAdmission;
use super::shared::CentreShared;
use skyhaul_config::{CentreConfig, Config, ConfigError, PeerEntry};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// When to reload, and the configuration in force.
#[derive(Debug)]
pub struct Reload<'a> {
    wanted: &'a AtomicBool,
    file: PathBuf,
    /// The stations that the centre began with, in their order.
    begun: Vec<PeerEntry>,
    before: CentreConfig,
}

impl<'a> Reload<'a> {
    /// Reloads `file` when `wanted` is set, and clears that; `before` is the configuration in
    /// force.
    pub fn new(wanted: &'a AtomicBool, file: PathBuf, before: CentreConfig) -> Self {
        Self { wanted, file, begun: before.peer.clone(), before }
    }

    /// Reloads where that is wanted. A file with an error changes nothing.
    pub(super) fn look(&mut self, shared: &CentreShared) {
        if !self.wanted.swap(false, Ordering::Relaxed) {
            return;
        }
        let read = read(&self.file).and_then(|new| {
            let peers = super::peers(&new, &self.begun).map_err(|fault| fault.to_string())?;
            Ok((new, peers))
        });
        let (new, peers) = match read {
            Ok(read) => read,
            Err(error) => {
                return tracing::error!(
                    "configuration reload failed, the old one stays in force: {error}"
                );
            }
        };
        for what in unchangeable(&self.before, &new) {
            tracing::warn!(
                "{what} cannot change while the centre runs: restart the centre to apply it"
            );
        }
        let said = changes(&self.before, &new);
        shared.store().set_limits(new.store.max_size, new.store.retention);
        let stations: BTreeSet<String> =
            new.peer.iter().map(|peer| peer.name.to_string()).collect();
        shared.gaps().ledger().stations(&stations);
        let classes = (self.before.class != new.class).then(|| new.classes());
        shared.admission.put(CentreAdmission { peers, classes });
        shared.shutdown.wake_line();
        if said.is_empty() {
            tracing::info!("configuration reloaded: no changes");
        } else {
            tracing::info!("configuration reloaded: {}", said.join("; "));
        }
        self.before.peer = new.peer.iter().map(|peer| kept(&self.before.peer, peer)).collect();
        self.before.class = new.class;
        (self.before.store.max_size, self.before.store.retention) =
            (new.store.max_size, new.store.retention);
    }
}

fn read(file: &Path) -> Result<CentreConfig, String> {
    match skyhaul_config::load(file).map_err(|error: ConfigError| error.to_string())? {
        Config::Centre(centre) => Ok(*centre),
        Config::Station(_) => Err(format!("{} is a station's configuration", file.display())),
    }
}

/// The new entry of a station, with the files and streams of the old one: they need a restart.
fn kept(before: &[PeerEntry], new: &PeerEntry) -> PeerEntry {
    let old = before.iter().find(|before| before.name == new.name);
    let (files, streams) = old.map_or((None, None), |old| (old.files.clone(), old.streams.clone()));
    PeerEntry { files, streams, ..new.clone() }
}

/// The changes, for the log.
fn changes(before: &CentreConfig, new: &CentreConfig) -> Vec<String> {
    let mut said = Vec::new();
    for peer in &new.peer {
        match before.peer.iter().find(|before| before.name == peer.name) {
            None => said.push(format!("station {} added", peer.name)),
            Some(old) if old.fingerprint != peer.fingerprint => {
                said.push(format!("station {}: key changed", peer.name));
            }
            Some(old) if old.rules() != peer.rules() => {
                said.push(format!("station {}: permissions changed", peer.name));
            }
            Some(_) => {}
        }
    }
    let gone = before.peer.iter().filter(|old| !new.peer.iter().any(|new| new.name == old.name));
    said.extend(gone.map(|peer| format!("station {} removed", peer.name)));
    let (old, store) = (&before.store, &new.store);
    if (old.max_size, old.retention) != (store.max_size, store.retention) {
        said.push("limits of the store changed".to_owned());
    }
    if before.class != new.class {
        said.push("the classes of the lines are changed".to_owned());
    }
    said
}

/// The keys that differ and need a restart.
fn unchangeable(before: &CentreConfig, new: &CentreConfig) -> Vec<String> {
    let mut found: Vec<String> = [
        (before.missions != new.missions, "`missions`"),
        (before.node != new.node, "[node]"),
        (before.listen != new.listen, "[listen]"),
        (before.store.sync_interval != new.store.sync_interval, "`sync_interval` in [store]"),
        (before.products != new.products, "[products]"),
        (before.product != new.product, "[[product]]"),
        (before.expedited != new.expedited, "[[expedited]]"),
        (before.delivery != new.delivery, "[[delivery]]"),
        (before.live != new.live, "[[live]]"),
        (before.session != new.session, "[session]"),
        (before.forward != new.forward, "[[forward]]"),
        (
            before.session == new.session && before.controller() != new.controller(),
            "the rate to stations (set by [[peer]] tables if [session] sets none)",
        ),
    ]
    .into_iter()
    .filter(|(differs, _)| *differs)
    .map(|(_, what)| what.to_owned())
    .collect();
    for peer in &new.peer {
        let kept = kept(&before.peer, peer);
        let is_other_key = before
            .peer
            .iter()
            .any(|old| old.name == peer.name && old.fingerprint != peer.fingerprint);
        let has_guests = peer.files.is_some() || peer.streams.is_some();
        if kept != *peer || (is_other_key && has_guests) {
            found.push(format!("[peer.files] or [peer.streams] of station {}", peer.name));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const CENTRE: &str = "[node]\nname = \"c\"\nkey = \"k\"\nstate = \"state\"\n[listen]\nbind = \
                         \"127.0.0.1:4700\"\n\
        [products]\ndir = \"products\"\n";

    fn centre(text: &str) -> CentreConfig {
        match skyhaul_config::parse(text, "/etc/centre.toml".as_ref()) {
            Ok(Config::Centre(centre)) => *centre,
            other => panic!("{other:?}"),
        }
    }

    fn peer(name: &str, digit: char, keys: &str) -> String {
        let fingerprint: String = core::iter::repeat_n(digit, 64).collect();
        format!("[[peer]]\nname = \"{name}\"\nfingerprint = \"SHA256:{fingerprint}\"\n{keys}")
    }

    #[test]
    fn stations_rights_classes_and_limits_can_change_and_the_rest_is_named() {
        let before = centre(&format!("{CENTRE}{}{}", peer("a", '1', ""), peer("b", '2', "")));
        let fine = format!(
            "{CENTRE}[session]\nrate = \"5 Mbit/s\"\n[store]\nmax_size = \"1 GB\"\n[[class]]\nname \
            = \"x\"\n{}{}",
            peer("a", '3', ""),
            peer("c", '4', "")
        );
        let new = centre(&fine.replace("[session]\nrate = \"5 Mbit/s\"\n", ""));
        assert_eq!(unchangeable(&before, &new), Vec::<String>::new());
        assert_eq!(
            changes(&before, &new),
            [
                "station a: key changed",
                "station c added",
                "station b removed",
                "limits of the store changed",
                "the classes of the lines are changed"
            ]
        );
        assert_eq!(changes(&before, &before), Vec::<String>::new());
        let other =
            centre(&format!("{fine}[peer.files]\nroot = \"files\"\n").replace(":4700", ":4701"));
        let named = unchangeable(&before, &other).join(", ");
        assert_eq!(named, "[listen], [session], [peer.files] or [peer.streams] of station c");
        let rights = centre(&format!("{CENTRE}{}", peer("a", '1', "allow = [\"10.0.0.5:80\"]\n")));
        assert_eq!(
            changes(&before, &rights),
            ["station a: permissions changed", "station b removed"]
        );
        assert!(unchangeable(&before, &rights)[0].starts_with("the rate to stations"));
    }
}
