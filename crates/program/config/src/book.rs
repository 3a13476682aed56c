//! `nodes.toml`: the address book of the command line, and changes to it that keep its comments.

use crate::error::ConfigError;
use crate::name::Name;
use crate::peer_address::PeerAddresses;
use crate::peer_key::PeerKeys;
use crate::section::{ConfigTable, section};
use std::collections::BTreeSet;
use std::path::Path;
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, value};

section! {
    /// A node that commands can name. The file of the user, `nodes.toml` in
    /// `$XDG_CONFIG_HOME/skyhaul` (`~/.config/skyhaul`), has priority over
    /// `/etc/skyhaul/nodes.toml`, node by node. Up to 1024.
    "[[peer]]" BookPeer applies next_command {
        /// The name that commands take, such as `far` in `skyhaul cp pass.dat far:incoming`.
        name: Name => required,
        /// Where the node can be reached: hosts with ports, up to 16. A session uses all of them.
        /// A command that needs another port takes `NAME:PORT`. None for a node that only connects
        /// to this one.
        addresses: PeerAddresses => "[]",
        /// The fingerprints of its public key, as `skyhaul keygen` prints them there: 1 to 8, of
        /// which each is accepted. Two while a key is replaced.
        fingerprints: PeerKeys => required,
    }
}

/// The tables of `nodes.toml`.
pub(super) const TABLES: &[ConfigTable] = &[BookPeer::TABLE];

/// One file of the address book: its peers, and its text with the comments.
#[derive(Debug, Clone, Default)]
pub struct AddressBook {
    peers: Vec<BookPeer>,
    document: DocumentMut,
}

/// Why the address book cannot be changed so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BookChangeError {
    /// There is a peer of this name.
    #[error("the address book has a node `{0}`; give another name, or remove that one first")]
    Exists(Name),
    /// There is none of this name.
    #[error("the file has no node `{0}`; `skyhaul node list` shows the nodes")]
    Missing(Name),
    /// It is full.
    #[error("the address book has {PEERS_MAX} nodes, its limit; remove one")]
    Full,
    /// The peers stand in a form that is not edited.
    #[error("the nodes are not written as [[peer]] tables; edit the file by hand")]
    Form,
}

impl AddressBook {
    /// Reads one file of the address book.
    ///
    /// # Errors
    /// The file cannot be read, is larger than [`crate::MAX_FILE`], or has an error; one that does
    /// not exist is an empty book.
    pub fn load(file: &Path) -> Result<Self, ConfigError> {
        use std::io::Read;
        let opened = match std::fs::File::open(file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            other => other.map_err(|source| ConfigError::unreadable(file, &source))?,
        };
        let mut text = String::new();
        let read = opened.take(crate::MAX_FILE + 1).read_to_string(&mut text);
        read.map_err(|source| ConfigError::unreadable(file, &source))?;
        if text.len() as u64 > crate::MAX_FILE {
            let what = format!("the file is larger than the {} bytes of a book", crate::MAX_FILE);
            return Err(ConfigError::of_file(file, what, "remove what is no [[peer]] table"));
        }
        Self::parse(&text, file)
    }

    /// Reads it from its text; `file` is where it came from.
    ///
    /// # Errors
    /// The text is no address book; file, line and help are in the error.
    pub fn parse(text: &str, file: &Path) -> Result<Self, ConfigError> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Written {
            #[serde(default)]
            peer: Vec<BookPeer>,
        }
        let written: Written =
            toml::from_str(text).map_err(|error| ConfigError::from_toml(&error, text, file))?;
        if written.peer.len() > PEERS_MAX {
            let what = format!("the address book has {} nodes", written.peer.len());
            let help = format!("write at most {PEERS_MAX} [[peer]] tables");
            return Err(ConfigError::of_file(file, what, &help));
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = written.peer.iter().find(|peer| !names.insert(&peer.name)) {
            return Err(ConfigError::twice(text, file, "peer", twice.name.as_str()));
        }
        let document = text.parse::<DocumentMut>().map_err(|error| {
            let what = error.message().trim().replace('\n', " ");
            ConfigError::of_file(file, what, "correct the file")
        })?;
        Ok(Self { peers: written.peer, document })
    }

    /// The nodes, in the order of the file.
    pub fn peers(&self) -> &[BookPeer] {
        &self.peers
    }

    /// The file's text, with comments and order as they were read.
    pub fn text(&self) -> String {
        self.document.to_string()
    }

    /// Adds a node behind the others.
    ///
    /// # Errors
    /// There is one of this name, or the book is full.
    pub fn add(&mut self, peer: BookPeer) -> Result<(), BookChangeError> {
        if self.peers.iter().any(|known| known.name == peer.name) {
            return Err(BookChangeError::Exists(peer.name));
        }
        if self.peers.len() >= PEERS_MAX {
            return Err(BookChangeError::Full);
        }
        let is_empty = self.document.as_table().is_empty();
        let tables = self
            .document
            .entry("peer")
            .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()))
            .as_array_of_tables_mut()
            .ok_or(BookChangeError::Form)?;
        let mut table = written(&peer);
        if !is_empty {
            table.decor_mut().set_prefix("\n");
        }
        tables.push(table);
        if is_empty {
            // Comments of a file without tables stand behind them, if they are not moved.
            let comments = self.document.trailing().as_str().unwrap_or_default().to_owned();
            self.document.set_trailing("");
            if let (false, Some(first)) = (comments.trim().is_empty(), self.table_mut(&peer.name)) {
                first.decor_mut().set_prefix(format!("{}\n\n", comments.trim_end()));
            }
        }
        self.peers.push(peer);
        Ok(())
    }

    /// Removes a node, with the comment directly above its table.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn remove(&mut self, name: &Name) -> Result<BookPeer, BookChangeError> {
        let at = self.position(name)?;
        let tables = self.tables_mut()?;
        let before = tables.get(at).and_then(|table| table.decor().prefix()).cloned();
        tables.remove(at);
        // A comment that an empty line divides from the table is of the file, not of the node.
        let kept = before.as_ref().and_then(|prefix| prefix.as_str());
        let kept = kept.and_then(|prefix| prefix.rsplit_once("\n\n")).map(|(above, _)| above);
        if let Some(above) = kept.filter(|above| !above.trim().is_empty()) {
            let kept = format!("{above}\n\n");
            let next = tables.get_mut(at).map(Table::decor_mut);
            match next {
                Some(decor) => {
                    let own = decor.prefix().and_then(|prefix| prefix.as_str()).unwrap_or("");
                    let joined = format!("{kept}{}", own.trim_start_matches('\n'));
                    decor.set_prefix(joined);
                }
                None => {
                    let rest = self.document.trailing().as_str().unwrap_or_default().to_owned();
                    self.document.set_trailing(format!("{kept}{rest}"));
                }
            }
        }
        Ok(self.peers.remove(at))
    }

    /// Gives a node another name.
    ///
    /// # Errors
    /// There is none of the old name, or one of the new.
    pub fn rename(&mut self, name: &Name, new: Name) -> Result<(), BookChangeError> {
        let at = self.position(name)?;
        if self.peers.iter().any(|known| known.name == new) {
            return Err(BookChangeError::Exists(new));
        }
        let table = self.tables_mut()?.get_mut(at).ok_or(BookChangeError::Form)?;
        set(table, "name", value(new.as_str()));
        self.peers[at].name = new;
        Ok(())
    }

    /// Replaces the addresses and fingerprints of the node of this name.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn replace(&mut self, peer: BookPeer) -> Result<(), BookChangeError> {
        let at = self.position(&peer.name)?;
        let table = self.tables_mut()?.get_mut(at).ok_or(BookChangeError::Form)?;
        let mut new = written(&peer);
        for key in ["addresses", "fingerprints"] {
            if let Some(item) = new.remove(key) {
                set(table, key, item);
            }
        }
        self.peers[at] = peer;
        Ok(())
    }

    fn position(&self, name: &Name) -> Result<usize, BookChangeError> {
        let at = self.peers.iter().position(|peer| peer.name == *name);
        at.ok_or_else(|| BookChangeError::Missing(name.clone()))
    }

    fn tables_mut(&mut self) -> Result<&mut ArrayOfTables, BookChangeError> {
        let item = self.document.get_mut("peer").ok_or(BookChangeError::Form)?;
        item.as_array_of_tables_mut().ok_or(BookChangeError::Form)
    }

    fn table_mut(&mut self, name: &Name) -> Option<&mut Table> {
        let named =
            |table: &&mut Table| table.get("name").and_then(Item::as_str) == Some(name.as_str());
        self.tables_mut().ok()?.iter_mut().find(named)
    }
}

/// Sets a key and keeps the comment behind its old value.
fn set(table: &mut Table, key: &str, item: Item) {
    let decor = table.get(key).and_then(Item::as_value).map(|old| old.decor().clone());
    table[key] = item;
    if let (Some(decor), Some(new)) = (decor, table[key].as_value_mut()) {
        *new.decor_mut() = decor;
    }
}

fn written(peer: &BookPeer) -> Table {
    let mut table = Table::new();
    table["name"] = value(peer.name.as_str());
    let addresses: Array = peer.addresses.iter().map(ToString::to_string).collect();
    table["addresses"] = value(addresses);
    let keys: Array = peer.fingerprints.iter().map(|key| key.to_string()).collect();
    table["fingerprints"] = value(keys);
    table
}

/// Nodes of a file: those of a large organisation.
const PEERS_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 2] = [
        "SHA256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "SHA256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
    ];

    fn read(text: &str) -> Result<AddressBook, ConfigError> {
        AddressBook::parse(text, Path::new("nodes.toml"))
    }

    fn peer(name: &str, addresses: &[&str]) -> BookPeer {
        let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
        BookPeer {
            name: name.parse().unwrap(),
            addresses: PeerAddresses::new(addresses).unwrap(),
            fingerprints: PeerKeys::new(vec![KEYS[0].parse().unwrap()]).unwrap(),
        }
    }

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    #[test]
    fn a_file_with_errors_is_refused_with_line_and_remedy() {
        let key = KEYS[0];
        for (text, parts) in [
            (format!("[[peer]]\nname = \"a\"\nfingerprint = [\"{key}\"]\n"), ["unknown key", ":3"]),
            ("[[peer]]\nname = \"a\"\n".to_owned(), ["the key `fingerprints` is missing", ":1"]),
            ("[[peer]]\nname = \"a\"\nfingerprints = []\n".to_owned(), ["no fingerprint", ":3"]),
            (format!("[[peer]]\nname = \"a b\"\nfingerprints = [\"{key}\"]\n"), ["`a b`", ":2"]),
            (
                format!("[[peer]]\nname=\"a\"\naddresses=[\"x\"]\nfingerprints=[\"{key}\"]\n"),
                ["`x` is not an address", ":3"],
            ),
            (
                format!("[[peer]]\nname = \"a\"\nfingerprints = [\"{key}\"]\n").repeat(2),
                ["peer `a` is defined twice", ":5"],
            ),
            ("[node]\nname = \"a\"\n".to_owned(), ["unknown key `node`", ":1"]),
            ("peer = 3".to_owned(), ["invalid type", ":1"]),
        ] {
            let sentence = read(&text).unwrap_err().to_string();
            for part in parts {
                assert!(sentence.contains(part), "`{part}` is not in: {sentence}");
            }
            assert!(sentence.contains("nodes.toml") && sentence.contains("; help: "), "{sentence}");
        }
    }

    #[test]
    fn changes_keep_what_the_user_wrote() {
        let text = format!(
            "# My nodes.\n\n# The ship.\n[[peer]]\nname = \"ship\" # in the north\n\
             addresses = [\"192.0.2.1:4740\"]\nfingerprints = [ \"{}\" ]\n\n\
             # The lab.\n[[peer]]\nname = \"lab\"\nfingerprints = [\"{}\"]\n# The end.\n",
            KEYS[0], KEYS[1]
        );
        let mut book = read(&text).unwrap();
        assert_eq!(book.text(), text);
        book.add(peer("far", &["far.example.org:4740", "[2001:db8::1]:4740"])).unwrap();
        book.rename(&name("ship"), name("vessel")).unwrap();
        let after = book.text();
        assert!(after.contains("name = \"vessel\" # in the north\n"), "{after}");
        for comment in ["# My nodes.", "# The ship.", "# The lab.", "# The end."] {
            assert!(after.contains(comment), "`{comment}` is not in {after}");
        }
        let again = read(&after).unwrap();
        assert_eq!(again.peers(), book.peers());
        let names: Vec<&str> = again.peers().iter().map(|peer| peer.name.as_str()).collect();
        assert_eq!(names, ["vessel", "lab", "far"]);
        // The comment above the table goes with it; that of the file stays.
        book.remove(&name("vessel")).unwrap();
        let after = book.text();
        assert!(after.contains("# My nodes.") && !after.contains("# The ship."), "{after}");
        assert_eq!(read(&after).unwrap().peers(), book.peers());
        book.remove(&name("lab")).unwrap();
        book.remove(&name("far")).unwrap();
        assert!(read(&book.text()).unwrap().peers().is_empty());
        assert!(book.text().contains("# My nodes."), "{}", book.text());
    }

    #[test]
    fn a_comment_alone_stays_above_the_first_node() {
        let mut book = read("# Mine.\n").unwrap();
        book.add(peer("far", &[])).unwrap();
        assert!(
            book.text().starts_with("# Mine.\n\n[[peer]]\nname = \"far\"\n"),
            "{}",
            book.text()
        );
        let mut new = peer("far", &["192.0.2.1:1"]);
        new.fingerprints =
            PeerKeys::new(KEYS.iter().map(|key| key.parse().unwrap()).collect()).unwrap();
        book.replace(new).unwrap();
        let again = read(&book.text()).unwrap();
        assert_eq!(again.peers(), book.peers());
        assert_eq!(again.peers()[0].fingerprints.iter().len(), 2);
    }

    #[test]
    fn changes_that_contradict_the_book_are_refused() {
        let mut book = AddressBook::default();
        book.add(peer("far", &[])).unwrap();
        let taken = BookChangeError::Exists(name("far"));
        assert_eq!(book.add(peer("far", &[])), Err(taken.clone()));
        assert_eq!(book.remove(&name("x")), Err(BookChangeError::Missing(name("x"))));
        book.add(peer("near", &[])).unwrap();
        assert_eq!(book.rename(&name("near"), name("far")), Err(taken));
        let inline = format!("peer = [{{ name = \"a\", fingerprints = [\"{}\"] }}]\n", KEYS[0]);
        let mut book = read(&inline).unwrap();
        assert_eq!(book.peers().len(), 1);
        assert_eq!(book.remove(&name("a")), Err(BookChangeError::Form));
        assert_eq!(book.add(peer("b", &[])), Err(BookChangeError::Form));
        assert_eq!(book.text(), inline);
    }

    #[test]
    fn a_file_that_does_not_exist_is_an_empty_book() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("nodes.toml");
        assert!(AddressBook::load(&file).unwrap().peers().is_empty());
        std::fs::write(&file, "#".repeat(1 << 21)).unwrap();
        let sentence = AddressBook::load(&file).unwrap_err().to_string();
        assert!(sentence.contains("larger than"), "{sentence}");
    }
}
