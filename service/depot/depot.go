// Package depot keeps the files of indexes in the NATS server that queries come through, so that workers on other machines get them, and says
// which version of each is to be served.
package depot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/internal/human"
	"github.com/geniemq/geniemq/wire"
)

// Keep is how many versions of an index stay when a newer one is pushed.
const Keep = 5

// Names of the buckets, after the prefix of the deployment.
const (
	filesSuffix   = "-index-files"
	shelvesSuffix = "-index-versions"
)

var (
	// ErrNothing says that no version of an index was ever pushed.
	ErrNothing = errors.New("nothing was pushed of this index")
	// ErrNoVersion says that a version was never pushed, or is not kept any more.
	ErrNoVersion = errors.New("no such version")
)

// Depot is the files and the shelves of one deployment: an object store with the files, and a key-value bucket with a shelf for each index.
//
// What it guarantees:
//   - A shelf never names a file that is not there whole: a file is stored before its shelf is written, and removed after. A push that ends half-way
//     leaves what was served.
//   - A file is fetched whole and is what was pushed, or it is not fetched: its SHA-256 is compared by the store, and the index's version, which follows
//     from all of its bytes, by the depot.
//   - Pushes and rollbacks at the same time happen one after the other: a shelf is replaced only if it is the one that was read.
//
// It is safe for use by several goroutines and processes. It makes its buckets when something is pushed first.
type Depot struct {
	js     jetstream.JetStream
	prefix string
	keep   int
}

// New uses the depot of a deployment.
func New(js jetstream.JetStream, subjects wire.Subjects) *Depot {
	return &Depot{js: js, prefix: subjects.Prefix(), keep: Keep}
}

// Shelf is what is kept of an index, and which of it is served.
type Shelf struct {
	Current  string    `json:"current"`  // a version
	Versions []Version `json:"versions"` // in the order in which they were pushed; the last one is the newest

	revision uint64
}

// Version is a file of an index.
type Version struct {
	Version string    `json:"version"` // the first 16 hex digits of the file's SHA-256
	Bytes   int64     `json:"bytes"`
	Objects uint32    `json:"objects"`
	Pushed  time.Time `json:"pushed"`
}

func (s *Shelf) place(version string) int {
	return slices.IndexFunc(s.Versions, func(v Version) bool { return v.Version == version })
}

// object is the name of a version's file in the store.
func object(name, version string) string { return name + "/" + version + ".gmq" }

// Push stores the index in a file and makes it the version that is served. An empty name stands for the index's own. A file that is there already
// is not sent again.
func (d *Depot) Push(ctx context.Context, name, path string) (string, Version, error) {
	x, err := index.Open(path) // which compares every byte with the file's checksums
	if err != nil {
		return "", Version{}, err
	}
	defer x.Close()
	if name == "" {
		name = x.Name()
	}
	if err := wire.CheckIndexName(name); err != nil {
		return "", Version{}, err
	}
	files, shelves, err := d.make(ctx)
	if err != nil {
		return "", Version{}, err
	}
	v := Version{Version: x.Version(), Bytes: x.Size(), Objects: x.Objects(), Pushed: time.Now().UTC().Truncate(time.Second)}
	if err := store(ctx, files, object(name, v.Version), path, v); err != nil {
		return "", Version{}, fmt.Errorf("store %s: %w%s", path, err, advice(err, v.Bytes))
	}
	var dropped []Version
	if err := d.change(ctx, shelves, name, func(s *Shelf) error {
		if i := s.place(v.Version); i >= 0 {
			s.Versions = slices.Delete(s.Versions, i, i+1)
		}
		s.Versions, s.Current = append(s.Versions, v), v.Version
		n := max(0, len(s.Versions)-d.keep)
		dropped = slices.Clone(s.Versions[:n])
		s.Versions = slices.Delete(s.Versions, 0, n)
		return nil
	}); err != nil {
		return "", Version{}, err
	}
	for _, old := range dropped {
		if err := files.Delete(ctx, object(name, old.Version)); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
			return name, v, fmt.Errorf("%s is served, but version %s could not be removed: %w", name, old.Version, err)
		}
	}
	return name, v, nil
}

// store puts a file under a name, unless it is there.
func store(ctx context.Context, files jetstream.ObjectStore, name, path string, v Version) error {
	if info, err := files.GetInfo(ctx, name); err == nil && info.Size == uint64(v.Bytes) {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := files.Put(ctx, jetstream.ObjectMeta{Name: name}, file)
	if err != nil {
		return err
	}
	if info.Size != uint64(v.Bytes) {
		return fmt.Errorf("the file changed meanwhile: %d bytes were stored of %d", info.Size, v.Bytes)
	}
	return nil
}

// Rollback makes an older version the one that is served: a given one, or the one that was pushed before the one that is.
func (d *Depot) Rollback(ctx context.Context, name, to string) (was, is string, err error) {
	_, shelves, err := d.open(ctx, name)
	if err != nil {
		return "", "", err
	}
	err = d.change(ctx, shelves, name, func(s *Shelf) error {
		at := s.place(s.Current) - 1
		switch {
		case to != "":
			at = s.place(to)
		case len(s.Versions) == 0:
			return ErrNothing
		}
		if at < 0 && to == "" {
			return fmt.Errorf("%w: %s is the oldest version that is kept", ErrNoVersion, s.Current)
		} else if at < 0 {
			return fmt.Errorf("%w: %s", ErrNoVersion, to)
		}
		was, is = s.Current, s.Versions[at].Version
		s.Current = is
		return nil
	})
	return was, is, err
}

// Shelf is what there is of an index.
func (d *Depot) Shelf(ctx context.Context, name string) (*Shelf, error) {
	_, shelves, err := d.open(ctx, name)
	if err != nil {
		return nil, err
	}
	return read(ctx, shelves, name)
}

// Names are the indexes that were pushed.
func (d *Depot) Names(ctx context.Context) ([]string, error) {
	shelves, err := d.js.KeyValue(ctx, d.prefix+shelvesSuffix)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("look at the versions: %w", err)
	}
	keys, err := shelves.ListKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the indexes: %w", err)
	}
	var all []string
	for name := range keys.Keys() {
		all = append(all, name)
	}
	slices.Sort(all)
	return all, nil
}

// change replaces a shelf by what edit makes of it. It begins again when somebody else was faster.
func (d *Depot) change(ctx context.Context, shelves jetstream.KeyValue, name string, edit func(*Shelf) error) error {
	for {
		s, err := read(ctx, shelves, name)
		if errors.Is(err, ErrNothing) {
			s = new(Shelf)
		} else if err != nil {
			return err
		}
		if err := edit(s); err != nil {
			return err
		}
		body, err := json.Marshal(s)
		if err != nil {
			return err
		}
		_, err = shelves.Update(ctx, name, body, s.revision)
		if apiErr := (*jetstream.APIError)(nil); errors.As(err, &apiErr) && apiErr.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
			continue
		}
		if err != nil {
			return fmt.Errorf("write the versions of %s: %w%s", name, err, advice(err, 0))
		}
		return nil
	}
}

func read(ctx context.Context, shelves jetstream.KeyValue, name string) (*Shelf, error) {
	entry, err := shelves.Get(ctx, name)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, ErrNothing
	} else if err != nil {
		return nil, fmt.Errorf("read the versions of %s: %w", name, err)
	}
	return parse(entry)
}

func parse(entry jetstream.KeyValueEntry) (*Shelf, error) {
	s := &Shelf{revision: entry.Revision()}
	if err := json.Unmarshal(entry.Value(), s); err != nil {
		return nil, fmt.Errorf("the versions of %s cannot be read: %w", entry.Key(), err)
	}
	return s, nil
}

// open finds the buckets, which a push made.
func (d *Depot) open(ctx context.Context, name string) (files jetstream.ObjectStore, shelves jetstream.KeyValue, err error) {
	if err := wire.CheckIndexName(name); err != nil {
		return nil, nil, err
	}
	shelves, err = d.js.KeyValue(ctx, d.prefix+shelvesSuffix)
	if err == nil {
		files, err = d.js.ObjectStore(ctx, d.prefix+filesSuffix)
	}
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, nil, ErrNothing
	} else if err != nil {
		return nil, nil, fmt.Errorf("look at the store of indexes: %w", err)
	}
	return files, shelves, nil
}

// make finds the buckets or makes them. Files are many chunks: those of a bucket that is full are refused, none is dropped.
func (d *Depot) make(ctx context.Context) (jetstream.ObjectStore, jetstream.KeyValue, error) {
	files, err := d.js.ObjectStore(ctx, d.prefix+filesSuffix)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		files, err = d.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: d.prefix + filesSuffix, Description: "geniemq: files of indexes"})
		if errors.Is(err, jetstream.ErrBucketExists) {
			files, err = d.js.ObjectStore(ctx, d.prefix+filesSuffix)
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("make the store of indexes: %w", err)
	}
	shelves, err := d.js.KeyValue(ctx, d.prefix+shelvesSuffix)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		shelves, err = d.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: d.prefix + shelvesSuffix, Description: "geniemq: which versions of indexes are served"})
		if errors.Is(err, jetstream.ErrBucketExists) {
			shelves, err = d.js.KeyValue(ctx, d.prefix+shelvesSuffix)
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("make the bucket of versions: %w", err)
	}
	return files, shelves, nil
}

// Error codes of nats-server for which the library has no name.
const (
	codeMaximumBytes jetstream.ErrorCode = 10077 // of a stream, by "store failed"
	codeNoStorage    jetstream.ErrorCode = 10047 // insufficient storage resources available
)

// advice says what to do about an error.
func advice(err error, bytes int64) string {
	var apiErr *jetstream.APIError
	switch {
	case !errors.As(err, &apiErr):
		return ""
	case apiErr.ErrorCode == codeMaximumBytes || apiErr.ErrorCode == codeNoStorage:
		return fmt.Sprintf(" (the file has %s: give the bucket or JetStream more room)", human.Size(bytes))
	}
	return ""
}
