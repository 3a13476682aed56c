//! Bounds of the contact store.

use skyhaul_units::ByteCount;

/// Most contacts open at once, of all stations together.
pub const MAX_OPEN_CONTACTS: usize = 1_024;
/// Most finished contacts whose data is kept; beyond it the oldest are removed.
pub const MAX_KEPT_CONTACTS: usize = 65_536;
/// Most spools of one station whose contacts are kept separate.
pub const MAX_SPOOLS: usize = 256;
/// Space for a new contact in addition to its payload: directory, file and header.
pub(crate) const NEW_CONTACT: ByteCount = ByteCount::kib(12);
