package enginetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
)

// changedFile builds an index of n objects of ten categories.
func changedFile(t *testing.T, name string, n int) *index.Index {
	t.Helper()
	spec, err := index.Builtin().ParseSchema([]byte("name: " + name + "\nkind: rows\ncolumns: [{name: c, type: category, layout: postings}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := onebyone.NewBuilder(spec, []schema.AttributeSpec{{Name: "c", Type: schema.Text, Layout: "postings"}}, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		b.AddString(0, fmt.Sprint(i%10))
		if err := b.EndObject("", nil, ""); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), name+".gmq")
	if err := b.WriteFile(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	x, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

// A file that is overwritten with postings of objects that there are not makes no answer of another index wrong: engines check
// nothing when they count, and the counters of a core are those of all indexes.
func TestChangedFileLeavesOthersAlone(t *testing.T) {
	engine := cpu.New(gpuexec.CPUOptions{Workers: 1})
	defer engine.Close()
	damaged, sound := changedFile(t, "damaged", 3000), changedFile(t, "sound", 60_000)
	searchers := make(map[*index.Index]gpuexec.Searcher)
	for _, x := range []*index.Index{damaged, sound} {
		s, err := engine.Load(t.Context(), x)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		searchers[x] = s
	}
	// Many postings are harvested by sweeping the counters of the tile's objects, few by visiting the postings again.
	ask := func(x *index.Index, keywords, k int) gpuexec.Answer {
		plan := gpuexec.Plan{K: k}
		Query(&plan).StartItem(0, 1)
		Query(&plan).AddSpan(0, uint32(keywords))
		answers := make([]gpuexec.Answer, 1)
		if err := searchers[x].Search(t.Context(), []gpuexec.Plan{plan}, answers, nil); err != nil {
			t.Fatal(err)
		}
		return answers[0]
	}
	want := map[int]gpuexec.Answer{1: ask(sound, 1, 60_000), 10: ask(sound, 10, 60_000)}
	f, err := os.OpenFile(damaged.Path(), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, s := range damaged.Sections() {
		if s.Kind == postings.SectionPostings { // its ids lie at its end
			ids := make([]byte, 2*3000)
			for i := range ids {
				ids[i] = byte(i/2*7>>(8*(i%2))) | byte(0x80*(i%2)) // above 32,767
			}
			if _, err := f.WriteAt(ids, s.Offset+s.Length-int64(len(ids))); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, keywords := range []int{1, 10} {
		ask(damaged, 10, 10) // whatever that is
		ask(damaged, 1, 10)
		if got := ask(sound, keywords, 60_000); got.Err != nil || !reflect.DeepEqual(got.Hits, want[keywords].Hits) {
			t.Errorf("beside a damaged index, a query for %d keywords has %d hits, err %v, with counts %v; it had %d", keywords, len(got.Hits), got.Err,
				got.Hits[:min(3, len(got.Hits))], len(want[keywords].Hits))
		}
	}
}

// A file that is cut off makes plans fail with what index.Index.Faulted knows, in every stage, and the process lives.
func TestTruncatedFile(t *testing.T) {
	for _, workers := range []int{1, 4} {
		engine := cpu.New(gpuexec.CPUOptions{Workers: workers})
		defer engine.Close()
		x := changedFile(t, "cut", 60_000)
		s, err := engine.Load(t.Context(), x)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := os.Truncate(x.Path(), 0); err != nil {
			t.Fatal(err)
		}
		plans := make([]gpuexec.Plan, 20)
		for i := range plans {
			plans[i] = gpuexec.Plan{K: 10}
			Query(&plans[i]).StartItem(0, 1)
			Query(&plans[i]).AddSpan(0, 10)
		}
		answers := make([]gpuexec.Answer, len(plans))
		if err := s.Search(t.Context(), plans, answers, nil); err != nil {
			t.Fatal(err)
		}
		for i := range answers {
			var panicked *gpuexec.PanicError
			if !errors.As(answers[i].Err, &panicked) || !x.Faulted(panicked.Value) {
				t.Errorf("%d workers: plan %d has the error %v", workers, i, answers[i].Err)
			}
		}
	}
}
