//! What a node does with each kind of data, in words; what goes nowhere is named.

mod outlets;
mod paths;
mod tenants;

use super::settled;
use super::words::spoken;
use skyhaul_config::{
    BlocksEntry, CentreConfig, Channel, ContactLabel, Destination, DestinationUse, MissionRef,
    Name, NodeConfig, PeerEntry, SettleName, StationConfig, SubscriptionEntry,
};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Writes the explanation.
pub fn write(config: &NodeConfig, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "node {}", config.node.name)?;
    let mut nowhere = Vec::new();
    if let Some(station) = &config.station {
        station
            .channel
            .iter()
            .try_for_each(|channel| write_channel(station, channel, &mut nowhere, out))?;
        write_standby(station, out)?;
        tenants::write(station, out)?;
        paths::write(station, out)?;
        nowhere.extend(unused(station));
    }
    if let Some(centre) = &config.centre {
        for peer in &centre.peer {
            write_received(centre, config.station.as_deref(), peer, out)?;
        }
        if let Some(station) = &config.station {
            write_from_afar(centre, station, out)?;
        }
        if let Some(dir) = centre.products.as_ref().map(|products| &products.dir) {
            outlets::write(&centre.outlets, dir, &mut nowhere, out)?;
        }
        if centre.peer.is_empty() {
            nowhere.push("the [[listen]] addresses: no [[peer]] may connect".to_owned());
        }
    }
    if let Some(blocks) = &config.blocks {
        write_programs(config, blocks, &mut nowhere, out)?;
    }
    writeln!(out, "\ngoes nowhere")?;
    if nowhere.is_empty() {
        writeln!(out, "  nothing")?;
    }
    nowhere.iter().try_for_each(|what| writeln!(out, "  {what}"))
}

/// Where programs' blocks may go.
fn write_programs(
    config: &NodeConfig,
    blocks: &BlocksEntry,
    nowhere: &mut Vec<String>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "\nblocks of programs at {}", blocks.socket.display())?;
    let called = config.station.iter().flat_map(|station| &station.destinations);
    let called = called.map(|destination| destination.name().to_owned());
    let callers = config.centre.iter().flat_map(|centre| &centre.peer);
    let callers = callers.map(|peer| peer.name.to_string());
    let mut peers: Vec<String> = Vec::new();
    for peer in called.chain(callers) {
        if !peers.contains(&peer) {
            peers.push(peer);
        }
    }
    if peers.is_empty() {
        nowhere.push("blocks of programs: the node has no peer".to_owned());
    }
    for peer in peers {
        writeln!(out, "  to programs at {peer}, and from them")?;
    }
    Ok(())
}

/// Where the contacts of a channel go, by mission where that decides.
fn write_channel(
    station: &StationConfig,
    channel: &Channel,
    nowhere: &mut Vec<String>,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "\ncontacts of channel {}", channel.name)?;
    let ways = ways(station, channel);
    let is_one = ways.len() == 1;
    for (mission, label) in ways {
        let of = if is_one { "all missions".to_owned() } else { mission };
        let route = station.route(&label);
        if route.to.is_empty() {
            writeln!(out, "  {of}: captured, and sent to nobody")?;
            nowhere.push(format!("contacts of channel {}, {of}", channel.name));
            continue;
        }
        writeln!(out, "  {of}: {}", rule(route.settle, route.to.len()))?;
        for place in route.to {
            let destination = &station.destinations[place];
            let shadow = if destination.entry.shadow { " (shadow)" } else { "" };
            let how = station.deciding(place, &label);
            let class = how.and_then(|how| how.class.as_ref());
            let class = class.map_or("first class".to_owned(), |class| format!("class {class}"));
            let priority = how.map_or(1, |how| how.priority);
            let due = how.and_then(|how| how.deadline);
            let due =
                due.map_or("no deadline".to_owned(), |span| format!("due within {}", spoken(span)));
            writeln!(
                out,
                "    to {}{shadow}: {class}, priority {priority}, {due}",
                destination.name()
            )?;
        }
    }
    Ok(())
}

/// What a standby sends.
fn write_standby(station: &StationConfig, out: &mut dyn Write) -> io::Result<()> {
    let Some(of) = &station.node.standby_of else { return Ok(()) };
    writeln!(
        out,
        "\nstandby of {of}\n  sends nothing while a destination says that {of} delivers, and what \
         it misses otherwise;\n  contacts that a destination has from {of} are settled without \
         being sent"
    )
}

fn rule(settle: SettleName, destinations: usize) -> String {
    match destinations {
        1 => "kept in the spool until it is there".to_owned(),
        _ => format!("{} of the destinations", settled(settle)),
    }
}

/// The kinds of contacts of a channel that subscriptions tell apart.
fn ways(station: &StationConfig, channel: &Channel) -> Vec<(String, ContactLabel)> {
    let label = |mission: &str| ContactLabel {
        station: station.node.name.to_string(),
        channel: channel.name.to_string(),
        mission: mission.to_owned(),
    };
    if let Some(MissionRef::Named(name)) = &channel.mission {
        return vec![(format!("mission {name}"), label(name))];
    }
    let mut missions: BTreeSet<&String> = BTreeSet::new();
    for entry in &station.subscription {
        let takes = entry.channel.as_ref().is_none_or(|names| names.contains(&channel.name));
        let is_own = entry.station.as_ref().is_none_or(|names| names.contains(&station.node.name));
        if takes && is_own {
            missions.extend(entry.mission.iter().flatten());
        }
    }
    let named = missions.into_iter().map(|name| (format!("mission {name}"), label(name)));
    named.chain([("other missions".to_owned(), label(""))]).collect()
}

/// Destinations that get no contact, and paths that nothing uses.
fn unused(station: &StationConfig) -> Vec<String> {
    let labels: Vec<ContactLabel> = station
        .channel
        .iter()
        .flat_map(|channel| ways(station, channel))
        .map(|(_, label)| label)
        .collect();
    let takes_others = station.subscription.iter().any(|entry| entry.station.is_some());
    let mut found = Vec::new();
    let of_contacts =
        station.destinations.iter().enumerate().filter(|(_, one)| one.takes_contacts());
    for (place, destination) in of_contacts {
        let gets = labels.iter().any(|label| station.route(label).to.contains(&place));
        if !gets && !labels.is_empty() && !takes_others {
            let name = destination.name();
            found.push(format!("destination {name}: no subscription sends it a contact"));
        }
    }
    if station.channel.is_empty() {
        let sends = !station.forward.is_empty()
            || !station.folders.mirrored.is_empty()
            || !station.folders.dropped.is_empty()
            || !station.stream.is_empty();
        // One that products go to is explained with them; one that may write here gets nothing.
        let is_used =
            |one: &Destination| one.usage != DestinationUse::Contacts || one.peer.files.is_some();
        let is_used = station.destinations.iter().any(is_used);
        if !sends && !takes_others && !is_used {
            found.push("the destinations: the node has nothing to send".to_owned());
        }
    }
    found
}

/// What becomes of contacts that a peer sends.
fn write_received(
    centre: &CentreConfig,
    station: Option<&StationConfig>,
    peer: &PeerEntry,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "\ncontacts from {}", peer.name)?;
    match &centre.products {
        Some(products) => {
            writeln!(out, "  made into products in {}", products.dir.display())?;
        }
        None => writeln!(out, "  kept as received: the node makes no products")?,
    }
    station.map_or(Ok(()), |station| write_passed_on(station, peer.name.as_str(), out))
}

/// What becomes of contacts of other stations, which peers pass on.
fn write_from_afar(
    centre: &CentreConfig,
    station: &StationConfig,
    out: &mut dyn Write,
) -> io::Result<()> {
    let own = &station.node.name;
    let is_far = |name: &&Name| *name != own && centre.peer.iter().all(|peer| peer.name != **name);
    let named = station.subscription.iter().flat_map(|entry| entry.station.iter().flatten());
    let far: BTreeSet<&str> = named.filter(is_far).map(Name::as_str).collect();
    far.into_iter().try_for_each(|name| {
        writeln!(out, "\ncontacts of {name}, from any peer that passes them on")?;
        write_passed_on(station, name, out)
    })
}

fn write_passed_on(station: &StationConfig, of: &str, out: &mut dyn Write) -> io::Result<()> {
    let takes = |entry: &&SubscriptionEntry| {
        entry.station.iter().flatten().any(|station| station.as_str() == of)
    };
    let entries: Vec<&SubscriptionEntry> = station.subscription.iter().filter(takes).collect();
    if entries.is_empty() {
        return writeln!(out, "  not passed on: no [[subscription]] names station {of}");
    }
    let is_for =
        |one: &&Destination| one.entry.shadow || entries.iter().any(|entry| entry.is_to(one));
    let names: Vec<&str> =
        station.destinations.iter().filter(is_for).map(Destination::name).collect();
    if names.is_empty() {
        return writeln!(out, "  not passed on: the [[subscription]] for {of} has no destination");
    }
    let is_narrow = entries.iter().any(|entry| entry.mission.is_some() || entry.channel.is_some());
    let which = if is_narrow { ", as their mission and channel say" } else { "" };
    writeln!(out, "  passed on to {}{which}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "[node]\nname = \"s\"\nkey = \"k\"\nstate = \"st\"\n";

    fn peer(name: &str, digit: char) -> String {
        let key = digit.to_string().repeat(64);
        format!(
            "[[peer]]\nname = \"{name}\"\naddresses = [\"192.0.2.1:4700\"]\nfingerprints = \
            [\"SHA256:{key}\"]\n"
        )
    }

    /// What is said of a node with the peers `oper` and `backup` and these tables.
    pub fn explained(tables: &str) -> String {
        let text = format!("{NODE}{}{}{tables}", peer("oper", 'a'), peer("backup", 'b'));
        let config = skyhaul_config::parse(&text, "node.toml".as_ref()).unwrap();
        let mut out = Vec::new();
        write(&config, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    const TWO: &str = "[[destination]]\nto = \"node:oper\"\n[[destination]]\nto = \
                       \"node:backup\"\n[[channel]]\nname = \"x\"\ninput = \"stdin\"\n";

    #[test]
    fn each_kind_of_contact_is_explained_with_its_destinations() {
        let said = explained(&format!(
            "{TWO}[[class]]\nname = \"rest\"\n[[class]]\nname = \"urgent\"\n\
            [[subscription]]\nof = \"contacts\"\nmission = [\"aqua\"]\nto = \
            [\"oper\"]\nclass = \"urgent\"\ndeadline = \"30 s\"\n"
        ));
        for part in [
            "contacts of channel x\n  mission aqua: kept in the spool until it is there\n    to \
             oper: class urgent, priority 1, due within 30 s\n",
            "  other missions: settled by all of the destinations\n    to oper: first class, \
             priority 1, no deadline\n    to backup: first class, priority 1, no deadline\n",
            "goes nowhere\n  nothing\n",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn what_nobody_subscribes_to_is_named() {
        let said = explained(&format!(
            "{TWO}[[subscription]]\nof = \"contacts\"\nto = []\nmission = \
            [\"aqua\"]\n[[subscription]]\nof = \"contacts\"\nto = [\"oper\"]\n"
        ));
        assert!(said.contains("mission aqua: captured, and sent to nobody"), "{said}");
        assert!(said.contains("goes nowhere\n  contacts of channel x, mission aqua\n"), "{said}");
        assert!(said.contains("destination backup: no subscription sends it a contact"), "{said}");
        let received = explained(&format!("{TWO}[[listen]]\nbind = \"127.0.0.1:0\"\n"));
        assert!(received.contains("not passed on: no [[subscription]] names station oper"));
    }

    #[test]
    fn what_is_passed_on_is_explained_also_of_stations_further_away() {
        let said = explained(
            "[[destination]]\nto = \"node:backup\"\n[[listen]]\nbind = \"127.0.0.1:0\"\n\
             [[subscription]]\nof = \"contacts\"\nstation = [\"oper\", \"far\"]\n\
             mission = [\"aqua\"]\n",
        );
        for part in [
            "contacts from oper\n  kept as received: the node makes no products\n  passed on to \
             backup, as their mission and channel say\n",
            "contacts of far, from any peer that passes them on\n  passed on to backup",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }
}
