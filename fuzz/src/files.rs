//! What the far end of a file transfer says, the map of a partial file, the ledger of a drop
//! folder, and what an operator writes of names and patterns.

use bytes::Bytes;
use skyhaul_files::drop_folder::FolderLedger;
use skyhaul_files::map::{self, Map};
use skyhaul_files::wire::Message;
use skyhaul_files::{Chunk, FileHasher, PathKind, RelPath, Rule, Selection};

/// As a block: one that is read is written and read the same. As a map: it never has more chunks
/// than the file, and what it has is written and read the same. As a drop folder's ledger: what is
/// read of it is written and read the same. As text: a path never leads out,
/// and a pattern that is taken is matched.
pub fn files(input: &[u8]) {
    if let Ok(message) = Message::decode(&Bytes::copy_from_slice(input)) {
        assert_eq!(Message::decode(&message.encode()), Ok(message));
    }
    if let Some(found) = Map::read(input) {
        assert!(found.chains.len() as u64 <= Chunk::COUNT_MAX);
        let mut bytes = map::head(found.stamp, found.size);
        let entries = map::entries(&bytes, 0, &found.chains);
        bytes.extend(entries);
        assert!(input.starts_with(&bytes));
        let hasher = FileHasher::going_on(found.size, found.chains);
        assert!(hasher.offset() <= found.size);
    }
    if let Ok(ledger) = FolderLedger::read(input) {
        let mut text = FolderLedger::head();
        ledger.lines.iter().for_each(|line| text.push_str(&line.to_string()));
        assert_eq!(FolderLedger::read(text.as_bytes()).map(|read| read.lines), Ok(ledger.lines));
    }
    if let Ok(path) = RelPath::written(input) {
        assert!(path.parts().all(|part| !matches!(part, b"" | b"." | b"..")));
        let pattern = String::from_utf8_lossy(input).into_owned();
        if let Ok(selection) = Selection::new(vec![Rule { include: true, pattern }]) {
            let _ = selection.takes(&path, PathKind::Other);
        }
    }
}
