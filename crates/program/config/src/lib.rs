//! The configuration of a node: what its file declares is what it does; and `nodes.toml`, the
//! address book of the command line.
//!
//! Reading is parsing: a configuration that was read can be used without further checks. Unknown
//! keys, wrong units and contradictions are refused with file, line and what to write instead. Each
//! key is declared once, in the struct that holds it, with its default and meaning; [`reference()`]
//! makes the documentation's tables from the same declaration. Whether the named files and
//! addresses exist is checked where they are used.
//!
//! ```
//! use skyhaul_config::parse;
//! let text = r#"
//!     [node]
//!     name = "centre-1"
//!     key = "centre.key"
//!     state = "state"
//!     [[listen]]
//!     bind = "0.0.0.0:4700"
//!     [products]
//!     dir = "products"
//! "#;
//! let config = parse(text, "/etc/skyhaul/node.toml".as_ref())?;
//! assert_eq!(config.node.key, std::path::Path::new("/etc/skyhaul/centre.key"));
//! assert!(config.station.is_none() && config.centre.is_some());
//! # Ok::<(), skyhaul_config::ConfigError>(())
//! ```

mod blocks;
mod book;
mod budget;
mod centre;
mod channel;
mod channel_error;
mod destination;
mod destination_names;
mod error;
mod expedited;
mod feeds;
mod file;
mod folders;
mod forwards;
mod history;
mod input;
mod mirrors;
mod name;
mod node;
mod notices;
mod outlets;
mod packets;
mod path;
mod peer;
mod peer_address;
mod peer_key;
mod plan;
mod product_terms;
mod products;
mod refill;
mod retention;
mod section;
mod sending;
mod serve;
mod sharing;
mod station;
mod status;
mod streams;
mod subscription;
mod sync;
mod time;
mod ways;
mod web;

pub use blocks::{AllowEntries, AllowEntry, BlocksEntry, ClassNames, UserName};
pub use book::{AddressBook, BookChangeError, BookPeer};
pub use budget::{BudgetEntry, BudgetKind};
pub use centre::{CentreConfig, Listen, SessionLimits, Store};
pub use channel::{Channel, Compress, MissionRef};
pub use destination::{
    Destination, DestinationEntry, DestinationPlace, DestinationUse, NodeFolder, OutletPlace,
    PublishName, SinceName,
};
pub use destination_names::{DestinationNames, SubscribedNames};
pub use error::{ConfigError, ConfigText};
pub use expedited::{Apids, ExpeditedEntry};
pub use feeds::{ChannelInput, ChannelInputs, ResolvedInput};
pub use folders::{AfterHandover, FolderEntry, FolderUse};
pub use forwards::{AsFlag, ForwardEntry, ForwardRules, each_is_one};
pub use history::HistoryEntry;
pub use input::{Input, InputFormat, SoftForm};
pub use mirrors::{FarFolder, FilesEntry, MirrorEntry, Patterns};
pub use name::{HostPort, InterfaceName, Mtu, Name, NameError};
pub use node::Node;
pub use notices::{ExecEntry, MailEntry, NoticesConfig, WebhookEntry};
pub use outlets::{ProductDestination, ProductOutlets, ProductSubscription};
pub use packets::{Live, LiveTarget, LiveTargetError};
pub use path::{FeedRowEntry, FeedRows, LinePath, Outage, Outages, Transport};
pub use peer::{PeerEntry, PeerNames};
pub use peer_address::PeerAddresses;
pub use peer_key::{PeerKey, PeerKeys};
pub use plan::{Degrees, PlanEntry, PlanSource};
pub use product_terms::{
    AnswerEntry, FileTypesEntry, ItemFilter, MissingName, OrderName, OutletFolder, RecordForm,
    RetryEntry, VersionsName,
};
pub use products::{ProductEntry, ProductForm, ProductRule, ProductRules, ProductWindow, Products};
pub use refill::Refill;
pub use retention::{RetentionEntry, RetentionFrom, RetentionHold, RetentionLeave};
pub use section::{Applies, ConfigKey, ConfigTable, Presence};
pub use sending::{Class, PolicyName};
pub use serve::{ServeEntry, ServeRoots, TlsPair};
pub use sharing::{CatchUp, LineSharing, REFILL, SendingTerms, SharingRules};
pub use station::{Line, LocalFolders, RateControl, Spool, StationConfig};
pub use status::{StatusEntry, UserNames};
pub use streams::{CentreSink, Sinks, StreamEntry, StreamsEntry};
pub use subscription::{ContactLabel, ContactRoute, ItemKind, SettleName, SubscriptionEntry};
pub use sync::Sync;
pub use time::{ConfigTime, TimeError};
pub use web::{WebAnonymous, WebEntry, WebHosts};

use std::path::{Path, PathBuf};

/// What a node does, as its file declares it: it sends, it receives, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeConfig {
    /// Who it is.
    pub node: Node,
    /// What it captures and sends; none without a `[[destination]]`.
    pub station: Option<Box<StationConfig>>,
    /// What it receives and makes of it; none without a `[[listen]]`.
    pub centre: Option<Box<CentreConfig>>,
    /// Where programs hand over blocks; none without a `[blocks]`.
    pub blocks: Option<BlocksEntry>,
    /// How products are served; none without a `[serve]`.
    pub serve: Option<ServeEntry>,
    /// How the node is shown; none without a `[web]`.
    pub web: Option<WebEntry>,
    /// How long its figures are kept; none without a `[history]` or `[web]`.
    pub history: Option<HistoryEntry>,
    /// Who of this host may ask the node and give it orders.
    pub status: StatusEntry,
    /// Who is told of events outside this machine.
    pub notices: NoticesConfig,
    /// Planned passes.
    pub plans: Vec<PlanEntry>,
}

/// Reads a configuration file.
///
/// # Errors
/// The file cannot be read, is larger than [`MAX_FILE`], or does not say what a node needs to know.
pub fn load(file: &Path) -> Result<NodeConfig, ConfigError> {
    parse(&read_text(file)?, file)
}

/// Reads the text of a configuration file.
///
/// # Errors
/// The file cannot be read, or is larger than [`MAX_FILE`].
pub fn read_text(file: &Path) -> Result<String, ConfigError> {
    let size =
        std::fs::metadata(file).map_err(|source| ConfigError::unreadable(file, &source))?.len();
    if size > MAX_FILE {
        return Err(ConfigError::too_large(file, size, MAX_FILE));
    }
    std::fs::read_to_string(file).map_err(|source| ConfigError::unreadable(file, &source))
}

/// Reads a configuration from its text; `file` is where it came from: relative paths start at its
/// folder.
///
/// # Errors
/// The text is not a node's configuration; file, line and help are in the error.
pub fn parse(text: &str, file: &Path) -> Result<NodeConfig, ConfigError> {
    let refuse = |error: toml::de::Error| ConfigError::from_toml(&error, text, file);
    let tables: toml::Table = toml::from_str(text).map_err(refuse)?;
    let written: file::NodeFile = toml::from_str(text).map_err(refuse)?;
    written.into_config(ConfigText { text, file }, &tables)
}

/// Every table and key of both kinds of file, in the order of the documentation.
pub fn reference() -> [(&'static str, &'static [ConfigTable]); 2] {
    [("node.toml", file::TABLES), ("nodes.toml", book::TABLES)]
}

/// 1 MiB: a thousand channels with room for comments.
pub const MAX_FILE: u64 = 1 << 20;

/// The path as seen from the configuration's folder.
fn from_base(base: &Path, path: &mut PathBuf) {
    if path.is_relative() {
        *path = base.join(&*path);
    }
}

#[cfg(test)]
mod tests;
