//! `[products]` and `[[product]]`: which Level-0 products a centre makes, and in which form.

use crate::expedited::ExpeditedEntry;
use crate::name::{Name, from_text};
use crate::section::section;
use skyhaul_level0::naming::Digit;
use skyhaul_level0::rdr::{Origin, OriginError};
use skyhaul_level0::{Expedite, FillPolicy, Form, ProductRuleSet, WindowLength};
use skyhaul_units::Duration;
use std::path::PathBuf;
use std::str::FromStr;

section! {
    /// The Level-0 products that the centre makes, and their folder. It always writes an account in
    /// JSON.
    "[products]" Products {
        /// The folder. The centre creates it at its start if it does not exist.
        dir: PathBuf => required,
        /// Makes session-based products: one of each contact, when the contact closes.
        session: bool => "true",
        /// Makes time-based products: one of each window of UTC, over all contacts and stations.
        time: bool => "false",
        /// The length of the windows: a multiple of ten minutes that divides a day. Two hours, as
        /// for the standard products of MODIS and AIRS.
        window: ProductWindow => "2 h",
        /// How long a window waits after its end for contacts that have not begun. It also waits
        /// for an open contact of the spacecraft, for an hour at most. Later data makes a new
        /// version.
        wait: Duration => "30 min",
        /// Joins overlapping contacts frame by frame. A packet of which no station had every frame
        /// is then complete in time-based products and in a further version of each contact's own
        /// products. `false`: time-based products take the better complete copy of each packet from
        /// one contact, and a contact's products hold only what it received itself.
        select: bool => "true",
        /// `pds`: a packet file and a construction record with the names of EDOS; `packets`: a
        /// plain packet file.
        form: ProductForm => "pds",
        /// Packets cut by a missing frame. `drop`: they are left out. `pad`: if header and time
        /// arrived, they are filled with C9 (hex) to the length in their header, counted and
        /// listed. A better copy replaces them when one arrives.
        fill: ProductFill => "drop",
        /// Marks the data as test data in construction records.
        test: bool => "false",
        /// Also writes each contact's CADUs, restored bit for bit by encoding again, as
        /// `STATION-FLOW.cadu`.
        cadu_files: bool => "false",
        /// Also makes JPSS Raw Data Records (HDF5) of Suomi NPP, NOAA-20 and NOAA-21, one for each
        /// sensor, from the products of each contact and of each window. If data arrives late, the
        /// granules of the new version go to new files with a later creation time. Install the HDF5
        /// library for this.
        rdr: bool => "false",
        /// Their origin in file names: 1 to 4 lower-case letters or digits.
        rdr_origin: RdrOrigin => "sky",
        /// The file of the HDF5 library. Default: the program tries its usual names.
        hdf5_library: PathBuf => optional,
    }
}

section! {
    /// Settings that differ for one product.
    "[[product]]" ProductEntry {
        /// The product's name in the mission file; `other` for packets of no product.
        name: Name => required,
        /// The mission. Default: every mission with a product of this name.
        mission: Name => optional,
        /// Makes it of each contact. Default: as in `[products]`.
        session: bool => optional,
        /// Makes it of windows of time. Default: as in `[products]`.
        time: bool => optional,
        /// The length of its windows. Default: as in `[products]`.
        window: ProductWindow => optional,
        /// Its form. Default: as in `[products]`.
        form: ProductForm => optional,
        /// The treatment of its packets that a missing frame cut. Default: as in `[products]`.
        fill: ProductFill => optional,
    }
}

/// How long windows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProductWindow(pub WindowLength);

/// The form of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProductForm(pub Form);

/// What becomes of packets that a missing frame cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProductFill(pub FillPolicy);

/// A word of the names of Raw Data Record files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RdrOrigin(pub Origin);

impl FromStr for RdrOrigin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, OriginError> {
        text.parse().map(Self)
    }
}

/// What is made of one product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProductRule {
    /// Of each contact.
    pub session: bool,
    /// Of windows of this length.
    pub window: Option<WindowLength>,
    /// In this form.
    pub form: Form,
    /// Its packets that a missing frame cut.
    pub fill: FillPolicy,
}

/// Which products are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProductRules {
    /// Whether any are: without `[products]` contacts are only kept.
    pub enabled: bool,
    /// The default.
    pub products: Products,
    /// What is different for one product.
    pub entries: Vec<ProductEntry>,
    /// What is published while a contact goes on.
    pub expedited: Vec<ExpeditedEntry>,
}

impl ProductRules {
    /// No products.
    pub(super) fn none() -> Self {
        let products = "dir = \"\"\nsession = false\nselect = false";
        let products = toml::from_str(products).expect("all other keys have defaults");
        Self { enabled: false, products, entries: Vec::new(), expedited: Vec::new() }
    }

    /// The rules of a text with the tables `[products]` and `[[product]]`, for the same folder.
    /// What the text leaves out has its default.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn again(&self, text: &str) -> Result<Self, String> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Written {
            products: Option<toml::Table>,
            #[serde(default)]
            product: Vec<ProductEntry>,
        }
        let said = |error: toml::de::Error| error.message().to_owned();
        let written: Written = toml::from_str(text).map_err(said)?;
        let mut table = written.products.unwrap_or_default();
        let dir = self.products.dir.to_string_lossy().into_owned();
        if table.insert("dir".to_owned(), toml::Value::String(dir)).is_some() {
            return Err("rules name no folder; remove `dir`".to_owned());
        }
        let products: Products = toml::Value::Table(table).try_into().map_err(said)?;
        let entries = written.product;
        Ok(Self { enabled: self.enabled, products, entries, expedited: self.expedited.clone() })
    }

    /// What is made of the product `name` of `mission`.
    pub fn of(&self, mission: &str, name: &str) -> ProductRule {
        let named = || self.entries.iter().filter(|entry| entry.name.as_str() == name);
        let entry = named()
            .find(|entry| entry.mission.as_ref().is_some_and(|wanted| wanted.as_str() == mission))
            .or_else(|| named().find(|entry| entry.mission.is_none()));
        let products = &self.products;
        let window = entry.and_then(|entry| entry.window).unwrap_or(products.window).0;
        let time = entry.and_then(|entry| entry.time).unwrap_or(products.time);
        ProductRule {
            session: entry.and_then(|entry| entry.session).unwrap_or(products.session),
            window: time.then_some(window),
            form: entry.and_then(|entry| entry.form).unwrap_or(products.form).0,
            fill: entry.and_then(|entry| entry.fill).unwrap_or(products.fill).0,
        }
    }

    /// What is published of a contact of `mission` while it goes on; `flow` is its number.
    pub fn expedited(&self, mission: &str, flow: u32) -> Vec<Expedite> {
        let of = |entry: &&ExpeditedEntry| {
            entry.mission.as_ref().is_none_or(|wanted| wanted.as_str() == mission)
        };
        let expedite = |(place, entry): (u32, &ExpeditedEntry)| Expedite {
            product: entry.product.as_ref().map(ToString::to_string),
            apids: entry.apids.clone().map_or_else(Vec::new, |apids| apids.0),
            slice: entry.slice,
            quick_look: entry.quick_look,
            uniqueness: Digit::new((flow.wrapping_add(place) % 10) as u8).unwrap_or_default(),
        };
        (0..).zip(self.expedited.iter().filter(of)).map(expedite).collect()
    }

    /// How session-based products of `mission` are made; `names` are all of them.
    pub fn session<'a>(
        &self,
        mission: &str,
        names: impl Iterator<Item = &'a str>,
    ) -> ProductRuleSet {
        let form = |name: &str| {
            let rule = self.of(mission, name);
            if rule.session { rule.form } else { Form::Account }
        };
        self.rules(mission, names, form)
    }

    /// How time-based products of `mission` are made.
    pub fn time<'a>(&self, mission: &str, names: impl Iterator<Item = &'a str>) -> ProductRuleSet {
        self.rules(mission, names, |name| self.of(mission, name).form)
    }

    fn rules<'a>(
        &self,
        mission: &str,
        names: impl Iterator<Item = &'a str>,
        form: impl Fn(&str) -> Form,
    ) -> ProductRuleSet {
        let names: Vec<_> = names.chain(["other", "untimed"]).collect();
        ProductRuleSet {
            form: self.products.form.0,
            forms: names.iter().map(|name| ((*name).to_owned(), form(name))).collect(),
            fill: self.products.fill.0,
            fills: names
                .iter()
                .map(|name| ((*name).to_owned(), self.of(mission, name).fill))
                .collect(),
            is_test: self.products.test,
        }
    }
}

impl FromStr for ProductWindow {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let length: Duration =
            text.parse().map_err(|error: skyhaul_units::ParseError| error.to_string())?;
        WindowLength::new(length).map(Self).map_err(|error| error.to_string())
    }
}

impl std::fmt::Display for ProductWindow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.as_duration().fmt(f)
    }
}

impl FromStr for ProductForm {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "pds" => Ok(Self(Form::Pds)),
            "packets" => Ok(Self(Form::Packets)),
            other => {
                Err(format!("`{other}` is not a format of products; write \"pds\" or \"packets\""))
            }
        }
    }
}

impl std::fmt::Display for ProductForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Form::Pds => "pds",
            Form::Packets => "packets",
            Form::Account => "account",
        })
    }
}

impl FromStr for ProductFill {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "drop" => Ok(Self(FillPolicy::Drop)),
            "pad" => Ok(Self(FillPolicy::Pad)),
            other => {
                Err(format!("`{other}` is not a policy for cut packets; write \"drop\" or \"pad\""))
            }
        }
    }
}

impl std::fmt::Display for ProductFill {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            FillPolicy::Drop => "drop",
            FillPolicy::Pad => "pad",
        })
    }
}

from_text!(ProductWindow, ProductForm, ProductFill, RdrOrigin);
