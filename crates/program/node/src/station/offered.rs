//! Contacts of the spool for pollers: reads what is durable of each, in custody or not.

use super::shared::StationShared;
use crate::alarms::Alarms;
use crate::custody::StoredContact;
use crate::sessions::{ContactBlocks, ContactSource};
use crate::shutdown::Shutdown;
use skyhaul_store::{LogRecord, RecallReader, StationName, flows_written_since};
use skyhaul_units::Utc;
use std::collections::BTreeSet;

impl ContactSource for StationShared {
    type Reading = Option<RecallReader>;

    fn contacts(&self, from: Utc) -> BTreeSet<StoredContact> {
        let Ok(space) = StationName::new(&self.board.name()) else { return BTreeSet::new() };
        let of = |flow| StoredContact { space: space.clone(), flow };
        let spool = self.spool();
        let open = spool.queue().open_flows().into_iter().map(|open| open.flow);
        open.chain(flows_written_since(spool.queue(), from)).map(of).collect()
    }

    fn next(
        &self,
        contact: &StoredContact,
        reading: &mut Option<RecallReader>,
    ) -> Result<ContactBlocks, String> {
        let mut spool = self.spool();
        // Asked before the reading: a flow that is closed has no further block.
        let open = spool.queue().open_flows();
        let is_open = open.iter().any(|open| open.flow == contact.flow);
        let begin = || spool.queue().recall_reader(contact.flow, Utc::from_micros(0));
        let mut reader = reading.take().unwrap_or_else(begin);
        let record = spool.queue_mut().recall(&mut reader);
        let record = record.map_err(|error| error.to_string())?;
        *reading = Some(reader);
        Ok(match record {
            Some(record) => ContactBlocks::Block(record),
            None if is_open => ContactBlocks::Idle,
            None => ContactBlocks::Gone,
        })
    }

    fn content<'r>(&self, record: &'r LogRecord) -> Option<&'r [u8]> {
        Some(&record.payload)
    }

    fn station_of(&self, contact: &StoredContact) -> String {
        contact.space.as_str().to_owned()
    }

    fn alarms(&self) -> &Alarms {
        &self.alarms
    }

    fn shutdown(&self) -> &Shutdown {
        &self.shutdown
    }
}
