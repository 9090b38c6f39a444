# A menu of commands, not a build system: Meson builds (docs/decisions/0006-meson-behind-a-menu.md).
# Each command first installs the Debian packages that it misses (tools/setup).

PREFIX ?= /usr/local
DESTDIR ?=
ONLY ?=
SECONDS ?= 60
HELPERS = caissond caisson-launcher caisson-cache caisson-gate caisson-hook caisson-init caisson-ledger caisson-tree caisson-vault

.PHONY: build help demo drill check check-doors check-gate check-kernel check-v2 check-power bench fmt fuzz soak install clean

build: ## the programs, to build/ (this is what plain `make` does)
	@tools/setup build
	@tools/build plain caisson $(HELPERS)

help: ## this menu
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## /make \1\t/p' Makefile | expand -t 18

demo: build ## untrusted code attacks, and is stopped; under a minute
	@tools/demo

drill: ## an agent obeys a hostile repository, and the host looks at what came of it
	@tools/setup build check net browser
	@CAISSON_BROWSER=1 tools/check drill

check: ## all tests and checks; ONLY=unit,layers runs some of them
	@tools/setup build check net sdk 'browser?'
	@tools/check $(ONLY)

check-doors: ## the clients of others, unmodified, from their registries: E2B, MCP, SWE-ReX, docker, frameworks; minutes
	@tools/setup build check net sdk doors
	@tools/check doors

check-gate: ## the network's tests with more clients: PostgreSQL, Node, npm, Verdaccio, Java, Go, Cargo; minutes
	@tools/setup build check net net-more
	@tests/net/verdaccio
	@CAISSON_NET_MORE=1 tools/check gate,net

check-v2: ## the engine's tests on pure cgroup v2 and our oldest kernel, in QEMU; minutes
	@tools/setup build check v2
	@tools/build plain
	@tests/v2/run

check-kernel: ## what could harm a kernel, in QEMU, with two kernels: lingering closes, bombs of filters, 2,000 sandboxes removed at once; most of an hour
	@tools/setup build check v2
	@tools/build plain
	@for kernel in debian backports; do V2_KERNEL=$$kernel V2_MEMORY=8G V2_LIMIT_S=7200 tests/v2/run --shell 'exec tests/v2/kernel' || failed=1; done; [ -z "$$failed" ]

check-power: ## a guest works, and its disk is looked at as after a loss of power at many moments; minutes
	@tools/setup build check v2
	@tools/build plain
	@tests/v2/powerloss

bench: ## our figures beside those of the neighbours
	@tools/setup build bench
	@tools/build plain
	@bench/run

fmt: ## format the C sources
	@tools/setup check
	@tools/check-format fix

fuzz: ## fuzz every parser; SECONDS=60 for each
	@tools/setup build fuzz
	@tools/fuzz $(SECONDS)

soak: ## thousands of launches, some killed, and then a census; minutes
	@tools/setup build check
	@tools/build plain
	@tests/soak/run
	@tests/soak/daemon
	@STEPS=20 SEED=$$$$ tests/ws/matrix.py

install: build ## PREFIX=/usr/local DESTDIR=
	@install -D -s build/caisson $(DESTDIR)$(PREFIX)/bin/caisson
	@install -D -s -t $(DESTDIR)$(PREFIX)/libexec/caisson $(addprefix build/,$(HELPERS))
	@install -d $(DESTDIR)$(PREFIX)/lib/systemd/system $(DESTDIR)$(PREFIX)/share/man/man1
	@sed 's|@PREFIX@|$(PREFIX)|' etc/caisson.service >$(DESTDIR)$(PREFIX)/lib/systemd/system/caisson.service
	@install -m 644 etc/caisson.socket $(DESTDIR)$(PREFIX)/lib/systemd/system/
	@install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/caisson etc/config.yaml docs/config.md
	@build/caisson help --man >$(DESTDIR)$(PREFIX)/share/man/man1/caisson.1
	@install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions
	@build/caisson completion bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/caisson
	@build/caisson completion zsh >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_caisson

clean: ## forget what was built
	@rm -rf build build-asan build-fuzz
