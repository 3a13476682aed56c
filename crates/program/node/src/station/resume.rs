//! Finds the position at which a channel resumes after a restart, from its memo and the durable
//! blocks of the spool.

use super::memo::{ChannelPosition, Memo};
use skyhaul_ccsds::capture::CaptureOptions;
use skyhaul_ccsds::identify::InputLayout;
use skyhaul_ccsds::mission::Mission;
use skyhaul_ccsds::quality::BitPosition;
use skyhaul_records::payload::BlockHead;
use skyhaul_records::{Open, ends_contact};
use skyhaul_store::{Spool, SpoolError};
use skyhaul_units::FlowId;

/// The position at which a channel resumes.
#[derive(Debug)]
pub enum ResumePoint {
    /// Between contacts, at these bytes of the inputs.
    At(Vec<u64>),
    /// In this contact.
    In(Box<Resumed>),
}

/// A contact that was open when the station ended.
#[derive(Debug)]
pub struct Resumed {
    /// Its flow.
    pub flow: FlowId,
    /// Its opening record.
    pub open: Open,
    /// Its mission.
    pub mission: Mission,
    /// The layout of the input.
    pub format: InputLayout,
    /// The head of its last durable block.
    pub head: BlockHead,
    /// The byte of each of several inputs that its capture began with.
    pub from: Vec<u64>,
}

impl ResumePoint {
    /// The position from which a single live input goes on that was read elsewhere, and of which
    /// the bytes from `kept` on were not decoded; `flow` is the contact that it was in then. A
    /// contact of which it does not know is not resumed.
    pub fn handed(&self, kept: u64, flow: Option<FlowId>) -> BitPosition {
        let kept = BitPosition::from_bits(8 * kept);
        match self {
            Self::In(resumed) if flow == Some(resumed.flow) => {
                CaptureOptions::read_from(resumed.format, resumed.head.position).max(kept)
            }
            Self::In(_) | Self::At(_) => kept,
        }
    }

    /// The position from which input number `at` of `inputs` is read on. With several, the contact
    /// is captured again from its beginning, and its durable frames are skipped: only so the same
    /// frames come in the same order.
    pub fn position(&self, at: usize, inputs: usize) -> BitPosition {
        let byte = |bytes: &[u64]| bytes.get(at).copied().unwrap_or_default();
        match self {
            Self::In(resumed) if inputs == 1 => {
                CaptureOptions::read_from(resumed.format, resumed.head.position)
            }
            Self::In(resumed) => BitPosition::from_bits(byte(&resumed.from).saturating_mul(8)),
            Self::At(bytes) => BitPosition::from_bits(byte(bytes).saturating_mul(8)),
        }
    }

    /// Finds it for a channel with so many inputs. A contact that cannot be resumed is closed in
    /// the spool.
    ///
    /// # Errors
    /// The spool cannot be read or written.
    pub fn find(spool: &mut Spool, memo: &Memo, inputs: usize) -> Result<Self, SpoolError> {
        let (at, from, format, flow, open, is_closing) = match memo.recall() {
            ChannelPosition::Between(at) => return Ok(Self::At(at)),
            ChannelPosition::Open { from, format, flow, open } => {
                (from.clone(), from, format, flow, open, false)
            }
            ChannelPosition::Closing { next, from, format, flow, open } => {
                (next, from, format, flow, open, true)
            }
        };
        // With a changed list of inputs, it cannot be captured as before.
        let is_the_same = at.len() == inputs && (inputs == 1 || from.len() == inputs);
        if !spool.queue().open_flows().iter().any(|known| known.flow == flow) {
            // It is closed and durable; only the memo was behind.
            return Ok(Self::At(at));
        }
        let last = spool.queue_mut().last_record(flow)?;
        let head = last.as_ref().and_then(|record| BlockHead::decode(&record.payload).ok());
        let mission = Mission::from_toml(&open.mission).ok();
        match (head, mission) {
            (Some((_, content)), _)
                if is_closing && content.records().is_ok_and(|records| ends_contact(&records)) =>
            {
                spool.close_flow(flow)?;
                Ok(Self::At(at))
            }
            (Some((head, _)), Some(mission)) if is_the_same => {
                Ok(Self::In(Box::new(Resumed { flow, open, mission, format, head, from })))
            }
            _ => {
                // Nothing of it is durable, or the inputs changed: another contact begins where its
                // capture began.
                spool.close_flow(flow)?;
                Ok(Self::At(at))
            }
        }
    }
}
