use super::*;
use proptest::prelude::*;
use skyhaul_coding::{Basis, Correction};

const TEXT: &str = r#"name = "test"
title = "Test"
scids = [157]

[frame]
kind = "aos"
length = 892

[coding]
randomiser = "ccsds255"

[coding.reed_solomon]
corrects = 16
interleave = 4
basis = "dual"

[[time]]
apids = ["0-2046"]
code = "cds8"

[[product]]
name = "viirs"
label = "0826VIIRSSCIENCEAS"
vcids = [16]
apids = ["800-826"]
"#;

fn refused(from: &str, to: &str) -> MissionError {
    assert!(TEXT.contains(from), "{from}");
    Mission::from_toml(&TEXT.replace(from, to)).unwrap_err()
}

#[test]
fn a_mission_is_read() {
    let mission = Mission::from_toml(TEXT).unwrap();
    assert_eq!((mission.name(), mission.block_len(), mission.cadu_len()), ("test", 1020, 1024));
    let code = mission.coding().reed_solomon.unwrap();
    assert_eq!((code.correction, code.basis), (Correction::E16, Basis::Dual));
    assert_eq!(mission.coding().marker, Marker::Bits32(0x1ACF_FC1D));
    let apid = |value| Apid::new(value).unwrap();
    let vcid = |value| Vcid::new(value).unwrap();
    assert_eq!(mission.product(vcid(16), apid(826)).unwrap().name, "viirs");
    assert_eq!(mission.product(vcid(16), apid(827)), None);
    assert_eq!(mission.product(vcid(6), apid(826)), None);
    assert_eq!(mission.content(vcid(16)), Content::Packets);
}

#[test]
fn frames_may_say_their_own_length() {
    let text = |frame: &str, coding: &str| {
        format!(
            "name = \"x\"\ntitle = \"X\"\nscids = [9]\n[frame]\nkind = \"uslp\"\nlength = \
            65536\n{frame}\n[coding]\n\
             randomiser = \"{coding}\"\n"
        )
    };
    let read = |frame: &str| Mission::from_toml(&text(frame, "none"));
    let lengths = |frame: &str| read(frame).unwrap().frame().lengths;
    assert_eq!(lengths("variable_length = true"), FrameLengths::Variable { truncated: None });
    let truncated = lengths("variable_length = true\ntruncated_length = 6");
    assert_eq!(truncated, FrameLengths::Variable { truncated: Some(6) });
    let format = *read("variable_length = true").unwrap().frame();
    assert!(format.has_length(7) && format.has_length(65_536) && !format.has_length(65_537));
    let refusals = [
        ("", 6, "longer than 16384"),
        ("variable_length = false", 6, "longer than 16384"),
        ("truncated_length = 6", 7, "give `variable_length = true`"),
        ("variable_length = true\ntruncated_length = 5", 8, "6 to 65536"),
        ("variable_length = true\nfecf = true\ntruncated_length = 7", 9, "8 to 65536"),
    ];
    for (frame, line, reason) in refusals {
        let error = read(frame).unwrap_err();
        assert!(error.line == line && error.reason.contains(reason), "{frame}: {error}");
    }
    let error = Mission::from_toml(&text("variable_length = true", "ccsds255")).unwrap_err();
    assert!(error.reason.contains("without marker and coding"), "{error}");
    let aos = text("variable_length = true", "none").replace("uslp", "aos");
    assert!(Mission::from_toml(&aos).unwrap_err().reason.contains("only USLP"));
}

#[test]
fn contradictions_are_refused_with_line_and_reason() {
    let cases = [
        ("length = 892", "length = 893", 7, "carries 892"),
        ("length = 892", "length = 9", 7, "carries 892"),
        ("length = 892", "length = 892\ninsert_zone = 890", 7, "no room"),
        ("length = 892", "length = 100000", 7, "longer than"),
        ("kind = \"aos\"", "kind = \"tm\"\nfhec = true", 7, "only AOS frames"),
        ("corrects = 16", "corrects = 12", 13, "`corrects` is 16"),
        ("interleave = 4", "interleave = 7", 12, "interleave depth 7"),
        ("scids = [157]", "scids = [1024]", 3, "8 bits"),
        ("scids = [157]", "scids = [157, 3, 157]", 3, "157 is listed twice"),
        ("basis = \"dual\"", "basis = \"dual\"\nvirtual_fill = 3", 12, "virtual fill"),
        ("length = 892", "length = 892\nfecf_bits = 32", 8, "give `fecf = true`"),
        ("length = 892", "length = 892\nfecf = true\nfecf_bits = 32", 9, "32 in USLP"),
        ("kind = \"aos\"", "kind = \"uslp\"\nscid_bits = 8", 7, "16 in USLP"),
        (
            "randomiser = \"ccsds255\"",
            "randomiser = \"none\"\nderandomise_after_decoding_from = 6",
            11,
            "nothing is randomised",
        ),
        ("[157]", "[157]\nscid = 3", 4, "scid"),
        ("name = \"test\"", "name = \"Test One\"", 1, "not a name"),
        ("\"800-826\"", "\"826-800\"", 25, "not a range"),
        ("vcids = [16]", "vcids = [64]", 24, "0 to 63"),
        ("0826VIIRSSCIENCEAS", "VIIRS", 23, "label"),
        ("randomiser = \"ccsds255\"", "randomiser = \"pn\"", 10, "pn"),
        ("apids = [\"800-826\"]", "session_based = false", 25, "session_based"),
        (
            "randomiser = \"ccsds255\"",
            "marker = \"1ACF\"\nrandomiser = \"none\"",
            10,
            "8 hexadecimal",
        ),
    ];
    for (from, to, line, reason) in cases {
        let error = refused(from, to);
        assert!(error.reason.contains(reason), "{to}: {error}");
        assert_eq!(error.line, line, "{to}: {error}");
    }
}

#[test]
fn channels_products_and_times_that_contradict_each_other_are_refused_with_line_and_reason() {
    let idle = "[[channel]]\nvcids = [16]\ncontent = \"idle\"\n";
    let opaque =
        "[[channel]]\nvcids = [9]\ncontent = \"opaque\"\n[[product]]\nname = \"b\"\nvcids = [9]";
    let product = |keys: &str| format!("[[product]]\nname = \"b\"\n{keys}");
    let before = TEXT.lines().count();
    let cases = [
        (product("vcids = [63]"), before + 3, "channel 63, which carries idle frames"),
        (
            idle.to_owned(),
            24,
            "`viirs` takes packets of virtual channel 16, which carries idle frames",
        ),
        (opaque.to_owned(), before + 6, "no packets are looked for"),
        (
            product("vcids = [6, 16]\napids = [\"826-900\"]"),
            before + 2,
            "both claim application 826 on virtual channel 16",
        ),
        (
            "[[time]]\napids = [\"64\", \"70-99\"]\ncode = \"cds6\"".to_owned(),
            before + 2,
            "never holds",
        ),
    ];
    for (extra, line, reason) in cases {
        let error = Mission::from_toml(&format!("{TEXT}{extra}\n")).unwrap_err();
        assert!(error.reason.contains(reason), "{extra}: {error}");
        assert_eq!(error.line, line, "{extra}: {error}");
    }
    // What takes the rest may stand behind what is listed.
    for extra in ["vcids = [16]", "apids = [\"800-826\"]", "", "vcids = [6]\napids = [\"800-826\"]"]
    {
        Mission::from_toml(&format!("{TEXT}{}\n", product(extra))).unwrap();
    }
    let twice = format!("{TEXT}{}\n{}\n", product(""), product("").replace("\"b\"", "\"c\""));
    let error = Mission::from_toml(&twice).unwrap_err();
    assert!(
        error.reason.contains("both claim all applications on all virtual channels"),
        "{error}"
    );
}

#[test]
fn parity_check_codes_that_contradict_the_rest_are_refused_with_line_and_reason() {
    let text = example_with("[coding.ldpc]");
    let reed_solomon = "[coding.reed_solomon]\ncorrects = 16\ninterleave = 4\nbasis = \"dual\"\n";
    let convolutional = "[coding.convolutional]\nrate = \"1/2\"\n";
    let line = |part: &str| 1 + text[..text.find(part).unwrap()].matches('\n').count();
    let cases = [
        ("length = 512", "length = 892", "length", "carries 512"),
        ("code = \"ar4ja\"", "code = \"c2\"", "rate =", "has the rate \"7/8\""),
        ("rate = \"1/2\"", "rate = \"3/4\"", "rate =", "no rate `3/4`"),
        ("rate = \"1/2\"\n", "", "[coding.ldpc]", "needs `rate`"),
        ("k = 4096", "k = 4000", "k =", "not 4000"),
        ("k = 4096", "", "[coding.ldpc]", "and `k`"),
        ("rate = \"1/2\"\nk = 4096", "k = 4096", "[coding.ldpc]", "needs `rate`"),
        (
            "[coding.ldpc]\n",
            "marker = \"1ACF\"\n[coding.ldpc]\n",
            "[coding.ldpc]",
            "8 hexadecimal digits",
        ),
    ];
    for (part, other, at, reason) in cases {
        let wrong = text.replace(part, other);
        assert_ne!(wrong, text, "{part}");
        let error = Mission::from_toml(&wrong).unwrap_err();
        assert!(error.reason.contains(reason), "{other}: {error}");
        assert_eq!(error.line, line(at), "{other}: {error}");
    }
    for extra in [reed_solomon, convolutional] {
        let error = Mission::from_toml(&format!("{text}{extra}")).unwrap_err();
        assert!(error.reason.contains("stands alone"), "{extra}: {error}");
        assert_eq!(error.line, line("[coding.ldpc]"));
    }
}

#[test]
fn packets_of_one_counter_are_known_by_its_first_application() {
    let text = format!("{TEXT}\n[[shared_counter]]\napids = [\"812\", \"801-803\"]\n");
    let mission = Mission::from_toml(&text).unwrap();
    let counter = |value| mission.counters().of(Apid::new(value).unwrap()).value();
    assert_eq!([800, 801, 803, 804, 812].map(counter), [800, 812, 812, 804, 812]);
}

#[test]
fn counters_that_contradict_the_rest_are_refused_with_line_and_reason() {
    let cases = [
        ("[[shared_counter]]\napids = [\"801\"]", "two applications or more"),
        ("[[shared_counter]]\napids = []", "two applications or more"),
        ("[[shared_counter]]\napids = [\"801-804\", \"803\"]", "803 is listed twice"),
        (
            "[[shared_counter]]\napids = [\"825-827\"]",
            "825 and 827 share a counter but not a product",
        ),
        (
            "[[shared_counter]]\napids = [\"2046-2047\"]",
            "2046 and 2047 share a counter but not a product",
        ),
        ("[[shared_counter]]\napids = [\"4-2\"]", "not a range"),
        ("[[shared_counter]]\napids = [\"1-2\"]\nstep = 6", "unknown field `step`"),
    ];
    let before = TEXT.lines().count();
    for (counter, reason) in cases {
        let error = Mission::from_toml(&format!("{TEXT}{counter}\n")).unwrap_err();
        assert!(error.reason.contains(reason), "{counter}: {error}");
        let line = before + counter.lines().count();
        assert_eq!(error.line, line, "{counter}: {error}");
    }
    let twice = "[[shared_counter]]\napids = [\"1-2\"]\n[[shared_counter]]\napids = [\"2-3\"]\n";
    let error = Mission::from_toml(&format!("{TEXT}{twice}")).unwrap_err();
    assert!(error.reason.contains("2 is listed twice"), "{error}");
    assert_eq!(error.line, before + 4);
}

#[test]
fn derandomising_after_a_decoding_that_is_not_there_is_refused() {
    let start = TEXT.find("[coding.reed_solomon]").unwrap();
    let text = TEXT[..start].replace("[coding]", "[coding]\nderandomise_after_decoding_from = 6");
    let error = Mission::from_toml(&text).unwrap_err();
    assert!(error.reason.contains("no decoding"), "{error}");
    assert_eq!(error.line, 10);
}

#[test]
fn built_in_missions_have_the_published_lengths() {
    let set = MissionSet::built_in();
    let expected = [
        ("suomi-npp", Some(157), 892, 1024),
        ("noaa-20", Some(159), 892, 1024),
        ("noaa-21", Some(177), 1115, 1279),
        ("jpss-3", Some(178), 1115, 1279),
        ("jpss-4", Some(179), 1115, 1279),
        ("aqua", Some(154), 892, 1024),
        ("aura", Some(204), 892, 1024),
        ("terra", Some(42), 892, 1024),
        ("metop-b", Some(11), 892, 1024),
        ("metop-c", Some(13), 892, 1024),
        ("metop-sg-a1", Some(3), 892, 1024),
        ("metop-sg-a2", Some(27), 892, 1024),
        ("metop-sg-a3", Some(48), 892, 1024),
        ("metop-sg-b1", Some(66), 892, 1024),
        ("metop-sg-b2", Some(70), 892, 1024),
        ("metop-sg-b3", Some(71), 892, 1024),
        ("gcom-w1", Some(135), 1100, 1264),
        ("goes-16", Some(80), 2044, 2048),
        ("goes-17", Some(130), 2044, 2048),
        ("sentinel-6", None, 1115, 1279),
        ("landsat-s-band", None, 1115, 1279),
        ("smap", None, 1195, 1279),
        ("cryosat-2", None, 1195, 1279),
        ("grace-fo", None, 1195, 1279),
        ("mtg", None, 1195, 1279),
        ("dscovr", None, 1100, 1264),
        ("europa-clipper", Some(159), 1113, 1117),
        ("psyche", Some(255), 1113, 1117),
        ("euclid", Some(680), 1113, 1117),
        ("escapade-gold", Some(86), 1113, 1117),
        ("equuleus", Some(80), 444, 448),
        ("change-5", Some(91), 220, 224),
    ];
    assert_eq!(set.iter().count(), expected.len());
    for (name, scid, frame, cadu) in expected {
        let mission = set.by_name(name).unwrap();
        assert_eq!(mission.scids().first().map(|scid| scid.value()), scid, "{name}");
        assert_eq!((mission.frame().length, mission.cadu_len()), (frame, cadu), "{name}");
    }
    assert!(Mission::from_toml(GENERIC).unwrap().scids().is_empty());
}

#[test]
fn a_set_is_bounded_and_prefers_what_was_added_last() {
    let mut set = MissionSet::empty();
    for number in 0..MAX_MISSIONS {
        let text = TEXT.replace("\"test\"", &format!("\"test-{number}\""));
        set.add(Mission::from_toml(&text).unwrap()).unwrap();
    }
    assert!(set.add(Mission::from_toml(TEXT).unwrap()).is_err());
    assert_eq!(set.iter().next().unwrap().name(), "test-255");
    set.add(Mission::from_toml(&TEXT.replace("\"test\"", "\"test-7\"")).unwrap()).unwrap();
    assert_eq!(set.iter().next().unwrap().name(), "test-7");
}

const DOCUMENT: &str = include_str!("../../../../../docs/how-to/missions.md");

/// The document's example, which is a whole mission file.
fn example() -> &'static str {
    let (_, rest) = DOCUMENT.split_once("```toml\n").unwrap();
    rest.split_once("```").unwrap().0
}

/// The example of its own that a code has which stands alone.
fn example_with(heading: &str) -> &'static str {
    let mut blocks =
        DOCUMENT.split("```toml\n").skip(1).map(|rest| rest.split_once("```").unwrap().0);
    blocks.find(|text| text.contains(&format!("{heading}\n"))).unwrap()
}

#[test]
fn the_documented_example_is_a_mission() {
    let mission = Mission::from_toml(example_with("[coding.ldpc]")).unwrap();
    assert_eq!((mission.block_len(), mission.cadu_len()), (1024, 1032));
    let mission = Mission::from_toml(example()).unwrap();
    assert_eq!((mission.name(), mission.cadu_len()), ("examplesat-1", 1279));
    let apid = |value| Apid::new(value).unwrap();
    assert_eq!(mission.counters().of(apid(115)), apid(110));
    assert_eq!(mission.time_rule(apid(20)), Some((TimeCode::EosCuc, 7)));
    assert_eq!(mission.product(Vcid::new(7).unwrap(), apid(9)).unwrap().name, "imager");
}

#[test]
fn the_keys_of_every_table_are_documented() {
    let tables = DOCUMENT.split("\n### ").skip(1);
    let mut documented = 0;
    for table in tables {
        let heading = table.lines().next().unwrap();
        let mut keys: Vec<_> =
            table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
        let wrong = match heading {
            "Before the first table" => format!("no_such_key = 1\n{}", example()),
            _ => {
                let more = format!("{heading}\nno_such_key = 1\n");
                example_with(heading).replacen(&format!("{heading}\n"), &more, 1)
            }
        };
        let error = Mission::from_toml(&wrong).unwrap_err();
        let (_, known) =
            error.reason.split_once("expected ").unwrap_or_else(|| panic!("{heading}: {error}"));
        let tables = ["frame", "coding", "packets", "channel", "time", "product", "shared_counter"];
        let mut known: Vec<_> = known.split('`').skip(1).step_by(2).collect();
        if heading == "Before the first table" {
            known.retain(|key| !tables.contains(key));
        }
        known.sort_unstable();
        keys.sort_unstable();
        assert_eq!(keys, known, "{heading}");
        documented += 1;
    }
    assert_eq!(documented, 11);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}", cut in 0usize..TEXT.len()) {
        let _ = Mission::from_toml(&text);
        let _ = Mission::from_toml(&TEXT[..cut]);
    }
}

#[test]
fn a_range_of_applications_is_one_number_or_two() {
    let read = |text: &str| {
        text.parse::<ApidRange>().map(|range| (range.first.value(), range.last.value()))
    };
    assert_eq!(
        (read("64"), read(" 404 - 417"), read("2047")),
        (Ok((64, 64)), Ok((404, 417)), Ok((2047, 2047)))
    );
    for wrong in ["", "a", "2048", "-1", "9-3", "1-2-3"] {
        assert!(read(wrong).unwrap_err().contains("0 to 2047"), "{wrong}");
    }
}
