package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// A target is a kind of device: for which branches of the sources are compiled.
type target struct {
	name  string
	flags []string
}

var targets = []target{
	{"sm_90a", []string{"-D__CUDA_ARCH__=900", "-D__CUDA_ARCH_FEAT_SM90_ALL=1", "-DEMULATED_ARCH=900"}},
	{"sm_80", []string{"-D__CUDA_ARCH__=800", "-DEMULATED_ARCH=800"}},
}

// flags of g++. Every product and sum rounds by itself, accesses must be aligned to their types as on a device, and what counts bits
// has an instruction for it.
var flags = []string{"-std=c++17", "-O2", "-g1", "-fPIC", "-fno-strict-aliasing", "-ffp-contract=off", "-fno-exceptions", "-fwrapv",
	"-march=x86-64-v2", "-w", "-fmax-errors=5", "-fdiagnostics-color=never"}

// A builder makes the library for one target in a folder.
type builder struct {
	target
	root, folder string
	gxx          string
	runtime      []byte // sum of what every part is built from
}

// build makes what has changed and returns the folder.
func build(arch string) (string, error) {
	arch = cmp.Or(arch, targets[0].name)
	at := slices.IndexFunc(targets, func(t target) bool { return t.name == arch })
	if at < 0 {
		return "", fmt.Errorf("GENIEMQ_EMULATED_ARCH=%s is not a target of the emulator: sm_90a or sm_80", arch)
	}
	root, err := root()
	if err != nil {
		return "", err
	}
	gxx, err := exec.LookPath(cmp.Or(os.Getenv("CXX"), "g++"))
	if err != nil {
		return "", fmt.Errorf("the emulator is compiled by g++, which is not there: install it (apt-get install g++) or name one by CXX: %w", err)
	}
	b := &builder{target: targets[at], root: root, folder: filepath.Join(root, "build/emulator", arch), gxx: gxx}
	if err := os.MkdirAll(b.folder, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(b.folder, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	return b.folder, b.build()
}

func (b *builder) build() error {
	var err error
	if b.runtime, err = b.sumOf("kernels/emulator/*.go", "kernels/emulator/device/*"); err != nil {
		return err
	}
	version, err := exec.Command(b.gxx, "--version").Output()
	if err != nil {
		return fmt.Errorf("asking %s for its version: %w", b.gxx, err)
	}
	b.runtime = append(b.runtime, version...)
	if err := b.driver(); err != nil {
		return err
	}
	sources, err := filepath.Glob(filepath.Join(b.root, "kernels/*.cu"))
	if err != nil {
		return err
	}
	// The longest first.
	slices.SortFunc(sources, func(x, y string) int { return cmp.Compare(size(y), size(x)) })
	errs := make([]error, len(sources))
	seats := make(chan struct{}, max(2, runtime.NumCPU()))
	var all sync.WaitGroup
	for i, source := range sources {
		seats <- struct{}{}
		all.Go(func() {
			errs[i] = b.module(strings.TrimSuffix(filepath.Base(source), ".cu"))
			<-seats
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return b.images()
}

// driver builds libcuda.so.1.
func (b *builder) driver() error {
	args := append(slices.Clone(flags), b.target.flags...)
	args = append(args, "-shared", "-Wl,-soname,libcuda.so.1", "-Wl,-Bsymbolic")
	for _, source := range []string{"fiber.cpp", "driver.cpp"} {
		args = append(args, filepath.Join(b.root, "kernels/emulator/device", source))
	}
	return b.make("libcuda.so.1", b.runtime, nil, append(args, "-ldl", "-lpthread"))
}

// module builds the library of one source.
func (b *builder) module(name string) error {
	const device = "kernels/emulator/device" // relative, so that the text is the same in every checkout
	args := append(slices.Clone(flags), b.target.flags...)
	source := filepath.Join("kernels", name+".cu")
	preprocess := append(slices.Clone(args), "-E", "-x", "c++", "-I", device, "-include", filepath.Join(device, "emulated.h"), source)
	text, err := b.run(preprocess, nil)
	if err != nil {
		return fmt.Errorf("preprocessing %s: %w", source, err)
	}
	translated, err := translate(text)
	if err != nil {
		return err
	}
	args = append(args, "-fno-gnu-unique", "-shared", "-Wl,-Bsymbolic", "-x", "c++-cpp-output", "-", "-x", "none", filepath.Join(b.folder, "libcuda.so.1"))
	sum := sha256.Sum256(append(translated, b.runtime...))
	return b.make(name+".so", sum[:], translated, args)
}

// make runs the compiler unless a library is there that was made of the same.
func (b *builder) make(library string, of, input []byte, args []string) error {
	path := filepath.Join(b.folder, library)
	sum := hex.EncodeToString(fnvOf(of))
	if before, err := os.ReadFile(path + ".sum"); err == nil && string(before) == sum {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
	}
	fmt.Fprintf(os.Stderr, "emulator: %s %s\n", b.name, library)
	if input != nil {
		if err := os.WriteFile(strings.TrimSuffix(path, ".so")+".ii", input, 0o644); err != nil { // to look at
			return err
		}
	}
	if _, err := b.run(append(args, "-o", path+".new"), input); err != nil {
		return fmt.Errorf("compiling %s: %w", library, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return os.WriteFile(path+".sum", []byte(sum), 0o644)
}

func (b *builder) run(args []string, input []byte) ([]byte, error) {
	c := exec.Command(b.gxx, args...)
	c.Dir = b.root
	c.Stdin = bytes.NewReader(input)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("%w:\n%s", err, errs.String())
	}
	return out.Bytes(), nil
}

// images writes the table by which the driver finds the module of an image: sum, bytes, name.
func (b *builder) images() error {
	paths, err := filepath.Glob(filepath.Join(b.root, "kernels/image/*.fatbin"))
	if err != nil {
		return err
	}
	var table bytes.Buffer
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(path), ".fatbin")
		fmt.Fprintf(&table, "%x %d %s\n", fnvOf(data), len(data), name)
	}
	return os.WriteFile(filepath.Join(b.folder, "images"), table.Bytes(), 0o644)
}

// sumOf is a sum of the files of some patterns.
func (b *builder) sumOf(patterns ...string) ([]byte, error) {
	sum := sha256.New()
	for _, pattern := range patterns {
		paths, err := filepath.Glob(filepath.Join(b.root, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			f, err := os.Open(path)
			if err != nil {
				return nil, err
			}
			_, err = io.Copy(sum, f)
			if err = errors.Join(err, f.Close()); err != nil {
				return nil, err
			}
		}
	}
	return sum.Sum(nil), nil
}

// fnvOf is the sum that the driver computes too.
func fnvOf(data []byte) []byte {
	h := fnv.New64a()
	h.Write(data)
	return h.Sum(nil)
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
