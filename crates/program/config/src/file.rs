//! The whole file of a node, and what its tables make of the node.

use crate::blocks::{AllowEntry, BlocksEntry};
use crate::budget::BudgetEntry;
use crate::centre::{CentreConfig, Listen, SessionLimits, Store};
use crate::channel::Channel;
use crate::destination::{Destination, DestinationEntry};
use crate::error::{ConfigError, ConfigText, KeyPlace};
use crate::expedited::ExpeditedEntry;
use crate::feeds::ChannelInput;
use crate::folders::FolderEntry;
use crate::forwards::{FarNodes, ForwardEntry};
use crate::history::HistoryEntry;
use crate::mirrors::{FilesEntry, MirrorEntry};
use crate::node::Node;
use crate::notices::{ExecEntry, MailEntry, NoticesConfig, WebhookEntry};
use crate::outlets::{Beside, ProductOutlets, Written};
use crate::packets::Live;
use crate::path::{FeedRowEntry, LinePath, Outage};
use crate::peer::PeerEntry;
use crate::plan::{PLANS_MAX, PlanEntry};
use crate::product_terms::{AnswerEntry, FileTypesEntry, RetryEntry};
use crate::products::{ProductEntry, Products};
use crate::refill::Refill;
use crate::retention::RetentionEntry;
use crate::section::{ConfigTable, left_out};
use crate::sending::Class;
use crate::serve::ServeEntry;
use crate::station::{Line, LocalFolders, Spool, StationConfig};
use crate::status::StatusEntry;
use crate::streams::{StreamEntry, StreamsEntry};
use crate::subscription::{ItemKind, MAX_SUBSCRIPTIONS, SubscriptionEntry};
use crate::sync::Sync;
use crate::web::WebEntry;
use crate::{Applies, ConfigKey, NodeConfig, Presence};
use skyhaul_transport::ClassTree;
use skyhaul_units::Duration;
use std::path::{Path, PathBuf};

/// Every table that a file may have.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeFile {
    #[serde(default)]
    missions: Vec<PathBuf>,
    node: Node,
    #[serde(default = "left_out")]
    status: StatusEntry,
    #[serde(default)]
    listen: Vec<Listen>,
    #[serde(default)]
    peer: Vec<PeerEntry>,
    #[serde(default)]
    destination: Vec<DestinationEntry>,
    #[serde(default)]
    subscription: Vec<SubscriptionEntry>,
    #[serde(default = "left_out")]
    line: Line,
    #[serde(default)]
    path: Vec<LinePath>,
    #[serde(default)]
    class: Vec<Class>,
    #[serde(default)]
    channel: Vec<Channel>,
    #[serde(default = "left_out")]
    spool: Spool,
    #[serde(default = "left_out")]
    sync: Sync,
    #[serde(default = "left_out")]
    refill: Refill,
    #[serde(default)]
    forward: Vec<ForwardEntry>,
    #[serde(default)]
    folder: Vec<FolderEntry>,
    #[serde(default)]
    mirror: Vec<MirrorEntry>,
    #[serde(default)]
    stream: Vec<StreamEntry>,
    blocks: Option<BlocksEntry>,
    #[serde(default = "left_out")]
    store: Store,
    #[serde(default = "left_out")]
    session: SessionLimits,
    products: Option<Products>,
    #[serde(default)]
    product: Vec<ProductEntry>,
    #[serde(default)]
    expedited: Vec<ExpeditedEntry>,
    #[serde(default)]
    budget: Vec<BudgetEntry>,
    #[serde(default)]
    retention: Vec<RetentionEntry>,
    #[serde(default)]
    live: Vec<Live>,
    serve: Option<ServeEntry>,
    web: Option<WebEntry>,
    history: Option<HistoryEntry>,
    #[serde(default)]
    webhook: Vec<WebhookEntry>,
    #[serde(default)]
    exec: Vec<ExecEntry>,
    #[serde(default)]
    mail: Vec<MailEntry>,
    #[serde(default)]
    plan: Vec<PlanEntry>,
}

/// Every table, in the order of the documentation.
pub(super) const TABLES: &[ConfigTable] = &[
    FIRST,
    Node::TABLE,
    StatusEntry::TABLE,
    Listen::TABLE,
    PeerEntry::TABLE,
    FilesEntry::TABLE,
    StreamsEntry::TABLE,
    DestinationEntry::TABLE,
    SubscriptionEntry::TABLE,
    FileTypesEntry::TABLE,
    AnswerEntry::TABLE,
    RetryEntry::TABLE,
    Line::TABLE,
    LinePath::TABLE,
    Outage::TABLE,
    FeedRowEntry::TABLE,
    Class::TABLE,
    Channel::TABLE,
    ChannelInput::TABLE,
    Spool::TABLE,
    Sync::TABLE,
    Refill::TABLE,
    ForwardEntry::TABLE,
    FolderEntry::TABLE,
    MirrorEntry::TABLE,
    StreamEntry::TABLE,
    BlocksEntry::TABLE,
    AllowEntry::TABLE,
    Store::TABLE,
    SessionLimits::TABLE,
    Products::TABLE,
    ProductEntry::TABLE,
    ExpeditedEntry::TABLE,
    BudgetEntry::TABLE,
    RetentionEntry::TABLE,
    Live::TABLE,
    ServeEntry::TABLE,
    WebEntry::TABLE,
    HistoryEntry::TABLE,
    WebhookEntry::TABLE,
    ExecEntry::TABLE,
    MailEntry::TABLE,
    PlanEntry::TABLE,
];

/// The keys before the first table.
const FIRST: ConfigTable = ConfigTable {
    heading: "Before the first table",
    meaning: "Keys outside all tables. Relative paths, here and in all tables, start at the file's \
             own folder.",
    applies: Applies::AtStart,
    keys: &[ConfigKey {
        name: "missions",
        presence: Presence::Default("[]"),
        meaning: "Mission files, or folders of them, in addition to the built-in ones.",
    }],
};

/// Tables that say what is sent, and need a destination.
const SENDING: [&str; 9] =
    ["channel", "line", "path", "spool", "sync", "refill", "folder", "mirror", "stream"];
/// Those of them about contacts, which need a destination that takes contacts.
const CAPTURING: [&str; 2] = ["channel", "refill"];
/// Tables that say what is received, and need an address to listen on.
const RECEIVING: [&str; 8] =
    ["store", "session", "products", "product", "expedited", "budget", "retention", "live"];
/// Contacts that are served from the spool stay there for so long, unless room is needed: a look
/// at it comes twice a second.
const READ_WITHIN: Duration = Duration::from_secs(60);
/// Tables that say what is made of contacts, and need `[products]`.
const MADE: [&str; 4] = ["product", "expedited", "budget", "live"];

impl NodeFile {
    /// What the node does. `tables` are those that the file has.
    pub(super) fn into_config(
        mut self,
        config: ConfigText<'_>,
        tables: &toml::Table,
    ) -> Result<NodeConfig, ConfigError> {
        crate::peer::check(config, &self.peer)?;
        let own = &self.node.name;
        if let Some(peer) = self.peer.iter().find(|peer| peer.name == *own) {
            return Err(ConfigError::own_peer(config, &peer.name));
        }
        let entries = core::mem::take(&mut self.destination);
        let found = crate::destination::resolve(config, entries, &self.peer, own)?;
        let far = found.nodes;
        let outlets = self.outlets(config, found.places, &far)?;
        self.check_tables(config, &far, tables)?;
        let base = config.file.parent().unwrap_or(Path::new(""));
        self.node.resolve(base);
        self.status.check_socket(config, &self.node)?;
        self.missions.iter_mut().for_each(|path| crate::from_base(base, path));
        self.check_forwards(config, &far)?;
        let mut blocks = self.blocks.take();
        if let Some(blocks) = &mut blocks {
            crate::from_base(base, &mut blocks.socket);
            blocks.check_classes(config, &self.tree(config)?)?;
        }
        let mut serve = self.serve.take();
        if let Some(serve) = &mut serve {
            serve.check_bind(config)?;
            serve.resolve(base);
        }
        let mut web = self.web.take();
        if let Some(web) = &mut web {
            web.resolve(base);
            web.check_access(config, serve.as_ref())?;
        }
        let history = self.history.take().or_else(|| web.as_ref().map(|_| left_out()));
        let mut notices = NoticesConfig {
            webhooks: core::mem::take(&mut self.webhook),
            commands: core::mem::take(&mut self.exec),
            mails: core::mem::take(&mut self.mail),
        };
        notices.check(config)?;
        notices.resolve(base);
        let plans = self.plans(config, base)?;
        let (node, status) = (self.node.clone(), self.status.clone());
        // A forward that names no node goes to the first destination.
        let is_sent = |forward: &ForwardEntry| match forward.node() {
            Some(node) => far.iter().any(|far| far.name() == node),
            None => !far.is_empty(),
        };
        let forwards = core::mem::take(&mut self.forward).into_iter();
        let (sent, received) = forwards.partition(is_sent);
        let reads_spool = serve.as_ref().is_some_and(ServeEntry::is_of_contacts);
        if reads_spool && self.listen.is_empty() {
            self.spool.retention = self.spool.retention.max(READ_WITHIN);
        }
        let station = (!far.is_empty()).then(|| self.station(far, sent));
        let listens = !self.listen.is_empty();
        let centre = listens.then(|| self.centre(received, outlets));
        let made = NodeConfig {
            node,
            station,
            centre,
            blocks,
            serve,
            web,
            history,
            status,
            notices,
            plans,
        };
        checked(made, config)
    }

    /// The plans of passes.
    fn plans(
        &mut self,
        config: ConfigText<'_>,
        base: &Path,
    ) -> Result<Vec<PlanEntry>, ConfigError> {
        let mut plans = core::mem::take(&mut self.plan);
        if plans.len() > PLANS_MAX {
            return Err(ConfigError::many(config, "[[plan]]", plans.len(), PLANS_MAX));
        }
        let paths = plans.iter_mut().flat_map(PlanEntry::paths_mut);
        paths.for_each(|path| crate::from_base(base, path));
        Ok(plans)
    }

    /// Checks that each table has an effect beside the others.
    fn check_tables(
        &self,
        config: ConfigText<'_>,
        far: &[Destination],
        tables: &toml::Table,
    ) -> Result<(), ConfigError> {
        let has =
            |names: &[&'static str]| names.iter().copied().find(|name| tables.contains_key(*name));
        let sends_contacts = far.iter().any(Destination::takes_contacts);
        if !sends_contacts && self.node.standby_of.is_some() {
            let place = KeyPlace { heading: "[node]", nth: 0, key: "standby_of" };
            let what = "a standby has nowhere to send to".to_owned();
            let help = "add a [[destination]], or remove the key";
            return Err(ConfigError::at(config, place, what, help));
        }
        match (far.is_empty(), !self.listen.is_empty()) {
            (true, false) => return Err(ConfigError::idle(config, has(&SENDING))),
            (true, true) => {
                if let Some(table) = has(&SENDING) {
                    return Err(ConfigError::needs(config, table, "[[destination]]"));
                }
            }
            (false, false) => {
                if let Some(table) = has(&RECEIVING) {
                    return Err(ConfigError::needs(config, table, "[[listen]]"));
                }
            }
            (false, true) => {}
        }
        if let (false, false, Some(table)) = (far.is_empty(), sends_contacts, has(&CAPTURING)) {
            let node = "[[destination]] with to = \"node:NAME\"";
            return Err(ConfigError::needs(config, table, node));
        }
        if let (None, Some(table)) = (&self.products, has(&MADE)) {
            return Err(ConfigError::needs(config, table, "[products]"));
        }
        self.check_served(config)
    }

    /// Checks that the node has what it serves: products, or contacts where it only captures.
    fn check_served(&self, config: ConfigText<'_>) -> Result<(), ConfigError> {
        let Some(serve) = &self.serve else { return Ok(()) };
        let needs = |other| Err(ConfigError::needs(config, "serve", other));
        match (self.listen.is_empty(), serve.is_of_contacts()) {
            (false, _) if self.products.is_none() => needs("[products]"),
            (true, false) => needs("[[listen]]"),
            (true, true) if self.channel.is_empty() => needs("[[channel]]"),
            _ => Ok(()),
        }
    }

    fn check_forwards(
        &self,
        config: ConfigText<'_>,
        far: &[Destination],
    ) -> Result<(), ConfigError> {
        let tree = self.tree(config)?;
        let names: Vec<String> = match (far, self.listen.is_empty()) {
            ([_, ..], true) => far.iter().map(|far| far.name().to_owned()).collect(),
            _ => self.peer.iter().map(|peer| peer.name.to_string()).collect(),
        };
        let far = far.first().map(|far| far.name().to_owned());
        let only = match &names[..] {
            [only] => Some(only.clone()),
            _ => None,
        };
        let nodes = FarNodes { usual: far.or(only), names };
        crate::forwards::check(config, &self.forward, &nodes, &tree)
    }

    /// Its classes.
    fn tree(&self, config: ConfigText<'_>) -> Result<ClassTree, ConfigError> {
        ClassTree::new(&crate::sending::classes(&self.class))
            .map_err(|error| ConfigError::class(config.text, config.file, &error))
    }

    fn station(&mut self, far: Vec<Destination>, forward: Vec<ForwardEntry>) -> Box<StationConfig> {
        use core::mem::take;
        Box::new(StationConfig {
            missions: self.missions.clone(),
            node: self.node.clone(),
            destinations: far,
            subscription: take(&mut self.subscription),
            stations: self
                .listen
                .is_empty()
                .then(|| self.peer.iter().map(|peer| peer.name.clone()).collect()),
            line: self.line.clone(),
            spool: self.spool.clone(),
            sync: self.sync.clone(),
            refill: self.refill.clone(),
            path: take(&mut self.path),
            class: self.class.clone(),
            channel: take(&mut self.channel),
            forward,
            folders: LocalFolders {
                dropped: take(&mut self.folder),
                mirrored: take(&mut self.mirror),
            },
            stream: take(&mut self.stream),
        })
    }

    /// Where products go. Leaves the subscriptions to contacts.
    fn outlets(
        &mut self,
        config: ConfigText<'_>,
        destinations: Vec<(usize, DestinationEntry)>,
        far: &[Destination],
    ) -> Result<ProductOutlets, ConfigError> {
        let heading = crate::subscription::HEADING;
        let count = self.subscription.len();
        if count > MAX_SUBSCRIPTIONS {
            return Err(ConfigError::many(config, heading, count, MAX_SUBSCRIPTIONS));
        }
        let entries = core::mem::take(&mut self.subscription).into_iter().enumerate();
        let (contacts, subscriptions): (Vec<_>, Vec<_>) =
            entries.partition(|(_, entry)| entry.of == ItemKind::Contacts);
        let needs = |heading, nth: usize, what: &str, other: &str| {
            let place = KeyPlace { heading, nth, key: heading };
            let help = format!("add a {other}, or remove the table");
            Err(ConfigError::at(config, place, format!("{what} without a {other}"), &help))
        };
        let nodes = far.iter().filter(|one| one.takes_contacts()).map(Destination::name);
        let nodes: Vec<&str> = nodes.collect();
        if let (Some((nth, _)), []) = (contacts.first(), &nodes[..]) {
            let what = "a subscription to contacts has no effect";
            return needs(heading, *nth, what, "[[destination]] that is a node");
        }
        let first = subscriptions.first().map(|(nth, _)| (heading, *nth));
        let first =
            first.or(destinations.first().map(|(nth, _)| (crate::destination::HEADING, *nth)));
        if let Some((heading, nth)) = first {
            let what = "no products can be delivered";
            if self.listen.is_empty() {
                return needs(heading, nth, what, "[[listen]]");
            }
            if self.products.is_none() {
                return needs(heading, nth, what, "[products] table");
            }
        }
        self.subscription = contacts.into_iter().map(|(_, entry)| entry).collect();
        let beside = Beside { nodes: &nodes, tree: &self.tree(config)? };
        crate::outlets::resolve(config, Written { destinations, subscriptions }, &beside)
    }

    fn centre(self, forward: Vec<ForwardEntry>, outlets: ProductOutlets) -> Box<CentreConfig> {
        Box::new(CentreConfig {
            missions: self.missions,
            node: self.node,
            listen: self.listen,
            peer: self.peer,
            store: self.store,
            products: self.products,
            product: self.product,
            expedited: self.expedited,
            outlets,
            budget: self.budget,
            retention: self.retention,
            live: self.live,
            session: self.session,
            class: self.class,
            forward,
        })
    }
}

/// The parts of a node, checked, with paths that start at the folder of the file.
fn checked(mut config_of: NodeConfig, config: ConfigText<'_>) -> Result<NodeConfig, ConfigError> {
    let base = config.file.parent().unwrap_or(Path::new(""));
    if let Some(station) = &mut config_of.station {
        station.check(config)?;
        station.resolve(base);
    }
    if let Some(centre) = &mut config_of.centre {
        centre.check(config)?;
        centre.resolve(base);
    }
    Ok(config_of)
}
