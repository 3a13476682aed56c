//! Files written and read again through the library: the system's, or the one that h5py brings.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test that cannot go on says so by failing; the library reads the clock"
)]

#[path = "../../level0/tests/all/support/python.rs"]
mod python;

use skyhaul_hdf5::{Error, File, Library, RdrReader, RdrWriter};
use skyhaul_level0::rdr::{
    CommonRdr, FileFacts, GranuleBuilder, GranuleSpan, RdrPlan, RdrTable, Value,
};
use skyhaul_units::Utc;
use std::path::Path;

/// The HDF5 library; says so where there is none.
fn library() -> Option<Library> {
    if let Ok(library) = Library::load(None) {
        return Some(library);
    }
    let packages = Path::new(&python::python()?).parent().unwrap().join("../lib");
    let packages = std::fs::read_dir(packages).unwrap().next().unwrap().unwrap().path();
    let files = std::fs::read_dir(packages.join("site-packages/h5py.libs")).unwrap();
    let mut files = files.map(|file| file.unwrap().path());
    let brought =
        files.find(|path| path.file_name().unwrap().to_string_lossy().starts_with("libhdf5-"));
    Some(Library::load(Some(&brought.unwrap())).unwrap())
}

fn plan() -> RdrPlan {
    RdrTable::built_in().plan("suomi-npp").unwrap().clone()
}

fn facts() -> FileFacts {
    FileFacts {
        origin: "sky".parse().unwrap(),
        mode: "ops".parse().unwrap(),
        orbit: 7,
        created: Utc::from_micros(1_733_506_695_000_000),
        software: "skyhaul".to_owned(),
    }
}

/// Three granules of the diary with a packet each; returns the packets.
fn write(library: Library, path: &Path) -> Vec<Vec<u8>> {
    let plan = plan();
    let diary = plan.collection("diary").unwrap();
    let mut writer = RdrWriter::create(library, path, &plan.satellite, facts()).unwrap();
    let packets: Vec<Vec<u8>> = (0..3u8)
        .map(|count| {
            vec![0x08, 0x0B, 0xC0, count, 0, 13, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, count]
        })
        .collect();
    let mut time = plan.satellite.base;
    for packet in &packets {
        let span: GranuleSpan = plan.granule(diary, time).unwrap();
        let mut granule = GranuleBuilder::new(&plan, diary, span);
        granule.add(time, packet).unwrap();
        writer.granule(diary, &granule.finish()).unwrap();
        time = span.end;
    }
    writer.finish().unwrap();
    packets
}

#[test]
fn what_is_written_is_read_and_the_same_content_makes_the_same_file() {
    let Some(library) = library() else { return };
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["first.h5", "second.h5"].map(|name| folder.path().join(name));
    let packets = write(library, &first);
    // Formats have times in seconds.
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    write(library, &second);
    assert!(std::fs::read(&first).unwrap() == std::fs::read(&second).unwrap());
    let reader = RdrReader::open(library, &first).unwrap();
    let name = "SPACECRAFT-DIARY-RDR";
    assert_eq!(reader.collections().collect::<Vec<_>>(), [name]);
    assert_eq!(reader.granules(name), [0, 1, 2]);
    for (number, packet) in (0..).zip(&packets) {
        let blob = reader.blob(name, number).unwrap();
        assert_eq!(CommonRdr::parse(&blob).unwrap().packets()[0].bytes, packet);
        let attribute = |name_of: &str| reader.granule_attribute(name, number, name_of).unwrap();
        assert_eq!(attribute("N_Packet_Type_Count"), Some(Value::U64(vec![0, 0, 1])));
        let kinds = ["CRITICAL", "ADCS_HKH", "DIARY"].map(str::to_owned).to_vec();
        assert_eq!(attribute("N_Packet_Type"), Some(Value::Text(kinds)));
        assert!(matches!(attribute("N_Percent_Missing_Data"),
                Some(Value::F32(percent)) if percent[0] > 90.0));
        assert_eq!(attribute("No_Such_Attribute"), None);
    }
    assert_eq!(reader.attribute("Distributor").unwrap(), Some(Value::Text(vec!["sky".to_owned()])));
    assert_eq!(reader.granule_attribute(name, 99, "N_Granule_ID").unwrap(), None);
}

#[test]
fn errors_carry_the_librarys_own_words_and_leave_nothing_open() {
    let Some(library) = library() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file.h5");
    for _ in 0..50 {
        let file = File::create(library, &path).unwrap();
        file.group("/group").unwrap();
        let twice = file.group("/group").unwrap_err();
        assert!(
            matches!(&twice, Error::Library { said, .. } if said.contains("exists")),
            "{twice}"
        );
        assert!(file.region_reference("/group/reference", "/group/nothing").is_err());
        assert!(file.bytes("/no/group", &[1]).is_err());
        file.bytes("/group/bytes", &[1, 2, 3]).unwrap();
        assert_eq!(file.read_bytes("/group/bytes", 3).unwrap(), [1, 2, 3]);
        assert!(matches!(file.read_bytes("/group/bytes", 2), Err(Error::Content { .. })));
        assert!(matches!(file.group("/zero\0byte"), Err(Error::Content { .. })));
        assert_eq!(file.members("/group").unwrap(), ["bytes"]);
        // What is still open within a file keeps it open, and a file that is open cannot be created
        // again.
        file.close().unwrap();
    }
    assert!(
        File::open(library, &folder.path().join("absent.h5"))
            .unwrap_err()
            .to_string()
            .contains("No such file")
    );
    assert!(File::create(library, &folder.path().join("absent/file.h5")).is_err());
    let empty = RdrReader::open(library, &path).unwrap_err();
    assert!(empty.to_string().contains("without Raw Data Records"), "{empty}");
}

#[test]
fn threads_take_turns() {
    let Some(library) = library() else { return };
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for number in 0..4 {
            let path = folder.path().join(format!("{number}.h5"));
            scope.spawn(move || write(library, &path));
        }
    });
    let packets = write(library, &folder.path().join("alone.h5"));
    for number in 0..4 {
        let reader = RdrReader::open(library, &folder.path().join(format!("{number}.h5"))).unwrap();
        for (granule, packet) in (0..).zip(&packets) {
            let blob = reader.blob("SPACECRAFT-DIARY-RDR", granule).unwrap();
            assert_eq!(CommonRdr::parse(&blob).unwrap().packets()[0].bytes, packet);
        }
    }
}
