package tests

import (
	bytesorder "encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/postings/single"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/internal/testkit/jsonlines"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/service/translate"
	"github.com/geniemq/geniemq/wire"
)

// What docs/format.md says of the file.
const (
	fileHead  = 128 // bytes of the header
	fileEntry = 40  // bytes of an entry of the section table
)

// resealed makes all checksums of data right again, so that damage gets past them, as in a file made on purpose.
func resealed(data []byte) []byte {
	le := bytesorder.LittleEndian
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	table, count := le.Uint64(data[48:]), uint64(le.Uint32(data[44:]))
	if size := uint64(len(data)); table <= size && count <= (size-table)/fileEntry {
		for i := range count {
			e := data[table+i*fileEntry:]
			offset, length := le.Uint64(e[16:]), le.Uint64(e[24:])
			if offset <= size && length <= size-offset {
				le.PutUint32(e[32:], crc32.Checksum(data[offset:offset+length], castagnoli))
			}
		}
		le.PutUint32(data[120:], crc32.Checksum(data[table:table+count*fileEntry], castagnoli))
	}
	le.PutUint32(data[124:], crc32.Checksum(data[:124], castagnoli))
	return data
}

// recordsFile is an index of records in a few kilobytes, with a column of each type in every form that is kept.
func recordsFile(t testing.TB) []byte {
	t.Helper()
	var lines strings.Builder
	for i := range 70 {
		if i%7 == 0 {
			fmt.Fprintf(&lines, `{"k":"k%d"}`+"\n", i)
			continue
		}
		fmt.Fprintf(&lines, `{"k":"k%d","n":%d,"many":[%d,%d],"exact":%d,"day":"2024-01-%02d","c":"%c","b":%v,"t":"red red %s shoes","s":"ab%d","e":["x","%c"],"tree":"{a{%c}{b}}","graph":{"labels":["a","%c"],"edges":[[0,1]]},"p":{"i":%d}}`+"\n",
			i, i%11, i%5, i%3, i%4, 1+i%28, 'a'+i%5, i%2 == 0, []string{"old", "new", "fast"}[i%3], i%6, 'a'+i%7, 'a'+i%3, 'a'+i%4, i)
	}
	return jsonlines.Build(t, `
name: r
key: k
columns:
- {name: k, type: skip}
- {name: n, type: number, buckets: 4, store: true}
- {name: many, type: number, buckets: 3, layout: postings}
- {name: exact, type: number, edges: exact, store: true}
- {name: day, type: date, buckets: 5, store: true}
- {name: c, type: category, fold: true, store: true}
- {name: b, type: bool, store: true}
- {name: t, type: text, store: true, ngrams: 2}
- {name: s, type: string, ngram: 2, store: true}
- {name: e, type: set, store: true}
- {name: tree, type: tree, store: true}
- {name: graph, type: graph, store: true}
- {name: p, type: payload}
`, lines.String())
}

// vectorsFile is an index of vectors, by all families of hash functions and in all forms in which they are kept, and of a set by MinHash.
func vectorsFile(t testing.TB) []byte {
	t.Helper()
	var lines strings.Builder
	for i := range 130 {
		if i%9 == 0 {
			fmt.Fprintf(&lines, `{"c":"c%d"}`+"\n", i%3)
			continue
		}
		fmt.Fprintf(&lines, `{"v":[%d,%d,1.5],"u":[%d,%d],"w":[%d,-2,0.25],"g":[%d],"r":[%d,%d],"m":["x","y%d"],"c":"c%d"}`+"\n", i%11, i%7, i%256, i%5, i%13-6, i, i%17, i%19, i%4, i%3)
	}
	return jsonlines.Build(t, `
name: r
columns:
- {name: v, type: vector, dims: 3, functions: 4, width: 3, reach: 1, buckets: 8, store: true}
- {name: u, type: vector, similarity: l1, dims: 2, functions: 3, width: 9, reach: 1, buckets: 16, keep: u8}
- {name: w, type: vector, similarity: cosine, dims: 3, functions: 5, keep: none, store: true}
- {name: g, type: vector, similarity: laplacian, dims: 1, functions: 3, width: 20, buckets: 9}
- {name: r, type: vector, functions: 6, recall: 0.1}
- {name: m, type: set, minhash: 4, store: true}
- {name: c, type: category}
`, lines.String())
}

// recordQueries ask all columns in all forms, of both files.
var recordQueries = []string{
	`{"row":{"v":[1,2,3],"u":[7,1],"w":[1,0,-1],"g":[12],"r":[3,4],"m":["x","y1","z"],"c":"c1"},"k":130,"matched":true,"total":true}`,
	`{"row":{"v":[5,2,1.5]},"rescore":{"by":"l2"},"certify":true,"with_payload":true,"k":5}`,
	`{"row":{"u":[5,2]},"rescore":{"by":"l1"},"k":5,"filter":{"v":{"missing":false}}}`,
	`{"row":{"r":[5,2]},"k":10}`,
	`{"set":["x","y2"],"rescore":{"by":"jaccard"},"certify":true,"with_payload":true,"k":5}`,
	`{"row":{"n":{"min":2,"max":7},"many":3,"exact":{"in":[1,2]},"day":"2024-01","c":"A","b":true,"t":"red shoes hat","s":"ab1","e":["x","a","q"]},"k":70,"total":true}`,
	`{"row":{"t":"red shoes old hat","e":["x","b"],"c":"b"},"idf":true,"weights":{"t":3},"k":3,"filter":{"n":{"min":2.5,"max":7.5}}}`,
	`{"filter":[{"many":{"min":1.5,"max":3.5}},{"exact":{"min":1}},{"day":{"min":"2024-01-03","max":"2024-01-20T12:00:00+02:00"}}],"k":70,"total":true}`,
	`{"filter":{"t":{"any":"old fast"},"e":{"all":["x","a"]},"s":{"is":"ab2"}},"exclude":{"b":false,"c":{"missing":true}},"total":true}`,
	`{"exclude":{"t":{"all":"red shoes"}},"k":70,"total":true}`,
	`{"filter":{"s":{"missing":false},"n":{"in":[1,2,3.5]}},"exclude":[{"many":{"missing":true}},{"c":{"in":["a","é"]}}],"with_payload":true}`,
	`{"text":"red shoes"}`,
	`{"set":["x","a","unknown"],"k":5}`,
	`{"row":{"tree":"{a{b}{b}}","graph":{"labels":["a","b"],"edges":[[0,1]]}},"filter":{"tree":{"missing":false}},"total":true}`,
}

// tried is what becomes of a file: whether it opens, what Validate says, and how many plans run.
func tried(t testing.TB, engine gpuexec.Engine, data []byte) (opened bool, ran int, fault error) {
	x, err := index.OpenBytes(data)
	if err != nil {
		return false, 0, err
	}
	fault = x.Validate()
	if kept := x.Forward(); kept != nil {
		reader := kept.NewReader()
		for id := range min(x.Objects(), 80) {
			for i := range kept.Columns() {
				reader.AppendJSON(nil, &kept.Columns()[i], id)
			}
		}
	}
	e, err := translate.New("r", x, 0)
	if err != nil {
		return true, ran, fault
	}
	e.Example()
	s, err := engine.Load(t.Context(), x)
	if err != nil {
		return true, ran, fault
	}
	defer s.Close()
	var plans []gpuexec.Plan
	for _, text := range recordQueries {
		m, err := wire.DecodeMessage(wire.JSON, []byte(text), wire.Limits{})
		if err != nil || m.Queries[0].Err != nil {
			t.Fatalf("%s: %v %v", text, err, m.Queries[0].Err)
		}
		q := &translate.Query{}
		if e.Plan(q, &m.Queries[0].Query); q.Err == nil {
			plans = append(plans, q.Plan)
		}
	}
	plans = append(plans, rescored(x)...)
	answers := make([]gpuexec.Answer, len(plans))
	if err := s.Search(t.Context(), plans, answers, nil); err != nil {
		t.Fatal(err)
	}
	for i := range answers {
		var panicked *gpuexec.PanicError
		if errors.As(answers[i].Err, &panicked) {
			t.Errorf("plan %d: %v\n%s", i, panicked, panicked.Stack)
		}
		if answers[i].Err == nil {
			ran++
		}
	}
	return true, ran, fault
}

// rescored are plans by each measure of what the file keeps.
func rescored(x *index.Index) (plans []gpuexec.Plan) {
	kept := x.Forward()
	if kept == nil {
		return nil
	}
	for _, m := range verify.Measures() {
		for i := range kept.Columns() {
			c := &kept.Columns()[i]
			if c.Form != m.Form {
				continue
			}
			q := new(postings.MatchQuery)
			for attr := range x.Attributes() {
				if a := x.Attribute(attr); (a.Name == c.Name || strings.HasPrefix(a.Name, c.Name+" (")) && a.Keywords > 0 {
					q.StartItem(uint32(attr), 1)
					q.AddSpan(0, a.Keywords)
				}
			}
			if len(q.Items) == 0 {
				continue
			}
			a := &verify.Asked{Column: c, K: 5, Unit: 1, IDF: i%2 == 0, Text: "ab3", NGram: 2, Vector: make([]float32, c.Dimensions), Stored: []byte(c.Text(1)), Unknown: 1, Matching: &single.Counter{Lists: x.Lists, Query: q}}
			for term := uint32(0); term < c.Keywords; term += 2 {
				a.Terms = append(a.Terms, term)
			}
			if s, err := m.New(a); err == nil {
				plans = append(plans, gpuexec.Plan{Family: postings.FamilyName, Query: q, K: 5, MinCount: 1, Rescore: s, Certify: true})
			}
		}
	}
	return plans
}

// TestDamagedRecords damages bytes of a file of records, two bits of each, and asks what is left of it. As it stands every damage must be
// found, by Open or by Validate. With the checksums made right again, as in a file made on purpose, nothing may panic and nothing may be
// read outside, whatever is answered. GENIEMQ_FULL=1 takes every byte; else some are chosen by chance.
func TestDamagedRecords(t *testing.T) {
	raced.Skip(t, raced.One)
	t.Run("records", func(t *testing.T) { damaged(t, recordsFile(t)) })
	t.Run("vectors", func(t *testing.T) { damaged(t, vectorsFile(t)) })
}

func damaged(t *testing.T, original []byte) {
	t.Helper()
	engine := cpu.New(gpuexec.CPUOptions{Workers: 1})
	defer engine.Close()
	opened, ran, fault := tried(t, engine, original)
	if t.Logf("%d plans run on the undamaged file", ran); !opened || fault != nil || ran < 11 {
		t.Fatalf("undamaged: %v, %v, %d plans run", opened, fault, ran)
	}
	random := seeded.Rand(t)
	step := 47
	switch {
	case os.Getenv("GENIEMQ_FULL") == "1":
		step = 1
	case testing.Short():
		step = 211
	}
	refused, found, unseen := 0, 0, 0
	for first := 0; first < len(original); first += step {
		i := min(first+random.IntN(step), len(original)-1)
		for _, flip := range []byte{0x01, 0x80} {
			data := append([]byte(nil), original...)
			data[i] ^= flip
			if x, err := index.OpenBytes(data); err == nil && x.Validate() == nil {
				t.Fatalf("byte %d ^ %#x is not noticed", i, flip)
			}
			opened, _, fault := tried(t, engine, resealed(append([]byte(nil), data...)))
			switch {
			case !opened:
				refused++
			case fault != nil:
				found++
			default:
				unseen++ // values that are as good as others
			}
			if t.Failed() {
				t.Fatalf("byte %d ^ %#x", i, flip)
			}
		}
	}
	t.Logf("%d bytes: %d refused, %d found by Validate, %d are other values", len(original), refused, found, unseen)
	if refused == 0 || found == 0 {
		t.Error("the test does not reach all ways")
	}
}

// TestExampleOfRecords: what the admin page shows as an example is a query of the index, whatever columns it has.
func TestExampleOfRecords(t *testing.T) {
	for _, columns := range []string{
		"{name: d, type: date}", "{name: d, type: date, edges: exact}", "{name: s, type: string}", "{name: c, type: category}", "{name: b, type: bool}",
		"{name: t, type: text, ngrams: 3}", "{name: e, type: set}", "{name: n, type: number}", "{name: tree, type: tree}", "{name: graph, type: graph}",
		"{name: p, type: point, index: [tree]}", "{name: v, type: vector, metric: cosine, dims: 2}",
	} {
		s, err := index.Builtin().ParseSchema([]byte("name: r\ncolumns:\n- " + columns))
		if err != nil {
			t.Fatal(err)
		}
		o, err := onebyone.NewObjects(s, index.BuilderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := load.NewReader(strings.NewReader(`{"p":[52.5,13.4],"v":[1,2],"d":"2024-05-17","s":"O'Brien","c":"it's","b":true,"t":"red shoes","e":["x"],"n":5,`+
			`"tree":"{a{b}}","graph":{"labels":["a"],"edges":[]}}`), "r.jsonl", s, load.Options{})
		if err != nil {
			t.Fatal(err)
		}
		records, err := r.All(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Add(&records[0]); err != nil {
			t.Fatal(err)
		}
		data, err := o.Bytes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		x, err := index.OpenBytes(data)
		if err != nil {
			t.Fatal(err)
		}
		e, err := translate.New("r", x, 0)
		if err != nil {
			t.Fatal(err)
		}
		engine := cpu.New(gpuexec.CPUOptions{Workers: 1})
		searcher, err := engine.Load(t.Context(), x)
		if err != nil {
			t.Fatal(err)
		}
		m, err := wire.DecodeMessage(wire.JSON, []byte(e.Example()), wire.Limits{})
		if err != nil || m.Queries[0].Err != nil {
			t.Fatalf("%s: %s: %v %v", columns, e.Example(), err, m)
		}
		q, answers := new(translate.Query), make([]gpuexec.Answer, 1)
		if e.Plan(q, &m.Queries[0].Query); q.Err != nil {
			t.Errorf("%s: %s: %v", columns, e.Example(), q.Err)
		} else if err := searcher.Search(t.Context(), []gpuexec.Plan{q.Plan}, answers, nil); err != nil || len(answers[0].Hits) != 1 {
			t.Errorf("%s: %s finds %d objects: %v", columns, e.Example(), len(answers[0].Hits), err)
		}
		searcher.Close()
		engine.Close()
	}
}

// TestRescoreByStructures: what a query asks of trees and graphs is compared with what objects hold.
func TestRescoreByStructures(t *testing.T) {
	x, err := index.OpenBytes(recordsFile(t))
	if err != nil {
		t.Fatal(err)
	}
	e, err := translate.New("r", x, 0)
	if err != nil {
		t.Fatal(err)
	}
	engine := cpu.New(gpuexec.CPUOptions{Workers: 1})
	defer engine.Close()
	s, err := engine.Load(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, text := range []string{
		`{"row":{"tree":"{a{b}{b}}"},"rescore":{"by":"tree","column":"tree"},"certify":true,"k":3}`,
		`{"row":{"graph":{"labels":["a","b"],"edges":[[0,1]]}},"rescore":{"by":"graph","column":"graph"},"certify":true,"k":3}`,
	} {
		m, err := wire.DecodeMessage(wire.JSON, []byte(text), wire.Limits{})
		if err != nil || m.Queries[0].Err != nil {
			t.Fatal(text, err, m)
		}
		q, answers := new(translate.Query), make([]gpuexec.Answer, 1)
		if e.Plan(q, &m.Queries[0].Query); q.Err != nil {
			t.Errorf("%s: %v", text, q.Err)
			continue
		}
		if err := s.Search(t.Context(), []gpuexec.Plan{q.Plan}, answers, nil); err != nil {
			t.Fatal(err)
		}
		if a := &answers[0]; a.Err != nil || !a.Exact || len(a.Hits) != 3 || a.Hits[0].Score != 0 || !a.Scored {
			t.Errorf("%s: %+v", text, a)
		}
	}
}
