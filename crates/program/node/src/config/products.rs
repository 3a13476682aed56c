//! `[products]` and `[[product]]`: which Level-0 products a centre makes, and in which form.

use super::delivery::ExpeditedEntry;
use super::name::{Name, from_text};
use super::section::section;
use skyhaul_level0::naming::Digit;
use skyhaul_level0::rdr::{Origin, OriginError};
use skyhaul_level0::{Expedite, FillPolicy, Form, Rules, WindowLength};
use skyhaul_units::Duration;
use std::path::PathBuf;
use std::str::FromStr;

section! {
    /// Where Level-0 products are written, and which are made. An account in JSON is always written.
    "[products]" Products {
        /// The folder; made where it does not exist when the centre starts.
        dir: PathBuf => required,
        /// Makes session-based products: of each contact, when it closes.
        session: bool => "true",
        /// Makes time-based products: of windows of UTC, over all contacts and stations.
        time: bool => "false",
        /// How long the windows are: a multiple of ten minutes that divides a day. Two hours, as the standard products of
        /// MODIS and AIRS have.
        window: Window => "2 h",
        /// How long after its end a window waits for contacts that have not begun. A contact of the spacecraft that is open
        /// then is waited for too, for an hour at most. What comes later makes a new version.
        wait: Duration => "30 min",
        /// Joins contacts that overlap, frame by frame: a packet of which no station had every frame comes whole in time-based
        /// products, and in a further version of each contact's own. `false`: time-based products have of each packet the better
        /// copy, as one contact had it whole, and a contact's products what it heard itself.
        select: bool => "true",
        /// `pds`: a packet file and a construction record, named as EDOS names them; `packets`: a plain packet file.
        form: ProductForm => "pds",
        /// `drop`: a packet that a missing frame cut is left out; `pad`: it is filled up with C9 (hex) to the length that its
        /// header says, where header and time came, counted and listed. A better copy takes its place when one comes.
        fill: ProductFill => "drop",
        /// Says in construction records that the data are test data.
        test: bool => "false",
        /// Writes each contact's CADUs too, restored bit for bit by encoding again, as `STATION-FLOW.cadu`.
        cadu_files: bool => "false",
        /// Makes JPSS Raw Data Records (HDF5) of Suomi NPP, NOAA-20 and NOAA-21 too, one for each sensor, from the products of
        /// each contact and of each window. Where data comes late, the granules of the new version come in new files with a
        /// later creation time. The HDF5 library is to be installed.
        rdr: bool => "false",
        /// Who makes them, as their names say it: 1 to 4 lower-case letters or digits.
        rdr_origin: RdrOrigin => "sky",
        /// The HDF5 library's file; left out: it is looked for by its usual names.
        hdf5_library: PathBuf => optional,
    }
}

section! {
    /// What is different for one product.
    "[[product]]" ProductEntry {
        /// The product's name in the mission file; `other` for packets of no product.
        name: Name => required,
        /// The mission; left out: every mission with a product of this name.
        mission: Name => optional,
        /// Makes it of each contact; left out: as `[products]` says.
        session: bool => optional,
        /// Makes it of windows of time; left out: as `[products]` says.
        time: bool => optional,
        /// How long its windows are; left out: as `[products]` says.
        window: Window => optional,
        /// Its form; left out: as `[products]` says.
        form: ProductForm => optional,
        /// What becomes of its packets that a missing frame cut; left out: as `[products]` says.
        fill: ProductFill => optional,
    }
}

/// How long windows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window(pub WindowLength);

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
    /// Where nothing else is said.
    pub products: Products,
    /// What is different for one product.
    pub entries: Vec<ProductEntry>,
    /// What is published while a contact goes on.
    pub expedited: Vec<ExpeditedEntry>,
}

impl ProductRules {
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
        let of =
            |entry: &&ExpeditedEntry| entry.mission.as_ref().is_none_or(|wanted| wanted.as_str() == mission);
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
    pub fn session<'a>(&self, mission: &str, names: impl Iterator<Item = &'a str>) -> Rules {
        let form = |name: &str| {
            let rule = self.of(mission, name);
            if rule.session { rule.form } else { Form::Account }
        };
        self.rules(mission, names, form)
    }

    /// How time-based products of `mission` are made.
    pub fn time<'a>(&self, mission: &str, names: impl Iterator<Item = &'a str>) -> Rules {
        self.rules(mission, names, |name| self.of(mission, name).form)
    }

    fn rules<'a>(
        &self,
        mission: &str,
        names: impl Iterator<Item = &'a str>,
        form: impl Fn(&str) -> Form,
    ) -> Rules {
        let names: Vec<_> = names.chain(["other", "untimed"]).collect();
        Rules {
            form: self.products.form.0,
            forms: names.iter().map(|name| ((*name).to_owned(), form(name))).collect(),
            fill: self.products.fill.0,
            fills: names.iter().map(|name| ((*name).to_owned(), self.of(mission, name).fill)).collect(),
            is_test: self.products.test,
        }
    }
}

impl FromStr for Window {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let length: Duration = text.parse().map_err(|error: skyhaul_units::ParseError| error.to_string())?;
        WindowLength::new(length).map(Self).map_err(|error| error.to_string())
    }
}

impl std::fmt::Display for Window {
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
            other => Err(format!("`{other}` is not a format of products; write \"pds\" or \"packets\"")),
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
            other => Err(format!("`{other}` is not a policy for cut packets; write \"drop\" or \"pad\"")),
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

from_text!(Window, ProductForm, ProductFill, RdrOrigin);
