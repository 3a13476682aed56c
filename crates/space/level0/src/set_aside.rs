//! Packets that no product can take: kept with their bytes, the reason, and a count.

use crate::digests::{Digesting, FileDigests};
use crate::files::{Error, Files};
use skyhaul_ccsds::id::{Apid, Vcid};
use skyhaul_units::{ByteCount, Utc};
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};

/// Why a packet was set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SetAsideReason {
    /// The time code in the packet cannot be a time.
    ImpossibleTime,
    /// The packet's time is too far from that of the contact: the clock jumped, or the bytes are
    /// wrong.
    ClockJump,
    /// The packet has no time and follows no packet of its application that has one.
    NoTime,
    /// The packet continues a group whose first packet was set aside.
    GroupSetAside,
    /// Another packet with the same time, application and count, and other bytes, is in the
    /// product.
    Differs,
    /// The packet comes from a spacecraft that is neither the contact's nor the mission's.
    OtherSpacecraft,
    /// An encapsulation packet: the product's format has only space packets.
    NotASpacePacket,
}

/// A packet to be set aside.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shelved<'a> {
    pub vcid: Vcid,
    pub apid: Option<Apid>,
    pub count: Option<u16>,
    pub time: Option<Utc>,
    pub received: Utc,
    pub bytes: &'a [u8],
}

/// Where a packet that was set aside lies.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SetAsideEntry {
    /// Offset in the file of packets set aside, in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// Virtual channel.
    pub vcid: Vcid,
    /// Application; none for an encapsulation packet.
    pub apid: Option<Apid>,
    /// Sequence count; none for an encapsulation packet.
    pub count: Option<u16>,
    /// The time that the packet claims, if it can be one.
    pub time: Option<Utc>,
    /// Ground reception.
    pub received: Utc,
    /// Why.
    pub reason: SetAsideReason,
}

/// The packets set aside from one product.
pub(crate) struct SetAsideFile<W: Write> {
    working: String,
    most: ByteCount,
    pub(crate) file: Option<BufWriter<W>>,
    pub(crate) size: ByteCount,
    /// None until the first packet.
    digesting: Option<Digesting>,
    pub(crate) reasons: BTreeMap<SetAsideReason, u64>,
    pub(crate) entries: Vec<SetAsideEntry>,
    pub(crate) packets: u64,
    /// Packets for which there was no room: dropped.
    pub(crate) rejected: u64,
}

impl<W: Write> SetAsideFile<W> {
    pub fn new(working: String, most: ByteCount) -> Self {
        Self {
            working,
            most,
            file: None,
            size: ByteCount::ZERO,
            digesting: None,
            reasons: BTreeMap::new(),
            entries: Vec::new(),
            packets: 0,
            rejected: 0,
        }
    }

    pub fn working(&self) -> &str {
        &self.working
    }

    /// The digests of the file.
    pub fn digests(&mut self) -> FileDigests {
        self.digesting.take().map(Digesting::finish).unwrap_or_default()
    }

    /// Counts a packet whose bytes are kept elsewhere.
    pub fn count(&mut self, reason: SetAsideReason) {
        self.packets += 1;
        *self.reasons.entry(reason).or_default() += 1;
    }

    /// Keeps a packet, or counts it as rejected where the file has reached its limit.
    pub fn put<F: Files<Writer = W>>(
        &mut self,
        files: &mut F,
        packet: Shelved<'_>,
        reason: SetAsideReason,
    ) -> Result<(), Error> {
        let length = ByteCount::of(packet.bytes.len());
        if self.size + length > self.most {
            self.rejected += 1;
            return Ok(());
        }
        let kinds = files.digests();
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let made =
                    files.create(&self.working).map_err(Error::on("create", &self.working))?;
                self.file.insert(BufWriter::new(made))
            }
        };
        file.write_all(packet.bytes).map_err(Error::on("write", &self.working))?;
        self.digesting.get_or_insert_with(|| Digesting::new(kinds)).update(packet.bytes);
        if self.entries.len() < LISTED {
            self.entries.push(SetAsideEntry {
                offset: self.size.as_u64(),
                length: length.as_u64(),
                vcid: packet.vcid,
                apid: packet.apid,
                count: packet.count,
                time: packet.time,
                received: packet.received,
                reason,
            });
        }
        self.size += length;
        self.packets += 1;
        *self.reasons.entry(reason).or_default() += 1;
        Ok(())
    }
}

/// Packets set aside that a product lists one by one; the bytes of further ones are kept and
/// counted by reason.
const LISTED: usize = 1_000;
