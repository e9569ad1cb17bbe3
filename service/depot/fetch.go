package depot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/index"
)

// kept is how many files of an index stay in a folder: the one that is served, the one before, and one that is on its way.
const kept = 3

// Fetch brings a version of an index into a folder, unless it is there, and returns its file. Files of other versions beyond the newest few are removed;
// a worker that serves one still has it open. Several workers may share a folder.
func (d *Depot) Fetch(ctx context.Context, name, version, dir string) (path string, err error) {
	files, _, err := d.open(ctx, name)
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, name+"-"+version+".gmq")
	if check(path, version) == nil {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the folder of fetched indexes: %w", err)
	}
	if err := download(ctx, files, object(name, version), path, version); err != nil {
		return "", fmt.Errorf("fetch version %s of %s: %w", version, name, err)
	}
	return path, prune(dir, name, path)
}

// check says whether a file is a version of an index.
func check(path, version string) error {
	x, err := index.Open(path)
	if err != nil {
		return err
	}
	defer x.Close()
	if x.Version() != version {
		return fmt.Errorf("%s is version %s", path, x.Version())
	}
	return nil
}

// download writes an object to a file, which is there whole or not at all.
func download(ctx context.Context, files jetstream.ObjectStore, name, path, version string) (err error) {
	object, err := files.Get(ctx, name)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("%w: its file is not in the store", ErrNoVersion)
	} else if err != nil {
		return err
	}
	defer object.Close()
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			file.Close()
			os.Remove(file.Name())
		}
	}()
	if _, err := io.Copy(file, object); err != nil { // compares the digest at the end
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if err := file.Chmod(0o644); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := check(file.Name(), version); err != nil {
		return fmt.Errorf("what was fetched is not what was pushed: %w", err)
	}
	return os.Rename(file.Name(), path)
}

// prune removes all but the newest files of an index from a folder.
func prune(dir, name, just string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var files []fs.FileInfo
	for _, e := range entries {
		version, is := strings.CutPrefix(strings.TrimSuffix(e.Name(), ".gmq"), name+"-")
		if !is || len(version) != 16 || strings.Trim(version, "0123456789abcdef") != "" || filepath.Ext(e.Name()) != ".gmq" {
			continue
		}
		if info, err := e.Info(); err == nil && e.Name() != filepath.Base(just) {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, f := range files[min(len(files), kept-1):] {
		if err := os.Remove(filepath.Join(dir, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove an old index: %w", err)
		}
	}
	return nil
}
