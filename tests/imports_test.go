// Package tests holds the checks that concern more than one package.
package tests

import (
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/geniemq/geniemq"

// rule says what a package may import: of ours, and of third parties (a prefix of the import path). Test files
// are held to neither: they may look anywhere.
type rule struct {
	ours, modules []string
}

const (
	natsGo = "github.com/nats-io/nats.go"
	nuid   = "github.com/nats-io/nuid"
	xtext  = "golang.org/x/text"
	cudaGo = "gorgonia.org/cu"
	// jsontext is the tokenizer that encoding/json is moving to.
	jsontext = "github.com/go-json-experiment/json"
	xxhash   = "github.com/cespare/xxhash/v2"
	yaml     = "go.yaml.in/yaml/v3"
)

// rules is the table of DESIGN.md, "Packages". A package that is not listed fails the test, so that a new one is
// a decision.
var rules = map[string]rule{
	// Heads and scalars of MessagePack.
	"internal/msgpack": {nil, nil},
	// A channel that wakes, which consumer, producer and pipeline wait at.
	"internal/bell": {nil, nil},
	// Programs to start from, with what an application has.
	"examples/lookup":     {[]string{"client"}, []string{natsGo}},
	"examples/facets":     {[]string{"client"}, []string{natsGo}},
	"examples/duplicates": {[]string{"client"}, []string{natsGo}},
	// For tests only.
	"internal/testkit": {nil, []string{natsGo, "github.com/nats-io/nats-server/v2"}},
	// Values of shapes that only a type of column knows.
	"wire/value": {[]string{"internal/msgpack"}, []string{jsontext}},
	"wire":       {[]string{"internal/msgpack", "wire/value"}, []string{jsontext}},

	"internal/bits":  {nil, nil},
	"index/schema":   {nil, []string{yaml}},
	"index/ngram":    {nil, nil},
	"index/store":    {[]string{"index/schema"}, []string{xxhash, "github.com/edsrzf/mmap-go", "golang.org/x/sync", "golang.org/x/sys"}},
	"index/values":   {[]string{"index/schema", "index/store"}, []string{xxhash}},
	"index/postings": {[]string{"index/schema", "index/store", "index/values", "internal/bits"}, []string{"golang.org/x/sync"}},
	"index/column":   {[]string{"index/schema", "index/ngram", "index/postings", "wire/value"}, []string{"github.com/clipperhouse/uax29/v2", xtext}},
	"index":          {[]string{"index/schema", "index/store", "index/postings", "index/column"}, []string{xxhash, "github.com/agnivade/levenshtein", jsontext}},
	"index/load":     {[]string{"index/schema"}, []string{xtext, "github.com/agnivade/levenshtein", jsontext}},
	"index/verify":   {[]string{"index/ngram"}, nil},
	"kernels":        {nil, nil},
	"gpuexec":        {[]string{"index/verify"}, nil},
	"gpuexec/topk":   {nil, nil},
	"gpuexec/run":    {[]string{"gpuexec", "gpuexec/topk", "index/verify"}, nil},
	"gpuexec/cpu":    {[]string{"gpuexec", "gpuexec/run", "gpuexec/topk", "index/postings", "index/schema", "index/store", "internal/bits"}, nil},
	// What makes one engine of several.
	"gpuexec/group": {[]string{"gpuexec", "gpuexec/run", "gpuexec/topk"}, nil},
	// Pieces, forms on the device, placement, policies: needs no device.
	"gpuexec/cuda/plan":   {[]string{"gpuexec", "gpuexec/run", "gpuexec/topk", "gpuexec/cuda/abi", "index/postings", "index/schema", "index/verify"}, nil},
	"gpuexec/cuda/device": {[]string{"gpuexec", "gpuexec/run", "gpuexec/cuda/abi", "gpuexec/cuda/plan", "index/postings", "index/schema", "index/verify", "kernels"}, []string{cudaGo}},
	// What the host and the kernels agree on.
	"gpuexec/cuda/abi": {nil, nil},
	"gpuexec/open":     {[]string{"gpuexec", "gpuexec/run", "gpuexec/cpu", "gpuexec/group", "gpuexec/cuda/device", "gpuexec/cuda/plan", "index/postings", "index/verify", "kernels"}, nil},
	// What the tests of engines are made of. No product package imports it.
	"gpuexec/enginetest": {[]string{"gpuexec", "gpuexec/flatscan", "index", "index/schema", "index/ngram", "index/column", "index/load", "index/postings", "index/verify"}, nil},
	// The yardstick of the CPU engine: it must not share code with what it checks.
	"gpuexec/flatscan":   {[]string{"index/postings", "index/store"}, nil},
	"batcher":            {nil, nil},
	"consumer":           {[]string{"wire", "internal/bell", "internal/human"}, []string{natsGo}},
	"producer":           {[]string{"wire", "internal/bell"}, []string{natsGo}},
	"client":             {[]string{"wire"}, []string{natsGo, nuid}},
	"service/memory":     {[]string{"internal/human"}, []string{"github.com/prometheus"}},
	"service/exclusion":  {nil, nil},
	"service/translate":  {[]string{"wire", "gpuexec", "index", "index/schema", "index/column", "index/postings", "index/verify"}, nil},
	"service/pipeline":   {[]string{"wire", "batcher", "gpuexec", "index", "index/postings", "index/store", "service/exclusion", "service/memory", "service/translate", "internal/human"}, nil},
	"service/generation": {[]string{"gpuexec", "index", "index/postings", "index/store", "service/pipeline", "service/translate"}, nil},
	"service": {
		[]string{
			"wire", "index", "index/load", "index/verify", "kernels", "gpuexec", "gpuexec/open", "batcher", "consumer", "producer", "client",
			"internal/human",
			"service/admin",
			"service/broker",
			"service/clock",
			"service/config",
			"service/connection",
			"service/exclusion",
			"service/generation",
			"service/memory",
			"service/metrics",
			"service/pipeline",
			"service/repeats",
			"service/suspects",
			"service/translate",
		},
		[]string{natsGo, nuid},
	},
	// What is measured: data, their index, queries, and the right answers.
	"bench/workload": {[]string{"wire", "index", "index/schema", "index/store", "index/column", "index/postings", "index/load", "index/verify", "gpuexec"}, nil},
	"bench": {
		[]string{"bench/workload", "wire", "index", "index/postings", "gpuexec", "gpuexec/cpu", "gpuexec/open", "gpuexec/flatscan", "client", "service", "service/config", "service/connection", "internal/bell"},
		[]string{natsGo, nuid},
	},
	"cmd/geniemq": {
		[]string{"wire", "index", "index/schema", "index/store", "index/postings", "index/load", "index/verify", "gpuexec", "gpuexec/open", "client", "service", "bench", "bench/workload", "internal/human", "service/admin", "service/config", "service/connection"},
		[]string{natsGo, "github.com/spf13", "github.com/schollz/progressbar/v3", "golang.org/x/term"},
	},
	"tests":     {nil, nil},
	"tests/toy": {nil, nil},

	"internal/human":     {nil, nil},
	"service/admin":      {[]string{"internal/human"}, []string{"github.com/prometheus"}},
	"service/metrics":    {[]string{"wire", "service/pipeline"}, []string{"github.com/prometheus"}},
	"service/clock":      {nil, nil},
	"service/repeats":    {nil, nil},
	"service/suspects":   {[]string{"consumer", "service/exclusion", "service/pipeline"}, nil},
	"service/connection": {[]string{"service/config"}, []string{natsGo}},
	"service/broker":     {nil, []string{"github.com/nats-io/nats-server/v2"}},
	"service/config":     {[]string{"wire", "gpuexec", "internal/human", "service/memory"}, []string{natsGo, "github.com/spf13/pflag", yaml}},
}

func TestImportTable(t *testing.T) {
	for _, tags := range []string{"", "cuda"} {
		// -e: with the cuda tag the headers may be absent; imports are listed all the same.
		cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports", "-tags", tags, module+"/...")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("listing packages with tags %q: %v", tags, err)
		}
		seen := 0
		for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
			var pkg struct {
				ImportPath string
				Imports    []string
			}
			if err := dec.Decode(&pkg); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("reading go list's output: %v", err)
			}
			seen++
			name := strings.TrimPrefix(pkg.ImportPath, module+"/")
			r, ok := rules[name]
			if !ok {
				t.Errorf("package %s is not in the import table of DESIGN.md and tests/imports_test.go", name)
				continue
			}
			for _, imp := range pkg.Imports {
				if !r.allows(imp) {
					t.Errorf("package %s (tags %q) may not import %s", name, tags, imp)
				}
			}
		}
		if seen < len(rules)/2 {
			t.Fatalf("only %d packages listed with tags %q: the test looks at the wrong place", seen, tags)
		}
	}
}

func (r rule) allows(imp string) bool {
	if rest, ok := strings.CutPrefix(imp, module+"/"); ok {
		return slices.Contains(r.ours, rest)
	}
	if first, _, _ := strings.Cut(imp, "/"); !strings.Contains(first, ".") {
		return true // standard library, and "C"
	}
	return slices.ContainsFunc(r.modules, func(m string) bool {
		return imp == m || strings.HasPrefix(imp, m+"/")
	})
}
