package tests

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// census is the Adult table as the test itself reads it: what it expects shares no code with what it checks, but for
// the schema's text.
type census struct {
	columns []censusColumn
	rows    int
}

type censusColumn struct {
	name string
	// codes has a number for each row: the bucket in a number column, in a category column which of the values; -1
	// where there is no value.
	number bool
	codes  []int
	values []string // of a category column
}

const (
	censusRows    = 48_842
	censusBuckets = 1024
	censusNumbers = "age fnlwgt education_num capital_gain capital_loss hours_per_week"
)

var censusNames = strings.Fields(`age workclass fnlwgt education education_num marital_status occupation relationship
	race sex capital_gain capital_loss hours_per_week native_country income`)

func censusNumber(name string) bool { return slices.Contains(strings.Fields(censusNumbers), name) }

func censusSchema() string {
	var b strings.Builder
	b.WriteString("name: adult\nkind: rows\nheader: false\nmissing: ['', '?']\ncolumns:\n")
	for _, name := range censusNames {
		switch {
		case name == "income":
			b.WriteString("  - {name: income, type: payload}\n")
		case censusNumber(name):
			fmt.Fprintf(&b, "  - {name: %s, type: number, buckets: %d}\n", name, censusBuckets)
		default:
			fmt.Fprintf(&b, "  - {name: %s, type: category}\n", name)
		}
	}
	return b.String()
}

// readCensus reads the raw files: lines of 15 fields are rows, others (a remark, blank lines) are not.
func readCensus(t testing.TB, paths ...string) *census {
	t.Helper()
	var cells [][]string
	for _, path := range paths {
		for _, line := range lines(t, path) {
			if fields := strings.Split(line, ","); len(fields) == len(censusNames) {
				for i := range fields {
					fields[i] = strings.TrimSpace(fields[i])
				}
				cells = append(cells, fields)
			}
		}
	}
	c := &census{rows: len(cells)}
	for i, name := range censusNames[:len(censusNames)-1] {
		column := censusColumn{name: name, number: censusNumber(name), codes: make([]int, len(cells))}
		if column.number {
			column.numbers(t, cells, i)
		} else {
			column.categories(cells, i)
		}
		c.columns = append(c.columns, column)
	}
	return c
}

// numbers computes the buckets. The interior edges are min + i (max - min) / 1024, i from 1 to 1023, and a value's
// bucket is how many are at most the value. All values are integers, so this is exact.
func (c *censusColumn) numbers(t testing.TB, cells [][]string, column int) {
	values := make([]int, len(cells))
	for id, row := range cells {
		v, err := strconv.Atoi(row[column])
		if err != nil {
			t.Fatal(err)
		}
		values[id] = v
	}
	low, high := slices.Min(values), slices.Max(values)
	for id, v := range values {
		c.codes[id] = min((v-low)*censusBuckets/(high-low), censusBuckets-1)
	}
}

func (c *censusColumn) categories(cells [][]string, column int) {
	codes := make(map[string]int)
	for id, row := range cells {
		value := row[column]
		if value == "?" || value == "" {
			c.codes[id] = -1
			continue
		}
		code, seen := codes[value]
		if !seen {
			code = len(c.values)
			codes[value] = code
			c.values = append(c.values, value)
		}
		c.codes[id] = code
	}
}

// question is a query in no one's notation yet.
type question struct {
	id          string
	k, minCount int
	items       bool // in the form "items" instead of "row"
	conditions  []censusCondition

	hits []hit // by brute force
	mcK  int
}

type censusCondition struct {
	column *censusColumn
	lo, hi int   // buckets of a number column; negative and beyond the last are possible
	codes  []int // values of a category column
	weight int   // 0: not said
}

func (c *census) question(rng *rand.Rand, id string) *question {
	q := &question{id: id, k: []int{1, 3, 10, 100, 500}[rng.IntN(5)], items: rng.IntN(2) == 0}
	if rng.IntN(8) == 0 {
		q.minCount = 1 + rng.IntN(12)
	}
	row := rng.IntN(c.rows)
	for i := range c.columns {
		column := &c.columns[i]
		code := column.codes[row]
		if code < 0 || rng.IntN(6) == 0 {
			continue
		}
		condition := censusCondition{column: column, lo: code - 50, hi: code + 50}
		if rng.IntN(6) == 0 { // ends at, or just beside, buckets that have values
			condition.lo, condition.hi = code-rng.IntN(2), code+rng.IntN(2)
		}
		if rng.IntN(4) == 0 {
			condition.weight = 1 + rng.IntN(5)
		}
		if !column.number {
			condition.codes = []int{code}
			if other := rng.IntN(len(column.values)); other != code && rng.IntN(3) == 0 {
				condition.codes = append(condition.codes, other)
			}
		}
		q.conditions = append(q.conditions, condition)
		if q.items && rng.IntN(8) == 0 { // overlapping items each count
			q.conditions = append(q.conditions, condition)
		}
	}
	if len(q.conditions) == 0 {
		return c.question(rng, id)
	}
	return q
}

// answer finds the answer by looking at every row.
func (c *census) answer(q *question) {
	counts := make([]int, c.rows)
	for _, condition := range q.conditions {
		// What a row gains by each code it may have, and by having none.
		var gain [1 + censusBuckets]int
		for code := range censusBuckets {
			in := condition.lo <= code && code <= condition.hi
			if !condition.column.number {
				in = slices.Contains(condition.codes, code)
			}
			if in {
				gain[1+code] = max(1, condition.weight)
			}
		}
		for id, code := range condition.column.codes {
			counts[id] += gain[1+code]
		}
	}
	q.hits, q.mcK = topK(counts, q.k, q.minCount)
}

// json is the query as a user would write it.
func (q *question) json(t testing.TB) []byte {
	row, items := make(map[string]any), []any{}
	for _, c := range q.conditions {
		m := make(map[string]any)
		switch {
		case c.column.number:
			m["unit"], m["max"] = "bucket", c.hi
			if c.lo > 0 {
				m["min"] = c.lo
			}
		case len(c.codes) == 1:
			m["value"] = c.column.values[c.codes[0]]
		default:
			m["in"] = c.values()
		}
		if c.weight > 0 {
			m["weight"] = c.weight
		}
		if q.items {
			m["attr"] = c.column.name
			items = append(items, m)
		} else if value, only := m["value"]; only && len(m) == 1 {
			row[c.column.name] = value
		} else {
			row[c.column.name] = m
		}
	}
	query := map[string]any{"id": q.id, "k": q.k}
	if q.minCount > 0 {
		query["min_count"] = q.minCount
	}
	if q.items {
		query["items"] = items
	} else {
		query["row"] = row
	}
	text, err := json.Marshal(query)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (c *censusCondition) values() []string {
	var values []string
	for _, code := range c.codes {
		values = append(values, c.column.values[code])
	}
	return values
}

// query is the query as a Go program would write it.
func (q *question) query() client.Query {
	var conditions []client.Condition
	for _, c := range q.conditions {
		condition := client.AnyOf(c.column.name, c.values()...)
		switch {
		case c.column.number:
			condition = client.Between(c.column.name, max(0, c.lo), c.hi)
			condition.Bucket = true
		case len(c.codes) == 1:
			condition = client.Equal(c.column.name, c.column.values[c.codes[0]])
		}
		conditions = append(conditions, client.Weighted(uint32(c.weight), condition))
	}
	query := client.Query{ID: q.id, K: q.k, MinCount: uint32(q.minCount)}
	if q.items {
		query.Items = conditions
	} else {
		query.Row = conditions
	}
	return query
}

// printed is a result as the query command prints it.
type printed struct {
	ID, Index, Version string
	Hits               []struct {
		ID, Count int
		Key       string
	}
	MCK   int `json:"mc_k"`
	Exact bool
	Error *struct{ Code, Message string }
}

// printedResult makes a client's result comparable.
func printedResult(r *client.Result) printed {
	p := printed{ID: r.ID, Index: r.Index, Version: r.Version, MCK: int(r.MCK), Exact: r.Exact}
	if r.Err != nil {
		p.Error = &struct{ Code, Message string }{string(r.Err.Code), r.Err.Message}
	}
	for _, h := range r.Hits {
		p.Hits = append(p.Hits, struct {
			ID, Count int
			Key       string
		}{int(h.ID), int(h.Count), h.Key})
	}
	return p
}

// check compares a result with brute force: every hit, its count and its place.
func (q *question) check(p printed, version string) error {
	if p.Error != nil {
		return fmt.Errorf("%s: error %s: %s", q.id, p.Error.Code, p.Error.Message)
	}
	if p.ID != q.id || p.Index != "adult" || p.Version != version || p.MCK != q.mcK || !p.Exact || len(p.Hits) != len(q.hits) {
		return fmt.Errorf("%s: id %q, index %q, version %s, mc_k %d, exact %v, %d hits; want version %s, mc_k %d, %d hits",
			q.id, p.ID, p.Index, p.Version, p.MCK, p.Exact, len(p.Hits), version, q.mcK, len(q.hits))
	}
	for i, h := range p.Hits {
		if (hit{h.ID, h.Count}) != q.hits[i] || h.Key != strconv.Itoa(h.ID) {
			return fmt.Errorf("%s: hit %d is id %d (key %s) with count %d, want id %d with count %d",
				q.id, i, h.ID, h.Key, h.Count, q.hits[i].id, q.hits[i].count)
		}
	}
	return nil
}

// All 48,842 rows of Adult, built and served by the command, asked 1,000 queries by the query command and by the Go
// client, stored and directly: every result is what brute force over the raw files finds.
func TestAdultEndToEnd(t *testing.T) {
	t.Parallel()
	files := []string{data(t, "adult", "adult.data.gz"), data(t, "adult", "adult.test.gz")}
	table := readCensus(t, files...)
	if table.rows != censusRows {
		t.Fatalf("the raw files have %d rows, not %d", table.rows, censusRows)
	}

	args := []string{"--input", files[0], "--input", files[1], "--format", "csv"}
	dir := t.TempDir()
	schema := writeFile(t, dir, "adult.yaml", []byte(censusSchema()))
	refused := filepath.Join(dir, "refused.gmq")
	_, stderr, code := command(t, append([]string{"build", "--schema", schema, "--output", refused}, args...)...)
	if _, err := os.Stat(refused); code != 1 || !os.IsNotExist(err) {
		t.Errorf("a remark instead of a row: exit code %d, file %v", code, err)
	}
	mustMatch(t, "without --skip-bad", string(stderr), `adult\.test\.gz: line 1: has 1 field.*\n.*--skip-bad`)
	file, said := buildCommand(t, censusSchema(), append(args, "--skip-bad")...)
	mustMatch(t, "build", said, `skipped: .*adult\.test\.gz: line 1: `)
	mustMatch(t, "build", said, `48842 objects, .*; records skipped: 1`)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	version := hex.EncodeToString(sum[:8])

	rng := seeded.Rand(t)
	questions := make([]*question, 1000)
	var jsonLines bytes.Buffer
	ties := 0
	for i := range questions {
		q := table.question(rng, fmt.Sprintf("q%d", i))
		if i == 0 {
			q.k = 65_536 // more than there are rows
		}
		table.answer(q)
		if n := len(q.hits); n > 1 && q.hits[n-1].count == q.hits[n-2].count {
			ties++
		}
		questions[i] = q
		jsonLines.Write(append(q.json(t), '\n'))
	}
	if ties < 300 {
		t.Errorf("only %d queries have ties at their end: the test no longer tests them", ties)
	}
	queryFile := writeFile(t, dir, "queries.jsonl", jsonLines.Bytes())

	server, url, _ := serveCommand(t, "--index", "adult="+file)
	for _, direct := range []string{"--direct=false", "--direct"} {
		t.Run("query command "+direct, func(t *testing.T) {
			stdout, stderr, code := command(t, "query", "--nats", url, "--index", "adult", direct, "--file", queryFile)
			if code != 0 || len(stderr) > 0 {
				t.Errorf("exit code %d, said %s", code, stderr)
			}
			results := bytes.Split(bytes.TrimSuffix(stdout, []byte("\n")), []byte("\n"))
			if len(results) != len(questions) {
				t.Fatalf("%d lines for %d queries", len(results), len(questions))
			}
			for i, line := range results {
				var p printed
				if err := json.Unmarshal(line, &p); err != nil {
					t.Fatal(err)
				}
				if err := questions[i].check(p, version); err != nil {
					t.Error(err)
				}
			}
		})
	}

	nc, js := connect(t, url)
	asker, err := client.New(nc, client.Options{Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer asker.Close()
	t.Run("RequestBatch", func(t *testing.T) {
		queries := make([]client.Query, len(questions))
		for i, q := range questions {
			queries[i] = q.query()
		}
		results, err := asker.RequestBatch(t.Context(), "adult", queries)
		if err != nil {
			t.Fatal(err)
		}
		for i := range results {
			if err := questions[i].check(printedResult(&results[i]), version); err != nil {
				t.Error(err)
			}
		}
	})
	for name, ask := range map[string]askFunc{"Request": asker.Request, "Search": asker.Search} {
		t.Run(name, func(t *testing.T) { askEach(t, ask, questions, version) })
	}

	// Nothing is left behind, and the server ends as it should.
	for _, name := range []string{"GENIE_QUERIES", "GENIE_DEAD"} {
		testkit.Eventually(t, func() error { return streamEmpty(t, js, name) })
	}
	server.signal(syscall.SIGTERM)
	if code := server.wait(); code != 0 {
		t.Errorf("serve ended with exit code %d:\n%s", code, server.stderr)
	}
}

func streamEmpty(t testing.TB, js jetstream.JetStream, name string) error {
	stream, err := js.Stream(within(t), name)
	if err != nil {
		return err
	}
	if n := stream.CachedInfo().State.Msgs; n > 0 {
		return fmt.Errorf("%s holds %d messages", name, n)
	}
	return nil
}

// askFunc is a way of the client to ask one query.
type askFunc func(ctx context.Context, index string, q client.Query) (*client.Result, error)

// askEach asks each question in a message of its own, many at a time.
func askEach(t *testing.T, ask askFunc, questions []*question, version string) {
	next := make(chan *question)
	var askers sync.WaitGroup
	for range 32 {
		askers.Go(func() {
			for q := range next {
				result, err := ask(t.Context(), "adult", q.query())
				if err == nil {
					err = q.check(printedResult(result), version)
				}
				if err != nil {
					t.Errorf("%s: %v", q.id, err)
				}
			}
		})
	}
	for _, q := range questions {
		next <- q
	}
	close(next)
	askers.Wait()
}
