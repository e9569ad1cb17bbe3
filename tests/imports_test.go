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

	"wire/value":   {[]string{"internal/msgpack"}, []string{jsontext}},
	"wire":         {[]string{"internal/msgpack", "wire/value"}, []string{jsontext}},
	"index":        {nil, []string{yaml, xxhash, "github.com/edsrzf/mmap-go", "golang.org/x/sync", "golang.org/x/sys"}},
	"index/encode": {[]string{"index", "wire/value"}, []string{"github.com/clipperhouse/uax29/v2", "github.com/agnivade/levenshtein", xtext, jsontext}},
	"index/load":   {[]string{"index"}, []string{xtext, "github.com/agnivade/levenshtein", jsontext}},
	"index/verify": {[]string{"index"}, nil},
	"kernels":      {nil, nil},
	"gpuexec":      {[]string{"index", "index/verify", "kernels"}, []string{cudaGo}},
	// The yardstick of the CPU engine: it must not share code with what it checks.
	"gpuexec/flatscan": {[]string{"index"}, nil},
	"batcher":          {nil, nil},
	"consumer":         {[]string{"wire"}, []string{natsGo}},
	"producer":         {[]string{"wire"}, []string{natsGo}},
	"client":           {[]string{"wire"}, []string{natsGo, nuid}},
	"service": {
		[]string{"wire", "index", "index/encode", "index/load", "index/verify", "kernels", "gpuexec", "batcher", "consumer", "producer", "client"},
		[]string{natsGo, nuid, "github.com/nats-io/nats-server/v2", "github.com/prometheus", "golang.org/x/sync", "github.com/spf13/pflag", yaml},
	},
	"bench": {
		[]string{"wire", "index", "index/encode", "index/load", "index/verify", "gpuexec", "gpuexec/flatscan", "client", "service"},
		[]string{natsGo, nuid},
	},
	"cmd/geniemq": {
		[]string{"wire", "index", "index/encode", "index/load", "gpuexec", "client", "service", "bench"},
		[]string{natsGo, "github.com/spf13", "github.com/schollz/progressbar/v3", "golang.org/x/term"},
	},
	"tests": {nil, nil},
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
