package enginetest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
)

// dataFile returns the path of a file of the test data: $GENIEMQ_DATA, or ../shared/data beside the repository. Where
// there is none the test is skipped, but fails under CI=true and GENIEMQ_REQUIRE_CUDA=1.
func dataFile(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("GENIEMQ_DATA")
	if dir == "" {
		root, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
				break
			}
			if root == filepath.Dir(root) {
				t.Fatal("no go.mod above the test")
			}
			root = filepath.Dir(root)
		}
		dir = filepath.Join(root, "..", "shared", "data")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" || os.Getenv("GENIEMQ_REQUIRE_CUDA") == "1" { // engines are to be compared on data too
			t.Fatalf("no test data (%v): GENIEMQ_DATA must name its folder where CI=true or GENIEMQ_REQUIRE_CUDA=1", err)
		}
		t.Skipf("no test data (%v): set GENIEMQ_DATA to its folder", err)
	}
	return path
}

// Collection is an index built from files with the project's own loaders and encoders.
type Collection struct {
	schema  *schema.Schema
	Records []schema.Record
	Index   *index.Index
	Queries *index.Queries
}

// LoadCollection reads all files and indexes their records, copies times over.
func LoadCollection(t testing.TB, spec string, opts load.Options, copies int, files ...string) *Collection {
	t.Helper()
	c := &Collection{}
	var err error
	if c.schema, err = index.Builtin().ParseSchema([]byte(spec)); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		r, err := load.Open(dataFile(t, file), c.schema, opts)
		if err != nil {
			t.Fatal(err)
		}
		records, err := r.All(func(bad *load.BadRecord) { t.Log(bad) })
		if err := errors.Join(err, r.Close()); err != nil {
			t.Fatal(err)
		}
		c.Records = append(c.Records, records...)
	}
	objects, err := onebyone.NewObjects(c.schema, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range copies {
		for i := range c.Records {
			if err := objects.Add(&c.Records[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.Index = OpenBuilt(t, objects.Builder)
	if c.Queries, err = index.NewQueries(c.Index); err != nil {
		t.Fatal(err)
	}
	return c
}
