# `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup run test released unit lint files demo readme scenario soak faults fuzz tsan asan fills bench micro eviction conformance media ui monitoring traces accounts client jobs webhooks network encryption fleet hosts upstreams api dist deb packaging image packed-image kubernetes

LISTEN ?= 127.0.0.1:8080
DATA ?= ./larder-data
FILES ?= 127.0.0.1:9071
ARGS ?=
FAST_PATH ?= on off
LARDER := .build/release/larder
RELEASE = scripts/release
# The parts of `make test` that have found faults of optimized code, or could.
RELEASED := conformance,accounts,api,client,encryption,fleet,jobs,media,peers,upstreams,webhooks

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  make run LISTEN=127.0.0.1:9000 DATA=/tmp/store ARGS='--log-level debug'"
	@echo "  make unit ONLY=FillLedger     ONLY='JSONTests|ByteRange'"
	@echo "  make soak ROUNDS=5 ONLY=kill     ONLY=readers     ONLY=eviction SECONDS=60     ONLY=hostile"
	@echo "  make faults ONLY=flips,kill ROUNDS=100     ONLY=power,calls     ONLY=fuzz"
	@echo "  make fuzz TIME=600"
	@echo "  make fills ONLY=herd,far ROUNDS=1 JSON=fills.json"
	@echo "  make bench ONLY=warm ROUNDS=3 JSON=bench.json"
	@echo "  make conformance PEER=nginx     PEER=varnish     ONLY=13     ONLY=if-range     FAST_PATH=off"
	@echo "  make dist RESOLVED=Package.resolved     PROGRAM=.build/release/larder"
	@echo "  make image IMAGE=larder:dev BUILD_IMAGE=swift:6.2-bookworm RUN_IMAGE=debian:bookworm-slim"

setup: ## install the libraries for a build (apt), or print the packages to install
	@scripts/setup

run: setup ## build for release and serve on LISTEN with the store in DATA
	$(RELEASE) --product larder
	@scripts/welcome $(LISTEN)
	@exec $(LARDER) serve --listen $(LISTEN) --data-directory $(DATA) $(ARGS)

test: setup ## run all tests, and print the time of each part (ONLY=accounts,swift JOBS=1 SEED=random, or a printed number)
	@command -v python3 >/dev/null || scripts/apt python3
	@ONLY='$(ONLY)' SEED='$(SEED)' Tests/parts.py $(if $(JOBS),--jobs $(JOBS))

released: setup ## build for release and run the brief test programs with that program (ONLY=media,peers)
	$(RELEASE) --product larder
	@LARDER=$(LARDER) Tests/parts.py --skip-build --jobs 1 --only '$(or $(ONLY),$(RELEASED))'

unit: setup ## run the tests of pure code in parallel, about half a minute after a build (ONLY=regex of Target.Suite/test)
	scripts/debug --build-tests
	@ONLY='$(ONLY)' LARDER_TEST_SEED='$(SEED)' scripts/unit

lint: setup ## format, import rules, sizes, the language of all files and compiler warnings
	swift format lint --strict --recursive Sources Tests Benchmarks Package.swift
	scripts/architecture
	scripts/documents
	scripts/questions
	scripts/messages
	scripts/language --self-test
	scripts/language
	scripts/warnings

files: ## serve the files of the documents' calls on FILES until Ctrl-C
	@scripts/files $(FILES)

demo: setup ## prefetch ten seconds of a film, stop the upstream, and play them
	$(RELEASE) --product larder
	@scripts/demo $(LARDER)

readme: setup ## run the calls in the documents and compare their output
	$(RELEASE) --product larder
	@scripts/readme $(LARDER)

scenario: setup ## end-to-end test with real media
	$(RELEASE) --product larder
	scripts/scenario $(LARDER)

soak: setup ## soak test: 60 minutes of everything at once (ONLY=mixed MINUTES=60 REPORT=file), kill -9 rounds, 200 readers, eviction under load, hostile clients, memory after peaks; compares every byte (ROUNDS=50 SECONDS=600 ONLY=kill|readers|eviction|hostile|memory)
	$(RELEASE) --product larder
	@MINUTES='$(MINUTES)' REPORT='$(REPORT)' scripts/soak $(LARDER)

faults: setup ## fault injection: damage, kills, power cuts, failing calls, full and small disks, abusive clients, malformed input (ONLY=kill,power,calls,inject,flips,catalog,capacity,full,small,aborts,load,fuzz ROUNDS=10 SEED=1 START=0)
	$(RELEASE) --product larder
	$(RELEASE) --product LarderFuzz
	@ONLY='$(ONLY)' ROUNDS='$(ROUNDS)' SEED='$(SEED)' START='$(START)' scripts/faults $(LARDER)

fuzz: setup ## coverage-guided fuzzing of all parsers of external input (TIME=600 seconds)
	@TIME='$(TIME)' scripts/fuzz

tsan: setup ## run the tests of store, upstream and engine with ThreadSanitizer (ONLY=CacheEngineTests)
	@ONLY='$(ONLY)' scripts/tsan

asan: setup ## run the tests with AddressSanitizer (ONLY=CacheCoreTests)
	@ONLY='$(ONLY)' scripts/asan

fills: setup ## benchmark: upstream traffic and waiting times of fills, compared with nginx (ONLY=overlap,seeks ROUNDS=3 JSON=file)
	$(RELEASE) --product larder
	@ONLY='$(ONLY)' ROUNDS='$(ROUNDS)' JSON='$(JSON)' scripts/fills $(LARDER)

bench: setup ## benchmark: processor time per read, compared with nginx (ONLY=warm,tls,core,encrypted,tail,cold,memory,catalog ROUNDS=3 JSON=file)
	$(RELEASE) --product larder
	@ONLY='$(ONLY)' ROUNDS='$(ROUNDS)' JSON='$(JSON)' Benchmarks/bench $(LARDER)

micro: setup ## benchmark: single steps of a read, and their growth with size
	$(RELEASE) --product MicroBench
	@.build/release/MicroBench

eviction: setup ## benchmark: eviction policies on traces: misses, hit ratios, curve, speed (ONLY=golden,media,curve,restart,speed,switch TRACES=folder; FLEET=3,10,30: fleets of these sizes)
	$(RELEASE) --product EvictionBench
	@.build/release/EvictionBench '$(or $(FLEET),$(ONLY))' Benchmarks/Traces $(TRACES)

conformance: $(if $(PEER),,setup) ## HTTP conformance tests over real sockets (ONLY=section or text, PEER=nginx|varnish)
ifdef PEER
	@scripts/apt python3 $(PEER) $(if $(filter varnish,$(PEER)),gcc libc6-dev)
	@Tests/Conformance/run.py --peer $(PEER) --only '$(ONLY)'
else
	@scripts/apt python3
	$(RELEASE) --product larder
	@status=0; for way in $(FAST_PATH); do \
		echo "fast path $$way:"; \
		Tests/Conformance/run.py --larder $(LARDER) --only '$(ONLY)' --set listen.fastPath=$$way || status=1; \
	done; exit $$status
endif

media: setup ## prefetch seconds of media, stop the upstream, and play them with ffmpeg, mpv, Chromium and GStreamer; requests beside ffmpeg; kills; comparison with nginx (ONLY=mp4,hls,real ONLY=economy ONLY=kills ONLY=compare)
	$(RELEASE) --product larder
	@ONLY='$(ONLY)' scripts/media $(LARDER)

ui: setup ## test the dashboard in Chromium: each page and action, tokens, a restart of the service, hostile content (ARGS=--picture docs/dashboard.png)
	$(RELEASE) --product larder
	@scripts/ui $(LARDER) $(ARGS)

monitoring: setup ## test alert rules and the Grafana dashboard with promtool and a real Prometheus
	$(RELEASE) --product larder
	@scripts/monitoring $(LARDER)

traces: setup ## test traces with a strict OTLP receiver, callers and upstreams
	$(RELEASE) --product larder
	@ONLY='$(ONLY)' scripts/traces $(LARDER)

accounts: setup ## test origins with accounts, permissions of readers and reloads with object stores, OAuth servers, expiring links and nginx (ONLY=s3,links)
	$(RELEASE) --product larder
	@ONLY='$(ONLY)' scripts/accounts $(LARDER)

jobs: setup ## test pauses, deadlines and times of prefetch jobs with upstreams of limited rates (ONLY=pause,rate)
	$(RELEASE) --product larder
	@ONLY='$(ONLY)' scripts/jobs $(LARDER)

webhooks: setup ## test webhooks with a receiver that checks their signatures with another implementation (ONLY=events,outage)
	$(RELEASE) --product larder
	@ONLY='$(ONLY)' scripts/webhooks $(LARDER)

client: setup ## test the client commands with a running service and terminals
	$(RELEASE) --product larder
	@scripts/client $(LARDER)

network: setup ## test silent, refused, moved and slow addresses of upstreams in network namespaces, beside curl, nginx and HAProxy; needs root (ONLY=silent,dead)
	$(RELEASE) --product larder
	@ONLY='$(ONLY)' scripts/network $(LARDER)

encryption: setup ## search stores for plain text beside kills; lost, wrong and rotated keys, erasures and copies, bad input, tampered stores (ONLY=disk,keys)
	$(RELEASE) --product larder
	@ONLY='$(ONLY)' scripts/encryption $(LARDER)

fleet: setup ## test HAProxy, nginx and Envoy with the files of deploy in front of three services: fills between them, state in etcd, nodes of reads, bounded load, killed and leaving nodes (ONLY=kill,leave); without ONLY also `make hosts`
	$(RELEASE) --product larder
	scripts/peers $(LARDER)
	scripts/state $(LARDER)
	@ONLY='$(ONLY)' scripts/fleet $(LARDER)

hosts: setup ## measure a fleet in network namespaces: three services, three etcds, two HAProxies, nginx; restarts, deaths, partitions, purges, jobs; needs root; part of `make fleet` (ONLY=kill,apart)
	$(RELEASE) --product larder
	@ONLY='$(ONLY)' scripts/hosts $(LARDER)

upstreams: setup ## test with real upstream servers: nginx, Apache, lighttpd, Caddy, Varnish, PHP, Python, Flask, Node (ONLY=nginx,php)
	$(RELEASE) --product larder
	@ONLY='$(ONLY)' scripts/upstreams $(LARDER)

api: setup ## test openapi.yaml against a running service: a generated client calls every operation, schemathesis sends requests
	$(RELEASE) --product larder
	@scripts/api $(LARDER)

# PROGRAM is a built program; without it, these targets build one for release.
dist: $(if $(PROGRAM),,setup) ## make a tarball of an installation in .build/dist (RESOLVED=file of package versions)
	$(if $(PROGRAM),,RESOLVED='$(RESOLVED)' $(RELEASE) --product larder)
	@scripts/dist $(or $(PROGRAM),$(LARDER))

deb: $(if $(PROGRAM),,setup) ## make the Debian package in .build/dist, and check it with lintian
	$(if $(PROGRAM),,RESOLVED='$(RESOLVED)' $(RELEASE) --product larder)
	@scripts/deb $(or $(PROGRAM),$(LARDER))

packaging: deb ## test tarball and package: equal bytes, files, service managers, doctor; install, upgrade, remove in a chroot
	@scripts/packaging $(or $(PROGRAM),$(LARDER)) --all

image: ## build the container image with docker or podman, otherwise with buildah and debootstrap; check the latter
	@if [ -z '$(PROGRAM)' ] && { docker info || podman info; } >/dev/null 2>&1; then scripts/image; \
	else $(MAKE) --no-print-directory packed-image; fi

packed-image: $(if $(PROGRAM),,setup)
	$(if $(PROGRAM),,$(RELEASE) --product larder)
	@scripts/image $(or $(PROGRAM),$(LARDER))
	@python3 -B Tests/Packaging/image.py --image .build/dist/larder-image.tar.gz

kubernetes: $(if $(PROGRAM),,setup) ## render and validate the Helm chart in deploy/chart
	$(if $(PROGRAM),,$(RELEASE) --product larder)
	@scripts/kubernetes $(or $(PROGRAM),$(LARDER))
