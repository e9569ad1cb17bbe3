package kernels

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The image must be built from the sources beside it.
func TestImageIsCurrent(t *testing.T) {
	recorded, err := os.ReadFile("image/SOURCES")
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string]string)
	for line := range strings.Lines(string(recorded)) {
		if sum, name, ok := strings.Cut(strings.TrimSpace(line), "  "); ok && !strings.HasPrefix(line, "#") {
			want[name] = sum
		}
	}
	sources := []string{"build.sh"}
	for _, pattern := range []string{"*.cu", "*.cuh"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, names...)
	}
	for _, name := range sources {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		if want[name] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s is not what the device image was built from: run go generate ./kernels", name)
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("the device image was built from %s, which is gone: run go generate ./kernels", name)
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
