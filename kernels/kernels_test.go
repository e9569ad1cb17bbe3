package kernels

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every image must be built from the sources beside it, and be the one that was built.
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
				t.Errorf("the image of %s does not go with this %s: run go generate ./kernels", module, source)
			}
		}
		if !seen["build.sh"] || !seen[module] || !seen["image/"+name+".fatbin"] {
			t.Errorf("image/%s.sources lacks the sum of build.sh, of %s or of the image", name, module)
		}
	}
}

// Every image must have machine code for the GPUs that build.sh names, and PTX for later ones.
func TestImageTargets(t *testing.T) {
	modules, err := Modules()
	if err != nil {
		t.Fatal(err)
	}
	for name, image := range modules {
		got := targets(t, name, image)
		want := []string{"sm_80", "sm_86", "sm_89", "sm_90", "compute_90"}
		source, err := os.ReadFile(name + ".cu")
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(source, []byte("__CUDA_ARCH_FEAT_SM90_ALL")) { // what it has for Hopper alone
			want = append(want, "sm_90a")
		}
		for _, target := range want {
			if !slices.Contains(got, target) {
				t.Errorf("the image of %s has no code for %s: %v", name, target, got)
			}
		}
	}
}

// targets reads the heads of a fat binary's entries: what its machine code and PTX are for.
func targets(t *testing.T, name string, image []byte) (found []string) {
	const magic, kindPTX, kindCode, specific = 0xba55ed50, 1, 2, 1 << 20
	le := binary.LittleEndian
	for len(image) >= 16 {
		if le.Uint32(image) != magic {
			t.Fatalf("the image of %s is no fat binary", name)
		}
		head, size := uint64(le.Uint16(image[6:])), le.Uint64(image[8:])
		entries := image[head : head+size]
		image = image[head+size:]
		for len(entries) >= 48 {
			target := strconv.Itoa(int(le.Uint32(entries[28:])))
			if le.Uint32(entries[40:])&specific != 0 {
				target += "a"
			}
			switch le.Uint16(entries) {
			case kindPTX:
				found = append(found, "compute_"+target)
			case kindCode:
				found = append(found, "sm_"+target)
			}
			entries = entries[uint64(le.Uint32(entries[4:]))+le.Uint64(entries[8:]):]
		}
	}
	return found
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

// The threads of a block that the sources and this package name are the same.
func TestSelectThreads(t *testing.T) {
	for source, want := range map[string]string{
		"select.cu": "constexpr int kThreads = ", "resolve.cu": "constexpr uint32_t kThreads = ", "load.cu": "constexpr uint32_t kWarps = ",
	} {
		data, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		_, value, found := strings.Cut(string(data), want)
		value, _, _ = strings.Cut(value, ";")
		n, err := strconv.Atoi(value)
		if source == "load.cu" {
			n *= 32
		}
		if !found || err != nil || n != SelectThreads {
			t.Errorf("a block of %s has %d threads, not %d", source, n, SelectThreads)
		}
	}
}
