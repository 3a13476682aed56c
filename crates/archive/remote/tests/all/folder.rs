//! Folders of this machine.

use crate::life::{self, content};
use crate::servers::{is_root, published, run};
use skyhaul_dispatch::FailureKind;
use skyhaul_remote::{
    GoOn, PartNote, RemoteAccess, RemoteFound, RemotePlace, RemoteSink, ResumeNote, open,
};
use std::path::Path;
use std::process::Command;

fn sink(path: &Path) -> Box<dyn RemoteSink> {
    open(&RemotePlace::Folder(path.to_owned()), &RemoteAccess::default(), None).unwrap()
}

#[test]
fn a_folder_does_what_every_destination_must() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let seen = |name: &str| std::fs::read(there.path().join(name)).ok();
    let mut sink = sink(there.path());
    life::whole(&mut *sink, here.path(), &seen);
    let file = published(here.path(), "overtaken", 1 << 20);
    life::overtaken(&mut *sink, &file, &there.path().join("overtaken"));
}

#[test]
fn a_copy_that_stopped_goes_on_where_its_part_is_what_the_note_says() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = published(here.path(), "long", 65 << 20);
    life::stopped(&mut *sink(there.path()), &file);
    let bytes = content(&file);
    for (part, noted) in [(&bytes[..5000], 4000), (&bytes[..10], 4000), (&[7; 5000][..], 4000)] {
        std::fs::remove_file(there.path().join("long")).unwrap();
        std::fs::write(there.path().join(".long.part"), part).unwrap();
        let note = ResumeNote::Part(PartNote { sha256: file.sha256, bytes: noted });
        sink(there.path()).place(&file, &note, &mut |_| GoOn::Continue).unwrap();
        assert!(std::fs::read(there.path().join("long")).unwrap() == bytes);
    }
}

#[test]
fn a_folder_that_is_not_there_is_not_made() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut sink = sink(&there.path().join("mnt"));
    let file = published(here.path(), "a", 10);
    let failure = sink.place(&file, &ResumeNote::Nothing, &mut |_| GoOn::Continue).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Access, "{failure}");
    assert!(!there.path().join("mnt").exists());
}

/// A file system of 8 MiB, which goes with it.
pub struct SmallDisk(pub tempfile::TempDir);

impl SmallDisk {
    pub fn mount() -> Option<Self> {
        if !is_root() {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        run(mount.args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(dir.path()));
        Some(Self(dir))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(self.0.path()).status().ok();
    }
}

#[test]
fn a_full_disk_is_said_and_gets_the_file_when_it_has_room() {
    let Some(disk) = SmallDisk::mount() else { return };
    let here = tempfile::tempdir().unwrap();
    let mut sink = sink(disk.0.path());
    std::fs::write(disk.0.path().join("old"), vec![1; 6 << 20]).unwrap();
    let file = published(here.path(), "new", 4 << 20);
    let failure = sink.place(&file, &ResumeNote::Nothing, &mut |_| GoOn::Continue).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Full, "{failure}");
    assert_eq!(sink.look(&file).unwrap(), RemoteFound::Absent);
    std::fs::remove_file(disk.0.path().join("old")).unwrap();
    life::place(&mut *sink, &file);
}
