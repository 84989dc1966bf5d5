# Two commands carry everything: `make up` and `make test`. Both install and build what they need
# and can be run again at any time.

CARGO ?= cargo
TESTBED = $(CARGO) run --quiet --locked --package keelson-testbed --
SOAK_ROUNDS ?= 10
# How long each fuzz target runs, and which of them; none named is all.
FUZZ_SECONDS ?= 600
FUZZ_TARGETS ?=
# How the programs in images are built: release, or dev.
PROFILE ?= release
# Of every number of a bench: rounds (7 for the proxy, 3 for the sidecar), and seconds of load in each.
ROUNDS ?=
SECONDS ?= 2
# About how large the archives of the sidecar's bench are.
SIZE ?= 2GiB
# Of the operator's bench: how many nodes are made at once, how many are settled in the end, and how
# many minutes those are left alone.
NODES ?= 1000
SETTLED ?= 10000
MINUTES ?= 10
# How many tests of a program run at the same time. They mostly wait: for pods, for leases, for deadlines.
THREADS ?= 5
# Random tests draw the same cases in every `make test`, so that a change that did not cause a
# failure does not meet one; `make soak` draws new ones.
SEED ?= 20261115

# A cluster of yours, where one is named on the command line: what a shell has exported does not count,
# because `make up` itself tells people to export it. With REGISTRY for images and STORAGE_CLASS for data.
ifeq ($(origin KUBECONFIG),command line)
ELSEWHERE = --kubeconfig $(KUBECONFIG) $(if $(REGISTRY),--registry $(REGISTRY)) $(if $(STORAGE_CLASS),--storage-class $(STORAGE_CLASS))
endif

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show these lines
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Built in sight the first time, which takes minutes; afterwards whatever changed is built in silence.
target/debug/keelson-testbed:
	$(CARGO) build --locked --package keelson-testbed

.PHONY: up
up: | target/debug/keelson-testbed
up: ## Start a real one-machine Kubernetes with Keelson and a chain in it (KUBECONFIG=…: into that cluster)
	@$(TESTBED) up $(ELSEWHERE)

.PHONY: down
down: ## Take it away again, with every trace
	@$(TESTBED) down $(ELSEWHERE)

.PHONY: status
status: ## Say what is up
	@$(TESTBED) status

.PHONY: test
test: ## Run everything a change must pass
	$(TESTBED) prepare
	@# Those of the images, so that no test waits for a compiler.
	$(CARGO) build --locked --bins --package keelson-operator --package keelson-proxy --package keelson-sidecar --package keelson-host
	RUST_TEST_THREADS=$(THREADS) PROPTEST_RNG_SEED=$(SEED) $(CARGO) test --workspace --locked
	$(TESTBED) sweep

# What others wrote is most of what runs there, and a kernel without help of the processor is slow at it.
QUICKER = --config 'profile.dev.package."*".opt-level=2'

.PHONY: test-kernel
test-kernel: ## Run the tests of bond, VLAN, dummy and VRF devices in Debian's kernel, which this machine's has not
	$(CARGO) build --locked --package keelson-testbed
	$(CARGO) test $(QUICKER) --locked --package keelson-host --test kernel \
		--config "target.'cfg(unix)'.runner = ['$(CURDIR)/target/debug/keelson-testbed', 'kernel', '--']" \
		-- --ignored --skip steps:: --nocapture --test-threads=1
	$(TESTBED) sweep

.PHONY: lint
lint: ## Check format, lints, documentation and generated files
	$(CARGO) fmt --all --check
	$(CARGO) fmt --all --check --manifest-path crates/proxy/fuzz/Cargo.toml
	$(CARGO) clippy --workspace --all-targets --locked -- --deny warnings
	RUSTDOCFLAGS='--deny warnings' $(CARGO) doc --workspace --no-deps --locked --quiet
	$(CARGO) xtask generate --check
	test -z "$$(gofmt -l testbed/go)"

.PHONY: generate
generate: ## Write what is generated from the types (deploy/crds, docs/sidecar-openapi.yaml)
	$(CARGO) xtask generate

.PHONY: soak
soak: ## Repeat the tests that start, kill and break things, with new random cases (SOAK_ROUNDS=10)
	$(TESTBED) prepare
	$(CARGO) test --locked --package keelson-proxy --test storms --test switching -- --ignored --nocapture --test-threads=1
	KEELSON_SOAK_KILLS=200 $(CARGO) test --locked --package keelson-sidecar --test outside killed
	KEELSON_SOAK=1 $(CARGO) test --locked --package keelson-operator --test cuts --test host -- --nocapture
	$(CARGO) build --locked --release --package keelson-host
	$(CARGO) build --locked --release --package keelson-bare-nmstate
	KEELSON_SOAK=1 KEELSON_HOST_PROGRAM=$(CURDIR)/target/release/keelson-host \
		$(CARGO) test --locked --package keelson-host --test away --test outages --test server --test server_side -- --nocapture --test-threads=1
	KEELSON_SOAK=1 $(CARGO) test --locked --package keelson-host --test network --test fleet -- --nocapture
	KEELSON_HOST_PROGRAM=$(CURDIR)/target/release/keelson-host \
		$(CARGO) test --locked --package keelson-host --test network cost -- --nocapture --test-threads=1
	KEELSON_SOAK=1 KEELSON_HOST_PROGRAM=$(CURDIR)/target/release/keelson-host \
		$(CARGO) test --locked --package keelson-host --test fleet brought -- --nocapture
	@for round in $$(seq $(SOAK_ROUNDS)); do \
		echo "round $$round of $(SOAK_ROUNDS)"; \
		KEELSON_SOAK=1 $(CARGO) test --quiet --locked --package keelson-testbed --package keelson-tls --package keelson-proxy --package keelson-sidecar || exit 1; \
	done
	$(TESTBED) sweep

.PHONY: fuzz
fuzz: ## Look for inputs that break a law of the proxy's readers (FUZZ_SECONDS=600 for each target)
	@$(CARGO) xtask fuzz --seconds $(FUZZ_SECONDS) $(FUZZ_TARGETS)

.PHONY: images
images: ## Write the container images to target/images, one OCI layout each (PROFILE=dev: in minutes)
	$(TESTBED) images --profile $(PROFILE)

.PHONY: bench
bench: bench-proxy bench-sidecar bench-operator ## Measure against the peers

.PHONY: bench-proxy
bench-proxy: ## Measure keelson-proxy against nginx, raw hyper and kube-rbac-proxy (QUICK=1: two minutes)
	$(CARGO) build --release --locked --package keelson-proxy
	$(CARGO) build --release --locked --package keelson-raw-hyper
	$(CARGO) run --quiet --locked --package keelson-bench --bin bench-proxy -- $(if $(QUICK),--quick,--rounds $(or $(ROUNDS),7) --seconds $(SECONDS))

.PHONY: bench-sidecar
bench-sidecar: ## Measure keelson-sidecar against curl, gzip, pigz, zstd, tar and SQLite (QUICK=1: two minutes)
	$(CARGO) build --release --locked --package keelson-sidecar
	$(CARGO) run --quiet --locked --package keelson-bench --bin bench-sidecar -- $(if $(QUICK),--quick,--size $(SIZE) --rounds $(or $(ROUNDS),3))

.PHONY: bench-operator
bench-operator: ## Measure keelson-operator with thousands of nodes, half an hour (QUICK=1: a hundred, eight minutes)
	$(TESTBED) prepare
	$(CARGO) build --release --locked --package keelson-operator
	$(CARGO) run --profile measure --locked --package keelson-bench --bin bench-operator -- $(if $(QUICK),--quick,--nodes $(NODES) --settled $(SETTLED) --minutes $(MINUTES))
