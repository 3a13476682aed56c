//! Builds the products of one or several contacts: assigns each packet to its product, keeps memory
//! within the limits, and at the end gives names and publishes files.

use crate::clock::Placement;
use crate::files::{Error, Files};
use crate::intake::Nature;
use crate::limits::Limits;
use crate::naming::Label;
use crate::order::{ApidOrder, Held, Novelty, PacketQuality};
use crate::product::{Finished, Plan, ProductBuilder, SortedBy};
use crate::publish::Publication;
use crate::report::Product;
use crate::rules::{FillPolicy, ProductBasis, ProductRuleSet};
use crate::set_aside::{SetAsideReason, Shelved};
use crate::window::{TimeWindow, WindowCell};
use skyhaul_ccsds::extract::ExtractedPacket;
use skyhaul_ccsds::id::Apid;
use skyhaul_ccsds::mission::{ApidRange, Mission};
use std::collections::{BTreeMap, BTreeSet};

/// Products in the making.
pub(crate) struct ProductsBuilder<F: Files> {
    mission: Mission,
    limits: Limits,
    scope: Scope,
    /// By [`Route`], the treatment of packets that a missing frame cut.
    fills: Vec<FillPolicy>,
    /// By [`Route`]: one for each of the mission's groups, and two more.
    products: Vec<Option<Making<F>>>,
    /// Memory held for the windows and for the late packets of all products, in bytes.
    window_cost: usize,
    late_cost: usize,
}

/// What is made.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    /// Packets with times in this window only.
    pub window: Option<TimeWindow>,
    /// Products of these names only, and of packets with a place in time only; all where there is
    /// no list.
    pub only: Option<BTreeSet<String>>,
    /// Packets of these applications only; without a list, all.
    pub apids: Vec<ApidRange>,
    /// Packets without a place in a product are kept elsewhere: with the contact's own products.
    pub is_partial: bool,
    /// Begins the names of working files.
    pub prefix: String,
}

struct Making<F: Files> {
    builder: ProductBuilder<F>,
    cells: BTreeSet<WindowCell>,
    /// The cell of the last packet, which is usually that of the next one too.
    cell: Option<WindowCell>,
}

/// The product of a packet. There are at most two more products than the mission has groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route {
    /// The mission's group of this place in its list.
    Group(usize),
    /// No group of the mission contains it.
    Other,
    /// Its application has no time code.
    Untimed,
}

impl<F: Files> ProductsBuilder<F> {
    /// Nothing is created before the first packet.
    pub fn new(mission: &Mission, limits: Limits, scope: Scope) -> Self {
        let products = (0..mission.products().len() + 2).map(|_| None).collect();
        Self {
            mission: mission.clone(),
            limits,
            scope,
            fills: Vec::new(),
            products,
            window_cost: 0,
            late_cost: 0,
        }
    }

    /// `rules` define the treatment of packets that a missing frame cut.
    pub fn fill(&mut self, rules: &ProductRuleSet) {
        let groups = self.mission.products().iter().map(|group| group.name.as_str());
        self.fills = groups.chain([OTHER, UNTIMED]).map(|name| rules.fill_of(name)).collect();
    }

    pub const fn mission(&self) -> &Mission {
        &self.mission
    }

    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Takes a packet; `novelty` is that of the contact it comes from.
    pub fn take(
        &mut self,
        files: &mut F,
        packet: &ExtractedPacket,
        nature: Nature,
        novelty: Novelty,
    ) -> Result<(), Error> {
        let (header, placement) = match nature {
            Nature::Space(header, placement) => (header, placement),
            Nature::Refused(header, reason) => {
                return self.refuse(
                    files,
                    shelved(packet, header.map(|header| (header.apid, header.count))),
                    reason,
                );
            }
        };
        let route = match placement {
            Placement::AsReceived => Route::Untimed,
            _ => self
                .mission
                .products()
                .iter()
                .position(|group| group.contains(packet.channel.vcid, header.apid))
                .map_or(Route::Other, Route::Group),
        };
        let is_cut_out =
            packet.fill > 0 && self.fills.get(self.place(route)) != Some(&FillPolicy::Pad);
        if is_cut_out || !self.is_wanted(route, header.apid) {
            return Ok(());
        }
        let (window, is_partial, limits) = (self.scope.window, self.scope.is_partial, self.limits);
        let making = self.making(files, route)?;
        let product = &mut making.builder;
        let held_before = (product.window_cost(), product.late_cost());
        product.tally.received += 1;
        let held = || Held {
            apid: header.apid,
            count: header.count,
            vcid: packet.channel.vcid,
            quality: PacketQuality::of(packet).with_novelty(novelty),
            received: packet.received,
            fill: packet.fill,
            bytes: &packet.bytes,
        };
        match placement {
            Placement::AsReceived => product.append(&held())?,
            Placement::At(time) if window.is_some_and(|window| !window.contains(time)) => {
                product.tally.outside_window += 1;
            }
            Placement::At(time) => {
                let cell = WindowCell::containing(time);
                if making.cell.replace(cell) != Some(cell) {
                    making.cells.insert(cell);
                }
                product.place(files, &limits, time, held())?;
                let held = (product.window_cost(), product.late_cost());
                self.window_cost = self.window_cost + held.0 - held_before.0;
                self.late_cost = self.late_cost + held.1 - held_before.1;
                return self.relieve(files);
            }
            Placement::Aside(reason, _) if is_partial => product.set_aside.count(reason),
            Placement::Aside(reason, time) => {
                let packet = shelved(packet, Some((header.apid, header.count)));
                product.set_aside.put(files, Shelved { time, ..packet }, reason)?;
            }
        }
        Ok(())
    }

    /// Whether no packet came for any product.
    pub fn is_empty(&self) -> bool {
        self.products.iter().all(Option::is_none)
    }

    /// Completes all products, in the order of the mission's groups; those without a group last.
    pub fn finish(
        mut self,
        files: &mut F,
        publication: &Publication<'_>,
        rules: &ProductRuleSet,
    ) -> Result<Vec<Product>, Error> {
        let mut used: BTreeMap<Label, usize> = BTreeMap::new();
        let mut published = Vec::new();
        for making in core::mem::take(&mut self.products).into_iter().flatten() {
            let finished = making.builder.finish(files)?;
            if publication.says_nothing_new(&finished) {
                published.push(publication.unchanged(files, finished)?);
                continue;
            }
            let label = label(&finished, publication.basis);
            let earlier = used.entry(label).or_default();
            let name = publication.name(label, *earlier)?;
            *earlier += 1;
            let rule = rules.of(&finished.plan.name);
            let mut product = publication.publish(files, finished, name, rule)?;
            product.cells = making.cells.into_iter().collect();
            published.push(product);
        }
        Ok(published)
    }

    fn is_wanted(&self, route: Route, apid: Apid) -> bool {
        if !self.scope.apids.is_empty()
            && !self.scope.apids.iter().any(|range| range.contains(apid))
        {
            return false;
        }
        let Some(only) = &self.scope.only else { return true };
        match route {
            Route::Group(place) => only.contains(&self.mission.products()[place].name),
            Route::Other => only.contains(OTHER),
            Route::Untimed => false,
        }
    }

    /// Sets aside a packet that belongs to no product.
    fn refuse(
        &mut self,
        files: &mut F,
        packet: Shelved<'_>,
        reason: SetAsideReason,
    ) -> Result<(), Error> {
        if self.scope.is_partial {
            return Ok(());
        }
        let making = self.making(files, Route::Other)?;
        making.builder.tally.received += 1;
        making.builder.set_aside.put(files, packet, reason)
    }

    /// Keeps the memory of all products together within the limits.
    fn relieve(&mut self, files: &mut F) -> Result<(), Error> {
        while self.window_cost > self.limits.window.as_usize() {
            let builders = self.builders();
            let Some(largest) = builders.max_by_key(|builder| builder.window_cost()) else { break };
            let before = largest.window_cost();
            largest.write_half(files)?;
            let given_back = before - largest.window_cost();
            self.window_cost -= given_back;
        }
        if self.late_cost > self.limits.late.as_usize() {
            let builders = self.builders();
            if let Some(largest) = builders.max_by_key(|builder| builder.late_cost()) {
                let before = largest.late_cost();
                largest.spill(files)?;
                let given_back = before - largest.late_cost();
                self.late_cost -= given_back;
            }
        }
        Ok(())
    }

    fn builders(&mut self) -> impl Iterator<Item = &mut ProductBuilder<F>> {
        self.products.iter_mut().flatten().map(|making| &mut making.builder)
    }

    /// The place of what belongs to a route.
    fn place(&self, route: Route) -> usize {
        let groups = self.mission.products().len();
        match route {
            Route::Group(place) => place,
            Route::Other => groups,
            Route::Untimed => groups + 1,
        }
    }

    fn making(&mut self, files: &mut F, route: Route) -> Result<&mut Making<F>, Error> {
        let place = self.place(route);
        let making = &mut self.products[place];
        if making.is_none() {
            let plan = plan(&self.mission, route, &self.scope.prefix);
            let builder = ProductBuilder::new(plan, &self.limits, files)?;
            *making = Some(Making { builder, cells: BTreeSet::new(), cell: None });
        }
        Ok(making.as_mut().expect("it was put there where it was missing"))
    }
}

fn shelved(packet: &ExtractedPacket, known: Option<(Apid, u16)>) -> Shelved<'_> {
    Shelved {
        vcid: packet.channel.vcid,
        apid: known.map(|(apid, _)| apid),
        count: known.map(|(_, count)| count),
        time: None,
        received: packet.received,
        bytes: &packet.bytes,
    }
}

fn plan(mission: &Mission, route: Route, prefix: &str) -> Plan {
    let fixed = |name: &str, label: &str, sorted_by| Plan {
        name: name.to_owned(),
        label: Some(Label::parse(label).expect("the label is fixed")),
        order: ApidOrder::new(&[], mission.counters()),
        sorted_by,
        prefix: format!("{prefix}{name}"),
    };
    match route {
        Route::Group(place) => {
            let group = &mission.products()[place];
            let listed = group.apids.first().map(|range| Label::session(range.first.value()));
            Plan {
                name: group.name.clone(),
                label: group.label.as_deref().and_then(|label| Label::parse(label).ok()).or(listed),
                order: ApidOrder::new(&group.apids, mission.counters()),
                sorted_by: SortedBy::PacketTime,
                prefix: format!("{prefix}group{place}"),
            }
        }
        Route::Other => fixed(OTHER, "0000OTHERPACKETSAS", SortedBy::PacketTime),
        Route::Untimed => fixed(UNTIMED, "0000UNTIMEDPACKETS", SortedBy::Reception),
    }
}

/// The label of a product; of a group that lists neither label nor APIDs, by its first APID.
fn label<F: Files>(finished: &Finished<F>, basis: ProductBasis) -> Label {
    let label = finished.plan.label.unwrap_or_else(|| {
        let first = finished.packets.account.apids.keys().next().copied();
        Label::session(first.map_or(0, Apid::value))
    });
    match basis {
        ProductBasis::Session => label,
        ProductBasis::Time => label.time_based(),
    }
}

/// The name of the product of packets that no group of the mission contains.
const OTHER: &str = "other";
/// The name of the product of packets whose application has no time code.
const UNTIMED: &str = "untimed";
