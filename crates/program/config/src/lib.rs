//! The configuration of a node: `station.toml` and `centre.toml`; and `nodes.toml`, the address
//! book of the command line.
//!
//! Reading is parsing: a configuration that was read can be used without further checks. Unknown
//! keys, wrong units and contradictions are refused with file, line and what to write instead. Each
//! key is declared once, in the struct that holds it, with its default and meaning; [`reference()`]
//! makes the documentation's tables from the same declaration. Whether the named files and
//! addresses exist is checked where they are used.
//!
//! ```
//! use skyhaul_config::{Config, parse};
//! let text = r#"
//!     [node]
//!     name = "centre-1"
//!     key = "centre.key"
//!     state = "state"
//!     [listen]
//!     bind = "0.0.0.0:4700"
//!     [products]
//!     dir = "products"
//! "#;
//! let config = parse(text, "/etc/skyhaul/centre.toml".as_ref())?;
//! let Config::Centre(centre) = config else { panic!() };
//! assert_eq!(centre.node.key, std::path::Path::new("/etc/skyhaul/centre.key"));
//! # Ok::<(), skyhaul_config::ConfigError>(())
//! ```

mod book;
mod centre;
mod channel;
mod channel_error;
mod delivery;
mod error;
mod feeds;
mod forwards;
mod input;
mod mirrors;
mod name;
mod node;
mod packets;
mod path;
mod peer;
mod products;
mod refill;
mod section;
mod sending;
mod sharing;
mod station;
mod streams;
mod sync;
mod time;

pub use book::{AddressBook, BookAddresses, BookChangeError, BookKeys, BookPeer};
pub use centre::{CentreConfig, Listen, PeerEntry, SessionLimits, Store};
pub use channel::{Channel, Compress, MissionRef};
pub use delivery::{Apids, DeliveryEntry, DeliveryFormat, DeliveryMode, ExpeditedEntry};
pub use error::{ConfigError, ConfigText};
pub use feeds::{ChannelInput, ChannelInputs, ResolvedInput};
pub use forwards::{AsFlag, ForwardEntry, ForwardRules, each_is_one};
pub use input::{Input, InputFormat, SoftForm};
pub use mirrors::{FarFolder, FilesEntry, MirrorEntry, Patterns};
pub use name::{HostPort, InterfaceName, Mtu, Name, NameError};
pub use node::Node;
pub use packets::{Live, LiveTarget, LiveTargetError};
pub use path::{LinePath, Outage, Outages, Transport};
pub use peer::PeerKey;
pub use products::{ProductEntry, ProductForm, ProductRule, ProductRules, ProductWindow, Products};
pub use refill::Refill;
pub use section::{ConfigKey, ConfigTable, Presence};
pub use sending::{Class, PolicyName};
pub use sharing::{Delivery, LineSharing, REFILL};
pub use station::{Centre, Line, RateControl, Spool, StationConfig};
pub use streams::{CentreSink, Sinks, StreamEntry, StreamsEntry};
pub use sync::Sync;
pub use time::{ConfigTime, TimeError};

use std::path::{Path, PathBuf};

/// A configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Config {
    /// The capturing end.
    Station(Box<StationConfig>),
    /// The receiving end.
    Centre(Box<CentreConfig>),
}

/// Reads a configuration file.
///
/// # Errors
/// The file cannot be read, is larger than [`MAX_FILE`], or does not say what a node needs to know.
pub fn load(file: &Path) -> Result<Config, ConfigError> {
    let size =
        std::fs::metadata(file).map_err(|source| ConfigError::unreadable(file, &source))?.len();
    if size > MAX_FILE {
        return Err(ConfigError::too_large(file, size, MAX_FILE));
    }
    let text =
        std::fs::read_to_string(file).map_err(|source| ConfigError::unreadable(file, &source))?;
    parse(&text, file)
}

/// Reads a configuration from its text; `file` is where it came from: relative paths start at its
/// folder.
///
/// # Errors
/// The text is neither a station's nor a centre's configuration; file, line and help are in the
/// error.
pub fn parse(text: &str, file: &Path) -> Result<Config, ConfigError> {
    let refuse = |error: toml::de::Error| ConfigError::from_toml(&error, text, file);
    let tables: toml::Table = toml::from_str(text).map_err(refuse)?;
    let has = |names: &[&str]| names.iter().any(|name| tables.contains_key(*name));
    let station = has(&["centre", "channel", "line", "spool", "path"]);
    let centre =
        has(&["listen", "peer", "store", "products", "product", "expedited", "delivery", "live"]);
    let base = file.parent().unwrap_or(Path::new(""));
    match (station, centre) {
        (true, false) => {
            let mut config: StationConfig = toml::from_str(text).map_err(refuse)?;
            config.check(text, file)?;
            config.resolve(base);
            Ok(Config::Station(Box::new(config)))
        }
        (false, true) => {
            let mut config: CentreConfig = toml::from_str(text).map_err(refuse)?;
            config.check(text, file)?;
            config.resolve(base);
            Ok(Config::Centre(Box::new(config)))
        }
        (true, true) => Err(ConfigError::both_kinds(file)),
        (false, false) => Err(ConfigError::neither_kind(file)),
    }
}

/// Every table and key of the kinds of file, in the order of the documentation.
pub fn reference() -> [(&'static str, &'static [ConfigTable]); 3] {
    [
        ("station.toml", station::TABLES),
        ("centre.toml", centre::TABLES),
        ("nodes.toml", book::TABLES),
    ]
}

/// 1 MiB: a thousand channels with room for comments.
pub const MAX_FILE: u64 = 1 << 20;

/// The keys before the first table of both files.
const FILE: ConfigTable = ConfigTable {
    heading: "Before the first table",
    meaning: "Keys outside all tables. Relative paths, here and in all tables, start at the file's \
             own folder.",
    keys: &[ConfigKey {
        name: "missions",
        presence: Presence::Default("[]"),
        meaning: "Mission files, or folders of them, in addition to the built-in ones.",
    }],
};

/// The path as seen from the configuration's folder.
fn from_base(base: &Path, path: &mut PathBuf) {
    if path.is_relative() {
        *path = base.join(&*path);
    }
}

#[cfg(test)]
mod tests;
