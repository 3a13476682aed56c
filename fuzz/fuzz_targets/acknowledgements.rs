//! libFuzzer program of the target `acknowledgements`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::acknowledgements(input));
