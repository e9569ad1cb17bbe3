# The commands of daily work. `make ci` is what must pass before a change lands.
.PHONY: build test race fuzz ci demo bench image cuda

build: ## the command line, into ./bin
	go build -o bin/geniemq ./cmd/geniemq

test:
	go test ./...

race:
	go test -race -short ./...

ci:
	bash .ci/run

demo:
	go run ./cmd/geniemq demo

bench: build ## CPU engine against the flat-array scan, and the service against an echo worker
	bin/geniemq bench engine --workload w4
	bin/geniemq bench service

image: ## compile kernels/*.cu into the embedded device image
	go generate ./kernels

cuda: ## the command line with the CUDA engine, into ./bin
	bash -c '. .ci/cuda-headers && go build -tags cuda -o bin/geniemq-cuda ./cmd/geniemq'
