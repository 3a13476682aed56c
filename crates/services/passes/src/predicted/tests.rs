use super::*;

// Elements of the verification set of Vallado et al., AIAA 2006-6753.
const CBERS: &str = "CBERS 2
1 28057U 03049A   06177.78615833  .00000060  00000-0  35940-4 0  1836
2 28057  98.4283 247.6961 0000884  88.1964 271.9322 14.35478080140550
";
const MOLNIYA: &str = "# elliptic
1 08195U 75081A   06176.33215444  .00000099  00000-0  11873-3 0   813
2 08195  64.1586 279.0717 6877146 264.7651  20.2257  2.00491383225656
";
const GEOSTATIONARY: &str = "\
1 26900U 01039A   06106.74503247  .00000045  00000-0  10000-3 0  8290
2 26900   0.0164 266.5378 0003319  86.1794 182.2590  1.00273847 16981
";

const OMM: &str = r#"[{"OBJECT_NAME": "CBERS 2", "OBJECT_ID": "2003-049A",
        "EPOCH": "2006-06-26T18:52:04.079712", "MEAN_MOTION": 14.35478080,
        "ECCENTRICITY": 0.0000884, "INCLINATION": 98.4283, "RA_OF_ASC_NODE": 247.6961,
        "ARG_OF_PERICENTER": 88.1964, "MEAN_ANOMALY": 271.9322, "EPHEMERIS_TYPE": 0,
        "CLASSIFICATION_TYPE": "U", "NORAD_CAT_ID": 28057, "ELEMENT_SET_NO": 183,
        "REV_AT_EPOCH": 14055, "BSTAR": 0.00003594, "MEAN_MOTION_DOT": 0.0000006,
        "MEAN_MOTION_DDOT": 0, "GM": "398600.8"}]"#;

// Rise, set (June 2006, UTC) and greatest elevation, computed by Skyfield 1.55 for WGS 84 without
// refraction.
const CBERS_AT_WALLOPS: &str = "\
    25T15:00:43 25T15:10:21 41\n\
    25T16:40:32 25T16:48:17 22\n\
    26T02:14:31 26T02:24:20 48\n\
    26T03:55:22 26T04:02:15 18\n\
    26T14:27:23 26T14:34:33 19\n\
    26T16:05:27 26T16:15:10 46\n\
    27T01:41:21 27T01:49:17 23\n\
    27T03:19:27 27T03:28:59 39\n\
    27T15:30:54 27T15:41:10 83\n\
    27T17:12:49 27T17:16:07 11\n\
    28T01:09:58 28T01:12:49 11\n\
    28T02:44:39 28T02:54:56 85";
const CBERS_AT_ALICE_SPRINGS: &str = "\
    25T12:33:55 25T12:44:34 23\n\
    25T14:12:46 25T14:23:42 27\n\
    25T23:41:42 25T23:49:56 13\n\
    26T01:18:27 26T01:30:32 49\n\
    26T12:01:41 26T12:07:45 9\n\
    26T13:37:55 26T13:50:11 65\n\
    27T00:44:02 27T00:56:19 68\n\
    27T02:26:43 27T02:32:21 8\n\
    27T13:03:40 27T13:15:48 51\n\
    27T14:44:24 27T14:52:24 12\n\
    28T00:10:28 28T00:21:30 28\n\
    28T01:49:44 28T02:00:15 22";
const MOLNIYA_AT_SVALBARD: &str = "\
    25T20:18:29 26T06:20:48 66\n\
    26T08:38:26 26T18:05:50 50\n\
    26T20:14:56 27T06:17:17 67\n\
    27T08:34:59 27T18:02:14 50\n\
    27T20:11:21 28T06:13:46 67";
const MOLNIYA_AT_ALICE_SPRINGS: &str = "\
    26T06:36:44 26T07:11:26 18\n\
    27T06:33:34 27T07:07:53 18\n\
    28T06:30:25 28T07:04:20 18";

fn wallops() -> AntennaSite {
    AntennaSite::new(37.9249, -75.4765, 10.0, 10.0)
}

fn alice_springs() -> AntennaSite {
    AntennaSite::new(-23.759, 133.8824, 544.0, 5.0)
}

fn svalbard() -> AntennaSite {
    AntennaSite::new(78.2306, 15.3894, 458.0, 5.0)
}

fn at(text: &str) -> Utc {
    Utc::from_rfc3339(text).unwrap()
}

fn passes(satellites: &[(&str, u64)], site: AntennaSite) -> PredictedPasses {
    let satellites = satellites.iter().map(|(name, number)| ((*name).to_owned(), *number));
    PredictedPasses::new(PredictionRequest {
        satellites: satellites.collect(),
        site,
        station: Some("here".to_owned()),
        channel: None,
    })
}

fn elements(text: &str) -> OrbitElements {
    OrbitElements::parse(text.as_bytes()).unwrap()
}

#[test]
fn passes_are_those_of_an_independent_program() {
    let now = at("2006-06-26T12:00:00Z");
    for (set, number, site, expected) in [
        (CBERS, 28057, wallops(), CBERS_AT_WALLOPS),
        (CBERS, 28057, alice_springs(), CBERS_AT_ALICE_SPRINGS),
        (MOLNIYA, 8195, svalbard(), MOLNIYA_AT_SVALBARD),
        (MOLNIYA, 8195, alice_springs(), MOLNIYA_AT_ALICE_SPRINGS),
    ] {
        let mut passes = passes(&[("a", number)], site);
        passes.renew(&elements(set), now);
        assert_eq!(passes.faults(), [] as [&str; 0]);
        let plan = passes.plan();
        // The other program lists those alone that lie within the window.
        let (from, to) = (now - BEHIND, now + AHEAD);
        let is_within = |pass: &&PlannedPass| pass.start >= from && pass.end <= to;
        let computed: Vec<_> = plan.passes().iter().filter(is_within).collect();
        assert_eq!(computed.len(), expected.lines().count(), "{computed:#?}");
        for (pass, line) in computed.into_iter().zip(expected.lines()) {
            let mut words = line.split_whitespace();
            let mut time = || at(&format!("2006-06-{}Z", words.next().unwrap()));
            for (ours, theirs) in [(pass.start, time()), (pass.end, time())] {
                assert!(age(ours, theirs) <= Duration::from_secs(1), "{pass:?}, not {line}");
            }
            let peak: u8 = words.next().unwrap().parse().unwrap();
            assert!(pass.peak.unwrap().abs_diff(peak) <= 1, "{pass:?}, not {line}");
            assert_eq!(pass.label(), "a at here");
        }
    }
}

#[test]
fn the_same_elements_make_the_same_passes_whenever_they_are_computed() {
    let (set, now) = (elements(CBERS), at("2006-06-26T12:00:00Z"));
    let mut once = passes(&[("a", 28057)], svalbard());
    once.renew(&set, now);
    for minutes in [1, 59, 367, 1_440] {
        let later = now + Duration::from_secs(minutes * 60);
        let mut anew = passes(&[("a", 28057)], svalbard());
        anew.renew(&set, later);
        let both = |pass: &&PlannedPass| pass.end > later - BEHIND && pass.start < now + AHEAD;
        let (once, anew) = (once.plan(), anew.plan());
        let anew: Vec<_> = anew.passes().iter().filter(both).collect();
        assert_eq!(anew, once.passes().iter().filter(both).collect::<Vec<_>>());
    }
}

#[test]
fn a_pass_that_has_begun_stays_where_new_elements_move_it() {
    let now = at("2006-06-26T12:36:00Z");
    let mut passes = passes(&[("a", 28057)], svalbard());
    assert!(passes.is_due(now));
    passes.renew(&elements(CBERS), now);
    let before = passes.plan();
    assert!(!passes.is_due(now + Duration::from_secs(3_600)));
    assert!(passes.is_due(now + RENEWED_AFTER) && passes.is_due(now - BEHIND));
    // Half a degree along the orbit: 8 s later.
    let moved = CBERS.replace("271.9322", "271.4322").replace("140550", "140555");
    let moved = elements(&moved);
    passes.renew(&moved, now);
    let after = passes.plan();
    assert_eq!(before.passes().len(), after.passes().len());
    let mut kept = 0;
    for (before, after) in before.passes().iter().zip(after.passes()) {
        let is_begun = before.start <= now;
        assert_eq!(before == after, is_begun, "{before:?} {after:?}");
        kept += usize::from(is_begun);
        let by = age(before.start, after.start);
        assert!(is_begun || (6_000..=12_000).contains(&by.as_millis()), "{before:?} {after:?}");
    }
    assert_eq!(kept, 15);
}

#[test]
fn what_cannot_be_computed_is_told_and_the_others_are_computed() {
    let now = at("2006-06-26T12:00:00Z");
    let set = elements(&format!("{CBERS}{GEOSTATIONARY}"));
    let wanted = [("cbers-2", 28057), ("geo", 26900), ("gone", 7)];
    let mut passes = passes(&wanted, alice_springs());
    passes.renew(&set, at("2006-05-26T12:00:00Z"));
    let told = [
        "satellite 28057 (cbers-2): its elements are of 2006-06-26, 31 days from now, and its \
         passes may be wrong; get new ones",
        "satellite 26900 (geo): ",
        "satellite 26900 (geo): its elements are of 2006-04-16, 39 days",
        "satellite 7 (gone): the file has no elements of it",
    ];
    for (fault, told) in passes.faults().iter().zip(told) {
        assert!(fault.starts_with(told), "{fault}");
    }
    assert_eq!(passes.faults().len(), told.len(), "{:?}", passes.faults());
    assert!(passes.faults()[1].contains("does not rise and set"), "{:?}", passes.faults());
    assert!(!passes.plan().passes().is_empty());

    passes.renew(&set, now);
    assert!(passes.faults()[0].contains("more than 60 days from now"), "{:?}", passes.faults());
    passes.renew(&set, at("2107-06-26T12:00:00Z"));
    assert_eq!((passes.faults().len(), passes.plan().passes().len()), (3, 0));
}

#[test]
fn both_forms_of_elements_are_read_and_the_newest_are_used() {
    let now = at("2006-06-26T12:00:00Z");
    let computed = |text: &str| {
        let mut passes = passes(&[("a", 28057)], wallops());
        passes.renew(&elements(text), now);
        passes.plan()
    };
    let list = computed(OMM);
    assert_eq!(list, computed(CBERS));
    assert_eq!(list, computed(OMM.trim_start_matches('[').trim_end_matches(']')));
    let older = CBERS.replace("06177.78", "06157.78").replace("1836", "1834");
    assert_eq!(computed(&format!("{CBERS}\n{older}")), computed(&format!("{older}{CBERS}")));
    assert_eq!(computed(&format!("{CBERS}\n{older}")), list);
}

#[test]
fn a_file_that_cannot_be_read_is_refused_with_its_place() {
    let line = |nth: usize| CBERS.lines().nth(nth).unwrap();
    for (text, told) in [
        (String::new(), "the file: it has no elements; write two-line element sets"),
        ("noon\nmidnight\n".to_owned(), "line 2: no element set begins here"),
        (format!("{}\n", line(1)), "line 1: the second line of the element set is missing"),
        (format!("x\n{}\n{}\n", line(1), line(1)), "line 2: TLE parse error"),
        (CBERS.replace("1836", "1835"), "line 2: TLE parse error: Bad line checksum"),
        (
            CBERS.replace(" 98.4283", "198.4283").replace("140550", "140551"),
            "line 2: the inclination is 198.4283, not from 0 to 180",
        ),
        (CBERS.replace("98.4283", "98.4\u{b0}3"), "line 2: the element set has characters"),
        // Found by mutated inputs: the library panics.
        (CBERS.replace("1836", "183-"), "line 2: a line of the element set does not end with its"),
        ("[{\"OBJECT_NAME\": 7}]".to_owned(), "line 1: "),
        ("{".to_owned(), "line 1: EOF while parsing"),
        ("[]".to_owned(), "the file: it has no elements"),
    ] {
        let error = OrbitElements::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(told), "{text}: {error}");
    }
    for year in ["-262000", "0001", "2101", "+262000"] {
        let error = OrbitElements::parse(OMM.replace("2006-06", &format!("{year}-06")).as_bytes());
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("satellite 1 of the list: its epoch is in the year"), "{error}");
    }
    assert!(OrbitElements::parse(&[0xff]).unwrap_err().what.contains("not UTF-8"));
    let long = vec![b'\n'; crate::ORBIT_FILE_BYTES_MAX + 1];
    assert!(OrbitElements::parse(&long).unwrap_err().what.contains("larger than 8 MiB"));
}
