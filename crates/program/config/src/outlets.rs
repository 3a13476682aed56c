//! Where products go: their destinations, and the subscriptions to them.

use crate::destination::{
    self, DestinationEntry, DestinationPlace, NodeFolder, OutletPlace, PublishName,
};
use crate::error::{ConfigError, ConfigText, KeyPlace};
use crate::name::Name;
use crate::product_terms::{
    AnswerEntry, FileTypesEntry, ItemFilter, OrderName, OutletFolder, RecordForm, RetryEntry,
    VersionsName,
};
use crate::subscription::{self, SubscriptionEntry};
use skyhaul_dispatch::sips::{self, Terms};
use skyhaul_dispatch::{ChecksumKind, DeliveryRules, QueueLane, RetryRules, cnm};
use skyhaul_remote::{DeliveryPace, PublishWay, RemoteAccess, RemotePlace, RemoteServer, S3Access};
use skyhaul_transport::ClassTree;
use skyhaul_units::Duration;
use std::path::Path;
use std::sync::Arc;

/// Where products go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProductOutlets {
    /// The destinations.
    pub destinations: Vec<ProductDestination>,
    /// What goes to them, and how.
    pub subscriptions: Vec<ProductSubscription>,
}

/// A destination of products.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProductDestination {
    /// Its name.
    pub name: Name,
    /// Where it is.
    pub place: OutletPlace,
    /// What its table says.
    pub entry: DestinationEntry,
}

/// A subscription to products.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProductSubscription {
    /// Its name.
    pub name: Name,
    /// The names of its destinations, the first of them first.
    pub to: Vec<Name>,
    /// What its table says.
    pub entry: SubscriptionEntry,
}

impl ProductOutlets {
    /// The subscriptions to a destination.
    pub fn subscriptions_to(&self, destination: &Name) -> Vec<ProductSubscription> {
        let is_to = |one: &&ProductSubscription| one.to.contains(destination);
        self.subscriptions.iter().filter(is_to).cloned().collect()
    }

    /// The subscription of a name.
    pub fn subscription(&self, name: &str) -> Option<&ProductSubscription> {
        self.subscriptions.iter().find(|one| one.name.as_str() == name)
    }
}

impl ProductDestination {
    /// How it is entered by `who`: the name of the node, or of a program beside it.
    pub fn access(&self, who: &str) -> RemoteAccess {
        let usual = RemoteAccess::default();
        let entry = &self.entry;
        RemoteAccess {
            key_file: entry.key.clone(),
            password_file: entry.password.clone(),
            host_keys: entry.host_keys.clone().unwrap_or_default(),
            ca_file: entry.ca.clone(),
            s3: S3Access {
                endpoint: entry.endpoint.clone(),
                region: entry.region.as_ref().map(ToString::to_string),
                profile_file: entry.profile_file.clone(),
                profile: entry.profile.as_ref().map(ToString::to_string),
                ..usual.s3
            },
            publish: match entry.publish {
                PublishName::Auto => None,
                PublishName::Rename => Some(PublishWay::Rename),
                PublishName::Direct => Some(PublishWay::Direct),
            },
            pace: entry.rate.map(|rate| Arc::new(DeliveryPace::new(rate))),
            tried_by: format!("{who}/{}", self.name),
            stall: usual.stall,
        }
    }

    /// The folder of this machine that it is, if it is one.
    pub fn folder(&self) -> Option<&Path> {
        match &self.place {
            OutletPlace::Remote(RemotePlace::Folder(path)) => Some(path),
            _ => None,
        }
    }

    /// The folder of another node that it is, if it is one.
    pub const fn node(&self) -> Option<&NodeFolder> {
        match &self.place {
            OutletPlace::Node(folder) => Some(folder),
            OutletPlace::Remote(_) => None,
        }
    }

    /// The folder as delivery records name it.
    pub fn directory(&self) -> String {
        if let Some(directory) = &self.entry.directory {
            return directory.clone();
        }
        let place = match &self.place {
            OutletPlace::Node(at) => return at.folder.as_str().to_owned(),
            OutletPlace::Remote(place) => place,
        };
        match place {
            RemotePlace::Folder(path) => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                path.to_string_lossy().into_owned()
            }
            RemotePlace::Sftp(server) | RemotePlace::Ftps(server) | RemotePlace::Https(server) => {
                server.folder.clone()
            }
            RemotePlace::S3 { bucket, prefix } => format!("{bucket}/{prefix}"),
        }
    }

    /// The address of the place, as cloud notification messages name it.
    fn address(&self) -> String {
        if let Some(address) = self.entry.directory.as_ref().filter(|text| text.contains("://")) {
            return address.clone();
        }
        let anyone = |server: &RemoteServer| RemoteServer { user: None, ..server.clone() };
        let place = match &self.place {
            // Consumers read the folder on their own disk.
            OutletPlace::Node(_) => return format!("file:///{}", cnm::escaped(&self.directory())),
            OutletPlace::Remote(place) => place,
        };
        let text = match place {
            RemotePlace::Folder(_) => format!("file://{}", self.directory()),
            RemotePlace::Sftp(server) => RemotePlace::Sftp(anyone(server)).to_string(),
            RemotePlace::Ftps(server) => RemotePlace::Ftps(anyone(server)).to_string(),
            RemotePlace::Https(server) => RemotePlace::Https(anyone(server)).to_string(),
            store @ RemotePlace::S3 { .. } => store.to_string(),
        };
        let host = text.find("://").map_or(0, |scheme| scheme + 3);
        let path = text[host..].find('/').map_or(text.len(), |path| host + path);
        format!("{}{}", &text[..path], cnm::escaped(&text[path..]))
    }

    pub(super) fn resolve(&mut self, base: &Path) {
        if let OutletPlace::Remote(RemotePlace::Folder(path)) = &mut self.place {
            crate::from_base(base, path);
        }
        let entry = &mut self.entry;
        let files = [&mut entry.key, &mut entry.password, &mut entry.ca, &mut entry.profile_file];
        files.into_iter().flatten().for_each(|file| crate::from_base(base, file));
    }
}

impl ProductSubscription {
    /// Whether it takes an item.
    pub fn takes(&self, item: &skyhaul_catalogue::Item) -> bool {
        self.entry.filter.as_ref().is_none_or(|filter| filter.filter().takes(item))
    }

    /// The folder below the destination.
    pub const fn folder(&self) -> &OutletFolder {
        &self.entry.into
    }

    /// The form of its delivery records.
    pub const fn record(&self) -> RecordForm {
        self.entry.record
    }

    /// How its deliveries stand in the queue of a destination.
    pub fn lane(&self) -> QueueLane {
        QueueLane { ordering: self.entry.order.ordering(), rules: self.rules() }
    }

    /// The rules of its deliveries.
    pub fn rules(&self) -> DeliveryRules {
        let answer = self.entry.answer.as_ref();
        DeliveryRules {
            retry: self.entry.retry.as_ref().map_or_else(RetryRules::default, RetryEntry::rules),
            answer: answer.map(AnswerEntry::rules),
            attempts: answer.map_or(USUAL_ATTEMPTS, |answer| answer.attempts),
            patience: self.entry.patience.unwrap_or(Duration::ZERO),
        }
    }

    /// What its records in PVL say beside the product.
    pub fn terms(&self) -> Terms {
        let types = self.entry.file_types.clone().unwrap_or_else(crate::section::left_out);
        let FileTypesEntry { data, record } = types;
        Terms {
            node_name: self.entry.node_name.as_ref().map(ToString::to_string),
            data_version: self.entry.data_version.to_string(),
            file_type: data,
            metadata_type: record,
        }
    }

    /// The folder below a destination as delivery records name it.
    pub fn directory(&self, destination: &ProductDestination) -> String {
        let into = self.folder().as_str();
        let (directory, into) = match self.record() {
            RecordForm::Cnm => (destination.address(), cnm::escaped(into)),
            _ => (destination.directory(), into.to_owned()),
        };
        match into.as_str() {
            "" => directory,
            into => format!("{}/{into}", directory.trim_end_matches('/')),
        }
    }

    /// The checksum that its records give.
    pub fn checksum(&self) -> Option<ChecksumKind> {
        match self.record() {
            RecordForm::Sips | RecordForm::Cnm => Some(self.entry.checksum),
            RecordForm::Edos | RecordForm::None => None,
        }
    }

    /// What contradicts itself.
    fn check_terms(&self) -> Result<(), Wrong> {
        let name = &self.name;
        if self.entry.answer.is_some() && self.record() == RecordForm::None {
            let what = format!("the subscription `{name}` awaits notices, and writes no records");
            let help = "add record = \"sips\", \"edos\" or \"cnm\", or remove `answer`";
            return Err(Wrong::of("answer", what, help));
        }
        self.check_checksum()?;
        if self.entry.patience.is_some() && self.entry.versions != VersionsName::Latest {
            let what = format!(
                "the subscription `{name}` waits for a better version, and does not replace one"
            );
            let help = "write versions = \"latest\", or remove `patience`";
            return Err(Wrong::of("patience", what, help));
        }
        if self.entry.order == OrderName::Deadline && self.entry.deadline.is_none() {
            let what = format!("the subscription `{name}` is ordered by deadlines, and has none");
            let help = "add `deadline`, or write order = \"newest\" or \"oldest\"";
            return Err(Wrong::of("order", what, help));
        }
        Ok(())
    }
}

impl ProductSubscription {
    /// Whether its records have a name for the checksum.
    fn check_checksum(&self) -> Result<(), Wrong> {
        let (form, sum, help) = match (self.record(), self.entry.checksum) {
            (RecordForm::Sips, ChecksumKind::Sha256) => {
                let help = "write \"md5\" or \"cksum\", or record = \"cnm\" if the consumer reads \
                            that";
                ("sips", "sha256", help)
            }
            (RecordForm::Cnm, ChecksumKind::Cksum) => {
                ("cnm", "cksum", "write \"md5\" or \"sha256\"")
            }
            _ => return Ok(()),
        };
        let what = format!("a `{form}` record has no checksum `{sum}`");
        Err(Wrong::of("checksum", what, help))
    }
}

/// The tables of a file about products, each with its place among those of its heading.
pub(super) struct Written {
    pub destinations: Vec<(usize, DestinationEntry)>,
    pub subscriptions: Vec<(usize, SubscriptionEntry)>,
}

/// What a file has beside the outlets.
pub(super) struct Beside<'a> {
    /// The names of its destinations that are nodes.
    pub nodes: &'a [&'a str],
    /// Its classes.
    pub tree: &'a ClassTree,
}

/// The outlets of a file.
pub(super) fn resolve(
    config: ConfigText<'_>,
    written: Written,
    beside: &Beside<'_>,
) -> Result<ProductOutlets, ConfigError> {
    if written.destinations.len() > MAX_PLACES {
        let nth = written.destinations[MAX_PLACES].0;
        let place = KeyPlace { heading: destination::HEADING, nth, key: "to" };
        let what = format!("there are {} destinations of products", written.destinations.len());
        return Err(ConfigError::at(config, place, what, &format!("write at most {MAX_PLACES}")));
    }
    let base = config.file.parent().unwrap_or(Path::new(""));
    let mut outlets = ProductOutlets::default();
    for (nth, entry) in written.destinations {
        if let Some(class) = entry.class.as_ref().map(Name::as_str)
            && beside.tree.find(class).is_none()
        {
            let place = KeyPlace { heading: destination::HEADING, nth, key: "class" };
            return Err(ConfigError::no_class(config, place, class, "a destination", beside.tree));
        }
        let place = KeyPlace { heading: destination::HEADING, nth, key: "publish" };
        let found = destination_of(entry)
            .map_err(|what| ConfigError::at(config, place, what, "remove `publish`"))?;
        outlets.destinations.push(found);
    }
    outlets.destinations.iter_mut().for_each(|one| one.resolve(base));
    for (nth, entry) in written.subscriptions {
        let found = subscription_of(entry, &outlets, beside.nodes);
        let checked = found.and_then(|found| {
            found.check_terms()?;
            check_records(&found, &outlets)?;
            check_names(&found, &outlets.subscriptions)?;
            Ok(found)
        });
        let found = checked.map_err(|Wrong { key, what, help }| {
            let place = KeyPlace { heading: subscription::HEADING, nth, key };
            ConfigError::at(config, place, what, &help)
        })?;
        outlets.subscriptions.push(found);
    }
    Ok(outlets)
}

/// A destination of products.
fn destination_of(entry: DestinationEntry) -> Result<ProductDestination, String> {
    let (Some(name), DestinationPlace::Products(place)) =
        (entry.title().cloned(), entry.to.clone())
    else {
        return Err(format!("the destination `{}` takes no products", entry.to));
    };
    let is_renamed = matches!(
        place,
        OutletPlace::Remote(RemotePlace::Sftp(_) | RemotePlace::Ftps(_) | RemotePlace::Https(_))
    );
    if entry.publish != PublishName::Auto && !is_renamed {
        return Err(format!(
            "the destination `{name}` shows each file only when it is whole, and has no `publish`"
        ));
    }
    Ok(ProductDestination { name, place, entry })
}

/// What is wrong with a subscription.
struct Wrong {
    key: &'static str,
    what: String,
    help: String,
}

impl Wrong {
    fn of(key: &'static str, what: String, help: &str) -> Self {
        Self { key, what, help: help.to_owned() }
    }
}

fn subscription_of(
    entry: SubscriptionEntry,
    outlets: &ProductOutlets,
    nodes: &[&str],
) -> Result<ProductSubscription, Wrong> {
    let Some(name) = entry.name.clone() else {
        let what = "a subscription to products has no name".to_owned();
        let help = "add `name`, by which commands and status name it";
        return Err(Wrong::of(subscription::HEADING, what, help));
    };
    if outlets.subscription(name.as_str()).is_some() {
        let what = format!("the subscription `{name}` is defined twice");
        return Err(Wrong::of("name", what, "give each subscription a name of its own"));
    }
    let known: Vec<Name> = outlets.destinations.iter().map(|one| one.name.clone()).collect();
    let to = entry.names().map_or_else(|| known.clone(), <[Name]>::to_vec);
    if let Some(node) = to.iter().find(|name| nodes.contains(&name.as_str())) {
        let what = format!("the destination `{node}` is a node, and takes contacts, no products");
        let help = format!(
            "add a [[destination]] with a name of its own and to = \"node:{node}/DIR\", and write \
             that name"
        );
        return Err(Wrong::of("to", what, &help));
    }
    if let Some(unknown) = to.iter().find(|name| !known.contains(name)) {
        let what = format!("there is no destination `{unknown}` for the subscription `{name}`");
        let listed: Vec<&str> = known.iter().map(Name::as_str).collect();
        let help = match &listed[..] {
            [] => "add a [[destination]] with this name".to_owned(),
            listed => format!("write one of {}", listed.join(", ")),
        };
        return Err(Wrong::of("to", what, &help));
    }
    if to.is_empty() {
        let what = format!("the subscription `{name}` has no destination");
        let help = "add a [[destination]] of products, such as to = \"node:NAME/DIR\"";
        return Err(Wrong::of("to", what, help));
    }
    Ok(ProductSubscription { name, to, entry })
}

/// Whether records can be written at the destinations, and files are seen only when they are whole
/// or named by a record.
fn check_records(of: &ProductSubscription, outlets: &ProductOutlets) -> Result<(), Wrong> {
    let its = outlets.destinations.iter().filter(|one| of.to.contains(&one.name));
    for destination in its {
        if of.record() == RecordForm::None && destination.entry.publish == PublishName::Direct {
            let what = format!(
                "files of the subscription `{}` are visible at `{}` while they grow, and no record \
                 says when they are whole",
                of.name, destination.name
            );
            let help = "add `record` to the subscription, or remove `publish` from the destination";
            return Err(Wrong::of("record", what, help));
        }
        if of.record() == RecordForm::Sips {
            let checked = sips::check_folder(&of.directory(destination));
            checked.map_err(|error| {
                let help = "name another folder, or write record = \"edos\" if the consumer reads \
                            that";
                Wrong::of("to", error.to_string(), help)
            })?;
        }
    }
    Ok(())
}

/// Whether an earlier subscription may write files of the same names to the same destination.
fn check_names(of: &ProductSubscription, earlier: &[ProductSubscription]) -> Result<(), Wrong> {
    let filter = |one: &'_ ProductSubscription| -> Option<ItemFilter> { one.entry.filter.clone() };
    let meets = |other: &&ProductSubscription| {
        let excludes = match (filter(of), filter(other)) {
            (Some(own), Some(other)) => own.filter().excludes(other.filter()),
            _ => false,
        };
        other.folder() == of.folder() && !excludes && other.to.iter().any(|to| of.to.contains(to))
    };
    let Some(other) = earlier.iter().find(meets) else { return Ok(()) };
    let place = other.to.iter().find(|to| of.to.contains(to)).unwrap_or(&other.name);
    let what = format!(
        "the subscriptions `{}` and `{}` may write files of one name to `{place}`",
        other.name, of.name
    );
    let help = "give one of them a folder of its own by `into`, or filters that exclude each \
                other, such as kind = 'session' and kind = 'time'";
    Err(Wrong::of("to", what, help))
}

/// The most attempts where the subscription does not say.
const USUAL_ATTEMPTS: u32 = 3;
/// Each has threads of its own.
const MAX_PLACES: usize = 64;

#[cfg(test)]
mod tests;
