package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/bench/workload"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/wire"
)

// edition is a version of an index that one worker serves for a time.
type edition struct{ worker, number int }

// swapData makes the editions of an index, and knows what each of them answers.
type swapData interface {
	index() string
	// build writes an edition to a file of its own and returns its path and version.
	build(t testing.TB, e edition) (path, version string)
	// query is the n-th query.
	query(n int) string
	// check says what is wrong with the answer to the n-th query if it is from an edition.
	check(e edition, n int, r *wire.Result) error
}

// rowEditions are small: their keys tell which edition they are of.
type rowEditions struct{}

const (
	rowsSchema  = "name: turn\nkind: rows\nkey: id\ncolumns: [{name: id, type: skip}, {name: c, type: category}]\n"
	rowsObjects = 400
)

func (rowEditions) index() string { return "turn" }

func (rowEditions) key(e edition, object int) string {
	return fmt.Sprintf("w%d-e%d-%d", e.worker, e.number, object)
}

func (d rowEditions) build(t testing.TB, e edition) (path, version string) {
	t.Helper()
	var data strings.Builder
	data.WriteString("id,c\n")
	for i := range rowsObjects {
		fmt.Fprintf(&data, "%s,c%d\n", d.key(e, i), i%10)
	}
	path = buildFile(t, t.TempDir(), "turn.csv", rowsSchema, data.String())
	x, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	return path, x.Version()
}

// query asks for the objects of one of ten categories.
func (rowEditions) query(n int) string { return fmt.Sprintf(`{"k":4,"row":{"c":"c%d"}}`, n%10) }

func (d rowEditions) check(e edition, n int, r *wire.Result) error {
	var want []string
	for i := range 4 {
		want = append(want, d.key(e, n%10+10*i))
	}
	return sameKeys(n, r, want)
}

func sameKeys(n int, r *wire.Result, want []string) error {
	if r.Err != nil {
		return r.Err
	}
	var got []string
	for _, h := range r.Hits {
		got = append(got, h.Key)
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("query %d is answered with %v by version %s, which has %v", n, got, r.Version, want)
	}
	return nil
}

// signatureEditions are large: each has more of the signatures of workload w1 than the one before.
type signatureEditions struct {
	asked []wire.Query
	files map[edition]signatureEdition
}

type signatureEdition struct {
	path, version string
	answers       [][]string // by query, the keys of its hits
}

// newSignatureEditions makes the editions of some workers, each of which serves the first one and swaps it so often.
func newSignatureEditions(t testing.TB, objects, workers, swaps int) *signatureEditions {
	t.Helper()
	d := &signatureEditions{files: make(map[edition]signatureEdition)}
	options := workload.Options{Queries: 8, K: 10, Cache: os.Getenv("GENIEMQ_SWAP_CACHE")}
	options.Grow()
	for number := 1; number <= 1+swaps; number++ {
		for worker := range workers {
			options.Objects = objects + objects/100*len(d.files) // so that some answers differ
			d.add(t, edition{worker, number}, options)
		}
	}
	return d
}

// add makes an edition. All are asked the queries of the first one, and what they answer is what the CPU engine finds.
func (d *signatureEditions) add(t testing.TB, e edition, options workload.Options) {
	t.Helper()
	w, err := workload.New(t.Context(), "w1", options)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	t.Logf("edition %d of worker %d: %d objects, built in %v", e.number, e.worker, options.Objects, w.Build.Round(time.Millisecond))
	if d.asked == nil {
		d.asked = w.Queries
	}
	file := signatureEdition{path: filepath.Join(t.TempDir(), "signatures.gmq"), version: w.Index.Version()}
	if err := os.WriteFile(file.path, w.File, 0o600); err != nil {
		t.Fatal(err)
	}
	engine := cpu.New(gpuexec.CPUOptions{})
	defer engine.Close()
	searcher, err := engine.Load(t.Context(), w.Index)
	if err != nil {
		t.Fatal(err)
	}
	defer searcher.Close()
	plans, answers := d.plans(t, w.Index), make([]gpuexec.Answer, len(d.asked))
	if err := searcher.Search(t.Context(), plans, answers, nil); err != nil {
		t.Fatal(err)
	}
	for _, answer := range answers {
		var keys []string
		for _, h := range answer.Hits {
			keys = append(keys, strconv.Itoa(int(h.ID)))
		}
		file.answers = append(file.answers, keys)
	}
	d.files[e] = file
}

// plans are the queries as an index executes them.
func (d *signatureEditions) plans(t testing.TB, x *index.Index) (plans []gpuexec.Plan) {
	t.Helper()
	encoder, err := index.NewQueries(x)
	if err != nil {
		t.Fatal(err)
	}
	for i := range d.asked {
		var conditions []column.Condition
		for _, item := range d.asked[i].Items {
			value := column.NumberValue(item.Value.Number)
			conditions = append(conditions, column.Condition{Attr: item.Attr, Value: &value})
		}
		match := new(postings.MatchQuery)
		if _, err := encoder.Plan(match, &index.Request{Conditions: conditions, Quiet: true}); err != nil {
			t.Fatal(err)
		}
		plans = append(plans, gpuexec.Plan{Family: postings.FamilyName, Query: match, K: d.asked[i].K})
	}
	return plans
}

func (d *signatureEditions) index() string { return "signatures" }

func (d *signatureEditions) build(t testing.TB, e edition) (path, version string) {
	file := d.files[e]
	return file.path, file.version
}

func (d *signatureEditions) query(n int) string {
	return string(wire.AppendQuery(nil, wire.JSON, &d.asked[n%len(d.asked)]))
}

func (d *signatureEditions) check(e edition, n int, r *wire.Result) error {
	return sameKeys(n, r, d.files[e].answers[n%len(d.asked)])
}
