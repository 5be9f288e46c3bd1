# Copyright The Crosswatch Authors
# SPDX-License-Identifier: Apache-2.0

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Tools run from the modules that pin them; Go builds each once and keeps it in its cache.
CONTROLLER_GEN := go tool -modfile=hack/tools/go.mod controller-gen
KUSTOMIZE      := go tool -modfile=$(CURDIR)/hack/tools/go.mod kustomize
GOTESTSUM      := go tool -modfile=hack/tools/go.mod gotestsum --format pkgname
GOLANGCI_LINT  := go tool -modfile=$(CURDIR)/hack/tools/golangci-lint/go.mod golangci-lint
KUBECTL        ?= kubectl

# The folder of etcd, kube-apiserver and kubectl. Only test/controlplane and its recipes read it.
ASSETS := $(abspath $(or $(KUBEBUILDER_ASSETS),bin/k8s))
CONTROLPLANE_BUILD := hack/controlplane/build.sh
DEMO_CONTROLPLANE  := etcd kube-apiserver kubectl
TEST_CONTROLPLANE  := $(DEMO_CONTROLPLANE) kube-controller-manager

# What crosswatch --version prints.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
LDFLAGS  = -X github.com/crosswatch-io/crosswatch/cmd/crosswatch/app.version=$(VERSION)

# The image of the operator: the one that config/manager names, unless IMG names another.
CONFIG_IMG_NAME    := $(shell awk '{ gsub(/"/, "") } /newName:/ { print $$2 }' config/manager/kustomization.yaml)
CONFIG_IMG_VERSION := $(shell awk '{ gsub(/"/, "") } /newTag:/ { print ":" $$2 } /digest:/ { print "@" $$2 }' config/manager/kustomization.yaml)
IMG                ?= $(CONFIG_IMG_NAME)$(CONFIG_IMG_VERSION)
PLATFORMS          ?= linux/$(shell go env GOARCH)
CONFIG             ?= config/default

FUZZTIME ?= 60s
BENCH    ?= .
SOAK     ?= 20m

##@ General

.PHONY: help
help: ## Explain every target.
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n\033[1m%s\033[0m\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  \033[36m%-18s\033[0m %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Build

.PHONY: build
build: ## Build the operator: bin/crosswatch.
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/crosswatch ./cmd/crosswatch

.PHONY: image
image: ## Build the image IMG for PLATFORMS=linux/amd64,linux/arm64 (this machine's alone by default) into dist/image, without an engine.
	go -C hack/image run . --source=$(CURDIR) --output=$(CURDIR)/dist --tag=$(IMG) --platforms=$(PLATFORMS) \
		--ldflags='$(LDFLAGS)' --revision=$$(git rev-parse HEAD) --created=$$(git log -1 --format=%ct)

.PHONY: build-installer
build-installer: ## Write what CONFIG=config/default installs, with the image IMG, into dist/install.yaml.
	mkdir -p dist/installer
	printf 'resources: [../../%s]\n' '$(CONFIG)' >dist/installer/kustomization.yaml
	cd dist/installer && $(KUSTOMIZE) edit set image $(CONFIG_IMG_NAME)=$(IMG)
	$(KUSTOMIZE) build dist/installer >dist/install.yaml

.PHONY: controlplane
controlplane: ## Put etcd, kube-apiserver, kubectl and kube-controller-manager into bin/k8s: downloaded or built, once (CONTROLPLANE=build|download).
	@$(CONTROLPLANE_BUILD) $(TEST_CONTROLPLANE)

.PHONY: clean
clean: ## Remove what was built, but for the control plane.
	rm -rf bin/crosswatch bin/demo dist

.PHONY: clean-controlplane
clean-controlplane: ## Remove the control plane's binaries: minutes to build again.
	@if [[ -d bin/k8s ]]; then chmod -R u+w bin/k8s; fi
	rm -rf bin/k8s

##@ Develop

.PHONY: generate
generate: generate-api generate-rbac generate-function ## Generate code and manifests from types, markers and the .proto.

# It has the schema of a whole Deployment, which is too large for kubectl apply with a description of each field. The metadata of the
# pod template in it would be dropped by the API server if the schema did not have it.
LARGE_CRD := pkg.crossplane.io_deploymentruntimeconfigs.yaml

.PHONY: generate-api
generate-api: ## Generate deep copies and CRDs from the types in api.
	$(CONTROLLER_GEN) object:headerFile=hack/boilerplate.go.txt paths=./api/...
	rm -f config/crd/bases/*.yaml
	$(CONTROLLER_GEN) crd paths=./api/... output:crd:artifacts:config=config/crd/bases
	dir=$$(mktemp -d) && $(CONTROLLER_GEN) crd:maxDescLen=0,generateEmbeddedObjectMeta=true paths=./api/pkg/... output:crd:artifacts:config=$$dir && \
		mv $$dir/$(LARGE_CRD) config/crd/bases && rm -r $$dir

.PHONY: generate-rbac
generate-rbac: ## Generate the operator's role from the markers beside the code.
	$(CONTROLLER_GEN) rbac:roleName=crosswatch paths='{./cmd/...,./controllers/...}' output:rbac:artifacts:config=config/rbac

.PHONY: generate-function
generate-function: ## Generate the function contract from its .proto.
	hack/generate-function.sh

.PHONY: format
format: ## Format the Go code.
	$(GOLANGCI_LINT) fmt

.PHONY: lint
lint: ## Lint the Go code, that of the nested modules included.
	$(GOLANGCI_LINT) run
	for module in hack/image test/alerts; do (cd $$module && $(GOLANGCI_LINT) run -c $(CURDIR)/.golangci.yml); done

.PHONY: verify
verify: generate lint ## Generate and lint; fail if that left anything changed or untracked.
	@changed=$$(git status --porcelain); \
	if [[ -n $$changed ]]; then \
		git --no-pager diff; echo "$$changed"; \
		echo "verify: the files above are changed or untracked: commit what make generate made of them" >&2; exit 1; \
	fi; \
	echo "verify: passed"

##@ Test

# The packages of test that need a control plane run afresh, each on its own. They wait more than they work, so they run two at a
# time: the longest first, and beside it the others, one after the other.
ON_CONTROL_PLANE := ./test/e2e ./test/controlplane ./test/install ./test/outage ./test/soak/operator

.PHONY: test
test: controlplane test-image test-alerts ## Run every test, with the race detector.
	KUBEBUILDER_ASSETS=$(ASSETS) $(GOTESTSUM) -- -race -timeout 10m $$(go list ./... | grep -vxF "$$(go list $(ON_CONTROL_PLANE))")
	KUBEBUILDER_ASSETS=$(ASSETS) $(GOTESTSUM) -- -race -timeout 10m -count 1 -p 2 $(ON_CONTROL_PLANE)
	@echo "test: passed"

.PHONY: test-image
test-image: ## Build the image twice and look into it.
	cd hack/image && go test -count 1 ./...

.PHONY: test-alerts
test-alerts: ## Evaluate the alerts, and check dashboard and runbook against the metrics.
	cd test/alerts && go test -count 1 ./...

# The race detector costs most of the speed: make test soaks with that, and here as much is changed as can be.
SOAKS := TestSoakThe(Engine|Operator)

.PHONY: test-soak
test-soak: controlplane ## Run the soak tests, SOAK=20m each, and show that they would notice a broken order; SEED repeats one.
	go test -tags brokenordering -count 1 -timeout 5m -v -run Noticed ./test/soak/engine
	SOAK=$(SOAK) KUBEBUILDER_ASSETS=$(ASSETS) go test -race -count 1 -p 1 -timeout 0 -v -run Soak -skip '$(SOAKS)' ./test/... ./internal/engine
	SOAK=$(SOAK) KUBEBUILDER_ASSETS=$(ASSETS) go test -count 1 -p 1 -timeout 0 -v -run '$(SOAKS)' ./test/soak/...

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME=60s.
	hack/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: ## Run the benchmarks that match BENCH=., with their allocations.
	go test -run '^$$' -bench '$(BENCH)' -benchmem ./internal/... ./controllers/...

.PHONY: bench-tracker
bench-tracker: ## Measure the tracker: memory, events, runs and contention (a minute or two).
	go test -run '^$$' -bench . -benchmem -timeout 30m ./internal/dependency

##@ Demo

.PHONY: bin/demo
bin/demo: build
	@$(CONTROLPLANE_BUILD) $(DEMO_CONTROLPLANE)
	CGO_ENABLED=0 go build -trimpath -o bin/demo ./examples/scheduler/cmd/demo

.PHONY: demo
demo: bin/demo ## Tell the scheduler's story on a control plane of its own, until Ctrl-C.
	@KUBEBUILDER_ASSETS=$(ASSETS) bin/demo

.PHONY: demo-check
demo-check: bin/demo ## Tell it, assert it, and measure how long a change takes to propagate.
	@KUBEBUILDER_ASSETS=$(ASSETS) bin/demo --check

##@ Deploy to the cluster that kubectl reaches

.PHONY: install
install: ## Install the CRDs.
	$(KUSTOMIZE) build config/crd | $(KUBECTL) apply --server-side -f -

# Only the operator takes the finalizers off XRDs and XRs: without it their CRDs would never go. Whether XRDs are left must be
# known: any error but the absence of their CRD stops here.
XRD_CRD := compositeresourcedefinitions.apiextensions.crossplane.io
REFUSE_WITH_XRDS = crd=$$($(KUBECTL) get crd $(XRD_CRD) --ignore-not-found -o name); \
	if [[ -n $$crd ]]; then \
		xrds=$$($(KUBECTL) get $(XRD_CRD) -o name); \
		if [[ -n $$xrds ]]; then \
			echo "XRDs are left: delete them first, while the operator runs (kubectl delete xrd --all); their XRs go with them" >&2; exit 1; \
		fi; \
	fi

.PHONY: uninstall
uninstall: ## Delete the CRDs, with every object of their kinds. XRDs have to be deleted before.
	@$(REFUSE_WITH_XRDS)
	$(KUSTOMIZE) build config/crd | $(KUBECTL) delete --ignore-not-found -f -

.PHONY: deploy
deploy: build-installer ## Install CONFIG=config/default, which is the CRDs and the operator, with the image IMG.
	$(KUBECTL) apply --server-side -f dist/install.yaml

.PHONY: undeploy
undeploy: ## Delete what CONFIG=config/default installs: the operator, and the CRDs with every object of their kinds. XRDs have to be deleted before.
	@$(REFUSE_WITH_XRDS)
	$(KUSTOMIZE) build $(CONFIG) | $(KUBECTL) delete --ignore-not-found -f -
