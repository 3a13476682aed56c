//! Raw Data Records of real packets, read by an independent program: h5py, with a Common RDR reader
//! of its own.
//!
//! The HDF5 library is that of the system, if it has one, and also the one that h5py contains. The
//! files of both are read.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on says so by failing"
)]

use crate::python;
use crate::shared;
use crate::support::patience::until;
use crate::support::process::{printed, run, text};
use crate::support::recordings::{recording, sha256};
use crate::support::site::{Site, channel};
use serde_json::Value;
use skyhaul_ccsds::packet::{Header, Packets};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The Python with h5py, and the HDF5 libraries. `None` stands for the library of the system.
fn tools() -> Option<(String, Vec<Option<PathBuf>>)> {
    let python = python::python()?;
    let packages = Path::new(&python).parent().unwrap().join("../lib");
    let packages = std::fs::read_dir(packages).unwrap().next().unwrap().unwrap().path();
    let libraries = std::fs::read_dir(packages.join("site-packages/h5py.libs")).unwrap();
    let named =
        |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("libhdf5-");
    let brought = libraries.map(|file| file.unwrap().path()).find(named).unwrap();
    let system = run(&["rdr", "info", "no-such-file.h5"], Path::new("."));
    let system = if text(&system.stderr).contains("there is no HDF5 library") {
        eprintln!("SKIPPED: the system has no HDF5 library, only h5py's own is tried");
        None
    } else {
        Some(None)
    };
    Some((python, system.into_iter().chain([Some(brought)]).collect()))
}

/// Runs `skyhaul rdr` with one of the libraries.
fn rdr(arguments: &[&str], library: Option<&Path>, folder: &Path) -> String {
    let library = library.map(|library| library.display().to_string());
    let mut all = vec!["rdr"];
    all.extend(arguments);
    all.extend(library.iter().flat_map(|library| ["--hdf5-library", library]));
    printed(&all, folder)
}

/// What h5py finds in the files.
fn by_h5py(python: &str, files: &[PathBuf]) -> Vec<Value> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/readers/rdr.py");
    let read = Command::new(python).arg(script).args(files).output().unwrap();
    assert!(read.status.success(), "{}", text(&read.stderr));
    serde_json::from_slice(&read.stdout).unwrap()
}

/// The distinct packets of each application, in the order of the file.
fn by_apid(packets: &[u8]) -> BTreeMap<u16, Vec<&[u8]>> {
    let mut apids: BTreeMap<u16, Vec<&[u8]>> = BTreeMap::new();
    for (header, packet) in Packets::new(packets) {
        let Header::Space(header) = header else { panic!("only space packets") };
        let known = apids.entry(header.apid.value()).or_default();
        if !known.contains(&packet) {
            known.push(packet);
        }
    }
    apids
}

/// The Raw Data Record files of a folder, by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|file| file.extension().is_some_and(|kind| kind == "h5")).collect();
    files.sort();
    files
}

fn only(values: &Value) -> &Value {
    let values = values["values"].as_array().unwrap();
    assert_eq!(values.len(), 1);
    &values[0]
}

/// Asserts that the attributes of a granule fit its packets.
#[track_caller]
fn assert_consistent(granule: &Value, satellite: &str, length: u64) {
    let (said, found) = (&granule["attributes"], &granule["common_rdr"]);
    assert_eq!(only(&said["N_Beginning_Time_IET"]), &found["start"]);
    assert_eq!(only(&said["N_Ending_Time_IET"]), &found["end"]);
    assert_eq!(said["N_Beginning_Time_IET"]["type"], ">u8");
    let number = |value: &Value| value.as_u64().unwrap();
    let (start, end) = (number(&found["start"]), number(&found["end"]));
    assert_eq!((end - start, (start - BASE_TIME) % length), (length, 0));
    assert!(start <= number(&found["first"]) && number(&found["last"]) < end);
    let id = format!("{satellite}{:012}", (start - BASE_TIME) / 100_000);
    assert_eq!((only(&said["N_Granule_ID"]), &found["satellite"]), (&id.into(), &satellite.into()));
    let kinds = found["kinds"].as_object().unwrap();
    let names = said["N_Packet_Type"]["values"].as_array().unwrap();
    let counts = said["N_Packet_Type_Count"]["values"].as_array().unwrap();
    assert_eq!((names.len(), counts.len()), (kinds.len(), kinds.len()));
    for (name, count) in names.iter().zip(counts) {
        assert_eq!(&kinds[name.as_str().unwrap()]["received"], count, "{name}");
    }
    assert_eq!(said["N_Percent_Missing_Data"]["type"], ">f4");
}

const BASE_TIME: u64 = 1_698_019_234_000_000;

#[test]
fn h5py_finds_the_packets_of_a_real_capture_byte_for_byte() {
    let Some((python, libraries)) = tools() else { return };
    let folder = tempfile::tempdir().unwrap();
    let capture = recording("npp.20241206T173815.dat").display().to_string();
    printed(&["decode", &capture, "--packets-out", "packets"], folder.path());
    let packets =
        std::fs::read_dir(folder.path().join("packets")).unwrap().next().unwrap().unwrap().path();
    let packets_name = packets.display().to_string();
    let packets = std::fs::read(packets).unwrap();
    for library in &libraries {
        let library = library.as_deref();
        let make = [
            "make",
            &packets_name,
            "--mission",
            "suomi-npp",
            "-o",
            "rdr",
            "--orbit",
            "67890",
            "--json",
        ];
        let made: Value = serde_json::from_str(&rdr(&make, library, folder.path())).unwrap();
        let [file] = &files(&folder.path().join("rdr"))[..] else { panic!("one file") };
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("RVIRS_npp_d20241206_t1747022_e1748276_b67890_c"), "{name}");
        assert!(name.ends_with("_skyu_ops.h5"), "{name}");
        let bytes = std::fs::read(file).unwrap();
        let sidecar: Value =
            serde_json::from_slice(&std::fs::read(format!("{}.json", file.display())).unwrap())
                .unwrap();
        assert_eq!(
            (&sidecar, sidecar["sha256"].as_str()),
            (&made["files"][0], Some(&*sha256(&bytes)))
        );
        let read = &by_h5py(&python, std::slice::from_ref(file))[0];
        assert_eq!(only(&read["attributes"]["Platform_Short_Name"]), "NPP");
        let viirs = &read["collections"]["VIIRS-SCIENCE-RDR"];
        assert_eq!(only(&viirs["aggregate"]["AggregateNumberGranules"]), 1);
        let [granule] = &viirs["granules"].as_array().unwrap()[..] else { panic!("one granule") };
        assert_consistent(granule, "NPP", 85_350_000);
        assert_eq!(only(&granule["attributes"]["N_Beginning_Orbit_Number"]), 67_890);
        // Packets that the capture has before the first packet of a group have no time.
        let placed = made["packets"]["placed"].as_u64().unwrap();
        assert_eq!((placed, made["packets"]["untimed"].as_u64()), (260, Some(13)));
        let dump = ["dump", name, "-o", "../out.packets", "--json"];
        let dumped: Value =
            serde_json::from_str(&rdr(&dump, library, &folder.path().join("rdr"))).unwrap();
        assert_eq!(dumped["packets"], placed);
        let out = std::fs::read(folder.path().join("out.packets")).unwrap();
        let (found, given) = (by_apid(&out), by_apid(&packets));
        for (apid, packets) in &found {
            assert!(given[apid].ends_with(packets), "{apid}: the packets from the first group on");
            let digest = sha256(&packets.concat());
            assert_eq!(granule["common_rdr"]["sha256"][apid.to_string()], digest, "{apid}");
        }
        let info = rdr(&["info", name], library, &folder.path().join("rdr"));
        assert!(
            info.contains("NPP004141792252  2024-12-06T17:47:02.250000Z")
                && info.contains("M08: 17"),
            "{info}"
        );
        std::fs::remove_dir_all(folder.path().join("rdr")).unwrap();
    }
}

#[test]
fn files_that_overlap_make_one_record_without_copies() {
    let Some((python, libraries)) = tools() else { return };
    let names = ["viirs_merge1.dat", "viirs_merge2.dat"].map(|file| format!("l0/{file}"));
    let [Some(first), Some(second)] = names.each_ref().map(|name| shared::read(name)) else {
        return;
    };
    let both = [&first[..], &second[..]].concat();
    let distinct: usize = by_apid(&both).values().map(Vec::len).sum();
    let [first, second] = names.each_ref().map(|name| shared::path(name).display().to_string());
    for order in [[&first, &second], [&second, &first]] {
        let folder = tempfile::tempdir().unwrap();
        let library = libraries[0].as_deref();
        let make = [
            "make",
            order[0],
            order[1],
            "--mission",
            "suomi-npp",
            "--sensor",
            "viirs",
            "-o",
            "rdr",
            "--json",
        ];
        let made: Value = serde_json::from_str(&rdr(&make, library, folder.path())).unwrap();
        assert_eq!(made["packets"]["placed"], distinct);
        assert_eq!(made["packets"]["duplicates"], 156, "as the data set says");
        assert_eq!(made["packets"]["untimed"], 0);
        let files = files(&folder.path().join("rdr"));
        let read = &by_h5py(&python, &files)[0];
        let granule = &read["collections"]["VIIRS-SCIENCE-RDR"]["granules"][0];
        assert_consistent(granule, "NPP", 85_350_000);
        let name = files[0].display().to_string();
        let packets = |apids: &str| {
            rdr(&["dump", &name, "--apid", apids, "-o", "out.packets"], library, folder.path());
            std::fs::read(folder.path().join("out.packets")).unwrap()
        };
        let all = packets("800-801,826");
        let mut expected: Vec<&[u8]> = by_apid(&both).into_values().flatten().collect();
        let mut found: Vec<&[u8]> = by_apid(&all).into_values().flatten().collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert!(found == expected);
        assert_eq!(by_apid(&packets("826")).keys().collect::<Vec<_>>(), [&826]);
    }
}

#[test]
fn a_diary_of_two_real_hours_is_packed_into_granules_and_unpacked_again() {
    let Some((python, libraries)) = tools() else { return };
    let source = "l0/P1590011AAAAAAAAAAAAAT21099051420501.PDS";
    let Some(packets) = shared::read(source) else { return };
    let source = shared::path(source).display().to_string();
    for library in &libraries {
        let (folder, library) = (tempfile::tempdir().unwrap(), library.as_deref());
        let make = ["make", &source, "--mission", "noaa-20", "--diary", "separate", "-o", "."];
        rdr(&make, library, folder.path());
        let files = files(folder.path());
        let read = &by_h5py(&python, &files)[0];
        let granules = read["collections"]["SPACECRAFT-DIARY-RDR"]["granules"].as_array().unwrap();
        assert!((360..=361).contains(&granules.len()));
        granules.iter().for_each(|granule| assert_consistent(granule, "J01", 20_000_000));
        let received: u64 = granules
            .iter()
            .map(|granule| granule["common_rdr"]["kinds"]["DIARY"]["received"].as_u64().unwrap())
            .sum();
        assert_eq!(received, 7_200);
        rdr(
            &["dump", &files[0].display().to_string(), "-o", "out.packets"],
            library,
            folder.path(),
        );
        assert!(
            std::fs::read(folder.path().join("out.packets")).unwrap() == packets,
            "byte for byte"
        );
    }
}

#[test]
fn a_sensor_is_packed_with_the_diary_that_it_overlaps() {
    let Some((python, libraries)) = tools() else { return };
    let Some(diary) = shared::read("l0/P1590011AAAAAAAAAAAAAT21099051420501.PDS") else { return };
    let folder = tempfile::tempdir().unwrap();
    // A packet of ATMS for each of 100 diary packets, with their times.
    let atms = Packets::new(&diary).skip(3_600).take(100).flat_map(|(_, packet)| {
        let mut packet = packet.to_vec();
        packet[..2].copy_from_slice(&(0x0800u16 | 528).to_be_bytes());
        packet
    });
    std::fs::write(folder.path().join("atms.packets"), atms.collect::<Vec<u8>>()).unwrap();
    let diary = shared::path("l0/P1590011AAAAAAAAAAAAAT21099051420501.PDS").display().to_string();
    let make = |diary_goes: &str, to: &str| {
        let make = [
            "make",
            "atms.packets",
            &diary,
            "--mission",
            "noaa-20",
            "--diary",
            diary_goes,
            "-o",
            to,
        ];
        rdr(&make, libraries[0].as_deref(), folder.path());
        files(&folder.path().join(to))
    };
    let packed = make("packed", "packed");
    assert!(
        packed[0].file_name().unwrap().to_str().unwrap().starts_with("RATMS-RNSCA_j01_"),
        "{packed:?}"
    );
    let read = &by_h5py(&python, &packed)[0];
    let spans = |name: &str| -> Vec<(u64, u64)> {
        let granules = read["collections"][name]["granules"].as_array().unwrap();
        let bounds = |granule: &Value| {
            let at = |end: &str| granule["common_rdr"][end].as_u64().unwrap();
            (at("start"), at("end"))
        };
        granules.iter().map(bounds).collect()
    };
    let (own, packed) = (spans("ATMS-SCIENCE-RDR"), spans("SPACECRAFT-DIARY-RDR"));
    assert!((4..=5).contains(&own.len()), "{own:?}");
    let (first, last) = (packed[0], packed[packed.len() - 1]);
    assert!(first.0 <= own[0].0 && own[0].0 < first.1, "the first granule's diary");
    assert!(
        last.0 < own[own.len() - 1].1 && own[own.len() - 1].1 <= last.1,
        "the last granule's diary"
    );
    assert_eq!(make("separate", "separate").len(), 2);
    assert_eq!(make("none", "none").len(), 1);
}

#[test]
fn a_centre_makes_the_records_of_each_contact_or_says_why_not() {
    let Some((python, libraries)) = tools() else { return };
    let channel = channel("");
    for library in libraries.iter().map(Option::as_deref).chain([Some(Path::new("absent.so"))]) {
        let named = library.map(|library| format!("\nhdf5_library = \"{}\"", library.display()));
        let site =
            Site::with(&format!("rdr = true\nrdr_origin = \"abcd\"{}", named.unwrap_or_default()));
        site.write(&format!("[line]\nrate = \"93 Mbit/s\"\n{channel}"));
        assert_eq!(site.start().end().code, Some(0));
        let contact = site.assert_whole();
        let files = files(&site.folder().join("products"));
        if library == Some(Path::new("absent.so")) {
            assert!(
                files.is_empty() && site.folder().join("products").read_dir().unwrap().count() > 2
            );
            let shown = site.shown("centre.toml");
            assert!(
                shown.contains("there is no HDF5 library") && shown.contains("skyhaul rdr make"),
                "{shown}"
            );
            continue;
        }
        let [file] = &files[..] else { panic!("{files:?}") };
        assert!(file.to_str().unwrap().ends_with("_abcdu_ops.h5"), "{file:?}");
        let records = contact["products"].as_array().unwrap().iter();
        let records: Vec<_> =
            records.filter(|product| product["path"].as_str().unwrap().ends_with(".h5")).collect();
        assert_eq!(records.len(), 1);
        assert_eq!(records[0]["sha256"], sha256(&std::fs::read(file).unwrap()));
        let read = &by_h5py(&python, &files)[0];
        let granules = read["collections"]["VIIRS-SCIENCE-RDR"]["granules"].as_array().unwrap();
        granules.iter().for_each(|granule| assert_consistent(granule, "NPP", 85_350_000));
        let kinds = granules
            .iter()
            .flat_map(|granule| granule["common_rdr"]["kinds"].as_object().unwrap().values());
        assert_eq!(
            kinds.map(|kind| kind["received"].as_u64().unwrap()).sum::<u64>(),
            records[0]["packets"]
        );
    }
}

#[test]
fn a_windows_records_are_made_again_with_a_later_creation_time_when_data_comes_late() {
    let Some((python, libraries)) = tools() else { return };
    let library = libraries[0]
        .as_deref()
        .map(|library| format!("hdf5_library = \"{}\"\n", library.display()));
    let keys = format!("time = true\nwait = \"0 s\"\nrdr = true\n{}", library.unwrap_or_default());
    let site = Site::with(&keys);
    let whole = std::fs::read(recording("npp.20241206T173815.dat")).unwrap();
    // First everything except a stretch in the middle, then everything.
    let cadu = 1_024;
    let (first, rest) = (whole.len() / cadu / 3 * cadu, whole.len() / cadu / 2 * cadu);
    std::fs::write(site.folder().join("part.dat"), [&whole[..first], &whole[rest..]].concat())
        .unwrap();
    std::fs::write(site.folder().join("whole.dat"), &whole).unwrap();
    let mut versions = Vec::new();
    for (version, name) in [(1, "part"), (2, "whole")] {
        let file = site.folder().join(format!("{name}.dat"));
        site.write(&format!(
            "[[channel]]\nname = \"{name}\"\ninput = \"file:{}\"\n",
            file.display()
        ));
        assert_eq!(site.start().end().code, Some(0));
        let record = site.centre_until(|status| {
            let made = status["assembled"].as_array()?.iter();
            let mut records = made.filter(|one| one["product"] == "VIIRS-SCIENCE-RDR");
            records.find(|record| record["version"] == version).cloned()
        });
        versions.push(site.folder().join(record["path"].as_str().unwrap()));
    }
    // The two contacts, the session that both are of, and the two versions of the window have one
    // file each. The session is made again before or after the window.
    let products = site.folder().join("products");
    until(|| (files(&products).len() == 5).then_some(()), || site.shown("centre.toml"));
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let (one, two) = (name(&versions[0]), name(&versions[1]));
    let granule_and_creation = |name: &str| {
        let (granule, rest) = name.split_once("_c").unwrap();
        (granule.to_owned(), rest.split('_').next().unwrap().to_owned())
    };
    let ((granule, before), (same, after)) =
        (granule_and_creation(&one), granule_and_creation(&two));
    assert!(granule == same && before < after, "{one} {two}");
    let read = by_h5py(&python, &versions);
    let received = read.iter().map(|file| {
        let [granule] =
            &file["collections"]["VIIRS-SCIENCE-RDR"]["granules"].as_array().unwrap()[..]
        else {
            panic!("one granule")
        };
        assert_consistent(granule, "NPP", 85_350_000);
        let kinds = granule["common_rdr"]["kinds"].as_object().unwrap().values();
        kinds.map(|kind| kind["received"].as_u64().unwrap()).sum::<u64>()
    });
    let received: Vec<_> = received.collect();
    // The number of packets of the whole recording that have a time.
    assert!(received[0] < received[1] && received[1] == 260, "{received:?}");
}

#[test]
fn impossible_requests_are_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("text.h5"), "no HDF5 file").unwrap();
    std::fs::write(folder.path().join("empty.packets"), "").unwrap();
    let failed = |arguments: &[&str], code: i32, says: &str| {
        let output = run(arguments, folder.path());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(says) && said.contains("; help: "), "{arguments:?}: {said}");
    };
    let make = ["rdr", "make", "empty.packets", "--output", "out", "--mission"];
    failed(&[&make[..], &["aqua"]].concat(), 2, "write one of suomi-npp, noaa-20");
    failed(
        &[&make[..], &["noaa-20", "--sensor", "modis"]].concat(),
        2,
        "write one of viirs, cris, atms",
    );
    let nowhere = ["--hdf5-library", "nowhere/libhdf5.so"];
    failed(&[&["rdr", "info", "text.h5"][..], &nowhere].concat(), 3, "tried nowhere/libhdf5.so");
    let Some((_, libraries)) = tools() else { return };
    for library in &libraries {
        let library =
            library.iter().map(|library| library.display().to_string()).collect::<Vec<_>>();
        let with = |arguments: &[&str], code, says: &str| {
            let library = library.iter().flat_map(|library| ["--hdf5-library", library]);
            failed(&arguments.iter().copied().chain(library).collect::<Vec<_>>(), code, says);
        };
        with(&["rdr", "info", "text.h5"], 3, "file signature not found");
        with(&["rdr", "info", "nothing.h5"], 3, "No such file");
        with(&[&make[..], &["noaa-20"]].concat(), 1, "no packet of viirs, cris, atms");
        with(
            &["rdr", "make", "text.h5", "--mission", "noaa-20", "-o", "out"],
            1,
            "no space packet at byte 0",
        );
        with(
            &["rdr", "make", "absent", "--mission", "noaa-20", "-o", "out"],
            3,
            "absent cannot be read",
        );
    }
}
