# SPDX-License-Identifier: Apache-2.0
# The whole build. `make help` lists the targets.
#
#   B=dir      build directory (default: build, or build/asan ... with SAN)
#   SAN=asan   address and undefined-behaviour sanitizers; SAN=tsan: threads
#   WERROR=1   warnings are errors (CI sets it)
#   CC=clang   the other compiler
#   PLANT=x    a build with a planted mistake, -DPLANT_x, that a check has to find; own B

# Order matters: a module may include only itself and modules that stand before it.
MODULES := base io wire record config metadata journal log keeper replica controller group txn \
           security client broker mirror http cli
PURE_BASE := base wire record config metadata
PURE := $(PURE_BASE) replica controller group txn

MODULES := $(strip $(foreach m,$(MODULES),$(if $(wildcard src/$m/),$m)))
SAN ?=
B ?= build$(if $(SAN),/$(SAN))
PREFIX ?= /usr/local
SECONDS ?= 30
ifeq ($(origin CC),default)
CC := gcc
endif

SAN_asan := -fsanitize=address,undefined -fno-sanitize-recover=undefined
SAN_tsan := -fsanitize=thread
SAN_fuzz := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla \
        -Wcast-align -Wformat=2 -Wundef -Wimplicit-fallthrough -Wswitch
ifneq ($(WERROR)$(CI),)
WARN += -Werror
endif
CPPFLAGS := -D_GNU_SOURCE -D_FORTIFY_SOURCE=2 -Isrc $(PLANT:%=-DPLANT_%)
CFLAGS := -std=gnu17 -O2 -g $(WARN) -fno-strict-aliasing -fno-omit-frame-pointer \
          -fstack-protector-strong -ffunction-sections -fdata-sections -pthread $(SAN_$(SAN))
LDFLAGS := -Wl,--as-needed -Wl,--gc-sections
BANNED := -include src/base/banned.h

# Libraries, by the module that calls them; asked for at link time, after tools/deps has run.
pkg = $(shell pkg-config --libs $(1))
LIBS_record = $(call pkg,libisal zlib liblz4 libzstd) -lsnappy
LIBS_keeper = $(call pkg,sqlite3 jansson) -lzookeeper_mt
LIBS_cli = $(call pkg,jansson)
LIBS_test = $(call pkg,cmocka)

# ---- Modules: src/<m>/*.c -> lib<m>.a. Module io has two more, real and sim, chosen at link time.
obj = $(patsubst %.c,$(B)/%.o,$(1))
lib = $(patsubst %,$(B)/lib%.a,$(1))
pick = $(filter-out %_test.c %_simtest.c src/cli/main.c,$(wildcard $(1)))
sources = $(filter-out src/io/real/% src/io/sim/%,$(call pick,src/$(1)/*.c src/$(1)/*/*.c))
# What the tests of a module are linked with: itself and the modules that it may include.
before = $(if $(filter $(1),$(firstword $(2))),,$(firstword $(2)) \
           $(call before,$(1),$(wordlist 2,$(words $(2)),$(2))))
sees = $(strip $(1) $(filter $(if $(filter $(1),$(PURE)),$(PURE_BASE),%),$(call before,$(1),$(MODULES))))
libs_of = $(foreach m,$(1),$(LIBS_$m))
paths = $(patsubst src/%.c,$(B)/test/%,$(wildcard src/$(1)/*$(2).c src/$(1)/*/*$(2).c))
IO_REAL := $(if $(wildcard src/io/),$(B)/libio-real.a)
IO_SIM := $(if $(wildcard src/io/),$(B)/libio-sim.a)
LIBS := $(call lib,$(MODULES)) $(IO_REAL) $(IO_SIM)
PROGRAM := $(if $(wildcard src/cli/main.c),$(B)/strandline)

.PHONY: all run test check suites bench sim fuzz fuzzers soak soak-planted format format-check clang-tidy headers install \
        clean help deps force
.DELETE_ON_ERROR:
.SECONDARY:
all: $(LIBS) $(PROGRAM)

define module
$(B)/lib$(1).a: $(call obj,$(call sources,$(1)))
TESTS_$(1) := $(filter-out $(B)/test/io/conformance_% $(B)/test/io/sim/%,$(call paths,$(1),_test))
SIMTESTS_$(1) := $(call paths,$(1),_simtest) $(filter $(B)/test/io/sim/%,$(call paths,$(1),_test))
$$(TESTS_$(1)): LDLIBS = $$(call libs_of,$(call sees,$(1)) test)
$$(TESTS_$(1)): $(B)/test/%: $(B)/src/%.o $(call lib,$(call sees,$(1))) \
    $(if $(filter $(1),$(PURE)),,$(IO_REAL))
	$$(link)
$$(SIMTESTS_$(1)): LDLIBS = $$(call libs_of,$(call sees,$(1)) test)
$$(SIMTESTS_$(1)): $(B)/test/%: $(B)/src/%.o $(call lib,$(call sees,$(1))) $(IO_SIM)
	$$(link)
.PHONY: test-$(1)
test-$(1): $$(TESTS_$(1)) $$(SIMTESTS_$(1)) $(if $(filter io,$(1)),$$(CONFORMANCE))
	@printf '%s\n' $$(sort $$^) | tools/run-tests $(B)/log/$(1)
endef
CONFORMANCE := $(if $(wildcard src/io/conformance_test.c),$(patsubst src/io/%/, \
                 $(B)/test/io/conformance_test-%,$(wildcard src/io/real/ src/io/sim/)))
$(foreach m,$(MODULES),$(eval $(call module,$m)))
TESTS := $(foreach m,$(MODULES),$(TESTS_$m) $(SIMTESTS_$m)) $(CONFORMANCE)

$(B)/libio-real.a: $(call obj,$(call pick,src/io/real/*.c))
$(B)/libio-sim.a: $(call obj,$(call pick,src/io/sim/*.c))
$(CONFORMANCE): LDLIBS = $(LIBS_test)
$(CONFORMANCE): $(B)/test/io/conformance_test-%: $(call obj,$(wildcard src/io/conformance*_test.c)) \
    $(B)/libio.a $(B)/libbase.a $(B)/libio-%.a
	$(link)

link = @mkdir -p $(@D)$(if $(V),,; echo "  LINK $@")
link += $(if $(V),&&,;) $(CC) $(CFLAGS) $(LDFLAGS) $(LINKFLAGS) -o $@ $(filter %.o,$^) \
        -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDLIBS)

$(B)/strandline: LDLIBS = $(call libs_of,$(MODULES))
$(B)/strandline: $(B)/src/cli/main.o $(call lib,$(MODULES)) $(IO_REAL) \
    $(if $(filter CHOSEN,$(PLANT)),$(B)/tests/soak/planted.o)
	$(link)

$(B)/%.o: %.c $(B)/.flags | $(B)/.deps
	@mkdir -p $(@D)
	@echo "  CC   $<"
	@$(CC) $(CPPFLAGS) $(BANNED) $(CFLAGS) -MMD -MP -c -o $@ $<
$(B)/%.a:
	@mkdir -p $(@D)
	@rm -f $@ && ar rcs $@ $(filter %.o,$^)
$(B)/src/%test.o $(B)/tests/%.o $(B)/bench/%.o: CFLAGS += -Wno-conversion -Wno-sign-conversion

# Installs the Debian packages that are missing; nothing happens when all are there.
$(B)/.deps: tools/deps
	@mkdir -p $(B) && tools/deps build && touch $@
deps: $(B)/.deps
# Other flags or another compiler in the same build directory: everything is compiled again.
FLAGS := $(CC) $(CPPFLAGS) $(CFLAGS)
$(B)/.flags: force
	@mkdir -p $(B) && echo '$(FLAGS)' | cmp -s - $@ || echo '$(FLAGS)' >$@
force:

# ---- Simulation: a file of tests/sim with a main is a program, the others are shared by all.
SIM_ALL := $(wildcard tests/sim/*.c)
SIM_MAIN := $(if $(SIM_ALL),$(shell grep -l '^int main' $(SIM_ALL)))
SIMS := $(patsubst tests/%.c,$(B)/%,$(SIM_MAIN))
$(SIMS): LDLIBS = $(call libs_of,$(MODULES) test)
$(SIMS): $(B)/sim/%: $(B)/tests/sim/%.o $(call obj,$(filter-out $(SIM_MAIN),$(SIM_ALL))) \
    $(call lib,$(MODULES)) $(IO_SIM)
	$(link)
# SEED=n replays one seed, SEEDS=n runs so many; a program by itself runs a short part.
SIMS_ASKED := $(if $(SEED)$(CHOICES),$(B)/sim/broker,$(if $(SCENARIO),$(B)/sim/scenarios,$(SIMS)))
.PHONY: sim-planted hunt
sim: $(SIMS_ASKED)
	@set -e; for sim in $(SIMS_ASKED); do SEEDS=$(or $(SEEDS),$(if $(SEED),1,700)) $$sim; done
# New seeds, for ever or MINUTES=n; it goes on where the last one stopped ($(B)/hunt.state).
hunt: $(B)/sim/broker
	@$< $(B)/hunt $$(git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)
# Every planted mistake (src/base/planted.h) has to be found; the program has none of them.
sim-planted:
	@$(MAKE) --no-print-directory B=$(B)/planted PLANT=CHOSEN $(SIMS:$(B)/%=$(B)/planted/%)
	@set -e; for sim in $(SIMS:$(B)/%=$(B)/planted/%); do $$sim; done

# ---- Fuzzing: tests/fuzz/<name>.c is a libFuzzer target; gcc and replay.c replay its corpus.
FUZZ := $(patsubst tests/fuzz/%.c,%,$(filter-out tests/fuzz/replay.c,$(wildcard tests/fuzz/*.c)))
REPLAYS := $(FUZZ:%=$(B)/replay/%)
FUZZERS := $(FUZZ:%=$(B)/fuzz/%)
$(REPLAYS) $(FUZZERS): LDLIBS = $(call libs_of,$(MODULES))
$(REPLAYS): $(B)/replay/%: $(B)/tests/fuzz/%.o $(B)/tests/fuzz/replay.o $(call lib,$(MODULES)) \
    $(IO_REAL)
	$(link)
$(FUZZERS): LINKFLAGS := -fsanitize=fuzzer
$(FUZZERS): $(B)/fuzz/%: $(B)/tests/fuzz/%.o $(call lib,$(MODULES)) $(IO_REAL)
	$(link)
fuzz: $(FUZZ:%=fuzz-%)
# All of them by one make: two would write the same libraries.
fuzzers:
	@$(MAKE) --no-print-directory CC=clang SAN=fuzz B=$(B)/fuzzing $(FUZZ:%=$(B)/fuzzing/fuzz/%)
fuzz-%: F = $(B)/fuzzing
fuzz-%: fuzzers
	@mkdir -p $F/corpus/$*
	$F/fuzz/$* -max_total_time=$(SECONDS) -artifact_prefix=$F/ $(ARGS) $F/corpus/$* \
	    $(wildcard tests/fuzz/corpus/$*)

# ---- Benchmarks: make bench-<name> builds and runs bench/<name>.c.
bench-%: $(B)/bench/%.bin
	$< $(ARGS)
# make bench is us and Apache Kafka side by side (about an hour; ARGS=--quick, bench/compare --help).
bench: all $(B)/bench/load.bin
	bench/compare --build $(B) $(ARGS)
# Likewise three of each, with three replicas.
bench-replicas bench-partitions: bench-%: all $(B)/bench/load.bin
	bench/$* --build $(B) $(ARGS)
bench-failover: all
	bench/failover --build $(B) $(ARGS)
$(B)/bench/%.bin: LDLIBS = $(call libs_of,$(MODULES))
$(B)/bench/load.bin: LDLIBS = $(call pkg,rdkafka)
$(B)/bench/%.bin: $(B)/bench/%.o $(call lib,$(MODULES)) $(IO_REAL)
	$(link)

# ---- Programs of the checks: librdkafka against a broker that is killed, filled, harassed.
KILL := $(patsubst %,$(B)/kill/%,workload verify topic follow)
$(KILL): LDLIBS = $(call pkg,rdkafka)
$(KILL): $(B)/kill/%: $(B)/tests/kill/%.o $(B)/tests/kill/peer.o $(B)/tests/kill/record.o \
    $(B)/libbase.a
	$(link)

# ---- Programs of tests/soak: the layer between a broker and its disk, and a power cut.
SOAK := $(B)/soak/disk.so $(B)/soak/powercut
$(B)/soak/disk.so: tests/soak/disk.c tests/soak/shadow.c tests/soak/shadow.h
	@mkdir -p $(@D)
	@echo "  LINK $@"
	@$(CC) $(CPPFLAGS) $(CFLAGS) -fPIC -shared -o $@ tests/soak/disk.c tests/soak/shadow.c -ldl -pthread
$(B)/soak/powercut: $(B)/tests/soak/powercut.o $(B)/tests/soak/shadow.o $(B)/libbase.a
	$(link)

# ---- Checks of the source text and of the objects.
C_FILES = $(shell git ls-files -co --exclude-standard -- '*.c' '*.h' ':!tools/samples')
headers: $(patsubst %.h,$(B)/headers/%.ok,$(wildcard src/*/*.h src/*/*/*.h))
$(B)/headers/%.ok: %.h
	@mkdir -p $(@D)
	@$(CC) $(CPPFLAGS) $(CFLAGS) -Wno-unused -fsyntax-only -x c $< && touch $@
format:
	@clang-format -i $(C_FILES)
format-check:
	@clang-format --dry-run -Werror $(C_FILES)
clang-tidy:
	clang-tidy --quiet $(filter-out %_test.c,$(filter src/%.c,$(C_FILES))) -- $(CPPFLAGS) $(CFLAGS)

# ---- What a user calls.
run: $(PROGRAM)
	$(or $(PROGRAM),$(error src/cli/main.c is not there yet)) serve $(ARGS)

# Units, transcripts, simulation, corpora, layers, tidy: build dependencies alone, 3 minutes.
test: all headers $(TESTS) $(SIMS) $(REPLAYS)
	@{ printf '%s\n' $(TESTS) $(SIMS) $(foreach f,$(FUZZ),'$(B)/replay/$f tests/fuzz/corpus/$f'); \
	   printf '%s\n' 'tools/layers src $(if $(SAN),,$(B))' tools/tidy 'tools/samples/run $(CC)'; } | \
	 tools/run-tests $(B)/log/all

# Real clients against real processes: every tests/check/*.sh, in the order of their names.
check: all $(KILL) $(SOAK) $(TESTS_keeper)
	@for script in $(sort $(wildcard tests/check/*.sh)); do echo "$$script"; done | \
	 STRANDLINE=$(abspath $(PROGRAM)) CHECK_SECONDS=1800 JOBS=1 TABLE=1 tools/run-tests $(B)/log/check

# Other projects' own tests, against us and against Apache Kafka (half an hour; ARGS=--help).
suites: all
	STRANDLINE=$(abspath $(PROGRAM)) tests/suites/suites.py --logs $(B)/suites $(ARGS)

# Every workload under every fault on three real brokers (hours; goes on where it stopped; as root).
soak: all $(KILL) $(SOAK)
	tests/tools/fetch-peers kafka-3.9
	tests/soak/soak.py $(PROGRAM) --state $(B)/soak.state --keep $(B)/soak.failed $(ARGS)

# The same finds mistakes that were made on purpose (as root; ten minutes).
soak-planted: $(KILL) $(SOAK)
	@$(MAKE) --no-print-directory B=$(B)/planted PLANT=CHOSEN $(PROGRAM:$(B)/%=$(B)/planted/%) \
	    $(KILL:$(B)/%=$(B)/planted/%) $(SOAK:$(B)/%=$(B)/planted/%)
	tests/soak/planted $(B)/planted/strandline

install: $(PROGRAM)
	install -D -m 755 $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/strandline
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	sed 's,@PREFIX@,$(PREFIX),g' packaging/strandline.service.in > \
	    $(DESTDIR)$(PREFIX)/lib/systemd/system/strandline.service

clean:
	rm -rf $(B)

help:
	@echo 'make                 build the program, $(B)/strandline'
	@echo 'make run             start a broker on 127.0.0.1:9092; ARGS=... are passed on'
	@echo 'make test            units, simulation, corpora, layers, tidy; under 3 minutes'
	@echo 'make test-<module>   the unit tests of one module: $(strip $(MODULES))'
	@echo 'make check           real clients and Apache Kafka (tools/deps check installs them)'
	@echo 'make suites          what other projects test, beside Apache Kafka; ARGS=--help'
	@echo 'make sim             the simulations of tests/sim, two minutes; SEED=n, SEEDS=n, HUNT=1,'
	@echo '                     SCENARIO=s17'
	@echo 'make hunt            looks for seeds that fail, for ever; MINUTES=n; B/hunt.* say what it found'
	@echo 'make sim-planted     another build: the simulation has to find every planted mistake'
	@echo 'make fuzz[-<name>]   fuzz with clang for SECONDS=$(SECONDS) each: $(FUZZ)'
	@echo 'make bench           us and Apache Kafka side by side; ARGS=... for bench/compare'
	@echo 'make bench-<name>    build and run bench/<name>.c'
	@echo 'make headers         compile each header alone'
	@echo 'make format          clang-format; make format-check only looks; make clang-tidy'
	@echo 'make install         PREFIX=$(PREFIX) DESTDIR=...; make clean'
	@echo 'Variables: B=<dir> SAN=asan|tsan CC=clang WERROR=1'

-include $(shell test -d $(B) && find $(B) -name '*.d')
