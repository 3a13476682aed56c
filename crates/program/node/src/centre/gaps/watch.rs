//! Reports the durable frames of one contact to the ledger of missing frames.

use crate::centre::shared::CentreShared;
use skyhaul_ccsds::continuity::Sign;
use skyhaul_ccsds::frame::Frame;
use skyhaul_ccsds::mission::{Content, Mission};
use skyhaul_ccsds::quality::CapturedFrame;
use skyhaul_level0::construction::ProductKind;
use skyhaul_level0::ledger::{
    AbsentBlock, ContactId, ContactStart, DurableFrame, PacketGap, Place,
};
use skyhaul_level0::report::Product;
use skyhaul_records::Open;
use skyhaul_store::{LedgerError, Seq, StationName};
use skyhaul_units::FlowId;

/// Watches the frames of one contact for the ledger.
#[derive(Debug)]
pub struct ContactWatch {
    id: ContactId,
    mission: Option<Mission>,
    seen: Vec<DurableFrame>,
}

impl ContactWatch {
    /// Of a contact of which nothing is read yet.
    pub fn new(station: &StationName, flow: FlowId) -> Self {
        let id = ContactId { station: station.as_str().to_owned(), flow };
        Self { id, mission: None, seen: Vec::new() }
    }

    /// The contact begins.
    pub fn open(&mut self, open: &Open, mission: &Mission, shared: &CentreShared) {
        let opened = ContactStart {
            channel: open.channel.clone(),
            mission: mission.name().to_owned(),
            at: open.opened,
            completes: open.completes,
        };
        shared.gaps().ledger().open(&self.id, opened);
        self.mission = Some(mission.clone());
    }

    /// A frame of the block being read.
    pub fn frame(&mut self, frame: &CapturedFrame) {
        let Some(mission) = self.mission.as_ref().filter(|_| frame.is_good()) else { return };
        let Ok(parsed) = Frame::parse(&frame.bytes, mission.frame()) else { return };
        let is_idle = mission.content(parsed.channel.vcid) == Content::Idle;
        if is_idle || !mission.covers(parsed.channel.scid) {
            return;
        }
        let place = Place { received: frame.received, position: frame.position };
        let Sign { count, packet, .. } = Sign::of(&parsed, frame, mission);
        let seen = DurableFrame {
            channel: parsed.channel,
            count: count.value,
            modulus: count.modulus,
            place,
            packet,
        };
        self.seen.push(seen);
    }

    /// The block is read.
    pub fn block(&mut self, block: Seq, shared: &CentreShared) {
        let seen = core::mem::take(&mut self.seen);
        shared.gaps().ledger().block(&self.id, block, &seen);
    }

    /// The contact.
    pub const fn id(&self) -> &ContactId {
        &self.id
    }

    /// A block is not here.
    pub fn absent(&self, why: AbsentBlock, shared: &CentreShared) {
        shared.gaps().ledger().absent(&self.id, why);
    }

    /// The contact has ended and gave these products; its gaps are durable when this returns.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn close(&self, products: &[Product], shared: &CentreShared) -> Result<(), LedgerError> {
        let whole =
            products.iter().filter(|product| product.sidecar.product.kind == ProductKind::Pds);
        let apids = whole.flat_map(|product| &product.sidecar.apids);
        let packets = apids.flat_map(|apid| {
            apid.gap_list.iter().map(|gap| PacketGap {
                vcids: apid.vcids.clone(),
                apid: apid.apid,
                first: gap.first_missing,
                missed: gap.missed,
                from: gap.preceding.received.min(gap.following.received),
                to: gap.preceding.received.max(gap.following.received),
            })
        });
        let packets = packets.collect();
        shared.gaps().ledger().close(&self.id, packets);
        let changes = shared.gaps().all_changes();
        shared.keep_gaps(changes)
    }
}
