//! A copy of a file of a terabyte that resumes near the end of the file. The file is sparse:
//! neither end has room for it, nor time to read it.

use super::{Ends, assert_no_parts, noise};
use skyhaul_files::{Chunk, SourceStamp, map};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};

const SIZE: u64 = 1 << 40;
const TAIL: usize = 1 << 20;

#[test]
fn a_copy_of_a_terabyte_resumes_without_reading_the_copied_part_again() {
    let ends = Ends::new(&["--write"]);
    let tail = noise(TAIL, 21);
    let source = File::create(ends.path("near/large")).unwrap();
    if let Err(error) = source.set_len(SIZE) {
        eprintln!("SKIPPED: this file system takes no file of a terabyte ({error})");
        return;
    }
    source.write_all_at(&tail, SIZE - TAIL as u64).unwrap();

    // What an interrupted copy leaves that has all chunks but the last two. Nothing hashes these
    // chunks again, so their hashes may have any value.
    let chunks = Chunk::of(SIZE);
    let held = chunks.count(SIZE) - 2;
    let part = File::create(ends.path("far/.large.skyhaul-part")).unwrap();
    part.set_len(held * chunks.bytes()).unwrap();
    let of = source.metadata().unwrap();
    let stamp =
        SourceStamp::of(of.dev(), of.ino(), SIZE, of.mtime() * 1_000_000_000 + of.mtime_nsec());
    let mut written = map::head(stamp, SIZE);
    let chains: Vec<_> = (0..held).map(|number| [(number % 251) as u8; 32]).collect();
    let entries = map::entries(&written, 0, &chains);
    written.extend(entries);
    fs::write(ends.path("far/.large.skyhaul-map"), written).unwrap();

    let account = ends.copied(&["large", "far:"]);
    assert_eq!(account["resumed_bytes"], held * chunks.bytes(), "{account}");
    let copied = File::open(ends.path("far/large")).unwrap();
    assert_eq!(copied.metadata().unwrap().len(), SIZE);
    let mut last = vec![0; TAIL];
    copied.read_exact_at(&mut last, SIZE - TAIL as u64).unwrap();
    assert!(last == tail, "its end is that of the source");
    assert_no_parts(&ends.path("far"));
}
