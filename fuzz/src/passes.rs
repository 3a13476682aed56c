//! What plans of passes read, and what is made of them.

use skyhaul_passes::{
    AntennaSite, OrbitElements, PassBook, PlannedPasses, PredictedPasses, PredictionRequest,
    SeenContact,
};
use skyhaul_units::{Duration, Utc};

/// A plan: refused with a sentence, or passes in order; a book of it tells each alarm's end.
pub fn pass_plan(input: &[u8]) {
    let plan = match PlannedPasses::parse(input) {
        Ok(plan) => plan,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(plan.passes().is_sorted_by_key(|pass| pass.start));
    let start = plan.passes().first().map_or(Utc::from_nanos(0), |pass| pass.start);
    let mut book = PassBook::new(start, Duration::from_secs(60));
    let count = plan.passes().len();
    book.adopt(plan);
    for minute in 0..90 {
        let now = start + Duration::from_secs(minute * 60);
        let contact = SeenContact {
            id: "s-1",
            station: "s",
            channel: "x",
            mission: "",
            opened: now,
            closed: None,
        };
        let seen: &[SeenContact<'_>] = if minute % 7 == 3 { &[contact] } else { &[] };
        assert!(book.look(now, seen).len() <= count);
    }
    book.adopt(PlannedPasses::default());
    assert!(book.look(start, &[]).is_empty());
    while book.poll().is_some() {}
}

/// Elements of orbits: refused with a sentence, or the first satellite has passes in order, or a
/// sentence why not.
pub fn orbit_elements(input: &[u8]) {
    let elements = match OrbitElements::parse(input) {
        Ok(elements) => elements,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let Some(number) = elements.numbers().next() else { panic!("a file without elements") };
    let mut passes = PredictedPasses::new(PredictionRequest {
        satellites: vec![("fuzz".to_owned(), number)],
        site: AntennaSite::new(78.23, 15.39, 458.0, 5.0),
        station: None,
        channel: None,
    });
    // The seeds are elements of the 25th and 26th of June 2006.
    let now = Utc::from_rfc3339("2006-06-26T12:00:00Z").expect("a time");
    passes.renew(&elements, now);
    let plan = passes.plan();
    assert!(plan.passes().is_sorted_by_key(|pass| pass.start));
    assert!(plan.passes().iter().all(|pass| pass.start < pass.end && pass.peak <= Some(90)));
    assert!(passes.faults().iter().all(|fault| fault.contains("fuzz")));
}
