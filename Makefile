# What one does with this repository. Go, a C compiler (for the race detector), git and
# make are all it takes; `make help` lists the targets.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO ?= go

# How long each fuzz target runs, as the go command writes durations.
FUZZTIME ?= 30s
# How long soak runs, as the go command writes durations.
SOAK ?= 10m
# How many histories of each kind seeds runs.
SEEDS ?= 1000
# Which Go benchmarks run, and how often each: `make bench-go BENCH=Sync COUNT=10`.
BENCH ?= .
COUNT ?= 1
# How often the tests of a real API server kill it, its minor version, and which tests run, as a
# regular expression.
CRASHES ?= 10
SERVER ?= 1.37
RUN ?= .
# Kubernetes' own controllers need a server that is not older than they are.
TOO_NEW := $(if $(filter 1.37,$(SERVER)),^$$,^Test(Controllers|Rollout)$$)
# Which benchmarks `make bench` and `make bench-quick` run, which packages `make upstream` tests, and
# which programs `make programs` runs, as a regular expression; how often `make bench` runs each; how
# many pods the programs read, 50,000 by default.
ONLY ?=
ROUNDS ?= 5
PODS ?=
# The versions that compat builds and tests with, beside those of go.mod.
CLIENTGO ?= v0.37.2
CTRLRUNTIME ?= v0.25.0
# Which version release checks, and the commit that it compares the API with: the last version without.
VERSION ?=
SINCE ?=
# How many mutants run; with SEED and MUTATE, which: `make mutants SEED=7 MUTATE=store,internal/engine/delta`.
SAMPLE ?= 1000
# The packages that test, race and bench-go look at.
PKG ?= ./...

# Where govulncheck finds what is known of vulnerabilities; a file:// URL is one that was
# copied.
VULNDB ?= https://vuln.go.dev

GOVULNCHECK := $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.2.0
STATICCHECK := $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: test
test: ## Run every test.
	$(GO) test $(PKG)

.PHONY: race
race: ## Run every test with the race detector.
	$(GO) test -race -timeout 20m $(PKG)

# The packages that know no Kubernetes, and those that read it: the numbers of the wire and
# layouts in memory are looked at there.
PKG32 := ./store ./internal/engine/delta ./internal/engine/fanout ./internal/decode/fieldpath ./internal/see/fielddiff ./source
.PHONY: check-32bit
check-32bit: ## Vet everything for 386, and run the tests of the lower packages for it.
	GOARCH=386 CGO_ENABLED=0 $(GO) vet ./...
	GOARCH=386 CGO_ENABLED=0 $(GO) test -timeout 10m $(PKG32)

.PHONY: soak
soak: ## Live through days with faults of all kinds until SOAK (default 10m) is over.
	$(GO) test ./internal/test/simulation -run '^TestDays$$' -sim.soak=$(SOAK) -timeout 0 -v

# Each suite of random histories: its variable, its test and its package.
RANDOM := SIM:TestDays:internal/test/simulation CONTROLLERS:TestHours:internal/test/simulation/controllers \
	CONTROLLER:TestC00_RandomWorlds:controller TERM:TestC10_NeverTwoOpenTerms:controller/election \
	DIFFERENTIAL:TestDifferential:clientgo/cache WIRE:TestWire:clientgo/cache \
	LIVES:TestLives:contract LIVES:TestLives:clientgo/informers SLOTS:TestS6_RandomSlots:contract \
	SHARD:TestS1_NeverTwoCallers:shard BALANCE:TestS1_ChaosEnds:shard/internal/balance
.PHONY: seeds
seeds: ## Run each suite of random histories with SEEDS (default 1000), and six weeks of churn: hours.
	@for suite in $(RANDOM); do IFS=: read -r name test package <<< "$$suite"; \
		env "TIDINGS_$${name}_SEEDS=$(SEEDS)" $(GO) test -timeout 0 -run "^$$test$$" "./$$package"; \
	done
	TIDINGS_DEDUP_FULL=1 $(GO) test -run '^TestWeeksOfChurn$$' -timeout 0 ./internal/decode/dedup

.PHONY: check
check: gofmt vet staticcheck fix tidy docs vuln-if-reachable ## Check format, vet (darwin too), staticcheck, go fix, go mod tidy, docs, licences, vulnerabilities.

.PHONY: gofmt
gofmt: ## Fail on files that gofmt would change.
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then printf 'gofmt would change:\n%s\nRun: gofmt -w .\n' "$$files"; exit 1; fi

.PHONY: vet
vet: ## Run go vet, also as on a Mac.
	$(GO) vet ./...
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) vet ./...

.PHONY: staticcheck
staticcheck: ## Run staticcheck; staticcheck.conf says which checks.
	$(STATICCHECK) ./...

.PHONY: fix
fix: ## Fail on code that go fix would modernise.
	@$(GO) fix -diff ./... || { echo 'Run: go fix ./...'; exit 1; }

.PHONY: tidy
tidy: ## Fail if go mod tidy would change go.mod or go.sum.
	@$(GO) mod tidy -diff || { echo 'Run: go mod tidy'; exit 1; }

.PHONY: check-operator
check-operator: ## Check the module examples/operator as check does this one.
	@cd examples/operator && $(GO) vet ./... && $(STATICCHECK) ./... && $(GO) fix -diff ./... && $(GO) mod tidy -diff

.PHONY: check-kubebuilder
check-kubebuilder: ## Check the module examples/kubebuilder as check does this one.
	@cd examples/kubebuilder && $(GO) vet ./... && $(STATICCHECK) ./... && $(GO) fix -diff ./... && $(GO) mod tidy -diff

.PHONY: kubebuilder
kubebuilder: ## Test examples/kubebuilder, whose suite runs on the API server of tidings serve.
	USE_EXISTING_CLUSTER=true $(GO) run ./cmd/tidings serve -- $(GO) -C examples/kubebuilder test -race -timeout 10m ./...

.PHONY: check-ctrlruntime
check-ctrlruntime: ## Check the module ctrlruntime as check does this one.
	@cd ctrlruntime && $(GO) vet ./... && $(STATICCHECK) ./... && $(GO) fix -diff ./... && $(GO) mod tidy -diff

.PHONY: check-kubectl
check-kubectl: ## Check the module apisim/kubectl as check does this one.
	@cd apisim/kubectl && $(GO) vet ./... && $(STATICCHECK) ./... && $(GO) fix -diff ./... && $(GO) mod tidy -diff

.PHONY: check-rules
check-rules: ## Check the module metrics/rules as check does this one.
	@cd metrics/rules && $(GO) vet ./... && $(STATICCHECK) ./... && $(GO) fix -diff ./... && $(GO) mod tidy -diff

.PHONY: check-crds
check-crds: ## Check the module internal/decode/dedup/crds as check does this one.
	@cd internal/decode/dedup/crds && $(GO) vet ./... && $(STATICCHECK) ./... && $(GO) fix -diff ./... && $(GO) mod tidy -diff

.PHONY: check-browser
check-browser: ## Check the module debug/browser as check does this one.
	@cd debug/browser && $(GO) vet ./... && $(STATICCHECK) ./... && $(GO) fix -diff ./... && $(GO) mod tidy -diff

.PHONY: browser
browser: ## Test the pages of debug in Chromium, which is installed if it is missing (Debian, as root).
	@for name in chromium chromium-browser google-chrome chrome; do command -v "$$name" && exit; done; \
	apt-get update && apt-get install -y --no-install-recommends chromium
	cd debug/browser && $(GO) test -count 1 -timeout 10m ./...

.PHONY: pictures
pictures: ## Take the pictures of docs/debug from the demo, in Chromium. Look at them.
	$(GO) build -o bin/tidings ./cmd/tidings
	cd debug/browser && $(GO) test -count 1 -timeout 10m -run '^TestPicturesOfTheDocumentation$$' \
		-demo ../../bin/tidings -docs ../../docs/debug

.PHONY: check-bench
check-bench: ## Check the module bench, and that of the queue's benchmarks, as check does this one.
	@cd bench && $(GO) vet ./... && $(STATICCHECK) ./... && $(GO) fix -diff ./... && $(GO) mod tidy -diff
	@cd controller/internal/queue/bench && $(GO) vet ./... && $(STATICCHECK) ./... && $(GO) fix -diff ./... && $(GO) mod tidy -diff

.PHONY: docs
docs: ## Check links, code in pages, import walls, package docs, dependencies and their licences.
	$(GO) test ./internal/tool/house

.PHONY: vuln
vuln: ## Look for known vulnerabilities in what is called; needs the network, or VULNDB.
	$(GOVULNCHECK) -db $(VULNDB) ./...

# vuln, but for a machine that cannot reach the database, which it says.
.PHONY: vuln-if-reachable
vuln-if-reachable:
	@out=$$($(GOVULNCHECK) -db $(VULNDB) ./... 2>&1) && code=0 || code=$$?; echo "$$out"; \
	case "$$code/$$out" in \
	0/*) ;; \
	*'fetching vulnerabilities'*) echo 'NOT CHECKED for vulnerabilities: $(VULNDB) cannot be reached. Run make vuln where it can.' ;; \
	*) exit $$code ;; \
	esac

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (default 30s).
	@found=0; \
	for package in $$($(GO) list $(PKG)); do \
		for target in $$($(GO) test -list '^Fuzz' "$$package" | sed -n '/^Fuzz/p'); do \
			found=1; \
			echo "== $$package $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$package"; \
		done; \
	done; \
	if [ "$$found" = 0 ]; then echo "no fuzz targets in $(PKG)"; fi

# Each round runs every benchmark once on each stack; benchstat summarises the rounds.
define compare
	@cd bench && $(GO) test -c -o ../bin/bench.test . && for round in $$(seq $(1)); do \
		../bin/bench.test -test.run '^$$' -test.bench '$(or $(ONLY),.)' -size $(2); \
	done | tee ../bin/$@.txt
	@cd bench && $(GO) tool benchstat -col /stack $(3) ../bin/$@.txt
endef

.PHONY: bench
bench: ## Compare with client-go, in about three hours (ROUNDS, ONLY='Reads|Idle' for a part).
	$(call compare,$(ROUNDS),full,-confidence 0.9)

.PHONY: bench-quick
bench-quick: ## Compare with client-go, in about two minutes (ONLY).
	$(call compare,1,quick,-alpha 1)

.PHONY: bench-controllers
bench-controllers: ## Compare controllers with controller-runtime and client-go, in about half an hour.
	@cd bench && $(GO) test -v -count 1 -timeout 60m ./controllers -size full
	@cd controller/internal/queue/bench && $(GO) test -run '^$$' -bench AddGetDone -benchmem -count 5 .
	@cd controller/internal/queue/bench && $(GO) test -run '^$$' -bench Memory -benchtime 1x .

.PHONY: programs
programs: ## Measure programs of others before and after they move to Tidings, in a quarter of an hour (ONLY, PODS).
	@cd bench && $(GO) run ./programs $(if $(ONLY),-only '$(ONLY)') $(if $(PODS),-pods $(PODS))

.PHONY: programs-tests
programs-tests: ## Run the own tests of those programs, before and after (ONLY).
	@cd bench && $(GO) run ./programs -tests $(if $(ONLY),-only '$(ONLY)')

.PHONY: guard
guard: ## Fail if the key benchmarks allocate more than 110 % of what is recorded.
	@cd bench && $(GO) run ./guard

.PHONY: guard-update
guard-update: ## Record what the key benchmarks allocate.
	@cd bench && $(GO) run ./guard -update

.PHONY: bench-go
bench-go: ## Run the Go benchmarks with memory figures (BENCH, COUNT, PKG).
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PKG)

.PHONY: e2e
e2e: ## Test against a real API server (SERVER=1.36, CRASHES, RUN), which the first run builds: minutes.
	cd e2e && $(GO) test -timeout 10m ./internal/... ./upstream && \
		$(GO) test -timeout 90m -parallel 12 -run '$(RUN)' -skip '$(TOO_NEW)' . -server $(SERVER) -crashes $(CRASHES)

.PHONY: upstream
upstream: ## Run the own tests of client-go, Kubernetes, controller-runtime, Cluster API and kubebuilder's book on the drop-in (ONLY): half an hour.
	cd e2e && $(GO) run ./upstream $(if $(ONLY),-only '$(ONLY)')

.PHONY: compat
compat: ## Build and test with other versions of client-go (CLIENTGO) and controller-runtime (CTRLRUNTIME).
	$(GO) run ./internal/tool/compat -client-go '$(CLIENTGO)' -controller-runtime '$(CTRLRUNTIME)'

.PHONY: release
release: ## Check that VERSION=v0.1.0 can be released, and build its archives in bin/release (SINCE).
	@$(GO) run ./internal/tool/release $(if $(SINCE),-since '$(SINCE)') '$(VERSION)'

.PHONY: check-e2e
check-e2e: ## Check the module e2e as check does this one.
	@cd e2e && $(GO) vet ./... && $(STATICCHECK) ./... && $(GO) fix -diff ./... && $(GO) mod tidy -diff

# Go files that git tracks. Generated files have the standard line; internal/engine/builtin/table.go, which
# its own test writes, counts as written by hand. The product is what a program links with: not the
# commands, simulators, examples and benchmarks, nor the rigs and tools under internal.
NOT_PRODUCT := cmd|apisim|apiserver|examples|e2e|bench|tidingstest|contract|internal/(test|tool|decode/dedup/deduptest|lead/lease/leasetest)
.PHONY: lines
lines: ## Print the lines of Go: the product, everything without tests, and the tests.
	@git ls-files '*.go' | xargs awk -v other='^($(NOT_PRODUCT))/' ' \
		FNR == 1 { add(); lines = 0; name = FILENAME; generated = 0 } \
		/^\/\/ Code generated .* DO NOT EDIT\.$$/ { generated = name != "internal/engine/builtin/table.go" } \
		{ lines++ } \
		function add() { \
			if (generated) return; \
			if (name ~ /_test\.go$$/) { tests += lines; return } \
			everything += lines; if (name !~ other) product += lines \
		} \
		END { add(); printf "product    %6d\neverything %6d\ntests      %6d\n", product, everything, tests }'

.PHONY: generate
generate: ## Write generated files anew.
	$(GO) generate ./...

.PHONY: mutants
mutants: ## Change the engine in SAMPLE random ways (default 1000): a test must fail. An hour (SEED, MUTATE).
	@mkdir -p bin && $(GO) build -o bin/mutants ./internal/tool/mutants
	TIDINGS_DIFFERENTIAL_SEEDS=30 bin/mutants -sample $(SAMPLE) $(if $(SEED),-seed $(SEED)) $(if $(MUTATE),-packages $(MUTATE))
