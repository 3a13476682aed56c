//! What two processes of an upgrade read from each other.

use skyhaul_node::upgrade::{BacklogHead, CallOrigin, FromNew, FromOld, MAX_ENTRY, OldSide};

/// Messages and entries: refused with a sentence, or the same when they are written and read again.
/// A process that says something at the wrong time is refused.
pub fn upgrade_talk(input: &[u8]) {
    let mut side = OldSide::default();
    for line in input.split(|byte| *byte == b'\n') {
        match FromNew::parse(line) {
            Ok(message) => {
                let again = serde_json::to_vec(&message).expect("it was read");
                assert_eq!(FromNew::parse(&again).as_ref(), Ok(&message));
                match side.hear(message) {
                    Ok(()) if side == OldSide::Ready => side.gave_inputs(),
                    Ok(()) if side == OldSide::Running => side.gave_sources(),
                    Ok(()) => assert_eq!(side, OldSide::Over),
                    Err(why) => drop(why),
                }
            }
            Err(why) => assert!(!why.is_empty()),
        }
        match FromOld::parse(line) {
            Ok(message) => {
                let again = serde_json::to_vec(&message).expect("it was read");
                assert_eq!(FromOld::parse(&again), Ok(message));
            }
            Err(why) => assert!(!why.is_empty()),
        }
        match CallOrigin::parse(line) {
            Ok(origin) => {
                let again = serde_json::to_vec(&origin).expect("it was read");
                assert_eq!(CallOrigin::parse(&again), Ok(origin));
            }
            Err(why) => assert!(!why.is_empty()),
        }
    }
    for head in input.as_chunks::<13>().0 {
        match BacklogHead::parse(head) {
            Ok(entry) => {
                assert!(entry.length <= MAX_ENTRY);
                assert_eq!(entry.encode(), *head);
            }
            Err(why) => assert!(!why.is_empty()),
        }
    }
}
