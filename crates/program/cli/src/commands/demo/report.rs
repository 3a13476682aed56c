//! The result of a demonstration as data: the last object of `--json`, and the source of the
//! summary.

use super::backup::{BackupReport, compare};
use super::contact_row::ContactRow;
use super::customers::DeliveriesReport;
use super::folder::Folder;
use super::pass::PassResult;
use super::products::{ProductAccount, digest};
use super::verdict::judge;
use serde::Serialize;
use skyhaul_exit::Failure;
use skyhaul_node::latency::LatencySummary;
use skyhaul_node::status::{CentreStatus, ContactState};
use skyhaul_units::{ByteCount, Duration, Rate};
use std::collections::{BTreeMap, BTreeSet};

/// The result. Rates are in bit/s, sizes in bytes, times in seconds.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// `result`.
    pub event: &'static str,
    /// Whether everything captured arrived as it was, in time and memory as promised.
    pub ok: bool,
    /// The differences, in sentences.
    pub differences: Vec<String>,
    /// Contacts, in the order of the inputs.
    pub contacts: Vec<ContactRow>,
    /// Products as they lie on the disk.
    pub products: Vec<ProductRow>,
    /// From a frame's last bit at the station to durable at the centre (`total`), and the stages of
    /// it; `level0` follows.
    pub latency_s: BTreeMap<String, LatencySummary>,
    /// From the last bit at the station to all products of its contact: the longest of all
    /// contacts.
    pub last_bit_to_product_s: Option<f64>,
    /// How fast it was.
    #[serde(flatten)]
    pub rates: RateReport,
    /// What was delivered to the consumers.
    pub deliveries: DeliveriesReport,
    /// The backup centre.
    pub backup: BackupReport,
    /// The line to the operational centre.
    pub line: LineReport,
    /// Bytes that stayed off the line: markers, check symbols, and what packing saved.
    pub bytes_saved: u64,
    /// The most memory that each node had resident.
    pub rss_bytes: RssReport,
    /// The most that each may have.
    pub rss_limit_bytes: u64,
}

/// Rates of blocks.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct RateReport {
    /// Bytes of blocks at the centre over the time from the first symbol to the last block.
    pub goodput_bps: u64,
    /// The highest rate of blocks on the line: the packets that are not lost, without headers.
    pub limit_bps: u64,
    /// What the passes offered: bytes of all blocks over the length of the longest pass.
    pub offered_bps: u64,
}

/// A product.
#[derive(Debug, Clone, Serialize)]
pub struct ProductRow {
    /// The mission it is of.
    pub mission: String,
    /// The mission's name for it.
    pub product: String,
    /// Its packet file.
    pub path: String,
    /// The digest of the file on the disk.
    pub sha256: String,
    /// Packets in it.
    pub packets: u64,
    /// Breaks in their sequence counts.
    pub gaps: u64,
}

/// The line.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct LineReport {
    /// Its rate, in IP packets.
    pub rate_bps: u64,
    /// Both ways together.
    pub rtt_s: f64,
    /// The probability that a packet is lost, in each direction.
    pub loss: f64,
    /// IP packets towards the centre.
    pub packets: u64,
    /// Of these, lost on the way.
    pub lost: u64,
    /// Datagrams that this machine lost besides.
    pub lost_elsewhere: u64,
    /// Symbols sent again.
    pub symbols_repeated: u64,
}

/// Memory.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct RssReport {
    /// The station.
    pub station: u64,
    /// The centre.
    pub centre: u64,
}

/// The most memory that a node may have resident.
pub const RSS_LIMIT: ByteCount = ByteCount::new(256_000_000);

impl Report {
    /// Draws up the account of `outcome`, with the accounts beside the products, and judges it.
    pub fn new(
        outcome: &PassResult,
        folder: &Folder,
        accounts: &BTreeMap<String, Vec<ProductAccount>>,
    ) -> Result<Self, Failure> {
        let contacts = contacts(outcome, accounts);
        let mut differences = outcome.troubles.clone();
        for (input, truth) in &outcome.passes {
            let ours: Vec<_> =
                contacts.iter().filter(|contact| contact.input == *input).cloned().collect();
            differences.extend(judge(input, truth, &ours));
        }
        differences.extend(failed(&outcome.centre));
        let products = products(folder, accounts, &mut differences);
        let shown = outcome.centre.contacts.iter().flat_map(|contact| &contact.products);
        let shown: BTreeSet<_> = shown.map(|product| (&product.path, &product.sha256)).collect();
        let on_disk: BTreeSet<_> =
            products.iter().map(|product| (&product.path, &product.sha256)).collect();
        if shown != on_disk {
            differences.push(
                "the centre's list of products differs from the products in the \
                      folder"
                    .to_owned(),
            );
        }
        let rss = RssReport {
            station: outcome.station.process.rss_peak_bytes,
            centre: outcome.centre.process.rss_peak_bytes,
        };
        for (node, peak) in [("station", rss.station), ("centre", rss.centre)] {
            if ByteCount::new(peak) > RSS_LIMIT {
                differences.push(format!(
                    "the {node} used {} of memory, more than {RSS_LIMIT}",
                    ByteCount::new(peak)
                ));
            }
        }
        let mut backup = outcome.backup;
        compare(accounts, folder, &mut backup, &mut differences)?;
        let delays =
            outcome.centre.contacts.iter().filter_map(|contact| contact.last_bit_to_product_s);
        Ok(Self {
            event: "result",
            ok: differences.is_empty(),
            differences,
            bytes_saved: contacts.iter().map(|contact| contact.bytes_saved).sum(),
            contacts,
            products,
            latency_s: outcome.centre.latency_s.clone(),
            last_bit_to_product_s: delays.reduce(f64::max),
            rates: RateReport {
                goodput_bps: Rate::over(outcome.work.delivered, outcome.work.busy).as_bps(),
                limit_bps: outcome.facts.goodput_limit().as_bps(),
                offered_bps: offered(outcome.work.delivered, outcome.longest_pass).as_bps(),
            },
            deliveries: outcome.deliveries.clone(),
            backup,
            line: line(outcome),
            rss_bytes: rss,
            rss_limit_bytes: RSS_LIMIT.as_u64(),
        })
    }
}

fn offered(delivered: ByteCount, longest_pass: Duration) -> Rate {
    Rate::over(delivered, longest_pass)
}

fn line(outcome: &PassResult) -> LineReport {
    let proxy = &outcome.proxy;
    LineReport {
        rate_bps: outcome.facts.rate.as_bps(),
        rtt_s: outcome.facts.rtt.as_secs_f64(),
        loss: outcome.facts.loss.as_f64(),
        packets: proxy.up.link.offered,
        lost: proxy.up.link.lost,
        lost_elsewhere: proxy.up.link.queue_dropped
            + proxy.up.send_failed
            + proxy.down.send_failed
            + proxy.kernel_dropped.unwrap_or(0),
        symbols_repeated: outcome.station.line().symbols_repeated,
    }
}

/// The contacts of all inputs, in the order of the inputs.
fn contacts(
    outcome: &PassResult,
    accounts: &BTreeMap<String, Vec<ProductAccount>>,
) -> Vec<ContactRow> {
    let mut rows = Vec::new();
    for (input, _) in &outcome.passes {
        let captured = outcome.station.contacts.iter().filter(|contact| contact.channel == *input);
        for captured in captured {
            let received =
                outcome.centre.contacts.iter().find(|contact| contact.flow == captured.flow);
            rows.push(ContactRow::new(captured, received, accounts));
        }
    }
    rows
}

fn products(
    folder: &Folder,
    accounts: &BTreeMap<String, Vec<ProductAccount>>,
    differences: &mut Vec<String>,
) -> Vec<ProductRow> {
    let mut products = Vec::new();
    for account in accounts.values().flatten() {
        let Some(file) = &account.product.packet_file else { continue };
        let path = folder.products().join(&file.name);
        let place = path.display().to_string();
        let sha256 = match digest(&path) {
            Ok(sha256) if sha256 == file.sha256 => sha256,
            Ok(sha256) => {
                differences.push(format!(
                    "{place}: its digest is {sha256}, but its account has {}",
                    file.sha256
                ));
                sha256
            }
            Err(error) => {
                differences.push(format!("{place}: it cannot be read ({error})"));
                String::new()
            }
        };
        products.push(ProductRow {
            mission: account.contacts[0].mission.clone(),
            product: account.product.name.clone(),
            path: place,
            sha256,
            packets: account.accounting.delivered,
            gaps: account.accounting.gaps,
        });
    }
    products
}

fn failed(centre: &CentreStatus) -> Vec<String> {
    let failed = centre.contacts.iter().filter(|contact| contact.state == ContactState::Failed);
    failed.map(|contact| format!("{}: its products could not be made", contact.channel)).collect()
}
