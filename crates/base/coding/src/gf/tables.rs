//! A coefficient's products in the form that each kernel looks them up.

use crate::field::mul;

/// `PRODUCTS[c][x]` is c × x.
pub static PRODUCTS: [[u8; 256]; 256] = {
    let mut table = [[0; 256]; 256];
    let mut c = 0;
    while c < 256 {
        let mut x = 0;
        while x < 256 {
            table[c][x] = mul(c as u8, x as u8);
            x += 1;
        }
        c += 1;
    }
    table
};

/// `NIBBLES[c][0][x]` is c × x, `NIBBLES[c][1][x]` is c × 16 x, for x below 16: c × byte is the sum
/// of one of each.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub static NIBBLES: [[[u8; 16]; 2]; 256] = {
    let mut table = [[[0; 16]; 2]; 256];
    let mut c = 0;
    while c < 256 {
        let mut x = 0;
        while x < 16 {
            table[c][0][x] = mul(c as u8, x as u8);
            table[c][1][x] = mul(c as u8, (x as u8) << 4);
            x += 1;
        }
        c += 1;
    }
    table
};

/// `MATRICES[c]` is multiplication by c as the bit matrix that GF2P8AFFINEQB takes: bit i of the
/// product is the parity of byte 7 - i of the matrix and the factor.
#[cfg(target_arch = "x86_64")]
pub static MATRICES: [u64; 256] = {
    let mut table = [0; 256];
    let mut c = 0;
    while c < 256 {
        let mut column = 0;
        while column < 8 {
            let image = mul(c as u8, 1 << column);
            let mut row = 0;
            while row < 8 {
                if image >> row & 1 == 1 {
                    table[c] |= 1 << (8 * (7 - row) + column);
                }
                row += 1;
            }
            column += 1;
        }
        c += 1;
    }
    table
};
