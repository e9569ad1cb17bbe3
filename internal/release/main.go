// Command release builds geniemq for all platforms into one folder: an archive and a list of modules (SBOM) for each, and checksums. The same commit gives the
// same bytes on any machine with the same Go, and it checks that by building everything a second time, from a clone in another folder, with an empty cache.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
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

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	source := flags.String("source", ".", "`folder` of the repository")
	to := flags.String("out", "build/release", "`folder` to fill; what is in it goes")
	only := flags.String("only", "", "platforms like linux/amd64,darwin/arm64 (default: all)")
	once := flags.Bool("once", false, "do not build a second time")
	dirty := flags.Bool("dirty", false, "build the folder as it is, once; such a build has no version and is no release")
	shared := flags.Bool("shared-cache", false, "let the second build use what the first compiled: quick, and checks less")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	out, err := filepath.Abs(*to)
	if err != nil {
		return err
	}
	if *dirty {
		return (&release{source: *source, out: out, platforms: chosen}).make(ctx)
	}
	dir, err := os.MkdirTemp("", "geniemq-release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove(dir)) }()
	first := &release{source: filepath.Join(dir, "one"), out: out, platforms: chosen}
	if err := first.clone(ctx, *source); err != nil || *once {
		return err
	}
	fmt.Println("again, from a clone in another folder:")
	second := &release{source: filepath.Join(dir, "another", "place"), out: filepath.Join(dir, "out"), platforms: chosen}
	if !*shared {
		second.cache = filepath.Join(dir, "cache")
	}
	if err := second.clone(ctx, *source); err != nil {
		return fmt.Errorf("the second time: %w", err)
	}
	return same(first.out, second.out)
}

// remove removes a folder in which modules may lie, that are not to be written to.
func remove(dir string) error {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	})
	return os.RemoveAll(dir)
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
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=auto", "-ldflags=-s -w -buildid=", "-o", binary, "./cmd/geniemq")
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

// clone builds what is committed in a repository, from a clone: only of that the go command tells the version, and nothing else can get in.
func (r *release) clone(ctx context.Context, repository string) error {
	if _, err := output(ctx, repository, "git", "clone", "-q", ".", r.source); err != nil {
		return err
	}
	return r.make(ctx)
}

// same compares the checksums of two builds.
func same(one, two string) error {
	was, err := os.ReadFile(filepath.Join(one, sums))
	if err != nil {
		return err
	}
	is, err := os.ReadFile(filepath.Join(two, sums))
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
