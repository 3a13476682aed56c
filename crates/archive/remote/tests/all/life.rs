//! What every destination must do, whatever its protocol.

use crate::servers::{Line, publish, published};
use skyhaul_dispatch::{FailureKind, Proof};
use skyhaul_remote::{
    Abilities, GoOn, OutgoingFile, PlaceProgress, Placing, ReadBack, RemoteFound, RemoteSink,
    ResumeNote,
};
use skyhaul_units::ByteCount;
use std::path::Path;

/// What is at a destination, seen past the sink.
pub type Seen<'a> = &'a dyn Fn(&str) -> Option<Vec<u8>>;

pub fn place(sink: &mut dyn RemoteSink, file: &OutgoingFile) -> Placing {
    sink.place(file, &ResumeNote::Nothing, &mut |_| GoOn::Continue).unwrap()
}

pub fn content(file: &OutgoingFile) -> Vec<u8> {
    std::fs::read(&file.path).unwrap()
}

/// The whole life of deliveries.
pub fn whole(sink: &mut dyn RemoteSink, dir: &Path, seen: Seen<'_>) -> Abilities {
    let abilities = sink.abilities().unwrap();
    let kept: Abilities =
        serde_json::from_str(&serde_json::to_string(&abilities).unwrap()).unwrap();
    assert_eq!(kept, abilities);
    assert_eq!(seen(".skyhaul-trial"), None, "a trial leaves nothing");

    for (name, size) in [("P1.PDS", 300_000), ("2026/330/P 2+ä%.PDS", 7), ("empty", 0)] {
        let file = published(dir, name, size);
        assert_eq!(sink.look(&file).unwrap(), RemoteFound::Absent, "{name}");
        assert!(matches!(place(sink, &file), Placing::Placed(_)), "{name}");
        assert_eq!(seen(name).unwrap(), content(&file), "{name}");
        assert!(matches!(sink.look(&file).unwrap(), RemoteFound::Same(_)), "{name}");
        assert!(matches!(place(sink, &file), Placing::Placed(_)), "{name}, again");
    }
    let checked = OutgoingFile { read_back: ReadBack::Always, ..published(dir, "checked", 1000) };
    assert_eq!(place(sink, &checked), Placing::Placed(Proof::ReadBack));
    differs(sink, dir, seen);
    source(sink, dir, seen);
    small_files(sink, seen);
    let bad = OutgoingFile { name: "../x".to_owned(), ..checked };
    let failure = sink.place(&bad, &ResumeNote::Nothing, &mut |_| GoOn::Continue).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Refused, "{failure}");
    abilities
}

/// A file of other content is not touched, whether it has the same length or not.
fn differs(sink: &mut dyn RemoteSink, dir: &Path, seen: Seen<'_>) {
    for (name, there) in [("longer", &b"another file"[..]), ("equal", b"123456780")] {
        sink.write(name, there).unwrap();
        let file = publish(dir, name, b"123456789");
        assert_eq!(sink.look(&file).unwrap(), RemoteFound::Differs, "{name}");
        let failure = sink.place(&file, &ResumeNote::Nothing, &mut |_| GoOn::Continue).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Differs, "{failure}");
        assert!(failure.sentence.contains(name), "{failure}");
        assert_eq!(seen(name).unwrap(), there);
    }
}

/// A published file that is not what it was is not sent under its name.
fn source(sink: &mut dyn RemoteSink, dir: &Path, seen: Seen<'_>) {
    for bytes in [&b"123456780"[..], b"1234"] {
        let file = publish(dir, "changed", b"123456789");
        std::fs::write(&file.path, bytes).unwrap();
        let failure = sink.place(&file, &ResumeNote::Nothing, &mut |_| GoOn::Continue).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Source, "{failure}");
        assert_eq!(seen("changed"), None);
        assert_eq!(seen(".changed.part"), None);
    }
}

fn small_files(sink: &mut dyn RemoteSink, seen: Seen<'_>) {
    for text in ["one", "another record", "2"] {
        sink.write("in/r.PDR", text.as_bytes()).unwrap();
        assert_eq!(seen("in/r.PDR").unwrap(), text.as_bytes());
    }
    sink.write("in/a.PAN", b"taken").unwrap();
    let listed = sink.list("in").unwrap();
    let names: Vec<(&str, u64)> =
        listed.iter().map(|entry| (entry.name.as_str(), entry.size.as_u64())).collect();
    assert_eq!(names, [("a.PAN", 5), ("r.PDR", 1)]);
    assert_eq!(sink.list("not-there").unwrap(), []);
    let most = ByteCount::new(5);
    assert_eq!(sink.read("in/a.PAN", most).unwrap().unwrap(), b"taken");
    assert_eq!(sink.read("in/b.PAN", most).unwrap(), None);
    let failure = sink.read("in/a.PAN", ByteCount::new(4)).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Refused, "{failure}");
    for _ in 0..2 {
        sink.rename("in/a.PAN", "in/done/a.PAN").unwrap();
        assert_eq!(seen("in/a.PAN"), None);
        assert_eq!(seen("in/done/a.PAN").unwrap(), b"taken");
        sink.write("in/a.PAN", b"taken").unwrap();
    }
}

/// Where a line breaks.
#[derive(Debug, Clone, Copy)]
pub struct Breaks<'a> {
    /// After the bytes of the file divided by each of these.
    pub after: &'a [u64],
    /// So many bytes may be sent again, or are of the protocol.
    pub twice: u64,
}

/// An attempt whose line breaks goes on where it stopped.
pub fn broken_line(
    sink: &mut dyn RemoteSink,
    line: &Line,
    file: &OutgoingFile,
    breaks: Breaks<'_>,
) -> ResumeNote {
    let mut note = ResumeNote::Nothing;
    let before = line.sent();
    for part in breaks.after {
        line.break_after(file.size.as_u64() / part);
        let failure = sink
            .place(file, &note.clone(), &mut |progress| {
                if let PlaceProgress::Reached(step) = progress {
                    note.apply(step);
                }
                GoOn::Continue
            })
            .unwrap_err();
        assert_eq!(failure.kind, FailureKind::Line, "{failure}");
        line.mend();
        assert_eq!(sink.look(file).unwrap(), RemoteFound::Absent, "not visible before it is whole");
    }
    assert_ne!(note, ResumeNote::Nothing);
    let kept: ResumeNote = serde_json::from_str(&serde_json::to_string(&note).unwrap()).unwrap();
    let placed = sink.place(file, &kept, &mut |_| GoOn::Continue).unwrap();
    assert!(matches!(placed, Placing::Placed(_)));
    let extra = (line.sent() - before).saturating_sub(file.size.as_u64());
    eprintln!("{}: {extra} bytes were sent twice or are of the protocol", file.size);
    assert!(extra < breaks.twice, "{extra} bytes were sent twice");
    kept
}

/// A caller that stops gets what it asked for soon, and can go on.
pub fn stopped(sink: &mut dyn RemoteSink, file: &OutgoingFile) {
    let mut note = ResumeNote::Nothing;
    let mut stop = |progress: PlaceProgress<'_>| match progress {
        PlaceProgress::Reached(step) => {
            note.apply(step);
            GoOn::Stop
        }
        PlaceProgress::Sent(_) => GoOn::Continue,
    };
    assert_eq!(sink.place(file, &ResumeNote::Nothing, &mut stop).unwrap(), Placing::Stopped);
    assert_ne!(note, ResumeNote::Nothing);
    assert_eq!(sink.look(file).unwrap(), RemoteFound::Absent);
    let placed = sink.place(file, &note, &mut |_| GoOn::Continue).unwrap();
    assert!(matches!(placed, Placing::Placed(_)));
}

/// A file of another writer that gets the name while ours is on its way is not replaced.
pub fn overtaken(sink: &mut dyn RemoteSink, file: &OutgoingFile, there: &Path) {
    let failure = sink
        .place(file, &ResumeNote::Nothing, &mut |_| {
            std::fs::write(there, "of another writer").unwrap();
            GoOn::Continue
        })
        .unwrap_err();
    assert_eq!(failure.kind, FailureKind::Differs, "{failure}");
    assert_eq!(std::fs::read(there).unwrap(), b"of another writer");
}
