//! Publishes the files of a finished product: packets, packets set aside, account, and the
//! construction record last, so that a consumer that sees the record sees all files.

use crate::construction::{ProductKind, RECORD_APIDS};
use crate::digests::Digesting;
use crate::files::{Error, Files};
use crate::frame_runs::FrameRuns;
use crate::naming::{Digit, FileNumber, Label, ProductName, Series};
use crate::packet_file::{Account, flushed};
use crate::product::{Finished, SortedBy, Tally};
use crate::report::{
    Accounting, ApidReport, ContactReport, FORMAT, FrameReport, Product, ProductFile,
    ProductReport, Replaced, SetAsideReport, Sidecar,
};
use crate::rules::{EditionScope, Form, Previous, ProductBasis};
use crate::set_aside::SetAsideFile;
use crate::window::TimeWindow;
use skyhaul_ccsds::id::Scid;
use skyhaul_units::{ByteCount, Utc};
use std::collections::BTreeMap;
use std::io::Write;

/// The data in the files of all products of one run.
pub(crate) struct Publication<'a> {
    pub scid: Scid,
    /// In the order in which they began.
    pub contacts: &'a [ContactReport],
    pub frames: &'a FrameReport,
    pub naming: Naming,
    pub window: Option<TimeWindow>,
    pub basis: ProductBasis,
    pub kind: ProductKind,
    /// For products that may be made again, the existing versions, and the frames of contacts that
    /// were not in those.
    pub previous: Option<(&'a BTreeMap<String, Previous>, &'a FrameRuns)>,
    pub is_test: bool,
    /// Which of products that may be made again are published.
    pub scope: EditionScope,
}

/// The parts of the names of all products of one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Naming {
    pub created: Utc,
    /// Of the first product of a label.
    pub uniqueness: Digit,
}

impl Publication<'_> {
    /// The name of the construction record of a product, if `earlier` products have the same label.
    pub fn name(&self, label: Label, earlier: usize) -> Result<ProductName, Error> {
        let name = |digit| {
            let series = if self.kind == ProductKind::Pds { Series::Pds } else { Series::Eds };
            ProductName::construction_record(self.scid.value(), label, self.naming.created, digit)
                .in_series(series)
        };
        let first = self.naming.uniqueness;
        first
            .after(earlier)
            .map(name)
            .ok_or_else(|| Error::NamesUsedUp { name: name(first).to_string() })
    }

    /// Whether a previous version has all of it, with the same quality, and need not be made again.
    pub fn says_nothing_new<F: Files>(&self, finished: &Finished<F>) -> bool {
        let account = &finished.packets.account;
        let is_same = account.added == 0 && account.improved == 0;
        is_same && self.scope == EditionScope::Changed && self.before(&finished.plan.name).is_some()
    }

    fn before(&self, product: &str) -> Option<&Previous> {
        self.previous.and_then(|(previous, _)| previous.get(product))
    }

    /// Removes the working files of a product without changes.
    pub fn unchanged<F: Files>(
        &self,
        files: &mut F,
        finished: Finished<F>,
    ) -> Result<Product, Error> {
        let mut set_aside = finished.set_aside;
        if set_aside.file.take().is_some() {
            files.remove(set_aside.working()).map_err(Error::on("remove", set_aside.working()))?;
        }
        let packets = finished.packets;
        drop(packets.file);
        files.remove(&packets.working).map_err(Error::on("remove", &packets.working))?;
        let name = self.before(&finished.plan.name).map(|before| before.name);
        let name = name.expect("it was compared with the version before");
        let accounting =
            accounting(&finished.tally, &set_aside, &packets.account, finished.late_packets);
        let account = &packets.account;
        let product =
            self.product_report(&finished.plan.name, finished.plan.sorted_by, name, account);
        let report =
            SetAsideReport { file: None, reasons: set_aside.reasons, packets: set_aside.entries };
        let sidecar = self.sidecar(product, accounting, report, account);
        Ok(Product { name, files: Vec::new(), sidecar, cells: Vec::new() })
    }

    /// Publishes a product under `name`, the construction record's.
    pub fn publish<F: Files>(
        &self,
        files: &mut F,
        finished: Finished<F>,
        name: ProductName,
        form: Form,
    ) -> Result<Product, Error> {
        let record_working = format!("{}.record", finished.plan.prefix);
        let account_working = format!("{}.account", finished.plan.prefix);
        let packets = finished.packets;
        let account = &packets.account;
        let packet_file = match file_name(name, form).filter(|_| account.packets > 0) {
            None => {
                drop(packets.file);
                files.remove(&packets.working).map_err(Error::on("remove", &packets.working))?;
                None
            }
            Some(name) => {
                files
                    .publish(packets.file, &packets.working, &name)
                    .map_err(Error::on("publish", &name))?;
                Some(ProductFile::new(name, account.size, packets.digests))
            }
        };
        let accounting =
            accounting(&finished.tally, &finished.set_aside, account, finished.late_packets);
        let has_record = packet_file.is_some() && form == Form::Pds;
        let product = ProductReport {
            form,
            construction_record: has_record.then(|| name.to_string()),
            packet_file,
            ..self.product_report(&finished.plan.name, finished.plan.sorted_by, name, account)
        };
        let set_aside = publish_aside(files, finished.set_aside, format!("{}.aside", name.stem()))?;
        let sidecar = self.sidecar(product, accounting, set_aside, account);
        let packet_file = sidecar.product.packet_file.clone();
        let mut published: Vec<_> =
            packet_file.into_iter().chain(sidecar.set_aside.file.clone()).collect();
        let json = serde_json::to_vec_pretty(&sidecar).expect("the sidecar has text keys only");
        published.push(write_file(
            files,
            &account_working,
            format!("{}.json", name.stem()),
            &json,
        )?);
        if has_record {
            let record = self.construction_record(name, account).write()?;
            published.push(write_file(files, &record_working, name.to_string(), &record)?);
        }
        Ok(Product { name, files: published, sidecar, cells: Vec::new() })
    }

    fn product_report(
        &self,
        product: &str,
        sorted_by: SortedBy,
        name: ProductName,
        account: &Account,
    ) -> ProductReport {
        let before = self.before(product);
        let missing: u64 = account.apids.values().map(|apid| apid.missing).sum();
        let gaps: u64 = account.apids.values().map(|apid| apid.gap_count).sum();
        let (frames, frames_unlisted) =
            self.previous.map_or_else(Default::default, |(_, brought)| brought.listed());
        ProductReport {
            name: product.to_owned(),
            sorted_by,
            basis: self.basis,
            kind: self.kind,
            window: self.window,
            form: Form::Account,
            version: before.map_or(1, |before| before.version.saturating_add(1)),
            replaces: before.map(|before| Replaced {
                version: before.version,
                name: before.name.stem(),
                added: account.added,
                improved: account.improved,
                missing_filled: before.missing.cast_signed() - missing.cast_signed(),
                gaps_closed: before.gaps.cast_signed() - gaps.cast_signed(),
                frames,
                frames_unlisted,
            }),
            created: name.created(),
            construction_record: None,
            packet_file: None,
            first: account.first,
            last: account.last,
        }
    }

    fn sidecar(
        &self,
        product: ProductReport,
        accounting: Accounting,
        set_aside: SetAsideReport,
        account: &Account,
    ) -> Sidecar {
        Sidecar {
            format: FORMAT,
            contacts: self.contacts.to_vec(),
            product,
            accounting,
            apids: account
                .apids
                .iter()
                .map(|(apid, account)| ApidReport::new(*apid, account))
                .collect(),
            apids_not_in_construction_record: account.apids.len().saturating_sub(RECORD_APIDS)
                as u64,
            set_aside,
            frames: self.frames.clone(),
        }
    }
}

/// The packet file of the product whose construction record is `name`.
fn file_name(name: ProductName, form: Form) -> Option<String> {
    let packets = name.file(FileNumber::PACKETS);
    match form {
        Form::Pds => Some(packets.to_string()),
        Form::Packets => Some(format!("{}.dat", packets.stem())),
        Form::Account => None,
    }
}

fn accounting<W: Write>(
    tally: &Tally,
    set_aside: &SetAsideFile<W>,
    account: &Account,
    late: u64,
) -> Accounting {
    let accounted = account.packets
        + tally.duplicates
        + set_aside.rejected
        + tally.outside_window
        + set_aside.packets;
    Accounting {
        received: tally.received,
        delivered: account.packets,
        duplicates: tally.duplicates,
        rejected: set_aside.rejected,
        outside_window: tally.outside_window,
        set_aside: set_aside.packets,
        late,
        balanced: tally.received == accounted,
        missing: account.apids.values().map(|apid| apid.missing).sum(),
        gaps: account.apids.values().map(|apid| apid.gap_count).sum(),
        corrected_packets: account.corrected_packets,
        filled_packets: account.apids.values().map(|apid| apid.fill.packets).sum(),
        fill_octets: account.apids.values().map(|apid| apid.fill.octets).sum(),
        length_discrepancies: account.apids.values().map(|apid| apid.fill.length_differs).sum(),
    }
}

fn publish_aside<F: Files>(
    files: &mut F,
    mut set_aside: SetAsideFile<F::Writer>,
    name: String,
) -> Result<SetAsideReport, Error> {
    let (working, digests) = (set_aside.working().to_owned(), set_aside.digests());
    let mut report =
        SetAsideReport { file: None, reasons: set_aside.reasons, packets: set_aside.entries };
    if let Some(file) = set_aside.file {
        let file = flushed(file, &working)?;
        files.publish(file, &working, &name).map_err(Error::on("publish", &name))?;
        report.file = Some(ProductFile::new(name, set_aside.size, digests));
    }
    Ok(report)
}

fn write_file<F: Files>(
    files: &mut F,
    working: &str,
    name: String,
    bytes: &[u8],
) -> Result<ProductFile, Error> {
    let mut file = files.create(working).map_err(Error::on("create", working))?;
    file.write_all(bytes).and_then(|()| file.flush()).map_err(Error::on("write", working))?;
    files.publish(file, working, &name).map_err(Error::on("publish", &name))?;
    let digests = Digesting::of(files.digests(), bytes);
    Ok(ProductFile::new(name, ByteCount::of(bytes.len()), digests))
}
