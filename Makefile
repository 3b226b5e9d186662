# Perilune: every target is described in `make help`.

CARGO ?= cargo
INSTALL ?= install
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
DESTDIR ?=
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
VERSION := $(shell sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
SONAME := libperilune.so.0

.DEFAULT_GOAL := help
.PHONY: help run test tidy doc install uninstall clean

## run: build and take the five-minute tour on a temporary database
run:
	$(CARGO) run --quiet --release -p perilune --example tour

## test: every check of the project; ends in one line of totals
test:
	@$(CARGO) xtask test

## tidy: only the checks of names, sizes, import order, unsafe code and links
tidy:
	@$(CARGO) xtask tidy

## doc: the API documentation in target/doc
doc:
	$(CARGO) doc --workspace --no-deps

## bench-engine: the engine beside LMDB, redb, SQLite and BTreeMap (ARGS='--quick')
.PHONY: bench-engine
bench-engine:
	$(CARGO) run --quiet --release -p perilune-bench -- engine $(ARGS)

## install: libperilune, perilune.h and perilune.pc under PREFIX (LIBDIR, DESTDIR)
install:
	$(CARGO) build --release -p perilune-capi
	$(INSTALL) -d '$(DESTDIR)$(LIBDIR)/pkgconfig' '$(DESTDIR)$(PREFIX)/include'
	$(INSTALL) -m 755 '$(TARGET_DIR)/release/libperilune_capi.so' '$(DESTDIR)$(LIBDIR)/libperilune.so.$(VERSION)'
	ln -sf libperilune.so.$(VERSION) '$(DESTDIR)$(LIBDIR)/$(SONAME)'
	ln -sf $(SONAME) '$(DESTDIR)$(LIBDIR)/libperilune.so'
	$(INSTALL) -m 644 '$(TARGET_DIR)/release/libperilune_capi.a' '$(DESTDIR)$(LIBDIR)/libperilune.a'
	$(INSTALL) -m 644 include/perilune.h '$(DESTDIR)$(PREFIX)/include/perilune.h'
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' \
	    crates/capi/perilune.pc.in >'$(DESTDIR)$(LIBDIR)/pkgconfig/perilune.pc'

## uninstall: remove what install put there
uninstall:
	rm -f '$(DESTDIR)$(LIBDIR)/libperilune.so.$(VERSION)' '$(DESTDIR)$(LIBDIR)/$(SONAME)' \
	    '$(DESTDIR)$(LIBDIR)/libperilune.so' '$(DESTDIR)$(LIBDIR)/libperilune.a' \
	    '$(DESTDIR)$(LIBDIR)/pkgconfig/perilune.pc' '$(DESTDIR)$(PREFIX)/include/perilune.h'

## clean: remove what was built
clean:
	$(CARGO) clean

help:
	@echo 'Targets:'
	@sed -n 's/^## \([a-z-]*\): \(.*\)/  \1\t\2/p' Makefile | expand -t 18
