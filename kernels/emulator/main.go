// Command emulator runs tests of the CUDA engine on machines without a GPU: it builds a libcuda.so.1 that executes the kernels on the
// CPU (see folder device), and runs its arguments with it. Without arguments it prints the folder of the library.
//
//	bash kernels/emulator/run go test -tags cuda -short ./gpuexec/cuda/device
//
// The script run also sets what a build with the tag cuda needs.
//
// # How a kernel becomes a program of the CPU
//
// The sources are preprocessed as for sm_90a, with device/emulated.h in place of CUDA's headers; translate.go makes C++ of what is
// left that is not; g++ compiles a shared library per module. The driver is one more library, and knows modules by the sums of their
// images in kernels/image: what runs is the source as it is now, whether or not the image is up to date.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	folder, err := build(os.Getenv("GENIEMQ_EMULATED_ARCH"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "emulator:", err)
		os.Exit(1)
	}
	if len(os.Args) < 2 {
		fmt.Println(folder)
		return
	}
	if err := run(folder, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "emulator:", err)
		os.Exit(1)
	}
}

// run replaces this process by a command that finds the library.
func run(folder string, args []string) error {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	env := os.Environ()
	set := func(name, value string) {
		for i := range env {
			if strings.HasPrefix(env[i], name+"=") {
				env[i] = name + "=" + value
				return
			}
		}
		env = append(env, name+"="+value)
	}
	libraries := folder
	if before := os.Getenv("LD_LIBRARY_PATH"); before != "" {
		libraries += ":" + before
	}
	set("LD_LIBRARY_PATH", libraries)
	set("GENIEMQ_REQUIRE_CUDA", "1")
	return syscall.Exec(path, args, env)
}

// root is the folder of the repository: the first one upwards that has kernels/emulator.
func root() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "kernels/emulator/device/emulated.h")); err == nil {
			return folder, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", fmt.Errorf("run it in the repository of geniemq: there is no kernels/emulator here or above")
		}
		folder = parent
	}
}
