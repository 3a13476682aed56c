//! Reload of the configuration while the station runs: paths, their forecasts and classes change;
//! other changes are logged as needing a restart.

use super::order::StationOrder;
use super::shared::StationShared;
use skyhaul_config::{Config, ConfigError, Refill, StationConfig};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// When to reload, and the configuration in force.
#[derive(Debug)]
pub struct Reload<'a> {
    wanted: &'a AtomicBool,
    file: PathBuf,
    before: StationConfig,
}

impl<'a> Reload<'a> {
    /// Reloads `file` when `wanted` is set, and clears that; `before` is the configuration in
    /// force.
    pub const fn new(wanted: &'a AtomicBool, file: PathBuf, before: StationConfig) -> Self {
        Self { wanted, file, before }
    }

    /// Reloads where that is wanted. A file with an error changes nothing.
    pub(super) fn look(&mut self, shared: &StationShared) {
        if !self.wanted.swap(false, Ordering::Relaxed) {
            return;
        }
        let new = match read(&self.file) {
            Ok(new) => new,
            Err(error) => {
                return tracing::error!(
                    "configuration reload failed, the old one stays in force: {error}"
                );
            }
        };
        for what in unchangeable(&self.before, &new) {
            tracing::warn!(
                "{what} cannot change while the station runs: restart the station to apply it"
            );
        }
        let order = StationOrder::Adopt(new.paths(), Box::new(new.sharing()));
        match shared.orders.give(order, || shared.shutdown.wake_line()) {
            Ok(said) if said.is_empty() => tracing::info!("configuration reloaded: no changes"),
            Ok(said) => tracing::info!("configuration reloaded: {said}"),
            Err(fault) => {
                tracing::error!("configuration reload failed, the old one stays in force: {fault}");
            }
        }
        self.before.path = new.path;
        self.before.class = new.class;
        self.before.line.policy = new.line.policy;
        (self.before.refill.class, self.before.refill.priority) =
            (new.refill.class, new.refill.priority);
        for channel in &mut self.before.channel {
            if let Some(new) = new.channel.iter().find(|new| new.name == channel.name) {
                *channel = kept(channel, new);
            }
        }
    }
}

fn read(file: &std::path::Path) -> Result<StationConfig, String> {
    match skyhaul_config::load(file).map_err(|error: ConfigError| error.to_string())? {
        Config::Station(station) => Ok(*station),
        Config::Centre(_) => Err(format!("{} is a centre's configuration", file.display())),
    }
}

/// The keys that differ and need a restart.
fn unchangeable(before: &StationConfig, new: &StationConfig) -> Vec<String> {
    let line = |config: &StationConfig| {
        let skyhaul_config::Line { rate, mtu, controller, policy: _ } = config.line.clone();
        (rate, mtu, controller)
    };
    let refill =
        |config: &StationConfig| Refill { class: None, priority: 0, ..config.refill.clone() };
    let mut found: Vec<String> = [
        (before.missions != new.missions, "`missions`"),
        (before.node != new.node, "[node]"),
        (before.centre != new.centre, "[centre]"),
        (line(before) != line(new), "`rate`, `mtu` or `controller` in [line]"),
        (before.spool != new.spool, "[spool]"),
        (before.sync != new.sync, "[sync]"),
        (refill(before) != refill(new), "[refill] (beyond `class` and `priority`)"),
        (before.forward != new.forward, "[[forward]]"),
        (before.mirror != new.mirror, "[[mirror]]"),
        (before.stream != new.stream, "[[stream]]"),
    ]
    .into_iter()
    .filter(|(differs, _)| *differs)
    .map(|(_, what)| what.to_owned())
    .collect();
    for channel in &new.channel {
        match before.channel.iter().find(|before| before.name == channel.name) {
            None => found.push(format!("channel {} (new)", channel.name)),
            Some(before) if kept(before, channel) != *channel => {
                found.push(format!(
                    "channel {} (beyond `class`, `priority` and `deadline`)",
                    channel.name
                ));
            }
            Some(_) => {}
        }
    }
    let gone =
        before.channel.iter().filter(|old| !new.channel.iter().any(|new| new.name == old.name));
    found.extend(gone.map(|channel| format!("channel {} (removed)", channel.name)));
    found
}

/// The channel in force, with those keys of `new` that need no restart.
fn kept(
    channel: &skyhaul_config::Channel,
    new: &skyhaul_config::Channel,
) -> skyhaul_config::Channel {
    let (class, priority, deadline) = (new.class.clone(), new.priority, new.deadline);
    skyhaul_config::Channel { class, priority, deadline, ..channel.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATION: &str = "[node]\nname = \"s\"\nkey = \"k\"\nstate = \"state\"\n[centre]\nname = \
                          \"c\"\n\
        address = \"192.0.2.1:4700\"\n\
        fingerprint = \"SHA256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"\n\
        [line]\nrate = \"93 Mbit/s\"\n[[channel]]\nname = \"x\"\ninput = \"stdin\"\n";

    fn station(text: &str) -> StationConfig {
        match skyhaul_config::parse(text, "/etc/station.toml".as_ref()) {
            Ok(Config::Station(station)) => *station,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_can_change_is_not_named_and_what_cannot_is() {
        let before = station(STATION);
        let with = |change: &str| station(&format!("{STATION}{change}"));
        let fine = with(
            "deadline = \"30 s\"\nclass = \"a\"\n[[class]]\nname = \"a\"\n[[path]]\n\
                         interface = \"lo\"\n",
        );
        assert_eq!(unchangeable(&before, &fine), Vec::<String>::new());
        let other = with("silence = \"5 s\"\n[spool]\nmax_size = \"1 GB\"\n");
        let named = unchangeable(&before, &other);
        assert_eq!(named.len(), 2, "{named:?}");
        assert!(named[0].contains("[spool]") && named[1].contains("channel x"), "{named:?}");
        let renamed = station(&STATION.replace("\"x\"", "\"y\"").replace("93 Mbit", "20 Mbit"));
        let named = unchangeable(&before, &renamed);
        assert!(
            named[0].contains("`rate`") && named[1].contains("new") && named[2].contains("removed"),
            "{named:?}"
        );
    }
}
