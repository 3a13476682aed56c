//! What programs say to the block service of a node.

use skyhaul_blocks::{AllowRule, BlockFate, NodeMessage, ProgramLimits, ProgramMessage, Programs};
use skyhaul_transport::cost;
use skyhaul_units::{ByteCount, Duration, Instant};
use std::collections::BTreeSet;

/// Any messages, each with a length of one byte before it: one that is read is written and read
/// the same. Blocks among them are queued: memory stays within its bound, and each has one fate.
pub fn blocks(input: &[u8]) {
    let limits = ProgramLimits { total: ByteCount::kib(8), ..ProgramLimits::default() };
    let mut programs = Programs::new(limits);
    programs.allow(vec![AllowRule::all(1)]);
    let Ok(program) = programs.admit(1) else { return };
    let (mut open, mut rest, mut now) = (BTreeSet::new(), input, Instant::ZERO);
    while let Some((len, bytes)) = rest.split_first() {
        let (message, after) = bytes.split_at(usize::from(*len).min(bytes.len()));
        rest = after;
        now += Duration::from_millis(1);
        if let Ok(message) = NodeMessage::decode(message) {
            assert_eq!(NodeMessage::decode(&message.encode()), Ok(message));
        }
        let Ok(message) = ProgramMessage::decode(message) else { continue };
        assert_eq!(ProgramMessage::decode(&message.encode()).as_ref(), Ok(&message));
        let ProgramMessage::Block { head, body } = message else { continue };
        let bytes = body.inline().to_vec();
        if programs.room(program) >= cost(bytes.len())
            && programs.offer(now, program, head, bytes.into()).is_ok()
        {
            assert!(open.insert(head.number));
        }
        assert!(programs.held() <= 8 << 10);
        if head.priority % 2 == 0
            && let Some(block) = programs.next(now, |_| true)
        {
            programs.settle(program, block.number, BlockFate::Delivered);
        }
        for (number, _) in programs.take_fates(program, 3) {
            assert!(open.remove(&number), "block {number} has two fates");
        }
    }
}
