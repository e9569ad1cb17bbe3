package kernels

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every image must be built from the sources beside it.
func TestImageIsCurrent(t *testing.T) {
	modules, err := filepath.Glob("*.cu")
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range modules {
		name := strings.TrimSuffix(module, ".cu")
		recorded, err := os.ReadFile("image/" + name + ".sources")
		if err != nil {
			t.Errorf("%s has no image: run go generate ./kernels", module)
			continue
		}
		seen := map[string]bool{}
		for line := range strings.Lines(string(recorded)) {
			want, source, ok := strings.Cut(strings.TrimSpace(line), "  ")
			if !ok || strings.HasPrefix(line, "#") {
				continue
			}
			seen[source] = true
			data, err := os.ReadFile(source)
			if err != nil {
				t.Error(err)
				continue
			}
			if sum := sha256.Sum256(data); want != hex.EncodeToString(sum[:]) {
				t.Errorf("the image of %s was not built from this %s: run go generate ./kernels", module, source)
			}
		}
		if !seen["build.sh"] || !seen[module] {
			t.Errorf("the image of %s does not say that it was built from it and build.sh", module)
		}
	}
}

func TestModules(t *testing.T) {
	modules, err := Modules()
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("*.cu")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		if len(modules[strings.TrimSuffix(source, ".cu")]) == 0 {
			t.Errorf("no image of %s", source)
		}
	}
	if len(modules) != len(sources) {
		t.Errorf("%d images of %d sources", len(modules), len(sources))
	}
}
