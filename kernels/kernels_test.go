package kernels

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
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
		code, ptx := targets(t, name, image)
		for _, arch := range []uint32{80, 86, 89, 90} {
			if !slices.Contains(code, arch) {
				t.Errorf("the image of %s has no machine code for sm_%d: %d", name, arch, code)
			}
		}
		if !slices.Contains(ptx, 90) {
			t.Errorf("the image of %s has no PTX of compute_90: %d", name, ptx)
		}
	}
}

// targets reads the heads of a fat binary's entries: the architectures of its machine code and of its PTX.
func targets(t *testing.T, name string, image []byte) (code, ptx []uint32) {
	const magic, kindPTX, kindCode = 0xba55ed50, 1, 2
	le := binary.LittleEndian
	for len(image) >= 16 {
		if le.Uint32(image) != magic {
			t.Fatalf("the image of %s is no fat binary", name)
		}
		head, size := uint64(le.Uint16(image[6:])), le.Uint64(image[8:])
		entries := image[head : head+size]
		image = image[head+size:]
		for len(entries) >= 32 {
			arch := le.Uint32(entries[28:])
			switch le.Uint16(entries) {
			case kindPTX:
				ptx = append(ptx, arch)
			case kindCode:
				code = append(code, arch)
			}
			entries = entries[uint64(le.Uint32(entries[4:]))+le.Uint64(entries[8:]):]
		}
	}
	return code, ptx
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
