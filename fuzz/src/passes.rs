//! What plans of passes read, and what is made of them.

use skyhaul_passes::{PassBook, PlannedPasses, SeenContact};
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
