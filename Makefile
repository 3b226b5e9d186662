# Perilune: every target is described in `make help`.

CARGO ?= cargo
INSTALL ?= install
STRIP ?= strip
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
DESTDIR ?=
MANDIR ?= $(PREFIX)/share/man
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
# Where settings and units of systemd lie; with PREFIX=/usr as distributions have them.
SYSCONFDIR ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)
UNITDIR ?= $(PREFIX)/lib/systemd/system
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
VERSION := $(shell sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
SONAME := libperilune.so.0
# What install, install-lua, install-node and deb take: release, or dev for a quick look.
PROFILE ?= release
# What is built for that. A choice of packages decides which features libraries have: who has built all can say so.
PACKAGES ?= -p perilune-capi -p perilune-cli
LIBRARY = $(or $(filter --workspace,$(PACKAGES)),-p perilune-capi)
BUILT = $(TARGET_DIR)/$(if $(filter dev,$(PROFILE)),debug,$(PROFILE))

SECONDS ?= 60
ARM := aarch64-unknown-linux-gnu
ARM_CC ?= aarch64-linux-gnu-gcc
ARM_ROOT ?= /usr/aarch64-linux-gnu
ARM_CARGO = CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$(ARM_CC) \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER='qemu-aarch64 -L $(ARM_ROOT)' \
	timeout 1800 $(CARGO) test --release --target $(ARM)

.DEFAULT_GOAL := help
.PHONY: help run test fuzz cross-test tidy doc install uninstall clean

## run: build, then the 3n+1 benchmark by 1, 2 and 32 processes on a temporary database
run:
	$(CARGO) build --quiet --release -p perilune-cli
	'$(TARGET_DIR)/release/perilune' bench collatz --n 100000 --procs 1,2,32

## install-lua: the module for one Lua, LUA=5.1 5.2 5.3 5.4 5.5 jit, under PREFIX (DESTDIR); COMPAT=1: also as `yottadb`
LUA ?= 5.4
COMPAT ?=
.PHONY: install-lua
install-lua:
	$(CARGO) build --profile $(PROFILE) $(LIBRARY)
	$(MAKE) -C bindings/lua install LUA='$(LUA)' PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' \
	    COMPAT='$(COMPAT)' PROFILE='$(PROFILE)' LIBPERILUNE='$(abspath $(BUILT))/libperilune_capi.a'

## install-node: the package perilune for Node.js, with its addon, under PREFIX (DESTDIR)
.PHONY: install-node
install-node:
	$(CARGO) build --profile $(PROFILE) $(LIBRARY)
	$(MAKE) -C bindings/node install PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' \
	    PROFILE='$(PROFILE)' LIBPERILUNE='$(abspath $(BUILT))/libperilune_capi.a'

## node-long: workers, kills and memory of the module for Node.js, in their long forms; some minutes
.PHONY: node-long node-qewd
node-long:
	$(CARGO) build --release -p perilune-capi
	$(MAKE) -C bindings/node long

## dom-storm: documents of XML changed by 4 processes that are killed, KILLS=1000 times, checked after each
.PHONY: dom-storm
dom-storm:
	PERILUNE_DOM_KILLS=$(or $(KILLS),1000) cargo test --release -p perilune-dom --test killed -- --nocapture

## models-storm: lists, stores, records, columns and networks changed by 4 processes that are killed, KILLS=1000 times
.PHONY: models-storm
models-storm:
	PERILUNE_MODELS_KILLS=$(or $(KILLS),1000) cargo test --release -p perilune-models --test killed -- --nocapture

## node-qewd: a whole QEWD server (389 packages from npm) over the module for Node.js
node-qewd:
	$(CARGO) build --release -p perilune-capi
	$(MAKE) -C bindings/node qewd

## test: every check of the project; installs what it needs (Debian; root or sudo); ends in one line of totals
test:
	@.ci/install
	@$(CARGO) xtask test

## fuzz: hostile bytes for pages, trees and decoders, SECONDS=60 a target; ends in totals, seeds are printed
fuzz:
	PERILUNE_FUZZ_SECONDS=$(SECONDS) timeout $$(($(SECONDS) * 10 + 900)) \
	    $(CARGO) test --release -p perilune-engine --lib fuzz:: -- --nocapture --test-threads=2

## log-damage: random bytes of a log changed after a crash, for SECONDS=60: opened with everything, or refused
.PHONY: log-damage
log-damage:
	PERILUNE_LOG_DAMAGE=$(SECONDS) timeout $$(($(SECONDS) * 3 + 900)) \
	    $(CARGO) test --release -p perilune-engine --test log_damage -- --nocapture

## damage-storm: bytes of closed databases are changed at random places for SECONDS=60: what is read then is right or an error
.PHONY: damage-storm
damage-storm:
	PERILUNE_FUZZ_SECONDS=$(SECONDS) timeout $$(($(SECONDS) + 900)) \
	    $(CARGO) test --release -p perilune-engine --lib fuzz::damage -- --nocapture

## compare: SEQUENCES=10000 sequences of commands to our server and to a redis-server, whose replies must be equal
SEQUENCES ?= 10000
.PHONY: compare
compare:
	PERILUNE_SEQUENCES=$(SEQUENCES) timeout $$(($(SEQUENCES) / 20 + 900)) \
	    $(CARGO) test --release -p perilune-redis --test compare -- --nocapture

# qemu-user knows no MADV_WIPEONFORK nor MADV_DONTFORK: tests of anchors, forks and whole databases are left
# out. It shows that arm64 code works, not that its weaker memory is mastered: that is the loom stages' task.
## cross-test: tests of keys, shared memory, pages and trees on arm64, under qemu-user
cross-test:
	@[ -d "$$(rustc --print target-libdir --target $(ARM))" ] || \
	    { echo 'cross-test: no standard library for arm64: rustup target add $(ARM)'; exit 1; }
	@command -v $(ARM_CC) >/dev/null || \
	    { echo 'cross-test: no $(ARM_CC): apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross'; exit 1; }
	@command -v qemu-aarch64 >/dev/null || { echo 'cross-test: no qemu-aarch64: apt-get install qemu-user'; exit 1; }
	$(ARM_CARGO) -p perilune-key
	$(ARM_CARGO) -p perilune-shm --lib --test lockbyte --test platform --test region
	$(ARM_CARGO) -p perilune-engine --test model_handshake
	$(ARM_CARGO) -p perilune-engine --lib -- page:: tree:: fuzz::

## hostility: hostile clients and killed servers, TIMES=20 times as long as in the tests: 100,000 connections, ...
TIMES ?= 20
.PHONY: hostility
hostility:
	PERILUNE_HOSTILITY=$(TIMES) timeout 3600 $(CARGO) test --release -p perilune-redis --test hostility -- --nocapture

## sqllogictest: files of the public corpus on tables in the tree, plain SQLite beside; CORPUS=DIRECTORY
.PHONY: sqllogictest
sqllogictest:
	cargo run --quiet --release -p perilune-sql --example sqllogictest -- $(CORPUS)

## redis-suite: the test suite of Redis 7.0 (Debian's source) against this server, some minutes; UNITS='type/list multi'
.PHONY: redis-suite
redis-suite:
	$(CARGO) build --release -p perilune-cli
	PERILUNE='$(abspath $(TARGET_DIR))/release/perilune' crates/redis/suite/run $(UNITS)

## tidy: only the checks of names, sizes, import order, unsafe code and links
tidy:
	@$(CARGO) xtask tidy

## kill-storm: random work of 16 processes at changing levels, checkpoints every 50 ms, one killed every few ms, for SECONDS=60
.PHONY: kill-storm
kill-storm:
	@$(CARGO) run --quiet --profile checks -p perilune-harness --features instruments --bin kill_storm -- \
	    --seconds $(SECONDS) $(KILL_STORM)

## replace-storm: databases removed, renamed and remade under 8 processes that have them open, for SECONDS=60
.PHONY: replace-storm
replace-storm:
	@$(CARGO) run --quiet --profile checks -p perilune-harness --features instruments --bin replace_storm -- \
	    --seconds $(SECONDS) $(REPLACE_STORM)

## stop-storm: random work of 8 processes, one after the other stopped anywhere, nobody waiting beyond its limit, for SECONDS=60
.PHONY: stop-storm
stop-storm:
	@$(CARGO) run --quiet --profile checks -p perilune-harness --features instruments --bin stop_storm -- \
	    --seconds $(SECONDS) $(STOP_STORM)

## graph-storm: 4 processes change a graph while 2 walk it, one killed after the other, for SECONDS=60
.PHONY: graph-storm
graph-storm:
	@PERILUNE_GRAPH_STORM=$(SECONDS) $(CARGO) test --quiet --release -p perilune-graph --test storm -- --nocapture

## social-network: LDBC's reads as walks beside SQL's joins; LDBC=DIR of its data for Cypher, else cloned from GitHub for the run
.PHONY: social-network
social-network:
	@if [ -n '$(LDBC)' ]; then data='$(LDBC)'; else \
	    copy=$$(mktemp -d) && trap 'rm -rf "$$copy"' EXIT && \
	    git clone --quiet --depth 1 https://github.com/ldbc/ldbc_snb_interactive_v1_impls "$$copy/ldbc" && \
	    data="$$copy/ldbc/cypher/test-data/vanilla"; fi && \
	$(CARGO) run --quiet --release -p perilune-sql --example social_network -- "$$data"

## kill-step: kill after every instruction of every operation; KILL_STEP='--quick', '--case NAME', ...
kill-step:
	@$(CARGO) run --quiet --profile checks -p perilune-harness --features instruments --bin kill_step -- $(KILL_STEP)

## crash-sim: the power fails RUNS=2000 times at random moments; what comes back is compared with the promises
RUNS ?= 2000
.PHONY: crash-sim
crash-sim:
	@$(CARGO) run --quiet --profile checks -p perilune-harness --features instruments --bin crash_sim -- \
	    --runs $(RUNS) $(CRASH_SIM)

## doc: the API documentation in target/doc
doc:
	$(CARGO) doc --workspace --no-deps

## bench: all peers beside each other, the standard set: about 25 minutes; RUN=bench/runs/... ARGS='--only 1,2 --rounds 3'
RUN ?= bench/runs/$(shell date -u +%Y-%m-%d)-$(shell nproc)vcpu
PEERS := redis-server tarantool fis-gtm liblmdb0 libdb5.3 libsqlite3-0 librocksdb7.8 lua5.4 lua5.1 lua-redis
.PHONY: bench bench-full bench-peers bench-programs
bench: bench-peers bench-programs
	'$(TARGET_DIR)/release/perilune-bench' run --run-dir '$(RUN)' $(ARGS)

## bench-full: every workload in every class: hours
bench-full: bench-peers bench-programs
	'$(TARGET_DIR)/release/perilune-bench' run --full --run-dir '$(RUN)' $(ARGS)

# What is missing is installed where that is allowed; else the report names it.
bench-peers:
	@dpkg -s $(PEERS) >/dev/null 2>&1 || \
	    { [ "$$(id -u)" = 0 ] && apt-get install -y --no-install-recommends $(PEERS); } || \
	    echo 'not all peers are here: apt-get install $(PEERS)'

bench-programs:
	$(CARGO) build --release -p perilune-bench -p perilune-cli -p perilune-capi
	$(MAKE) -s -C bindings/lua LUA=5.4

## bench-engine: the engine beside LMDB, redb, SQLite and BTreeMap (ARGS='--quick')
.PHONY: bench-engine
bench-engine:
	$(CARGO) run --quiet --release -p perilune-bench -- engine $(ARGS)

## bench-durability: commits, recovery, reopening, space and loading, beside peers and the disk itself (ARGS='--quick')
.PHONY: bench-durability bench-memory
bench-durability:
	$(CARGO) run --quiet --release -p perilune-bench -- durability $(ARGS)

## bench-memory: 4 GiB of data in a memory cgroup of 512 MiB, which takes root (ARGS='--quick')
bench-memory:
	$(CARGO) run --quiet --release -p perilune-bench -- memory $(ARGS)

## bench-server: our server beside redis-server: about 12 minutes; SERVER_RUN=bench/runs/... ARGS='--quick', ARGS='--only scripts'
SERVER_RUN ?= bench/runs/$(shell date -u +%Y-%m-%d)-$(shell nproc)vcpu-server
.PHONY: bench-server
bench-server:
	$(CARGO) build --release -p perilune-bench -p perilune-cli
	'$(TARGET_DIR)/release/perilune-bench' server --run-dir '$(SERVER_RUN)' $(ARGS)

## bench-lua: the workloads of Lua and 3n+1, in LuaJIT and Lua 5.4, recorded in LUA_RUN=bench/runs/...
LUA_RUN ?= bench/runs/$(shell date -u +%Y-%m-%d)-$(shell nproc)vcpu-lua
.PHONY: bench-lua
bench-lua:
	$(CARGO) build --quiet --release -p perilune-cli -p perilune-capi
	$(MAKE) -s -C bindings/lua LUA=5.4
	bench/record-lua '$(TARGET_DIR)/release/perilune' '$(LUA_RUN)' lua5.4

## bench-graph: a graph of 1M edges, beside SQLite, and Kuzu and networkx if Python has them; files in GRAPH_FILES=/tmp/...
GRAPH_FILES ?= $(TARGET_DIR)/bench-graph
.PHONY: bench-graph
bench-graph:
	$(CARGO) run --quiet --release -p perilune-graph --example graph_speed -- '$(GRAPH_FILES)'
	bench/graph/peers.py '$(GRAPH_FILES)'

## check-dockerfile: the steps of bench/Dockerfile in a clean root of Debian in CHECK=/tmp/...: root, debootstrap, 5 GB, 15 minutes
CHECK ?= /tmp/perilune-dockerfile
.PHONY: check-dockerfile
check-dockerfile:
	mkdir -p '$(CHECK)' && bench/check-dockerfile '$(CHECK)'

## install: the program, man pages, completions, libperilune, perilune.h, perilune.pc, perilune.conf and a unit of systemd under PREFIX (DESTDIR)
install:
	$(CARGO) build --profile $(PROFILE) $(PACKAGES)
	$(INSTALL) -d '$(DESTDIR)$(LIBDIR)/pkgconfig' '$(DESTDIR)$(PREFIX)/include' '$(DESTDIR)$(PREFIX)/bin' \
	    '$(DESTDIR)$(MANDIR)/man1' '$(DESTDIR)$(BASHDIR)' '$(DESTDIR)$(ZSHDIR)' '$(DESTDIR)$(FISHDIR)'
	$(INSTALL) -m 755 '$(BUILT)/perilune' '$(DESTDIR)$(PREFIX)/bin/perilune'
	'$(BUILT)/perilune' manual '$(DESTDIR)$(MANDIR)/man1'
	'$(BUILT)/perilune' completions bash >'$(DESTDIR)$(BASHDIR)/perilune'
	'$(BUILT)/perilune' completions zsh >'$(DESTDIR)$(ZSHDIR)/_perilune'
	'$(BUILT)/perilune' completions fish >'$(DESTDIR)$(FISHDIR)/perilune.fish'
	$(INSTALL) -m 755 '$(BUILT)/libperilune_capi.so' '$(DESTDIR)$(LIBDIR)/libperilune.so.$(VERSION)'
	ln -sf libperilune.so.$(VERSION) '$(DESTDIR)$(LIBDIR)/$(SONAME)'
	ln -sf $(SONAME) '$(DESTDIR)$(LIBDIR)/libperilune.so'
	$(INSTALL) -m 644 '$(BUILT)/libperilune_capi.a' '$(DESTDIR)$(LIBDIR)/libperilune.a'
	$(STRIP) --strip-unneeded '$(DESTDIR)$(PREFIX)/bin/perilune' '$(DESTDIR)$(LIBDIR)/libperilune.so.$(VERSION)'
	$(STRIP) --strip-debug --enable-deterministic-archives '$(DESTDIR)$(LIBDIR)/libperilune.a'
	$(INSTALL) -m 644 include/perilune.h '$(DESTDIR)$(PREFIX)/include/perilune.h'
	$(INSTALL) -d '$(DESTDIR)$(SYSCONFDIR)/perilune' '$(DESTDIR)$(UNITDIR)'
	[ -e '$(DESTDIR)$(SYSCONFDIR)/perilune/perilune.conf' ] || \
	    $(INSTALL) -m 644 packaging/perilune.conf '$(DESTDIR)$(SYSCONFDIR)/perilune/perilune.conf'
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@SYSCONFDIR@|$(SYSCONFDIR)|' packaging/perilune.service \
	    >'$(DESTDIR)$(UNITDIR)/perilune.service'
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' \
	    crates/capi/perilune.pc.in >'$(DESTDIR)$(LIBDIR)/pkgconfig/perilune.pc'
	@echo 'Perilune $(VERSION) is in $(DESTDIR)$(PREFIX); the module of a Lua: make install-lua LUA=5.4'

## uninstall: remove what install, install-lua and install-node put there
uninstall:
	@for lua in 5.1 5.2 5.3 5.4 5.5; do \
	    $(MAKE) -s -C bindings/lua uninstall LUA=$$lua PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' COMPAT=1; done
	@$(MAKE) -s -C bindings/node uninstall PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)'
	rm -f '$(DESTDIR)$(PREFIX)/bin/perilune'
	rm -f '$(DESTDIR)$(LIBDIR)/libperilune.so.$(VERSION)' '$(DESTDIR)$(LIBDIR)/$(SONAME)' \
	    '$(DESTDIR)$(LIBDIR)/libperilune.so' '$(DESTDIR)$(LIBDIR)/libperilune.a' \
	    '$(DESTDIR)$(LIBDIR)/pkgconfig/perilune.pc' '$(DESTDIR)$(PREFIX)/include/perilune.h' \
	    '$(DESTDIR)$(UNITDIR)/perilune.service'
	@# Settings may have been written by hand.
	cmp -s packaging/perilune.conf '$(DESTDIR)$(SYSCONFDIR)/perilune/perilune.conf' && \
	    rm -f '$(DESTDIR)$(SYSCONFDIR)/perilune/perilune.conf' || true
	@rmdir '$(DESTDIR)$(SYSCONFDIR)/perilune' 2>/dev/null || true
	rm -f '$(DESTDIR)$(MANDIR)/man1/perilune.1' '$(DESTDIR)$(MANDIR)/man1/'perilune-*.1 '$(DESTDIR)$(BASHDIR)/perilune' \
	    '$(DESTDIR)$(ZSHDIR)/_perilune' '$(DESTDIR)$(FISHDIR)/perilune.fish'

## deb: target/perilune_VERSION_ARCH.deb: all of install, and the module for Lua 5.1, LuaJIT and 5.4
DEB ?= $(TARGET_DIR)/perilune_$(VERSION)_$(shell dpkg --print-architecture 2>/dev/null).deb
.PHONY: deb
deb:
	@MAKE='$(MAKE)' packaging/deb '$(VERSION)' '$(PROFILE)' '$(abspath $(BUILT))' '$(abspath $(TARGET_DIR))/deb' '$(DEB)'

## dist: target/dist: what a release has for this platform, a tarball and the package, stripped, with checksums
.PHONY: dist
dist: deb
	packaging/dist '$(VERSION)' '$(PROFILE)' '$(abspath $(TARGET_DIR))/dist' '$(DEB)'

## clean: remove what was built
clean:
	$(CARGO) clean

help:
	@echo 'Targets:'
	@sed -n 's/^## \([a-z-]*\): \(.*\)/  \1\t\2/p' Makefile | expand -t 18
