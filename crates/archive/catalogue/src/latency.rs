//! The latency account: when the data of a product passed each place between its observation and
//! its consumer, and how long each element of the way took.
//!
//! The account of a product is that of its last packet: the block that brought the packet says
//! when, and the elements between two times of the list leave nothing out. Times of the station
//! are by its clock: where two clocks differ, one element has too much, another too little, and the
//! sum is right.

use crate::item::ItemForm;
use serde::Serialize;
use skyhaul_units::Utc;

/// An element of the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LatencyElement {
    /// From the observation, the packet's time, to its last bit at the station: the wait on board.
    Downlink,
    /// From there until the block was closed.
    Capture,
    /// From there until it was read from the station's disk.
    Spool,
    /// From there until its first symbol was sent.
    Queue,
    /// From there until its last symbol arrived that was not retransmitted.
    Line,
    /// From there until the block and all before it were whole.
    Repair,
    /// From there until it was on the centre's disk.
    Store,
    /// From there until its packets were sorted in.
    Level0,
    /// From there until the product was published: the end of the contact or window.
    Publish,
    /// From the observation to the publication, where the way between is not known.
    Unaccounted,
    /// From the publication until the product was handed over.
    Deliver,
}

/// When the last packet of a product passed each place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemTimes {
    /// The contact that brought it.
    pub contact: String,
    /// When its last bit was at the station.
    pub last_bit: Utc,
    /// The way of its block.
    pub block: BlockTimes,
}

/// When a block of a contact passed each place, and the frames in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockTimes {
    /// Its frames.
    pub frames: u32,
    /// The last bit of its last frame at the station.
    pub last_received: Utc,
    /// It was closed.
    pub closed: Utc,
    /// It was read from the station's disk.
    pub taken: Utc,
    /// Its first symbol was sent.
    pub sent: Utc,
    /// Its last symbol arrived that was not retransmitted.
    pub arrived: Utc,
    /// It and all before it were whole.
    pub whole: Utc,
    /// It was on the centre's disk.
    pub stored: Utc,
    /// Its packets were sorted in.
    pub sorted: Utc,
}

/// A contact, and the way of its blocks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContactTimes {
    /// Its mission.
    pub mission: String,
    /// In the order in which they were read.
    blocks: Vec<BlockTimes>,
}

/// A product at one of its consumers, or nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountRow {
    /// Its mission.
    pub mission: String,
    /// The product of the mission.
    pub product: String,
    /// What it is.
    pub form: ItemForm,
    /// The stations whose data it has.
    pub stations: Vec<String>,
    /// Its name without version.
    pub name: String,
    /// Its version.
    pub version: u32,
    /// The time of its last packet.
    pub observed: Option<Utc>,
    /// Its way to the publication, where that is known.
    pub times: Option<ItemTimes>,
    /// When it was published.
    pub published: Utc,
    /// Its consumer; none where nobody gets it.
    pub consumer: Option<ConsumerTimes>,
}

/// A product at one consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerTimes {
    /// The consumer.
    pub name: String,
    /// When files and record were there.
    pub handed: Option<Utc>,
    /// When the consumer accepted it.
    pub accepted: Option<Utc>,
    /// Whether it is given up: a newer version took its place, or an operator cancelled it.
    pub is_given_up: bool,
}

impl LatencyElement {
    /// All of them, in the order of the way.
    pub const ALL: [Self; 11] = [
        Self::Downlink,
        Self::Capture,
        Self::Spool,
        Self::Queue,
        Self::Line,
        Self::Repair,
        Self::Store,
        Self::Level0,
        Self::Publish,
        Self::Unaccounted,
        Self::Deliver,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Downlink => "downlink",
            Self::Capture => "capture",
            Self::Spool => "spool",
            Self::Queue => "queue",
            Self::Line => "line",
            Self::Repair => "repair",
            Self::Store => "store",
            Self::Level0 => "level0",
            Self::Publish => "publish",
            Self::Unaccounted => "unaccounted",
            Self::Deliver => "deliver",
        }
    }

    /// What it is, in words.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Downlink => "wait on board, until the last bit was received",
            Self::Capture => "capture at the station",
            Self::Spool => "station's disk",
            Self::Queue => "wait for the line",
            Self::Line => "line",
            Self::Repair => "repair of losses, and order",
            Self::Store => "centre's disk",
            Self::Level0 => "Level-0 sorting",
            Self::Publish => "wait for the end of the contact or window, and publication",
            Self::Unaccounted => "not known between observation and publication",
            Self::Deliver => "hand-over to the consumer",
        }
    }
}

impl ContactTimes {
    /// Of a mission, without blocks.
    pub fn new(mission: &str) -> Self {
        Self { mission: mission.to_owned(), blocks: Vec::new() }
    }

    /// Adds the next block. Of a longer contact the oldest are forgotten.
    pub fn push(&mut self, block: BlockTimes) {
        if self.blocks.len() == BLOCKS_MAX {
            self.blocks.drain(..BLOCKS_MAX / 2);
        }
        self.blocks.push(block);
    }

    /// Its blocks.
    pub fn blocks(&self) -> &[BlockTimes] {
        &self.blocks
    }

    /// The block with the frame that was received then; of a contact of which only some blocks are
    /// kept, the next one that is.
    pub fn at(&self, received: Utc) -> Option<BlockTimes> {
        // What is kept has whole microseconds.
        let micros = received.as_micros();
        let at = self.blocks.partition_point(|block| block.last_received.as_micros() < micros);
        self.blocks.get(at).copied()
    }

    /// As it is kept: at most [`BLOCKS_KEPT`] blocks, the last one among them. The frames of those
    /// left out are counted with the next one.
    pub fn kept(&self) -> Self {
        let every = self.blocks.len().div_ceil(BLOCKS_KEPT).max(1);
        let group = |blocks: &[BlockTimes]| {
            let frames = blocks.iter().map(|block| block.frames).fold(0, u32::saturating_add);
            blocks.last().map(|last| BlockTimes { frames, ..*last })
        };
        let blocks = self.blocks.rchunks(every).filter_map(group);
        let mut blocks: Vec<BlockTimes> = blocks.collect();
        blocks.reverse();
        Self { mission: self.mission.clone(), blocks }
    }

    /// Its blocks as bytes, 68 each.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.blocks.len() * BLOCK);
        for block in &self.blocks {
            out.extend_from_slice(&block.frames.to_be_bytes());
            for time in block.list() {
                out.extend_from_slice(&time.as_micros().to_be_bytes());
            }
        }
        out
    }

    /// Reads blocks back; bytes that are no whole block are left out.
    pub fn decode(mission: String, bytes: &[u8]) -> Self {
        let block = |bytes: &[u8]| {
            let (frames, times) = bytes.split_first_chunk::<4>()?;
            let mut times = times.chunks_exact(8).map(|time| {
                let bytes = time.try_into().expect("chunks of eight bytes");
                Utc::from_micros(i64::from_be_bytes(bytes))
            });
            Some(BlockTimes {
                frames: u32::from_be_bytes(*frames),
                last_received: times.next()?,
                closed: times.next()?,
                taken: times.next()?,
                sent: times.next()?,
                arrived: times.next()?,
                whole: times.next()?,
                stored: times.next()?,
                sorted: times.next()?,
            })
        };
        Self { mission, blocks: bytes.chunks_exact(BLOCK).filter_map(block).collect() }
    }
}

impl BlockTimes {
    const fn list(&self) -> [Utc; 8] {
        let Self { closed, taken, sent, arrived, whole, stored, sorted, .. } = *self;
        [self.last_received, closed, taken, sent, arrived, whole, stored, sorted]
    }

    /// The elements from the last bit of a frame until its packets were sorted in, in microseconds.
    pub fn elements(&self, last_bit: Utc) -> [(LatencyElement, i64); 7] {
        use LatencyElement as Element;
        let [_, closed, taken, sent, arrived, whole, stored, sorted] = self.list();
        [
            (Element::Capture, between(last_bit, closed)),
            (Element::Spool, between(closed, taken)),
            (Element::Queue, between(taken, sent)),
            (Element::Line, between(sent, arrived)),
            (Element::Repair, between(arrived, whole)),
            (Element::Store, between(whole, stored)),
            (Element::Level0, between(stored, sorted)),
        ]
    }
}

impl AccountRow {
    /// Where the account begins: the observation, or the last bit of a packet without a time.
    pub fn begin(&self) -> Option<Utc> {
        self.observed.or_else(|| self.times.as_ref().map(|times| times.last_bit))
    }

    /// Where it ends: the hand-over, or the publication of what nobody gets. None while it goes on.
    pub fn end(&self) -> Option<Utc> {
        match &self.consumer {
            None => Some(self.published),
            Some(consumer) => consumer.handed,
        }
    }

    /// How long all of it took, in microseconds; none while it goes on.
    pub fn total(&self) -> Option<i64> {
        self.begin().zip(self.end()).map(|(begin, end)| between(begin, end))
    }

    /// How long each element took, in microseconds. They add up to the total.
    pub fn elements(&self) -> Vec<(LatencyElement, i64)> {
        use LatencyElement as Element;
        let mut found = Vec::with_capacity(LatencyElement::ALL.len());
        match &self.times {
            Some(times) => {
                let on_board = self.observed.map(|observed| between(observed, times.last_bit));
                found.extend(on_board.map(|span| (Element::Downlink, span)));
                found.extend(times.block.elements(times.last_bit));
                found.push((Element::Publish, between(times.block.sorted, self.published)));
            }
            None => {
                let span = self.observed.map(|observed| between(observed, self.published));
                found.extend(span.map(|span| (Element::Unaccounted, span)));
            }
        }
        let handed = self.consumer.as_ref().and_then(|consumer| consumer.handed);
        found.extend(handed.map(|handed| (Element::Deliver, between(self.published, handed))));
        found
    }

    /// From the hand-over to the consumer's acceptance, in microseconds, where there was one.
    pub fn acceptance(&self) -> Option<i64> {
        let consumer = self.consumer.as_ref()?;
        consumer.handed.zip(consumer.accepted).map(|(handed, accepted)| between(handed, accepted))
    }
}

/// From one time to another, in microseconds; negative where clocks differ.
pub(crate) fn between(from: Utc, to: Utc) -> i64 {
    to.as_micros().saturating_sub(from.as_micros())
}

/// Frames and eight times.
const BLOCK: usize = 4 + 8 * 8;
/// Blocks of an open contact: 16 GiB of it, and 4.5 MiB of memory.
const BLOCKS_MAX: usize = 1 << 16;
/// Blocks of a contact in the catalogue, for products that are made later: 70 kB.
pub const BLOCKS_KEPT: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: i64) -> Utc {
        Utc::from_micros(1_790_000_000_000_000 + micros)
    }

    fn block(number: i64) -> BlockTimes {
        let time = |step: i64| at(number * 1_000 + step);
        BlockTimes {
            frames: 2,
            last_received: time(0),
            closed: time(1),
            taken: time(3),
            sent: time(6),
            arrived: time(10),
            whole: time(15),
            stored: time(21),
            sorted: time(28),
        }
    }

    fn row(times: Option<ItemTimes>, handed: Option<Utc>) -> AccountRow {
        AccountRow {
            mission: "aqua".to_owned(),
            product: "modis".to_owned(),
            form: ItemForm::Session,
            stations: vec!["svalbard-1".to_owned()],
            name: "aqua-modis-x".to_owned(),
            version: 1,
            observed: Some(at(-500)),
            times,
            published: at(100),
            consumer: Some(ConsumerTimes {
                name: "lance-a".to_owned(),
                handed,
                accepted: Some(at(300)),
                is_given_up: false,
            }),
        }
    }

    #[test]
    fn elements_add_up_to_the_total_whatever_is_known() {
        let last_bit = at(-7);
        let times = Some(ItemTimes { contact: "x".to_owned(), last_bit, block: block(0) });
        let whole = row(times, Some(at(180)));
        let took: Vec<i64> = whole.elements().iter().map(|(_, took)| *took).collect();
        assert_eq!(took, [493, 8, 2, 3, 4, 5, 6, 7, 72, 80]);
        assert_eq!((whole.total(), whole.acceptance()), (Some(680), Some(120)));
        let without_time = AccountRow { observed: None, ..whole };
        assert_eq!(without_time.total(), Some(187));
        for row in [without_time, row(None, Some(at(180)))] {
            let sum: i64 = row.elements().iter().map(|(_, took)| took).sum();
            assert_eq!(Some(sum), row.total(), "{row:?}");
        }
        let open = row(None, None);
        assert_eq!(open.total(), None);
        assert_eq!(open.elements(), [(LatencyElement::Unaccounted, 600)]);
    }

    #[test]
    fn a_frame_is_found_in_its_block_and_of_a_thinned_contact_in_the_next_one() {
        let mut times = ContactTimes::new("aqua");
        (0..5_000).for_each(|number| times.push(block(number)));
        assert_eq!(times.at(at(1_000)), Some(block(1)));
        assert_eq!(times.at(at(1_001)), Some(block(2)));
        assert_eq!(times.at(at(-9)), Some(block(0)));
        assert_eq!(times.at(at(5_000_000)), None);
        let kept = times.kept();
        assert_eq!(kept.blocks().len(), 1_000);
        assert_eq!(kept.blocks().last().map(|last| last.last_received), Some(at(4_999_000)));
        assert_eq!(kept.blocks().iter().map(|block| block.frames).sum::<u32>(), 10_000);
        assert_eq!(kept.at(at(1_000)).map(|block| block.last_received), Some(at(4_000)));
        assert_eq!(ContactTimes::decode("aqua".to_owned(), &kept.encode()), kept);
        let short = ContactTimes::decode(String::new(), &kept.encode()[..BLOCK + 9]);
        assert_eq!(short.blocks().len(), 1);
    }

    #[test]
    fn a_contact_without_end_takes_no_more_memory() {
        let mut times = ContactTimes::default();
        (0..200_000).for_each(|number| times.push(block(number)));
        assert!(times.blocks().len() <= BLOCKS_MAX);
        assert_eq!(times.at(at(199_999_000)), Some(block(199_999)));
    }
}
