//! libFuzzer program of the target `tcp_sockets`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| skyhaul_fuzz::tcp_sockets(input));
