//! What the tests share: a folder in memory, packets made to measure, captures, independent
//! readers.

pub mod captures;
pub mod python;
pub mod shared;

use md5::Md5;
use sha2::{Digest, Sha256};
use skyhaul_ccsds::extract::ExtractedPacket;
use skyhaul_ccsds::id::{Apid, Channel, Scid, Vcid};
use skyhaul_ccsds::mission::Mission;
use skyhaul_ccsds::packet::{Grouping, Header, SpaceHeader};
use skyhaul_ccsds::time::TimeCode;
use skyhaul_coding::crc::Cksum;
use skyhaul_level0::naming::Digit;
use skyhaul_level0::report::{Product, ProductFile};
use skyhaul_level0::{ContactClose, ContactInfo, ContactProcessor, DigestKinds, Files, Limits};
use skyhaul_units::{Duration, Utc};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Cursor, Write};
use std::rc::Rc;

/// 2024-12-06, in days since 1970.
pub const DAY: i64 = 20_063;

pub const MISSION: &str = r#"name = "test"
title = "Test"
scids = [157]

[frame]
kind = "aos"
length = 892

[coding]
randomiser = "ccsds255"

[[time]]
apids = ["100-999"]
code = "cds8"

[[product]]
name = "imager"
label = "0826VIIRSSCIENCEAS"
vcids = [16]
apids = ["826", "800-825"]

[[product]]
name = "sounder"
vcids = [6]
apids = ["500-599"]
"#;

pub fn mission() -> Mission {
    Mission::from_toml(MISSION).unwrap()
}

#[derive(Clone, Default)]
pub struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Files in memory; `created` counts them by the end of their names.
#[derive(Default)]
pub struct Memory {
    pub working: BTreeMap<String, Shared>,
    pub published: BTreeMap<String, Vec<u8>>,
    pub created: BTreeMap<String, u32>,
    /// The most run files that were there at once.
    pub most_run_files: usize,
    /// Creating a file of this name fails.
    pub refuses: Option<&'static str>,
}

impl Files for Memory {
    type Writer = Shared;
    type Reader = Cursor<Vec<u8>>;

    fn create(&mut self, name: &str) -> io::Result<Shared> {
        if self.refuses.is_some_and(|refused| name.ends_with(refused)) {
            return Err(io::Error::other("no space left on device"));
        }
        let kind = name.rsplit('.').next().unwrap().trim_end_matches(|c: char| c.is_ascii_digit());
        *self.created.entry(kind.to_owned()).or_default() += 1;
        let file = Shared::default();
        self.working.insert(name.to_owned(), file.clone());
        let runs = self.working.keys().filter(|name| name.contains(".run")).count();
        self.most_run_files = self.most_run_files.max(runs);
        Ok(file)
    }
    fn open(&mut self, name: &str) -> io::Result<Self::Reader> {
        let file = self.working.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Cursor::new(file.0.borrow().clone()))
    }
    fn publish(&mut self, file: Shared, working: &str, name: &str) -> io::Result<()> {
        self.working.remove(working).ok_or(io::ErrorKind::NotFound)?;
        let twice = self.published.insert(name.to_owned(), file.0.borrow().clone());
        assert_eq!(twice, None, "{name} was published twice");
        Ok(())
    }
    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.working.remove(name).map(|_| ()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
    fn digests(&self) -> DigestKinds {
        DigestKinds::Records
    }
}

/// What matters of a packet in a test.
#[derive(Debug, Clone, Copy)]
pub struct Make {
    pub vcid: u8,
    pub apid: u16,
    pub count: u16,
    pub grouping: Grouping,
    /// Milliseconds of [`DAY`]; none for a packet without a secondary header.
    pub millis: Option<u32>,
    pub day: i64,
    pub len: usize,
    pub fill: u8,
    pub corrected: bool,
}

impl Default for Make {
    fn default() -> Self {
        Self {
            vcid: 16,
            apid: 800,
            count: 0,
            grouping: Grouping::Standalone,
            millis: Some(0),
            day: DAY,
            len: 40,
            fill: 0,
            corrected: false,
        }
    }
}

impl Make {
    pub fn bytes(&self) -> Vec<u8> {
        let header = SpaceHeader {
            is_telecommand: false,
            has_secondary: self.millis.is_some(),
            apid: Apid::new(self.apid).unwrap(),
            grouping: self.grouping,
            count: self.count,
            total_len: self.len,
        };
        let mut bytes = vec![self.fill; self.len];
        bytes[..6].copy_from_slice(&header.to_bytes());
        if let Some(millis) = self.millis {
            let time = Utc::from_day(self.day, Duration::from_millis(millis.into()));
            assert!(TimeCode::Cds8.write(time, &mut bytes[6..]));
        }
        bytes
    }

    pub fn packet(&self) -> ExtractedPacket {
        received(self.vcid, self.bytes(), self.corrected)
    }
}

pub fn received(vcid: u8, bytes: Vec<u8>, corrected: bool) -> ExtractedPacket {
    ExtractedPacket {
        channel: Channel { scid: Scid::new(157).unwrap(), vcid: Vcid::new(vcid).unwrap() },
        map: None,
        received: Utc::from_day(DAY, Duration::from_secs(3_600)),
        from_corrected: corrected,
        from_unchecked: false,
        fill: 0,
        length_differs: false,
        header: Header::parse(&bytes).unwrap(),
        bytes: bytes.into(),
    }
}

pub fn contact() -> ContactInfo {
    ContactInfo {
        station: "svalbard".to_owned(),
        contact: "npp-1".to_owned(),
        scid: Scid::new(157).unwrap(),
        opened: Utc::from_day(DAY, Duration::from_secs(3_600)),
        also_fits: Vec::new(),
        file: None,
        window: None,
    }
}

pub fn close() -> ContactClose {
    ContactClose {
        closed: Utc::from_day(DAY, Duration::from_secs(4_200)),
        created: Utc::from_day(DAY, Duration::from_secs(4_201)),
        uniqueness: Digit::default(),
    }
}

/// Limits so small that nearly everything is late, and late packets go to files.
pub fn tiny() -> Limits {
    Limits {
        window: skyhaul_units::ByteCount::new(600),
        late: skyhaul_units::ByteCount::new(1_000),
        ..Limits::default()
    }
}

/// Products of packets in this order.
pub fn process(limits: Limits, packets: &[ExtractedPacket]) -> (Vec<Product>, Memory) {
    process_contact(contact(), limits, packets)
}

pub fn process_contact(
    contact: ContactInfo,
    limits: Limits,
    packets: &[ExtractedPacket],
) -> (Vec<Product>, Memory) {
    process_mission(&mission(), contact, limits, packets)
}

pub fn process_mission(
    mission: &Mission,
    contact: ContactInfo,
    limits: Limits,
    packets: &[ExtractedPacket],
) -> (Vec<Product>, Memory) {
    let mut files = Memory::default();
    let mut processor = ContactProcessor::new(mission, contact, limits, &mut files);
    for packet in packets {
        processor.packet(packet.clone()).unwrap();
    }
    let products = processor.finish(close()).unwrap();
    assert!(files.working.is_empty(), "left over: {:?}", files.working.keys());
    for product in &products {
        assert!(product.sidecar.accounting.balanced, "{:?}", product.sidecar.accounting);
        for file in &product.files {
            assert_is_of(file, &files.published[&file.name]);
        }
    }
    (products, files)
}

/// The length and the digests of a file, taken while it was written, are those of its bytes.
fn assert_is_of(file: &ProductFile, bytes: &[u8]) {
    assert_eq!(bytes.len() as u64, file.bytes);
    let sha256: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let mut cksum = Cksum::default();
    cksum.update(bytes);
    let md5: [u8; 16] = Md5::digest(bytes).into();
    let taken = (file.sha256.as_str(), file.md5, file.cksum);
    assert_eq!(taken, (sha256.as_str(), Some(md5), Some(cksum.finish())), "{}", file.name);
}

/// The bytes of a product's packet file.
pub fn packet_file<'a>(product: &Product, files: &'a Memory) -> &'a [u8] {
    &files.published
        [&product.sidecar.product.packet_file.as_ref().expect("a packet was delivered").name]
}
