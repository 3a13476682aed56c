//! Level-0 products of a contact.
pub mod construction;
pub mod naming;
