//! The writer of a table: rows in, row groups out.

use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use skyhaul_ccsds::packet::{Grouping, Header};
use skyhaul_units::Utc;
use std::io::Write;
use std::sync::Arc;

/// What a table holds of each packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableContent {
    /// Place, header and time.
    Headers,
    /// The whole packet too.
    Packets,
}

/// One packet of a table.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// Where it begins in the file, in bytes.
    pub offset: u64,
    /// Its header.
    pub header: Header,
    /// The time that it says.
    pub time: Option<Utc>,
    /// All of it.
    pub bytes: &'a [u8],
}

/// Why a table could not be written: the output failed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(#[from] ParquetError);

/// A table being written to `W`.
pub struct PacketTable<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    content: TableContent,
    file: ByteArray,
    rows: Rows,
}

/// The rows of one row group, by column; of those that may be without a value, the values that are
/// there.
#[derive(Default)]
struct Rows {
    files: Vec<ByteArray>,
    offsets: Vec<i64>,
    lengths: Vec<i32>,
    /// 1 for a space packet, whose header has the next five columns; 0 for an encapsulation packet.
    is_space: Vec<i16>,
    apids: Vec<i32>,
    counts: Vec<i32>,
    groupings: Vec<ByteArray>,
    telecommands: Vec<bool>,
    secondary: Vec<bool>,
    /// 1 where there is a time.
    is_timed: Vec<i16>,
    times: Vec<i64>,
    packets: Vec<ByteArray>,
    packet_bytes: usize,
}

impl<W: Write + Send> PacketTable<W> {
    /// Begins a table.
    ///
    /// # Errors
    /// [`Error`] where the output fails, here and in the other calls.
    pub fn create(out: W, content: TableContent) -> Result<Self, Error> {
        let packet = match content {
            TableContent::Headers => "",
            TableContent::Packets => "REQUIRED BYTE_ARRAY packet;",
        };
        let schema = parse_message_type(&format!("message packets {{ {COLUMNS} {packet} }}"))?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
        Ok(Self { writer, content, file: ByteArray::from(""), rows: Rows::default() })
    }

    /// Says which file the next packets come from.
    pub fn file(&mut self, name: &str) {
        self.file = ByteArray::from(name);
    }

    /// Adds a packet.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn push(&mut self, row: &Row<'_>) -> Result<(), Error> {
        let rows = &mut self.rows;
        rows.files.push(self.file.clone());
        rows.offsets.push(row.offset.cast_signed());
        rows.lengths.push((row.header.total_len() as u32).cast_signed());
        rows.is_space.push(i16::from(matches!(row.header, Header::Space(_))));
        if let Header::Space(header) = row.header {
            rows.apids.push(i32::from(header.apid.value()));
            rows.counts.push(i32::from(header.count));
            rows.groupings.push(ByteArray::from(grouping(header.grouping)));
            rows.telecommands.push(header.is_telecommand);
            rows.secondary.push(header.has_secondary);
        }
        rows.is_timed.push(i16::from(row.time.is_some()));
        rows.times.extend(row.time.map(Utc::as_nanos));
        if self.content == TableContent::Packets {
            rows.packets.push(ByteArray::from(row.bytes.to_vec()));
            rows.packet_bytes += row.bytes.len();
        }
        if rows.offsets.len() >= GROUP_ROWS || rows.packet_bytes >= GROUP_BYTES {
            self.write_group()?;
        }
        Ok(())
    }

    /// Completes the table and returns the output.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn finish(mut self) -> Result<W, Error> {
        if !self.rows.offsets.is_empty() {
            self.write_group()?;
        }
        Ok(self.writer.into_inner()?)
    }

    fn write_group(&mut self) -> Result<(), Error> {
        let rows = core::mem::take(&mut self.rows);
        let mut group = self.writer.next_row_group()?;
        column::<ByteArrayType, W>(&mut group, &rows.files, None)?;
        column::<Int64Type, W>(&mut group, &rows.offsets, None)?;
        column::<Int32Type, W>(&mut group, &rows.lengths, None)?;
        let is_space = Some(&rows.is_space[..]);
        column::<Int32Type, W>(&mut group, &rows.apids, is_space)?;
        column::<Int32Type, W>(&mut group, &rows.counts, is_space)?;
        column::<ByteArrayType, W>(&mut group, &rows.groupings, is_space)?;
        column::<BoolType, W>(&mut group, &rows.telecommands, is_space)?;
        column::<BoolType, W>(&mut group, &rows.secondary, is_space)?;
        column::<Int64Type, W>(&mut group, &rows.times, Some(&rows.is_timed))?;
        if self.content == TableContent::Packets {
            column::<ByteArrayType, W>(&mut group, &rows.packets, None)?;
        }
        group.close()?;
        Ok(())
    }
}

/// Writes the next column; `present` says of each row whether it has a value.
fn column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    present: Option<&[i16]>,
) -> Result<(), Error> {
    let mut column = group.next_column()?.expect("the schema has as many columns as are written");
    column.typed::<T>().write_batch(values, present, None)?;
    Ok(column.close()?)
}

/// The words of the JSON and CSV outputs too.
const fn grouping(grouping: Grouping) -> &'static str {
    match grouping {
        Grouping::First => "first",
        Grouping::Continuation => "continuation",
        Grouping::Last => "last",
        Grouping::Standalone => "standalone",
    }
}

const COLUMNS: &str = "
    REQUIRED BYTE_ARRAY file (UTF8);
    REQUIRED INT64 offset (INTEGER(64,false));
    REQUIRED INT32 length (INTEGER(32,false));
    OPTIONAL INT32 apid (INTEGER(16,false));
    OPTIONAL INT32 count (INTEGER(16,false));
    OPTIONAL BYTE_ARRAY grouping (UTF8);
    OPTIONAL BOOLEAN telecommand;
    OPTIONAL BOOLEAN secondary_header;
    OPTIONAL INT64 time (TIMESTAMP(NANOS,true));";
/// 256 Ki rows of a row group: 25 MB in memory.
const GROUP_ROWS: usize = 256 << 10;
/// 32 MiB of packets in a row group.
const GROUP_BYTES: usize = 32 << 20;
