//! Serving products: requests to answers, accounts and their budgets. No IO.
//!
//! A [`ServeRequest`] is read from the first line and the headers of HTTP. The [`Gate`] admits it:
//! connections, tokens, budgets of each account. [`answer()`] asks a catalogue, whose face is
//! [`ServedCatalogue`], and gives a [`ServeAnswer`]: bytes, or slices of a file, which the caller
//! passes from the disk to the socket.
//!
//! ```
//! use skyhaul_serve::{ServeMethod, ServeRequest};
//! let request = ServeRequest::new(ServeMethod::Get, "/products/a%20b-v1/a.PDS?x=1").unwrap();
//! assert_eq!(request.segments(), ["products", "a b-v1", "a.PDS"]);
//! let refused = ServeRequest::new(ServeMethod::Get, "/products/%2e%2e/key").unwrap_err();
//! assert_eq!(refused.status, 400);
//! ```

mod access_key;
mod accounts;
mod accounts_edit;
mod answer;
mod contact_session;
mod file_answer;
mod gate;
mod holdings;
mod http_date;
mod meter;
mod odata;
mod products;
mod range;
mod request;
mod router;
mod s3;
mod stac;

pub use access_key::{AccessKey, KeySecret};
pub use accounts::{Accounts, AccountsError, ServeAccount, ServeRoot, TokenHash};
pub use accounts_edit::{
    KnownKey, KnownToken, NewToken, TokenTerms, keys, tokens, with_key, with_token, without_key,
    without_token,
};
pub use answer::{AnswerBody, BodyPlace, ByteSpan, FileBody, FileSlice, ServeAnswer};
pub use contact_session::{
    ContactSession, SessionFile, SessionFrames, SessionLabel, SessionProgress,
};
pub use gate::{
    AccountUsage, Gate, GateCounters, GateLimits, GateRefusal, GateTime, ServeAdmission, network,
};
pub use holdings::{Asker, HeldCollection, HeldItem, HeldPage, HoldingsError, ServedCatalogue};
pub use http_date::http_date;
pub use meter::UseMeter;
pub use odata::filter::{ODataFilter, ODataValue, TextFunction, parse as parse_odata_filter};
pub use products::gone;
pub use range::{RangeSelection, selection};
pub use request::{ServeMethod, ServeRequest};
pub use router::{answer, finished, is_of_one, root_of, root_of_head};

#[cfg(test)]
mod tests;
