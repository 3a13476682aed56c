//! libFuzzer program of the target `common_rdr`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::common_rdr(input));
