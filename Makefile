# The commands of daily work. `make ci` is what must pass before a change lands.
.DEFAULT_GOAL := help
.PHONY: help build cuda test emulated race lint ci demo bench faults image settings release sbom vuln

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the command line, into ./bin
	go build -o bin/geniemq ./cmd/geniemq

cuda: ## the command line with the CUDA engine, into ./bin
	bash -c '. .ci/cuda-headers && go build -tags cuda -o bin/geniemq-cuda ./cmd/geniemq'

test: ## all tests that need no GPU
	go test ./...

emulated: ## tests of the CUDA engine on an emulated device (needs g++); ARGS: go test's
	GENIEMQ_ROUNDS=$${GENIEMQ_ROUNDS:-1} bash kernels/emulator/run go test -tags cuda -short $(or $(ARGS),-run 'TestCUDAFilters|TestHashPieces' ./gpuexec/cuda/device)

race: ## the short tests under the race detector
	go test -race -short ./...

lint: ## golangci-lint, by .golangci.yml
	go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$$(sed -n 's/^golangci_lint=//p' .ci/run) run ./...

ci: ## everything that must hold before a change lands
	bash .ci/run

demo: ## a broker, two indexes, queries and their answers
	go run ./cmd/geniemq demo

bench: build ## the CPU engine against a flat scan, and the service against an echo worker
	bin/geniemq bench engine --workload w4
	bin/geniemq bench service

faults: ## kill, stop, part and fill servers and workers for FOR (2h) in WORLDS (1), and judge what came of it
	go run ./tests/faults --for $(or $(FOR),2h) --worlds $(or $(WORLDS),1)

image: ## compile kernels/*.cu into the embedded device image (needs nvcc)
	go generate ./kernels

settings: ## write the table of docs/configuration.md anew
	go test ./cmd/geniemq -run ConfigurationPage -update

release: ## archives for linux and darwin, amd64 and arm64, with SBOMs and checksums, into ./build/release; built twice and compared
	go run ./internal/release

sbom: ## a CycloneDX list of the modules in the program (this platform's), into ./build/sbom
	go run ./internal/release -once -dirty -out build/sbom -only $$(go env GOOS)/$$(go env GOARCH)

vuln: ## known vulnerabilities that the program can reach
	go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...
