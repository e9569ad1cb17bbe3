// Package kernels holds the CUDA sources of geniemq and the device image that is built from them: fat binaries with
// machine code for compute capability 8.0, 8.6, 8.9 and 9.0, where it pays for 9.0a too, and PTX for later devices. They are
// checked in, so that building geniemq needs no CUDA compiler; TestImageIsCurrent fails when sources and image differ.
//
// The package knows nothing of drivers and devices: package gpuexec loads and launches.
package kernels

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:generate ./build.sh

//go:embed image/*.fatbin
var image embed.FS

// Modules returns the fat binaries, by the name of their source without its suffix.
func Modules() (map[string][]byte, error) {
	entries, err := fs.ReadDir(image, "image")
	if err != nil {
		return nil, fmt.Errorf("reading the device image: %w", err)
	}
	modules := make(map[string][]byte, len(entries))
	for _, entry := range entries {
		data, err := fs.ReadFile(image, "image/"+entry.Name())
		if err != nil {
			return nil, fmt.Errorf("reading the device image: %w", err)
		}
		modules[strings.TrimSuffix(entry.Name(), ".fatbin")] = data
	}
	return modules, nil
}
