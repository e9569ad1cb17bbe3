package index_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("INDEX_TEST_WRITE"); path != "" {
		writeAndHang(path)
	}
	goleak.VerifyTestMain(m)
}

// manyTiles is a builder whose index takes more than one write.
func manyTiles() (*onebyone.Builder, error) {
	header := true
	s := &schema.Schema{Name: "big", Kind: schema.Rows, Header: &header, Missing: []string{""},
		Columns: []schema.Column{{Name: "o", Type: schema.CategoryColumn}}}
	b, err := onebyone.NewBuilder(s, []schema.AttributeSpec{{Name: "o", Type: schema.Ordinal, Keywords: 1000}}, index.BuilderOptions{Workers: 2})
	if err != nil {
		return nil, err
	}
	for id := range uint32(10 * store.TileObjects) {
		for i := range uint32(3) {
			if err := b.AddOrdinal(0, (id*7+i*331)%1000); err != nil {
				return nil, err
			}
		}
		if err := b.EndObject("", nil, ""); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// writeAndHang is the child of TestKilledWhileWriting: it stops in the middle of writing, and says so.
func writeAndHang(path string) {
	b, err := manyTiles()
	if err == nil {
		err = b.WriteFile(context.Background(), path, func(done, total int64) {
			if done > total/2 {
				fmt.Println("half written")
				select {}
			}
		})
	}
	fmt.Println("not killed:", err)
	os.Exit(1)
}

// oldFile writes a small index and returns its path and version.
func oldFile(t *testing.T) (path, version string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "a.gmq")
	m := randomModel(seeded.Rand(t), 100)
	if err := m.builder(t, index.BuilderOptions{}).WriteFile(context.Background(), path, nil); err != nil {
		t.Fatal(err)
	}
	return path, versionOf(t, path)
}

func versionOf(t *testing.T, path string) string {
	t.Helper()
	x, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if err := x.Validate(); err != nil {
		t.Fatal(err)
	}
	return x.Version()
}

// TestKilledWhileWriting kills a process half-way through WriteFile: the old index must be there, whole.
func TestKilledWhileWriting(t *testing.T) {
	path, version := oldFile(t)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "INDEX_TEST_WRITE="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil && err != io.EOF || line != "half written\n" {
		t.Errorf("child: %q, %v", line, err)
	}
	child.Process.Kill()
	child.Wait()
	if got := versionOf(t, path); got != version {
		t.Errorf("version %s, want the old %s", got, version)
	}
	leftovers, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".a.gmq.tmp-*"))
	if err != nil || len(leftovers) != 1 {
		t.Fatalf("temporary files %v, %v: the child was not writing", leftovers, err)
	}
	if _, err := index.Open(leftovers[0]); err == nil {
		t.Error("half an index opens")
	}
}

// TestWriteErrors checks that a write that fails, or is cancelled, leaves the old file and no temporary one.
func TestWriteErrors(t *testing.T) {
	path, version := oldFile(t)
	b, err := manyTiles()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	err = b.WriteFile(ctx, path, func(done, total int64) {
		if done > total/2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), path) {
		t.Errorf("cancelled: %v", err)
	}
	if got := versionOf(t, path); got != version {
		t.Errorf("version %s, want the old %s", got, version)
	}

	directory := filepath.Join(filepath.Dir(path), "directory")
	if err := os.Mkdir(directory, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := b.WriteFile(context.Background(), directory, nil); err == nil {
		t.Error("a directory was replaced")
	}
	if err := b.WriteFile(context.Background(), filepath.Join(directory, "no", "a.gmq"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent directory: %v", err)
	}
	if err := os.Remove(directory); err != nil {
		t.Error(err)
	}

	// The same builder goes on to write a whole index over the old one, which stays readable where it is open.
	old, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if err := b.WriteFile(context.Background(), path, nil); err != nil {
		t.Fatal(err)
	}
	if versionOf(t, path) == version {
		t.Error("the file was not replaced")
	}
	if err := old.Validate(); err != nil {
		t.Errorf("the old index, still open: %v", err)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v, %v; want the index alone", entries, err)
	}
}
