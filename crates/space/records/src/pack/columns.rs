//! Rows of one length, column by column, each byte less the one before it in its column.

/// Appends `rows`, each of `width` bytes, as columns; what is over a whole number of rows is left
/// out.
pub fn put(rows: &[u8], width: usize, out: &mut Vec<u8>) {
    let count = rows.len() / width;
    let at = out.len();
    out.resize(at + count * width, 0);
    let columns = &mut out[at..];
    // Tiles of both: whole rows of a block do not fit into the first cache side by side with whole
    // columns.
    for tile in (0..width).step_by(TILE) {
        let end = (tile + TILE).min(width);
        let mut before = &[0; TILE][..end - tile];
        for (place, row) in rows.chunks_exact(width).enumerate() {
            let row = &row[tile..end];
            for (column, (byte, before)) in (tile..end).zip(row.iter().zip(before)) {
                columns[column * count + place] = byte.wrapping_sub(*before);
            }
            before = row;
        }
    }
}

/// The rows that [`put`] made columns of: `columns` holds a whole number of rows.
pub fn rows(columns: &[u8], width: usize) -> Vec<u8> {
    let count = columns.len() / width;
    let mut out = vec![0; count * width];
    for tile in (0..width).step_by(TILE) {
        let end = (tile + TILE).min(width);
        let mut before = [0u8; TILE];
        for place in 0..count {
            for column in tile..end {
                let byte = &mut before[column - tile];
                *byte = byte.wrapping_add(columns[column * count + place]);
                out[place * width + column] = *byte;
            }
        }
    }
    out
}

/// Columns that are worked on together.
const TILE: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rows_come_back(width in 1usize..200,
            rows_in in proptest::collection::vec(any::<u8>(), 0..2_000)) {
            let whole = rows_in.len() / width * width;
            let mut out = vec![7];
            put(&rows_in, width, &mut out);
            prop_assert_eq!(&rows(&out[1..], width)[..], &rows_in[..whole]);
        }
    }

    #[test]
    fn a_field_that_does_not_change_is_zeros() {
        let mut out = Vec::new();
        put(&[1, 5, 1, 6, 1, 7], 2, &mut out);
        assert_eq!(out, [1, 0, 0, 5, 1, 1]);
    }
}
