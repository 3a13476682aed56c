# make demo    installs what is missing, builds, and runs the whole chain over an emulated long line
# make test    everything that must hold before a change lands; needs no root
# make bench   wall-clock figures of the hot paths on this machine
# make fuzz    coverage-guided fuzzing, a minute a target (needs a nightly toolchain and cargo-fuzz)

FUZZ_SECONDS = 60

.PHONY: demo test bench fuzz setup build
.DEFAULT_GOAL = build

setup:
	@scripts/setup

build: setup
	cargo build --locked --release --bin skyhaul

demo: build
	target/release/skyhaul demo

test: setup
	@scripts/test

bench: setup
	CARGO_TARGET_DIR=$${CARGO_TARGET_DIR:-target} cargo bench --locked --manifest-path bench/Cargo.toml

fuzz: setup
	@scripts/fuzz $(FUZZ_SECONDS)
