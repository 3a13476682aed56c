//! The address book: the user's `nodes.toml` and the one of the host, and this user's own key.

use rustix::fs::{FlockOperation, flock};
use skyhaul_config::{AddressBook, BookChangeError, BookPeer, Name};
use skyhaul_exit::{Exit, Failure};
use skyhaul_node::log;
use skyhaul_quic::Identity;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The nodes that commands can name.
pub struct KnownNodes {
    nodes: Vec<KnownNode>,
}

/// A node, and the file that has it.
pub struct KnownNode {
    pub peer: BookPeer,
    pub file: PathBuf,
}

impl KnownNodes {
    /// Both files; a node that both have is the one of the user's file.
    ///
    /// # Errors
    /// One of them has an error.
    pub fn load() -> Result<Self, Failure> {
        Self::of([own_file(), Some(PathBuf::from(OF_THE_HOST))].into_iter().flatten())
    }

    fn of(files: impl IntoIterator<Item = PathBuf>) -> Result<Self, Failure> {
        let mut nodes: Vec<KnownNode> = Vec::new();
        for file in files {
            for peer in AddressBook::load(&file)?.peers() {
                if nodes.iter().all(|known| known.peer.name != peer.name) {
                    nodes.push(KnownNode { peer: peer.clone(), file: file.clone() });
                }
            }
        }
        nodes.sort_by(|one, other| one.peer.name.cmp(&other.peer.name));
        Ok(Self { nodes })
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &KnownNode> {
        self.nodes.iter()
    }

    /// The node of this name.
    pub fn find(&self, name: &str) -> Option<&KnownNode> {
        self.nodes.iter().find(|known| known.peer.name.as_str() == name)
    }

    /// The node of this name.
    ///
    /// # Errors
    /// There is none; the closest name is in the failure.
    pub fn named(&self, name: &str) -> Result<&KnownNode, Failure> {
        self.find(name).ok_or_else(|| {
            let what = format!("the address book has no node `{name}`");
            let help = match self.closest(name) {
                Some(close) => format!("did you mean `{close}`? `skyhaul node list` shows all"),
                None => "`skyhaul node list` shows the nodes, `skyhaul pair` and `skyhaul node \
                         add` add one"
                    .to_owned(),
            };
            Failure::new(Exit::Usage, &what, &help)
        })
    }

    /// The name that is most like `name`, if one is.
    pub fn closest(&self, name: &str) -> Option<&str> {
        let names = self.nodes.iter().map(|known| known.peer.name.as_str());
        let near = names.map(|known| (distance(known, name), known)).min()?;
        (near.0 <= name.chars().count().div_ceil(3)).then_some(near.1)
    }
}

/// The number of letters to insert, remove, replace or exchange with their neighbour.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for row in 1..=one.len() {
        let mut costs = vec![row];
        for column in 1..=other.len() {
            let differs = usize::from(one[row - 1] != other[column - 1]);
            let mut cost = (rows[row - 1][column] + 1)
                .min(costs[column - 1] + 1)
                .min(rows[row - 1][column - 1] + differs);
            let is_exchange = row > 1
                && column > 1
                && one[row - 1] == other[column - 2]
                && one[row - 2] == other[column - 1];
            if is_exchange {
                cost = cost.min(rows[row - 2][column - 2] + 1);
            }
            costs.push(cost);
        }
        rows.push(costs);
    }
    rows[one.len()][other.len()]
}

/// This user's folder of configuration (XDG base directories); a service may have none.
#[allow(clippy::disallowed_methods, reason = "the folder is told by the environment alone")]
fn own_folder() -> Option<PathBuf> {
    let absolute =
        |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(config.join("skyhaul"))
}

/// The user's address book.
pub fn own_file() -> Option<PathBuf> {
    Some(own_folder()?.join("nodes.toml"))
}

fn own_folder_made() -> Result<PathBuf, Failure> {
    let folder = own_folder().ok_or_else(|| {
        let what = "this user has no folder of configuration";
        Failure::new(Exit::Usage, what, "set HOME or XDG_CONFIG_HOME to an absolute path")
    })?;
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    made.map_err(|source| unwritable(&folder, source))?;
    Ok(folder)
}

/// Changes the user's address book. The file is replaced as a whole, and one command at a time
/// changes it.
///
/// # Errors
/// The file has an error or cannot be written, or the change contradicts it.
pub fn change<T>(
    change: impl FnOnce(&mut AddressBook) -> Result<T, BookChangeError>,
) -> Result<T, Failure> {
    let folder = own_folder_made()?;
    let locked = File::open(&folder)
        .and_then(|folder| Ok(flock(&folder, FlockOperation::LockExclusive).map(|()| folder)?));
    let locked = locked.map_err(|source| unwritable(&folder, source))?;
    let file = folder.join("nodes.toml");
    let mut book = AddressBook::load(&file)?;
    let outcome = change(&mut book).map_err(|error| {
        Failure::from_sentence(Exit::Usage, &error.to_string()).at(&file.display().to_string())
    })?;
    replace(&file, &book.text()).map_err(|source| unwritable(&file, source))?;
    drop(locked);
    Ok(outcome)
}

/// Writes the file under another name, and renames it when it is on disk. The caller holds a lock
/// of its folder.
pub fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    // A link stays one.
    let target = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    // An existing file keeps its rights; a new one is for its user alone.
    let mode = std::fs::metadata(&target).map_or(0o600, |found| found.permissions().mode() & 0o777);
    let part = target.with_extension("toml.skyhaul-part");
    // What a killed command left. Only the holder of the lock is here.
    let _ = std::fs::remove_file(&part);
    let mut written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
    let outcome = written
        .write_all(text.as_bytes())
        .and_then(|()| written.set_permissions(Permissions::from_mode(mode)))
        .and_then(|()| written.sync_all())
        .and_then(|()| std::fs::rename(&part, &target));
    if outcome.is_err() {
        let _ = std::fs::remove_file(&part);
        return outcome;
    }
    target.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

fn unwritable(place: &Path, source: std::io::Error) -> Failure {
    let help = "give this user write permission there, and free space";
    let place = place.display().to_string();
    Failure::io("the address book cannot be written", &place, help, source)
}

/// The file of this user's own key, which is made if there is none.
///
/// # Errors
/// This user has no folder, or it cannot be written.
pub fn own_key_file() -> Result<PathBuf, Failure> {
    let folder = own_folder_made()?;
    let file = folder.join("node.key");
    if file.exists() {
        return Ok(file);
    }
    let identity = Identity::generate()
        .map_err(|error| Failure::from_sentence(Exit::Environment, &error.to_string()))?;
    if write_once(&folder, &file, &identity.to_pem())
        .map_err(|source| unwritable(&file, source).at("the key"))?
    {
        let place = file.display();
        log::say(&format!("note: made this user's key {place}: {}", identity.fingerprint()));
    }
    Ok(file)
}

/// Whether there is a folder where a key of this user can be.
pub fn has_own_folder() -> bool {
    own_folder().is_some()
}

/// Writes a file that appears whole, unless another process was faster.
fn write_once(folder: &Path, file: &Path, text: &str) -> std::io::Result<bool> {
    let part = folder.join(format!("node.key.{}.skyhaul-part", std::process::id()));
    let outcome = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&part)
        .and_then(|mut part| part.write_all(text.as_bytes()).and_then(|()| part.sync_all()))
        .and_then(|()| std::fs::hard_link(&part, file));
    let _ = std::fs::remove_file(&part);
    match outcome {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// A name of the address book.
///
/// # Errors
/// It cannot be one.
pub fn name_of(text: &str) -> Result<Name, Failure> {
    text.parse().map_err(|error: skyhaul_config::NameError| {
        Failure::from_sentence(Exit::Usage, &error.to_string())
    })
}

/// The address book of all users of this host.
const OF_THE_HOST: &str = "/etc/skyhaul/nodes.toml";

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str, digit: char) -> String {
        let key = digit.to_string().repeat(64);
        format!("[[peer]]\nname = \"{name}\"\nfingerprints = [\"SHA256:{key}\"]\n")
    }

    #[test]
    fn the_users_file_has_priority_node_by_node() {
        let folder = tempfile::tempdir().unwrap();
        let [own, host] = ["own.toml", "host.toml"].map(|name| folder.path().join(name));
        std::fs::write(&own, table("far", 'a')).unwrap();
        std::fs::write(&host, table("far", 'b') + &table("centre", 'c')).unwrap();
        let nodes = KnownNodes::of([own.clone(), host.clone()]).unwrap();
        let names: Vec<&str> = nodes.iter().map(|known| known.peer.name.as_str()).collect();
        assert_eq!(names, ["centre", "far"]);
        assert_eq!(
            (&nodes.named("far").unwrap().file, &nodes.named("centre").unwrap().file),
            (&own, &host)
        );
        assert_eq!(nodes.closest("fra"), Some("far"));
        assert_eq!(nodes.closest("center"), Some("centre"));
        assert_eq!(nodes.closest("lunar"), None);
        let said = nodes.named("fer").err().unwrap().to_string();
        assert!(said.contains("no node `fer`") && said.contains("did you mean `far`?"), "{said}");
    }

    #[test]
    fn a_changed_file_keeps_its_rights_and_its_link() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link] = ["file.toml", "link.toml"].map(|name| folder.path().join(name));
        replace(&file, "one").unwrap();
        let mode = |file: &Path| std::fs::metadata(file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&file), 0o600);
        std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, "two").unwrap();
        assert_eq!((mode(&file), std::fs::read_to_string(&file).unwrap().as_str()), (0o644, "two"));
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn letters_that_differ_are_counted() {
        for (one, other, count) in
            [("far", "far", 0), ("far", "fra", 1), ("far", "fat", 1), ("", "ab", 2), ("ab", "", 2)]
        {
            assert_eq!(distance(one, other), count, "{one} {other}");
        }
    }
}
