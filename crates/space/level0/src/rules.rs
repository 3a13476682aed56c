//! The product settings of a centre: form, fill and editions.

use crate::naming::ProductName;
use crate::window::TimeWindow;
use skyhaul_units::Utc;
use std::collections::BTreeMap;

/// What is published of a product beside its account, which is always there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// A packet file and a construction record, named as EDOS names them.
    #[default]
    Pds,
    /// A plain packet file.
    Packets,
    /// Nothing but the account, and what was set aside.
    Account,
}

/// What becomes of packets that a missing frame cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FillPolicy {
    /// They are left out.
    #[default]
    Drop,
    /// Those of which the header and the time came are filled up to their length with
    /// [`skyhaul_ccsds::extract::FILL`], counted and listed.
    Pad,
}

/// How products of different names are made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProductRuleSet {
    /// Where nothing else is said.
    pub form: Form,
    /// Of products of these names.
    pub forms: BTreeMap<String, Form>,
    /// Where nothing else is said.
    pub fill: FillPolicy,
    /// Of products of these names.
    pub fills: BTreeMap<String, FillPolicy>,
    /// Construction records say that the data are test data.
    pub is_test: bool,
}

impl ProductRuleSet {
    /// The form of the product called `name`.
    pub fn of(&self, name: &str) -> Form {
        self.forms.get(name).copied().unwrap_or(self.form)
    }

    /// What becomes of cut packets of the product called `name`.
    pub fn fill_of(&self, name: &str) -> FillPolicy {
        self.fills.get(name).copied().unwrap_or(self.fill)
    }

    /// Whether cut packets of any product are filled up.
    pub fn pads(&self) -> bool {
        core::iter::once(&self.fill).chain(self.fills.values()).any(|fill| *fill == FillPolicy::Pad)
    }
}

/// What a product covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProductBasis {
    /// A contact, with what completes it.
    Session,
    /// A window of time.
    Time,
}

/// What is known of the version of a product that came before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Previous {
    /// Its number.
    pub version: u32,
    /// Its construction record's name.
    pub name: ProductName,
    /// Packets missing in it.
    pub missing: u64,
    /// Gaps in it.
    pub gaps: u64,
}

/// Which products of an edition are published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EditionScope {
    /// Those that have packets that the version before did not have, or better ones.
    #[default]
    Changed,
    /// All: they are made again, by rules that may differ.
    All,
}

/// Which products an assembly makes, and under which names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edition {
    /// The window of time-based products; none for those of a contact with what completes it.
    pub window: Option<TimeWindow>,
    /// Of what contacts have together ([`crate::Assembly::joint`]), packets with times in this span
    /// only; all where there is none.
    pub span: Option<TimeWindow>,
    /// Names of the products to be made; all, packets without a time too, where there is no list.
    pub only: Option<Vec<String>>,
    /// The creation time that they get.
    pub created: Utc,
    /// The newest versions that there are, by the product's name.
    pub previous: BTreeMap<String, Previous>,
    /// Which of them are published.
    pub scope: EditionScope,
}
