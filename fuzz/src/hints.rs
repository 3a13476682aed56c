//! What is known of paths from outside: lines of a modem, tables for them, contact plans.

use skyhaul_hints::{
    ContactPlan, FeedCondition, FeedMap, FeedRow, FeedSource, LOSS_MAX, PathFeed, RATE_MAX,
};
use skyhaul_units::{Duration, Instant, Rate};

/// A feed whose bytes come in two ways of cutting: it says the same, and nothing out of range. The
/// first line is a condition of its table.
pub fn feed_lines(input: &[u8]) {
    let first = input.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let text = String::from_utf8_lossy(first);
    let when = text.parse::<FeedCondition>();
    if let Ok(when) = &when {
        assert_eq!(when.to_string().parse::<FeedCondition>().as_ref(), Ok(when));
    }
    if let Ok(source) = text.parse::<FeedSource>() {
        assert_eq!(source.to_string().parse::<FeedSource>(), Ok(source));
    }
    let row = |when| FeedRow { when, rate: Some(Rate::from_mbps(7)), loss: None };
    let map = FeedMap::new(when.into_iter().map(row).collect());
    let stale = Duration::from_secs(5);
    let [mut whole, mut pieces] = [0, 1].map(|_| PathFeed::new(map.clone(), stale));
    let now = Instant::ZERO + stale;
    whole.take(now, input);
    input.chunks(7).for_each(|piece| pieces.take(now, piece));
    assert_eq!(whole.counters(), pieces.counters());
    assert_eq!((whole.hint(now), whole.newest()), (pieces.hint(now), pieces.newest()));
    if let Some(hint) = whole.hint(now) {
        assert!(hint.values.rate.is_none_or(|rate| rate <= RATE_MAX));
        assert!(hint.values.loss.is_none_or(|loss| loss <= LOSS_MAX));
        assert!(hint.since <= now && now < hint.until);
    }
}

/// A contact plan: refused with its place, or its windows are in order and apart.
pub fn contact_plan(input: &[u8]) {
    match ContactPlan::parse(input) {
        Ok(plan) => {
            let windows = plan.windows();
            assert!(!windows.is_empty());
            assert!(windows.iter().all(|window| window.start < window.end));
            assert!(windows.windows(2).all(|pair| pair[0].end <= pair[1].start));
            for window in windows.iter().take(64) {
                assert_eq!(plan.ahead(window.start).first(), Some(window));
                assert_ne!(plan.ahead(window.end).first(), Some(window));
            }
        }
        Err(error) => assert!(!error.place.is_empty() && !error.what.is_empty()),
    }
}
