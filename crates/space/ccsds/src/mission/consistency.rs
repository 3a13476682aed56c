//! Contradictions between the parts of a mission, each with a sentence about what is wrong and what
//! is right.

use super::{ApidRange, ChannelRule, Content, FrameKind, ProductGroup, TimeRule};
use crate::id::Vcid;

/// What a product is checked against.
pub(super) struct Channels<'a> {
    pub rules: &'a [ChannelRule],
    /// What channels without a rule carry.
    pub content: Content,
    pub kind: FrameKind,
}

impl Channels<'_> {
    fn content(&self, vcid: Vcid) -> Content {
        let rule = self.rules.iter().find(|rule| rule.vcid == vcid);
        let content = rule.map_or(self.content, |rule| rule.content);
        // AOS and USLP reserve their last channel for idle frames; a mission cannot use it.
        if self.kind != FrameKind::Tm && vcid == Vcid::MAX { Content::Idle } else { content }
    }

    /// The reason that a product cannot have packets of a channel that it lists.
    pub fn refuse(&self, product: &ProductGroup) -> Result<(), String> {
        for vcid in &product.vcids {
            let carries = match self.content(*vcid) {
                Content::Packets => continue,
                Content::Idle => "idle frames",
                Content::Opaque => "frames in which no packets are looked for",
            };
            return Err(format!(
                "product `{}` takes packets of virtual channel {vcid}, which carries {carries}; \
                leave it out, or change the \
                 channel's `content`",
                product.name
            ));
        }
        Ok(())
    }
}

/// The reason that two products conflict: both select the same packets by the same terms, so that
/// only the order in the file would decide between them. A product with a list of channels or
/// applications may precede one that takes the rest.
pub(super) fn claims_again(earlier: &[ProductGroup], product: &ProductGroup) -> Result<(), String> {
    for other in earlier {
        let channel = both(&other.vcids, &product.vcids, |a, b| (a == b).then_some(*a));
        let application = both(&other.apids, &product.apids, common);
        let (Some(channel), Some(application)) = (channel, application) else { continue };
        let of = |found: Option<String>, all: &str| found.unwrap_or_else(|| all.to_owned());
        return Err(format!(
            "products `{}` and `{}` both claim {} on {}; a packet belongs to one product",
            other.name,
            product.name,
            of(application.map(|apid| format!("application {apid}")), "all applications"),
            of(channel.map(|vcid| format!("virtual channel {vcid}")), "all virtual channels")
        ));
    }
    Ok(())
}

/// What two lists have in common: `None` for nothing, or where only one of them takes everything;
/// `Some(None)` where both do.
fn both<T, C>(a: &[T], b: &[T], common: impl Fn(&T, &T) -> Option<C>) -> Option<Option<C>> {
    match (a.is_empty(), b.is_empty()) {
        (true, true) => Some(None),
        (false, false) => a.iter().find_map(|a| b.iter().find_map(|b| common(a, b))).map(Some),
        _ => None,
    }
}

/// The first application that is in both ranges.
fn common(a: &ApidRange, b: &ApidRange) -> Option<crate::id::Apid> {
    let first = a.first.max(b.first);
    (first <= a.last.min(b.last)).then_some(first)
}

/// The reason that a time rule is never used: rules before it list all its applications.
pub(super) fn is_shadowed(earlier: &[TimeRule], rule: &TimeRule) -> Result<(), String> {
    let known = |apid: u16| {
        let lists = |range: &ApidRange| (range.first.value()..=range.last.value()).contains(&apid);
        earlier.iter().any(|rule| rule.apids.iter().any(lists))
    };
    let mut apids = rule.apids.iter().flat_map(|range| range.first.value()..=range.last.value());
    if rule.apids.is_empty() || apids.any(|apid| !known(apid)) {
        return Ok(());
    }
    Err("rules before this one list all its applications, so that it never holds; put the narrower \
        rule first".to_owned())
}
