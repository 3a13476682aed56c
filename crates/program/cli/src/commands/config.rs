//! `skyhaul config`: explains the effect of a configuration file, lists the keys, and writes what a
//! service needs.

mod diff;
mod doubts;
mod explain;
mod guests;
mod plans;
mod retention;
mod systemd;
mod words;

use diff::DiffCommand;
use doubts::doubts;
use guests::{
    write_folders, write_forwards, write_mirrors, write_peer, write_rules, write_streams,
};
use plans::write_plan;
use skyhaul_config::{
    BlocksEntry, BudgetEntry, CentreConfig, Channel, Class, ConfigTable, Destination, Live, Name,
    NodeConfig, NoticesConfig, PeerEntry, Presence, ProductEntry, ProductForm, ProductOutlets,
    ProductWindow, Products, Refill, ServeEntry, SettleName, StationConfig, StatusEntry,
    SubscriptionEntry, UserName, WebEntry,
};
use skyhaul_exit::{Exit, Failure};
use skyhaul_serve::ServeRoot;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use words::{kept, spoken, to_disk};

/// Checks and explains configuration files.
#[derive(clap::Subcommand)]
pub enum Config {
    /// Checks a node's configuration, and explains its effect in words.
    #[command(after_help = "Example:
  skyhaul config check /etc/skyhaul/node.toml
  skyhaul config check --strict /etc/skyhaul/node.toml
  skyhaul config check --connect /etc/skyhaul/node.toml")]
    Check {
        /// The configuration file.
        file: PathBuf,
        /// Connects to each destination once, and reports the reason if that fails. This interrupts
        /// a running node of the same name for a second.
        #[arg(long)]
        connect: bool,
        /// Treats warnings as errors (exit code 2): a missing key, an example's fingerprint, a
        /// folder that cannot be created. Run it as the user of the node.
        #[arg(long)]
        strict: bool,
    },
    /// Explains what the node does with each kind of data, and names what goes nowhere.
    #[command(after_help = "Example:\n  skyhaul config explain /etc/skyhaul/node.toml")]
    Explain {
        /// The configuration file.
        file: PathBuf,
    },
    /// Shows how the configuration of a running node differs from its file.
    Diff(DiffCommand),
    /// Lists every key of both files with its default and meaning, as Markdown.
    #[command(after_help = "Example:\n  skyhaul config keys")]
    Keys,
    /// Writes the drop-in that lets the service skyhaul@NAME do what the file says.
    #[command(after_help = "\
The unit skyhaul@.service grants few rights. The drop-in adds what this node needs of folders, \
ports, devices and shared memory, each with the key that needs it. Run it on the host of the \
service: it warns of folders that do not exist there.

Example:
  skyhaul config systemd /etc/skyhaul/station.toml
  skyhaul config systemd /etc/skyhaul/station.toml > \
      /etc/systemd/system/skyhaul@station.service.d/node.conf")]
    Systemd {
        /// The configuration file: the service has its name without `.toml`.
        file: PathBuf,
    },
}

/// Carries out one `config` command.
///
/// # Errors
/// The file is not a configuration, the centre cannot be reached, or the result cannot be written.
pub fn run(command: Config, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        Config::Check { file, connect, strict } => {
            let config = skyhaul_config::load(&file)?;
            if connect && config.station.is_none() {
                let what = "the node has no destination to connect to";
                let help = "omit --connect, or add a [[destination]]";
                let place = file.display().to_string();
                return Err(Failure::new(Exit::Usage, what, help).at(&place));
            }
            write_config(&config, out)?;
            out.flush()?;
            let policy = if strict { WarningPolicy::Refuse } else { WarningPolicy::Report };
            judge(&doubts(&config), policy, &file)?;
            if let (true, Some(station)) = (connect, &config.station) {
                for destination in &station.destinations {
                    let round_trip = skyhaul_node::station::reach(station, destination)?;
                    let millis = round_trip.as_secs_f64() * 1e3;
                    writeln!(out, "{} answers, round trip {millis:.1} ms", destination.name())?;
                }
            }
        }
        Config::Diff(command) => diff::run(&command, out)?,
        Config::Explain { file } => explain::write(&skyhaul_config::load(&file)?, out)?,
        Config::Keys => write_keys(out)?,
        Config::Systemd { file } => systemd::write(&file, out)?,
    }
    Ok(())
}

fn write_config(config: &NodeConfig, out: &mut dyn Write) -> io::Result<()> {
    let NodeConfig { node, station, centre, blocks, serve, web, history, status, notices, plans } =
        config;
    writeln!(out, "node {}", node.name)?;
    let (mut missions, mut classes) = (&Vec::new(), &Vec::new());
    if let Some(station) = station {
        write_station(station, out)?;
        (missions, classes) = (&station.missions, &station.class);
    }
    if let Some(centre) = centre {
        write_centre(centre, out)?;
        (missions, classes) = (&centre.missions, &centre.class);
    }
    classes.iter().try_for_each(|class| write_class(class, out))?;
    blocks.iter().try_for_each(|blocks| write_blocks(blocks, out))?;
    serve.iter().try_for_each(|serve| write_serve(serve, out))?;
    web.iter().try_for_each(|web| write_web(web, out))?;
    if let Some(history) = history {
        writeln!(out, "  keeps its history for {}", history.keep.in_units())?;
    }
    write_status(status, out)?;
    write_notices(notices, out)?;
    plans.iter().try_for_each(|plan| write_plan(plan, out))?;
    write_places(missions, node, out)
}

/// Who is told of events.
fn write_notices(notices: &NoticesConfig, out: &mut dyn Write) -> io::Result<()> {
    for hook in &notices.webhooks {
        let signed = if hook.secret_file.is_some() { "signed" } else { "not signed" };
        writeln!(out, "  tells {} of events, {signed}", hook.url)?;
    }
    for entry in &notices.commands {
        writeln!(out, "  runs `{}` for events", entry.command.join(" "))?;
    }
    for mail in &notices.mails {
        writeln!(out, "  mails events to {}", mail.to.join(", "))?;
    }
    Ok(())
}

fn write_serve(serve: &ServeEntry, out: &mut dyn Write) -> io::Result<()> {
    let roots: Vec<&str> = serve.roots().into_iter().map(ServeRoot::name).collect();
    let secured = match (serve.tls(), &serve.accounts) {
        (Some(_), Some(accounts)) => format!("TLS, accounts in {}", accounts.display()),
        (Some(_), None) => "TLS, no accounts".to_owned(),
        (None, Some(accounts)) => format!("no TLS, accounts in {}", accounts.display()),
        (None, None) => "no TLS, no accounts".to_owned(),
    };
    let what = if serve.is_of_contacts() { "contacts" } else { "products" };
    writeln!(out, "  serves {what} at {} ({}): {secured}", serve.bind, roots.join(", "))
}

fn write_web(web: &WebEntry, out: &mut dyn Write) -> io::Result<()> {
    let tls = if web.tls().is_some() { "TLS" } else { "no TLS" };
    let users = web.users.as_ref().map(|users| format!("users in {}", users.display()));
    let open = web.is_open().then(|| "everybody may look".to_owned());
    let who = users.into_iter().chain(open).collect::<Vec<_>>().join(", ");
    writeln!(out, "  shows itself at {}: {tls}, {who}", web.bind)
}

fn write_status(status: &StatusEntry, out: &mut dyn Write) -> io::Result<()> {
    let named =
        |users: &[UserName]| users.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    for (what, users) in
        [("takes orders of users", status.operators()), ("answers users", status.readers())]
    {
        if !users.is_empty() {
            writeln!(out, "  {what} {} at the status socket", named(users))?;
        }
    }
    Ok(())
}

fn write_blocks(blocks: &BlocksEntry, out: &mut dyn Write) -> io::Result<()> {
    let allowed = blocks.allowed().iter().map(|entry| {
        let classes = entry.classes.iter().flat_map(|classes| &classes.0);
        let classes: Vec<&str> = classes.map(Name::as_str).collect();
        let classes = match &classes[..] {
            [] => "all classes".to_owned(),
            classes => format!("classes {}", classes.join(", ")),
        };
        let rate = entry.rate.map_or("no limit of the rate".to_owned(), |rate| rate.to_string());
        format!("user {} ({classes}, {rate})", entry.user)
    });
    let allowed: Vec<String> = allowed.collect();
    let allowed = match allowed.is_empty() {
        true => "the node's own user and root".to_owned(),
        false => allowed.join(", "),
    };
    writeln!(out, "blocks of programs at {}, for {allowed}", blocks.socket.display())
}

/// What becomes of a configuration with warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WarningPolicy {
    /// The warnings are printed.
    Report,
    /// It is refused (`--strict`).
    Refuse,
}

/// Prints the warnings: what would keep the node from working.
fn judge(doubts: &[String], policy: WarningPolicy, file: &Path) -> Result<(), Failure> {
    for doubt in doubts {
        writeln!(io::stderr(), "warning: {doubt}")?;
    }
    if policy == WarningPolicy::Report || doubts.is_empty() {
        return Ok(());
    }
    let what = match doubts.len() {
        1 => "the configuration has a warning".to_owned(),
        count => format!("the configuration has {count} warnings"),
    };
    let help = "correct the keys that they name, or omit --strict";
    Err(Failure::new(Exit::Usage, &what, help).at(&file.display().to_string()))
}

fn write_station(station: &StationConfig, out: &mut dyn Write) -> io::Result<()> {
    let StationConfig {
        missions: _,
        node,
        destinations,
        subscription,
        stations: _,
        line,
        spool,
        sync,
        refill,
        path: _,
        class: _,
        channel,
        forward,
        folders,
        stream,
    } = station;
    destinations.iter().try_for_each(|destination| write_destination(destination, out))?;
    subscription.iter().try_for_each(|entry| write_subscription(entry, out))?;
    if let Some(of) = &node.standby_of {
        let after = spoken(node.standby_after);
        writeln!(out, "  stands by  for {of}, and sends when it delivers nothing for {after}")?;
    }
    let rate = line.rate.map_or("rate found automatically".to_owned(), |rate| rate.to_string());
    writeln!(
        out,
        "  line       {rate}, packets of {}, controller {}, policy {}",
        line.mtu,
        line.controller().name(),
        line.policy
    )?;
    write_paths(station, out)?;
    writeln!(
        out,
        "  spool      up to {} in files of {}, {}, {}",
        spool.max_size,
        spool.segment_size,
        to_disk(spool.sync_interval),
        kept(spool.retention, "custody")
    )?;
    writeln!(
        out,
        "  sync       markers with up to {} wrong bits in search, {} in check, {} in lock; {} \
        checked, {} coasted, slips of {}",
        sync.search_errors,
        sync.check_errors,
        sync.lock_errors,
        sync.check_frames,
        sync.flywheel_frames,
        sync.slip_bits
    )?;
    write_refill(refill, out)?;
    channel.iter().try_for_each(|channel| write_channel(channel, out))?;
    if channel.is_empty() {
        writeln!(out, "  captures   nothing: it has no [[channel]]")?;
    }
    write_forwards(forward, out)?;
    write_folders(station, &folders.dropped, out)?;
    write_mirrors(station, &folders.mirrored, out)?;
    write_streams(station, stream, out)?;
    destinations.iter().try_for_each(|destination| {
        let peer = &destination.peer;
        write_rules(destination.name(), &peer.allow, &peer.allow_listen, out)
    })
}

fn write_destination(destination: &Destination, out: &mut dyn Write) -> io::Result<()> {
    let peer = &destination.peer;
    let addresses: Vec<String> = peer.addresses.iter().map(ToString::to_string).collect();
    let shadow = if destination.entry.shadow { ", as a shadow" } else { "" };
    writeln!(
        out,
        "  sends to   {} at {}, {}{shadow}",
        peer.name,
        addresses.join(" or "),
        keys_of(peer)
    )
}

fn write_subscription(entry: &SubscriptionEntry, out: &mut dyn Write) -> io::Result<()> {
    let listed = |names: Vec<String>| match names.is_empty() {
        true => "nobody".to_owned(),
        false => names.join(", "),
    };
    let to = entry.names().map(|to| listed(to.iter().map(ToString::to_string).collect()));
    let to = to.unwrap_or_else(|| "every destination".to_owned());
    let mut of = String::new();
    let names = |list: &[Name]| -> Vec<String> { list.iter().map(ToString::to_string).collect() };
    for (word, list) in [
        ("of mission", entry.mission.clone()),
        ("of", entry.station.as_deref().map(names)),
        ("of channel", entry.channel.as_deref().map(names)),
    ] {
        of.extend(list.map(|list| format!(" {word} {}", list.join(" or "))));
    }
    let class = entry.class.as_ref().map_or(String::new(), |class| format!(", class {class}"));
    let deadline = entry.deadline;
    let deadline =
        deadline.map_or(String::new(), |deadline| format!(", due within {}", spoken(deadline)));
    writeln!(out, "  subscribes contacts{of} to {to}, {}{class}{deadline}", settled(entry.settle))
}

/// When the spool may free data, in words.
fn settled(settle: SettleName) -> &'static str {
    match settle {
        SettleName::All => "settled by all",
        SettleName::Any => "settled by any",
        SettleName::First => "settled by the first",
    }
}

/// The keys of a peer, in words.
fn keys_of(peer: &PeerEntry) -> String {
    let keys: Vec<String> = peer.fingerprints.iter().map(|key| key.to_string()).collect();
    format!("key {}", keys.join(" or "))
}

fn write_paths(station: &StationConfig, out: &mut dyn Write) -> io::Result<()> {
    for path in station.paths() {
        let rate = path.rate.map_or(String::new(), |rate| format!(", {rate}"));
        let standby = if path.standby { ", standby" } else { "" };
        let metered = if path.metered { ", metered" } else { "" };
        let to = match (&path.remote, &path.destination) {
            (Some(remote), _) => remote.to_string(),
            (None, Some(destination)) => destination.to_string(),
            (None, None) => match &station.destinations[..] {
                [only] => {
                    only.peer.addresses.iter().next().map(ToString::to_string).unwrap_or_default()
                }
                _ => "every destination".to_owned(),
            },
        };
        writeln!(
            out,
            "  path       {} from {} to {to}{rate}{standby}{metered}",
            path.title(),
            path.place()
        )?;
        for outage in path.outages() {
            writeln!(out, "             out from {} until {}", outage.from, outage.until)?;
        }
    }
    Ok(())
}

fn write_channel(channel: &Channel, out: &mut dyn Write) -> io::Result<()> {
    let mission =
        channel.mission.as_ref().map_or("found from the data".to_owned(), ToString::to_string);
    let pace = channel.rate.map_or(String::new(), |rate| format!(" at {rate}"));
    let symbols = if channel.keep_check_symbols { ", check symbols sent too" } else { "" };
    writeln!(
        out,
        "  channel    {} from {}{pace}, format {}, mission {mission}, closed after {} of \
        silence{symbols}",
        channel.name,
        channel.sources(),
        channel.format,
        spoken(channel.silence)
    )
}

fn write_refill(refill: &Refill, out: &mut dyn Write) -> io::Result<()> {
    if !refill.enabled {
        return writeln!(out, "  refill     requests for missing frames are not answered");
    }
    let class = refill.class.as_ref().map_or(String::new(), |class| format!("class {class}, "));
    writeln!(
        out,
        "  refill     {class}priority {}; markers with up to {} wrong bits in search, {} in check, \
        {} in lock; {} checked, {} coasted, slips of {}",
        refill.priority,
        refill.search_errors,
        refill.check_errors,
        refill.lock_errors,
        refill.check_frames,
        refill.flywheel_frames,
        refill.slip_bits
    )
}

fn write_class(class: &Class, out: &mut dyn Write) -> io::Result<()> {
    let parent = class.parent.as_ref().map_or(String::new(), |parent| format!(" in {parent}"));
    let guarantee = class.guarantee.map_or("nothing".to_owned(), |rate| rate.to_string());
    let ceiling = class.ceiling.map_or(String::new(), |rate| format!(", at most {rate}"));
    let priority =
        class.priority.map_or(String::new(), |priority| format!(", priority {priority}"));
    writeln!(out, "  class      {}{parent}: {guarantee} guaranteed{ceiling}{priority}", class.name)
}

fn write_centre(centre: &CentreConfig, out: &mut dyn Write) -> io::Result<()> {
    let CentreConfig {
        missions: _,
        node: _,
        listen,
        peer,
        store,
        products,
        product,
        expedited,
        outlets,
        budget,
        retention,
        live,
        session,
        class: _,
        forward,
    } = centre;
    for listen in listen {
        let names = listen.peers.as_ref().map(|names| &names.0);
        let names = names.map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>());
        let who = match names {
            Some(names) if names.is_empty() => ", for nobody".to_owned(),
            Some(names) => format!(", for {}", names.join(", ")),
            None => String::new(),
        };
        writeln!(out, "  listens    on {}, packets of {}{who}", listen.bind, listen.mtu)?;
    }
    peer.iter().try_for_each(|peer| write_peer(peer, out))?;
    if peer.is_empty() {
        writeln!(out, "  takes      from no node: add a [[peer]] for each node")?;
    }
    writeln!(
        out,
        "  store      up to {}, {}, {}",
        store.max_size,
        to_disk(store.sync_interval),
        kept(store.retention, "the products")
    )?;
    match products {
        Some(products) => write_products(products, product, out)?,
        None => writeln!(out, "  products   none: contacts are only kept; see [products]")?,
    }
    for entry in expedited {
        let of = entry.product.as_ref().map_or("all products".to_owned(), ToString::to_string);
        let kind = if entry.quick_look { ", for quick look" } else { "" };
        writeln!(out, "  expedited  {of} every {} of a contact{kind}", spoken(entry.slice))?;
    }
    write_outlets(outlets, out)?;
    budget.iter().try_for_each(|budget| write_budget(budget, out))?;
    retention.iter().try_for_each(|entry| retention::write(entry, out))?;
    live.iter().try_for_each(|live| write_live(live, out))?;
    writeln!(
        out,
        "  session    up to {} ahead of the store for each peer; sends with controller {}",
        session.receive_window,
        centre.controller().name()
    )?;
    write_forwards(forward, out)
}

fn write_outlets(outlets: &ProductOutlets, out: &mut dyn Write) -> io::Result<()> {
    for destination in &outlets.destinations {
        writeln!(out, "  delivers   to {} in {}", destination.name, destination.place)?;
    }
    for subscription in &outlets.subscriptions {
        let filter = subscription.entry.filter.as_ref();
        let which = filter.map_or(String::new(), |filter| format!(" with {filter}"));
        let to: Vec<&str> = subscription.to.iter().map(Name::as_str).collect();
        let (name, to) = (&subscription.name, to.join(", "));
        writeln!(out, "  subscribes products{which} to {to}, as {name}")?;
    }
    Ok(())
}

fn write_budget(budget: &BudgetEntry, out: &mut dyn Write) -> io::Result<()> {
    let kind = budget.kind.map_or_else(String::new, |kind| format!("{} ", kind.name()));
    let of = budget.mission.as_ref().map_or_else(String::new, |mission| format!(" of {mission}"));
    writeln!(
        out,
        "  budget     {kind}products{of}: {} after their last packet",
        spoken(budget.within)
    )
}

fn write_products(
    products: &Products,
    entries: &[ProductEntry],
    out: &mut dyn Write,
) -> io::Result<()> {
    let spans = ProductSpans {
        each_contact: products.session,
        window: products.time.then_some(products.window),
    };
    writeln!(
        out,
        "  products   in {}, {}",
        products.dir.display(),
        made_of(&spans, products.form)
    )?;
    for entry in entries {
        let mission =
            entry.mission.as_ref().map_or(String::new(), |mission| format!(" of {mission}"));
        let time = entry.time.unwrap_or(products.time);
        let window = time.then(|| entry.window.unwrap_or(products.window));
        let (each_contact, form) =
            (entry.session.unwrap_or(products.session), entry.form.unwrap_or(products.form));
        writeln!(
            out,
            "             {}{mission}: {}",
            entry.name,
            made_of(&ProductSpans { each_contact, window }, form)
        )?;
    }
    Ok(())
}

/// The spans of which products are made.
struct ProductSpans {
    /// Of each contact.
    each_contact: bool,
    /// Of each window of time.
    window: Option<ProductWindow>,
}

fn made_of(spans: &ProductSpans, form: ProductForm) -> String {
    let window = spans.window.map(|window| spoken(window.0.as_duration()));
    let of = match (spans.each_contact, window) {
        (true, None) => "of each contact".to_owned(),
        (true, Some(window)) => format!("of each contact and of every {window}"),
        (false, Some(window)) => format!("of every {window}"),
        (false, None) => return "accounts only".to_owned(),
    };
    format!("{form} {of}")
}

fn write_live(live: &Live, out: &mut dyn Write) -> io::Result<()> {
    let Live { to, apids, product, rate } = live;
    let some = if apids.is_some() { " of some applications" } else { "" };
    let product = product.as_ref().map_or(String::new(), |product| format!(" of {product}"));
    writeln!(out, "  live       packets{some}{product} to {to}, up to {rate}")
}

fn write_places(
    missions: &[PathBuf],
    node: &skyhaul_config::Node,
    out: &mut dyn Write,
) -> io::Result<()> {
    for path in missions {
        writeln!(out, "  missions   also from {}", path.display())?;
    }
    writeln!(out, "  key        {}", node.key.display())?;
    writeln!(out, "  state      {}", node.state.display())?;
    writeln!(out, "  status     {}", node.status_socket().display())
}

fn write_keys(out: &mut dyn Write) -> io::Result<()> {
    for (index, (file, tables)) in skyhaul_config::reference().into_iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        writeln!(out, "## {file}")?;
        tables.iter().try_for_each(|table| write_table(table, out))?;
    }
    Ok(())
}

fn write_table(table: &ConfigTable, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n### {}\n\n{} {}\n", table.heading, table.meaning.trim(), table.applies)?;
    writeln!(out, "| key | default | meaning |\n|---|---|---|")?;
    for key in table.keys {
        let left_out = match key.presence {
            Presence::Required => "required".to_owned(),
            Presence::Optional => "see meaning".to_owned(),
            Presence::Default(value) => format!("`{value}`"),
        };
        writeln!(out, "| `{}` | {left_out} | {} |", key.name, key.meaning.trim())?;
    }
    Ok(())
}
