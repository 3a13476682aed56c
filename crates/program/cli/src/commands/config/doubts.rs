//! The warnings about a configuration on this machine: a missing key file, a folder that cannot be
//! created, a fingerprint that is an example's.

use rustix::fs::{Access, access};
use skyhaul_config::{NodeConfig, PeerEntry, PlanEntry, ProductOutlets, StatusEntry};
use skyhaul_net::Clock;
use skyhaul_node::PassPlanFile;
use skyhaul_quic::{Fingerprint, Identity};
use std::path::{Path, PathBuf};

/// What would keep the node from working, each as a sentence and what to do.
pub fn doubts(config: &NodeConfig) -> Vec<String> {
    let NodeConfig { node, station, centre, blocks, serve, web, .. } = config;
    let NodeConfig { status, notices, plans, .. } = config;
    let far = station.iter().flat_map(|station| &station.destinations).map(|far| &far.peer);
    let (mut peers, mut folders) = (Vec::new(), Vec::new());
    if let Some(centre) = centre {
        peers.extend(&centre.peer);
        let products = centre.products.as_ref().map(|products| &*products.dir);
        folders.extend(products.map(|dir| ("the products' folder", dir)));
        let places = centre.outlets.destinations.iter().filter_map(|one| one.folder());
        folders.extend(places.map(|folder| ("a destination's folder", folder)));
    }
    let socket = blocks.as_ref().and_then(|blocks| blocks.socket.parent());
    folders.extend(socket.map(|dir| ("the folder of the blocks' socket", dir)));
    // The destinations are among the peers of a node that listens too.
    peers.extend(far.filter(|_| centre.is_none()));
    let own = own(&node.key);
    let peers = keys_of(&peers, &node.state, own.as_ref().ok());
    let folders = [("the state folder", &*node.state)].into_iter().chain(folders);
    let folders = folders.filter_map(|(what, path)| folder(what, path));
    let users = skyhaul_node::unknown_users(config).into_iter().map(|(user, table)| {
        format!(
            "there is no user `{user}` on this host; help: correct `user` in {table}, or add the \
            user"
        )
    });
    let socket = (status != &StatusEntry::default()).then(|| node.status_socket());
    let socket = socket.as_deref().and_then(Path::parent).map(Path::to_owned);
    let socket = socket.and_then(|dir| folder("the folder of the status socket", &dir));
    let users = users.chain(socket);
    let served = serve.iter().flat_map(|serve| {
        let tls = serve.tls().map(|pair| [pair.certificate, pair.key]);
        tls.into_iter().flatten().chain(&serve.accounts)
    });
    let served = unopened(served, "[serve]");
    let shown = web.iter().flat_map(|web| {
        let tls = web.tls().map(|pair| [pair.certificate, pair.key]);
        tls.into_iter().flatten().chain(&web.users)
    });
    let shown = unopened(shown, "[web]");
    let told = notices.webhooks.iter().flat_map(|hook| hook.secret_file.iter().chain(&hook.ca));
    let told = unopened(told, "[[webhook]]");
    let entered = centre.iter().flat_map(|centre| entered(&centre.outlets));
    let planned = plans.iter().filter_map(unread);
    let served = served.chain(told).chain(planned).chain(entered);
    let own = own.as_ref().err().cloned();
    own.into_iter().chain(peers).chain(folders).chain(users).chain(served).chain(shown).collect()
}

/// The files of a table that cannot be opened.
fn unopened<'a>(
    files: impl Iterator<Item = &'a PathBuf>,
    table: &'static str,
) -> impl Iterator<Item = String> {
    let unopened = files.filter(|file| std::fs::File::open(file).is_err());
    unopened.map(move |file| {
        format!("{} cannot be read; help: correct {table}, or make the file", file.display())
    })
}

/// What is wrong with the files by which destinations of products are entered.
fn entered(outlets: &ProductOutlets) -> Vec<String> {
    let mut found = Vec::new();
    for destination in &outlets.destinations {
        let entry = &destination.entry;
        let secrets = [&entry.key, &entry.password, &entry.profile_file].into_iter().flatten();
        found.extend(unopened(secrets.clone().chain(&entry.ca), "[[destination]]"));
        found.extend(secrets.filter(|file| skyhaul_node::is_shared(file)).map(|file| {
            let file = file.display();
            format!(
                "other users can read {file}; help: take that from them with `chmod 600 {file}`"
            )
        }));
    }
    found
}

/// What is wrong with the keys of other nodes.
fn keys_of(peers: &[&PeerEntry], state: &Path, own: Option<&Fingerprint>) -> Vec<String> {
    let known = skyhaul_node::known_keys(state);
    let unread = known.as_ref().err().map(ToString::to_string);
    let known = known.unwrap_or_default();
    let judge =
        |name: &str, key: &Fingerprint| match known.revoked().find(|(revoked, _)| revoked == key) {
            Some((_, why)) => Some(revoked(name, key, &why.reason)),
            None if known.accepted(*key).is_empty() => Some(format!(
                "the key that follows {key} of peer `{name}` is revoked; help: write its present \
                 key into `fingerprints`, or take the revocation back with `skyhaul key allow`"
            )),
            None => peer(name, key, own),
        };
    let keys = peers.iter().flat_map(|peer| {
        let name = peer.name.to_string();
        peer.fingerprints.iter().filter_map(move |key| judge(&name, &key)).collect::<Vec<_>>()
    });
    keys.chain(unread).collect()
}

/// That a node refuses a key that its configuration lists.
fn revoked(name: &str, key: &Fingerprint, reason: &str) -> String {
    let colon = if reason.is_empty() { "" } else { ": " };
    format!(
        "the key {key} of peer `{name}` is revoked{colon}{reason}; help: remove it from \
         `fingerprints`, or take the revocation back with `skyhaul key allow`"
    )
}

/// Why a file of planned passes cannot be used as it is.
fn unread(plan: &PlanEntry) -> Option<String> {
    let mut file = PassPlanFile::new(plan);
    file.look(Clock::start().utc());
    let fault = file.fault()?;
    Some(format!("{fault}; {}; help: correct the file, or [[plan]]", file.what_stays()))
}

/// The fingerprint of the node's own key, or the reason why there is none.
fn own(file: &Path) -> Result<Fingerprint, String> {
    let place = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            format!("there is no key in {place}; help: make one with `skyhaul keygen {place}`")
        }
        _ => format!(
            "the key {place} cannot be read ({error}); help: run this command as the node's user"
        ),
    })?;
    let identity = Identity::from_pem(&text);
    identity.map(|identity| identity.fingerprint()).map_err(|error| format!("{error}, {place}"))
}

fn peer(name: &str, key: &Fingerprint, own: Option<&Fingerprint>) -> Option<String> {
    let help = format!("help: write what `skyhaul keygen FILE --show` prints at {name}");
    let digits = key.to_string();
    let digits = digits.rsplit(':').next().unwrap_or(&digits);
    // A real digest has no repeated pattern; an example's has.
    let is_example = (1..=digits.len() / 2).any(|period| {
        digits.as_bytes().iter().zip(digits.as_bytes().iter().skip(period)).all(|(a, b)| a == b)
    });
    if is_example {
        return Some(format!(
            "the fingerprint of {name} is from an example, no key has it; {help}"
        ));
    }
    let is_own = own == Some(key);
    is_own.then(|| format!("the fingerprint of {name} is that of this node's own key; {help}"))
}

/// Why a folder could not be written to, or made where it is not there.
fn folder(what: &str, path: &Path) -> Option<String> {
    let help = "help: create the folder for the node's user, or name another";
    let there = path
        .ancestors()
        .find(|folder| folder.symlink_metadata().is_ok() || folder.as_os_str().is_empty());
    let there = there.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let refuse = |reason: String| Some(format!("{what} {} {reason}; {help}", path.display()));
    let verb = if there == path { "cannot be written to" } else { "cannot be made" };
    if !there.is_dir() {
        return refuse(format!("{verb}: {} is not a folder", there.display()));
    }
    let allowed = access(there, Access::WRITE_OK | Access::EXEC_OK);
    allowed.err().and_then(|error| refuse(format!("{verb}: {}: {error}", there.display())))
}
