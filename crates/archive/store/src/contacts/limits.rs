//! Bounds of the contact store.

use skyhaul_units::ByteCount;

/// Contacts that are open at once, of all stations together.
pub const MAX_OPEN_CONTACTS: usize = 1_024;
/// Finished contacts whose data is kept; beyond it the oldest go before their retention is over.
pub const MAX_KEPT_CONTACTS: usize = 65_536;
/// Spools of one station whose contacts are told apart.
pub const MAX_SPOOLS: usize = 256;
/// What a new contact takes beside its payload: directory, file and header.
pub(crate) const NEW_CONTACT: ByteCount = ByteCount::kib(12);
