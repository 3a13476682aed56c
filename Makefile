# make demo    installs what is missing, builds, and runs the whole chain over an emulated long line
# make check   while you work: format, limits of the source, lints, unit tests
# make test    everything that must hold before a change lands, and what continuous integration runs; needs no root
# make test-all    everything there is: also whole matrices, simulate, kill-test, fuzz-long and lab; takes hours
# make test-neon    channel coding and run decoding as on ARM, emulated (needs qemu-aarch64 and rustup)
# make simulate    custody through 5,000 seeds of crashes, cuts and full disks, and sessions through 10,000 seeds of anything,
#                  in virtual time
# make kill-test   200 kills of real stations and centres
# make lab      every experiment in virtual time, judged by what it must reach; plots in target/lab/lab.html
# make check-lab    the same, but only where what its figures depend on differs from origin/main
# make bench   wall-clock figures of the hot paths on this machine
# make bench-net    goodput and processor time of the transport on this machine, beside iperf3, UDT and SRT if installed
# make bench-steady    how steady the default rate control is over loopback, beside a declared rate and TCP
# make bench-serve    goodput of the server of products to 64 clients over loopback, and beside
#                 2,000 slow readers (needs curl, openssl)
# make bench-deliver    what deliveries cost a node at 1 TB a day, and what bad customers and 2,000
#                 slow readers cost the others
#                 (needs openssl and curl; with sshd and rclone there are four kinds of customers)
# make bench-page    what 50 scrapes a second and 20 open pages cost two nodes that send as fast as
#                 they can; where root has perf, also how long the store's thread waits for locks
# make compare    published experiments again, on emulated links, beside the tools that are here, in 40 minutes (needs root);
#                 writes docs/explanation/published.md and its pictures
# make compare-apps    files over an emulated line, beside scp, rsync, rclone, aria2c and lftp (needs root)
# make bench-stream    1 Gbit/s of VDIF for ten minutes over an emulated line that loses 1 %, and all that loopback carries (needs root)
# make bench-rtp    video over an emulated line that loses 1 % and 5 %, beside plain RTP and SRT
#                 (needs root, and ffmpeg with libsrt)
# make deb     a Debian package, in target/deb (needs debhelper); runs nothing of it
# make check-deb    that package installed, run, upgraded and purged in clean systems of Debian 12
#                   and 13
#                   (needs root, mmdebstrap, systemd-container)
# make static  the program without libraries of the system, for any Linux of this processor:
#                  target/ARCH-unknown-linux-musl/release/skyhaul (needs rustup, musl-tools)
# make oci     a container image of the static program, in target/oci (needs umoci, skopeo); prints
#              its digest
# make check-oci    the image made twice and compared, and a node run in it (needs root, bubblewrap)
# make pictures    the pictures of the page in docs/pictures, of the demonstration (needs chromium)
# make wheel   the Python package as a wheel, in target/wheels (needs Python 3.11; fetches maturin)
# make fuzz-long    a hundred million mutated inputs for the parsers of frames, packets and records, without other tools
# make fuzz    coverage-guided fuzzing, a minute a target (needs a nightly toolchain and cargo-fuzz)

FUZZ_SECONDS = 60
SEEDS = 5000
SESSION_SEEDS = 10000
KILLS = 200

.PHONY: demo check test test-all test-neon simulate kill-test lab check-lab bench bench-net \
	bench-steady bench-stream bench-rtp bench-serve bench-deliver bench-page compare \
	compare-apps fuzz \
	fuzz-long wheel deb check-deb static oci check-oci pictures setup build
.DEFAULT_GOAL = build

setup:
	@scripts/setup

build: setup
	cargo build --locked --release --bin skyhaul

demo: build
	@scripts/setup demo
	target/release/skyhaul demo

check: setup
	@scripts/test check

test: setup
	@scripts/test test

test-all: setup
	@scripts/test all

test-neon: setup
	rustup target add aarch64-unknown-linux-musl
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=rust-lld CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUNNER=qemu-aarch64 \
		cargo test --locked --target aarch64-unknown-linux-musl -p skyhaul-coding -p skyhaul-ccsds --lib
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=rust-lld CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUNNER=qemu-aarch64 \
		cargo test --locked --target aarch64-unknown-linux-musl -p skyhaul-coding -p skyhaul-ccsds --test all -- batch:: runs::

simulate: setup
	SKYHAUL_SEEDS=$(SEEDS) cargo test --locked -p skyhaul-node --test all custody_sim:: -- --nocapture
	SKYHAUL_SEEDS=$(SESSION_SEEDS) cargo test --locked -p skyhaul-transport --test all sessions:: -- --nocapture

kill-test: setup
	SKYHAUL_KILLS=$(KILLS) cargo test --locked -p skyhaul-cli --test all kill:: -- --nocapture

lab: build
	target/release/skyhaul lab run --all --report target/lab

check-lab:
	@scripts/check-lab

bench: build
	SKYHAUL=$$(realpath "$${CARGO_TARGET_DIR:-target}/release/skyhaul") cargo bench --locked -p skyhaul-bench -- --warm-up-time 1 --measurement-time 2 --sample-size 30

bench-net: build
	bench/peers/compare.py target/release/skyhaul

bench-steady: build
	bench/peers/steady.py target/release/skyhaul

bench-stream: build
	bench/peers/stream.py target/release/skyhaul

bench-rtp: build
	bench/peers/rtp.py target/release/skyhaul

bench-serve: build
	bench/peers/serve.py target/release/skyhaul

bench-deliver: build
	bench/peers/deliver.py target/release/skyhaul

bench-page: build
	bench/peers/page.py target/release/skyhaul

compare: build
	bench/peers/install.sh target/peers
	PATH="$$PWD/target/peers:$$PATH" target/release/skyhaul lab compare dsn-93 dsn-300 dsn-requirements trollsat lfn mpdtp evlbi qos \
		--report target/compare --markdown docs/explanation/published.md

compare-apps: build
	bench/peers/install.sh --apps
	bench/peers/apps.py target/release/skyhaul

fuzz-long: setup
	SKYHAUL_FUZZ_FACTOR=260 SKYHAUL_FUZZ_TARGETS=packets,contact_records,frames,bit_stream cargo test --locked -p skyhaul-fuzz -- --show-output mutated

fuzz: setup
	@scripts/fuzz $(FUZZ_SECONDS)

deb: build
	@scripts/deb "$${CARGO_TARGET_DIR:-target}/release/skyhaul"

check-deb: deb
	@scripts/check-deb target/deb/skyhaul_*_*.deb

MUSL = $(shell uname -m)-unknown-linux-musl
STATIC = $${CARGO_TARGET_DIR:-target}/$(MUSL)/release/skyhaul

static: setup
	rustup target add $(MUSL)
	CC_$(subst -,_,$(MUSL))=musl-gcc cargo build --locked --release --target $(MUSL) --bin skyhaul

oci: static
	@scripts/oci "$(STATIC)"

check-oci: static
	@scripts/check-oci "$(STATIC)"

wheel: setup
	python3 -m venv target/maturin
	target/maturin/bin/pip install --quiet --disable-pip-version-check maturin==1.16.0
	target/maturin/bin/maturin build --locked --release --manifest-path crates/program/python/Cargo.toml --out target/wheels

pictures: build
	@scripts/pictures
