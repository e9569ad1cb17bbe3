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
	"wire":         {nil, []string{jsontext}},
	"index":        {nil, []string{yaml, xxhash, "github.com/edsrzf/mmap-go", "golang.org/x/sync", "golang.org/x/sys"}},
	"index/encode": {[]string{"index"}, []string{"github.com/clipperhouse/uax29/v2", "github.com/agnivade/levenshtein", xtext, jsontext}},
	"index/load":   {[]string{"index"}, []string{xtext, "github.com/agnivade/levenshtein", jsontext}},
	"index/verify": {[]string{"index"}, nil},
	"kernels":      {nil, nil},
	"gpuexec":      {[]string{"index"}, nil},
	"gpuexec/topk": {nil, nil},
	"gpuexec/run":  {[]string{"gpuexec", "gpuexec/topk", "index", "index/verify"}, nil},
	"gpuexec/cpu":  {[]string{"gpuexec", "gpuexec/run", "gpuexec/topk", "index"}, nil},
	// What makes one engine of several.
	"gpuexec/group": {[]string{"gpuexec", "gpuexec/run", "gpuexec/topk", "index"}, nil},
	// Pieces, forms on the device, placement, policies: needs no device.
	"gpuexec/cuda/plan":   {[]string{"gpuexec", "gpuexec/run", "gpuexec/topk", "gpuexec/cuda/abi", "index", "index/verify"}, nil},
	"gpuexec/cuda/device": {[]string{"gpuexec", "gpuexec/run", "gpuexec/cuda/abi", "gpuexec/cuda/plan", "index", "kernels"}, []string{cudaGo}},
	// What the host and the kernels agree on.
	"gpuexec/cuda/abi": {nil, nil},
	"gpuexec/open":     {[]string{"gpuexec", "gpuexec/run", "gpuexec/cpu", "gpuexec/group", "gpuexec/cuda/device", "kernels"}, nil},
	// What the tests of engines are made of. No product package imports it.
	"gpuexec/enginetest": {[]string{"gpuexec", "gpuexec/flatscan", "index", "index/encode", "index/load", "index/verify"}, nil},
	// The yardstick of the CPU engine: it must not share code with what it checks.
	"gpuexec/flatscan": {[]string{"index"}, nil},
	"batcher":          {nil, nil},
	"consumer":         {[]string{"wire", "internal/human"}, []string{natsGo}},
	"producer":         {[]string{"wire"}, []string{natsGo}},
	"client":           {[]string{"wire"}, []string{natsGo, nuid}},
	"service/memory":   {[]string{"internal/human"}, []string{"github.com/prometheus"}},
	"service/pipeline": {[]string{"wire", "batcher", "gpuexec", "index", "index/encode", "service/memory", "internal/human"}, nil},
	"service": {
		[]string{
			"wire", "index", "index/encode", "index/load", "index/verify", "kernels", "gpuexec", "gpuexec/open", "batcher", "consumer", "producer", "client",
			"internal/human",
			"service/admin",
			"service/broker",
			"service/config",
			"service/memory",
			"service/pipeline",
		},
		[]string{natsGo, nuid, "github.com/prometheus", "golang.org/x/sync"},
	},
	"bench": {
		[]string{"wire", "index", "index/encode", "index/load", "index/verify", "gpuexec", "gpuexec/cpu", "gpuexec/open", "gpuexec/flatscan", "client", "service", "service/config"},
		[]string{natsGo, nuid},
	},
	"cmd/geniemq": {
		[]string{"wire", "index", "index/encode", "index/load", "gpuexec", "gpuexec/open", "client", "service", "bench", "internal/human", "service/config"},
		[]string{natsGo, "github.com/spf13", "github.com/schollz/progressbar/v3", "golang.org/x/term"},
	},
	"tests": {nil, nil},

	"internal/human": {nil, nil},
	"service/admin":  {[]string{"internal/human"}, []string{"github.com/prometheus"}},
	"service/broker": {nil, []string{"github.com/nats-io/nats-server/v2"}},
	"service/config": {[]string{"wire", "gpuexec", "internal/human", "service/memory"}, []string{natsGo, "github.com/spf13/pflag", yaml}},
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
