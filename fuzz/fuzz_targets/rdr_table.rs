//! libFuzzer program of the target `rdr_table`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::rdr_table(input));
