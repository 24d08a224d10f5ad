# `make help` lists what there is.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup run test lint demo soak fills conformance image

LISTEN ?= 127.0.0.1:8080
DATA ?= ./larder-data
ARGS ?=
EXPRESS ?= on off
LARDER := .build/release/larder

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  make run LISTEN=127.0.0.1:9000 DATA=/tmp/store ARGS='--log-level debug'"
	@echo "  make soak ROUNDS=5 ONLY=kill     ONLY=readers"
	@echo "  make fills ONLY=herd,far ROUNDS=1 JSON=fills.json"
	@echo "  make conformance PEER=nginx     PEER=varnish     ONLY=13     ONLY=if-range     EXPRESS=off"
	@echo "  make image IMAGE=larder:dev BUILD_IMAGE=swift:6.2-bookworm RUN_IMAGE=debian:bookworm-slim"

setup: ## install what a build needs (apt), or say what to install
	@scripts/setup

run: setup ## build for release and serve on LISTEN, the store in DATA
	swift build -c release --product larder
	@scripts/welcome $(LISTEN)
	@exec $(LARDER) serve --listen $(LISTEN) --data-directory $(DATA) $(ARGS)

test: setup ## run all tests: the rules of HTTP over real sockets, then each room's own
	@command -v python3 >/dev/null || scripts/apt python3
	swift build --build-tests
	@Tests/Conformance/run.py --larder .build/debug/larder --jobs 8
	@ONLY=overlap,herd,cuts scripts/fills .build/debug/larder --brief
	swift test

lint: setup ## format, import rules, sizes and compiler warnings
	swift format lint --strict --recursive Sources Tests Package.swift
	scripts/architecture
	scripts/warnings

demo: setup ## the main job on real media, each step checked
	swift build -c release --product larder
	scripts/demo $(LARDER)

soak: setup ## kill -9 rounds and 200 readers, every byte compared (ROUNDS=50, ONLY=kill|readers)
	swift build -c release --product larder
	scripts/soak $(LARDER)

fills: setup ## what fills cost an upstream and readers, beside nginx (ONLY=overlap,seeks ROUNDS=3 JSON=file)
	swift build -c release --product larder
	@ONLY='$(ONLY)' ROUNDS='$(ROUNDS)' JSON='$(JSON)' scripts/fills $(LARDER)

conformance: $(if $(PEER),,setup) ## every rule of HTTP it keeps, over real sockets (ONLY=section or text, PEER=nginx|varnish)
ifdef PEER
	@scripts/apt python3 $(PEER) $(if $(filter varnish,$(PEER)),gcc libc6-dev)
	@Tests/Conformance/run.py --peer $(PEER) --only '$(ONLY)'
else
	@scripts/apt python3
	swift build -c release --product larder
	@status=0; for way in $(EXPRESS); do \
		echo "express lane $$way:"; \
		Tests/Conformance/run.py --larder $(LARDER) --only '$(ONLY)' --set listen.express=$$way || status=1; \
	done; exit $$status
endif

image: ## build the container image with docker, podman or buildah
	@scripts/image
