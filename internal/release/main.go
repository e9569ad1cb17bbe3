// Command release builds geniemq for all platforms into one folder: an archive and a list of modules (SBOM) for each, and checksums. The same commit gives the
// same bytes on any machine with the same Go, and it checks that by building everything a second time, from a clone in another folder, with an empty cache.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Platform is what a build is for.
type Platform struct{ OS, Arch string }

func (p Platform) String() string { return p.OS + "/" + p.Arch }

// platforms of a release.
var platforms = []Platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	source := flags.String("source", ".", "`folder` of the repository")
	out := flags.String("out", "build/release", "`folder` to fill; what is in it goes")
	only := flags.String("only", "", "platforms like linux/amd64,darwin/arm64 (default: all)")
	once := flags.Bool("once", false, "do not build a second time")
	dirty := flags.Bool("dirty", false, "build what is not committed too; such a build is no release")
	shared := flags.Bool("shared-cache", false, "let the second build use what the first compiled: quick, and checks less")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	changes, err := output(ctx, *source, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if changes != "" && !*dirty {
		return fmt.Errorf("there are changes that are not committed, so nobody could build the same again:\n%s", changes)
	}
	r := &release{source: *source, out: *out, platforms: chosen}
	if err := r.make(ctx); err != nil {
		return err
	}
	if *once || changes != "" {
		return nil
	}
	return r.again(ctx, *shared)
}

// choose reads a list of platforms.
func choose(list string) (chosen []Platform, err error) {
	if list == "" {
		return platforms, nil
	}
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(platforms, func(p Platform) bool { return p.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("%q is none of %v", name, platforms)
		}
		chosen = append(chosen, platforms[i])
	}
	return chosen, nil
}

// release is one build of everything.
type release struct {
	source, out string
	platforms   []Platform
	cache       string // GOCACHE; "" for the usual one
}

// make fills the folder.
func (r *release) make(ctx context.Context) error {
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	seconds, err := output(ctx, r.source, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("the time of the commit: %w", err)
	}
	for _, p := range r.platforms {
		if err := r.one(ctx, p, time.Unix(at, 0).UTC()); err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
	}
	return writeSums(r.out)
}

// one builds for a platform.
func (r *release) one(ctx context.Context, p Platform, at time.Time) error {
	binary, err := filepath.Abs(filepath.Join(r.out, "geniemq"))
	if err != nil {
		return err
	}
	defer os.Remove(binary)
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w -buildid=", "-o", binary, "./cmd/geniemq")
	build.Dir = r.source
	// What a machine's environment could change. GOFLAGS of the environment are left out with their intent: they may hold anything.
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.OS, "GOARCH="+p.Arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off")
	if r.cache != "" {
		build.Env = append(build.Env, "GOCACHE="+r.cache)
	}
	var said bytes.Buffer
	build.Stdout, build.Stderr = &said, &said
	if err := build.Run(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, &said)
	}
	modules, version, err := modulesOf(binary)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("geniemq-%s-%s-%s", strings.TrimPrefix(version, "v"), p.OS, p.Arch)
	if err := os.WriteFile(filepath.Join(r.out, name+".cdx.json"), modules, 0o644); err != nil {
		return err
	}
	if err := archive(filepath.Join(r.out, name+".tar.gz"), name, r.source, binary, at); err != nil {
		return err
	}
	fmt.Printf("%s\n", name)
	return nil
}

// again builds everything a second time, elsewhere, and compares.
func (r *release) again(ctx context.Context, sharedCache bool) (err error) {
	dir, err := os.MkdirTemp("", "geniemq-release-")
	if err != nil {
		return err
	}
	defer func() {
		_ = exec.Command("chmod", "-R", "u+w", dir).Run()
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	clone := filepath.Join(dir, "another", "place")
	if _, err := output(ctx, r.source, "git", "clone", "-q", "--local", ".", clone); err != nil {
		return err
	}
	second := &release{source: clone, out: filepath.Join(dir, "out"), platforms: r.platforms}
	if !sharedCache {
		second.cache = filepath.Join(dir, "cache")
	}
	fmt.Println("again, from a clone in another folder:")
	if err := second.make(ctx); err != nil {
		return fmt.Errorf("the second time: %w", err)
	}
	was, err := os.ReadFile(filepath.Join(r.out, sums))
	if err != nil {
		return err
	}
	is, err := os.ReadFile(filepath.Join(second.out, sums))
	if err != nil {
		return err
	}
	if !bytes.Equal(was, is) {
		return fmt.Errorf("the second build differs:\n%s\n%s", was, is)
	}
	fmt.Printf("the same bytes twice:\n%s", was)
	return nil
}

// output is what a command says in a folder.
func output(ctx context.Context, dir string, command ...string) (string, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("%v: %w: %s", command, err, exit.Stderr)
	} else if err != nil {
		return "", fmt.Errorf("%v: %w", command, err)
	}
	return strings.TrimSpace(string(out)), nil
}
