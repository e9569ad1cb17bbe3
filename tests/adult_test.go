package tests

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/wire"
)

var adultColumns = []string{
	"age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship", "race",
	"sex", "capital_gain", "capital_loss", "hours_per_week", "native_country",
}

func adultNumber(column int) bool { return slices.Contains([]int{0, 2, 4, 10, 11, 12}, column) }

// adultTable is the data as a table of keywords: -1 where a value is missing, else the bucket of a number or the
// position of a category among those seen. It owes nothing to the index but the edges of the buckets.
type adultTable struct {
	keywords [][]int
	names    []map[string]int // of categories, by column
	values   [][]string       // the same, by position
}

func readAdult(t *testing.T, x *index.Index) *adultTable {
	table := &adultTable{names: make([]map[string]int, len(adultColumns)), values: make([][]string, len(adultColumns))}
	attrs := x.Attributes()
	for _, name := range []string{"adult.data.gz", "adult.test.gz"} {
		text := strings.Join(lines(t, data(t, "adult", name)), "\n")
		records := csv.NewReader(strings.NewReader(text))
		records.FieldsPerRecord = -1
		for {
			record, err := records.Read()
			if err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if len(record) != len(adultColumns)+1 {
				continue
			}
			row := make([]int, len(adultColumns))
			for column := range adultColumns {
				value := strings.TrimSpace(record[column])
				switch {
				case value == "?":
					row[column] = -1
				case adultNumber(column):
					v, err := strconv.ParseFloat(value, 64)
					if err != nil {
						t.Fatal(err)
					}
					for _, edge := range attrs[column].Edges {
						if edge <= v {
							row[column]++
						}
					}
				default:
					if table.names[column] == nil {
						table.names[column] = make(map[string]int)
					}
					position, seen := table.names[column][value]
					if !seen {
						position = len(table.values[column])
						table.names[column][value] = position
						table.values[column] = append(table.values[column], value)
					}
					row[column] = position
				}
			}
			table.keywords = append(table.keywords, row)
		}
	}
	return table
}

// query asks for what one row has, numbers within 50 of the 1,024 buckets, and says what must come of it.
func (a *adultTable) query(rng *rand.Rand, id string) crowdQuery {
	row := a.keywords[rng.IntN(len(a.keywords))]
	q := wire.Query{ID: id, K: 1 + rng.IntN(100)}
	lo, hi := make([]int, len(row)), make([]int, len(row))
	for column, keyword := range row {
		if keyword < 0 || rng.IntN(5) == 0 { // some columns are left out, so that there are many ties
			lo[column], hi[column] = 1, 0
			continue
		}
		c := wire.Condition{Attr: adultColumns[column]}
		if adultNumber(column) {
			lo[column], hi[column] = max(0, keyword-50), keyword+50
			c.Min, c.Max, c.Bucket = wire.Number(float64(lo[column])), wire.Number(float64(hi[column])), true
		} else {
			lo[column], hi[column] = keyword, keyword
			c.Value = wire.String(a.values[column][keyword])
		}
		q.Items = append(q.Items, c)
	}
	if q.Items == nil {
		return a.query(rng, id)
	}
	byCount := make([][]int, len(row)+1) // ids by count, ascending
	for i, other := range a.keywords {
		count := 0
		for column, keyword := range other {
			if lo[column] <= keyword && keyword <= hi[column] && keyword >= 0 {
				count++
			}
		}
		byCount[count] = append(byCount[count], i)
	}
	var want []string
	for count := len(row); count > 0; count-- {
		for _, i := range byCount[count] {
			if len(want) < q.K {
				want = append(want, fmt.Sprintf("%d:%d", i, count))
			}
		}
	}
	return crowdQuery{q, strings.Join(want, " ")}
}

// The Adult census, all of it, through the command line and the Go client: built, served and asked 1,000 queries by
// each. Every answer equals brute force, ids and counts, ties included.
func TestAdult(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var schema strings.Builder
	schema.WriteString("name: adult\nkind: rows\nheader: false\nmissing: [\"\", \"?\"]\ncolumns:\n")
	for column, name := range adultColumns {
		kind := "category"
		if adultNumber(column) {
			kind = "number"
		}
		fmt.Fprintf(&schema, "  - {name: %s, type: %s}\n", name, kind)
	}
	schema.WriteString("  - {name: income, type: skip}\n")
	schemaFile, path := filepath.Join(dir, "adult.yaml"), filepath.Join(dir, "adult.gmq")
	if err := os.WriteFile(schemaFile, []byte(schema.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command(geniemq(t), "build", "--schema", schemaFile, "--format", "csv", "--skip-bad", "--output", path,
		"--input", data(t, "adult", "adult.data.gz"), "--input", data(t, "adult", "adult.test.gz"))
	if out, err := build.CombinedOutput(); err != nil || !strings.Contains(string(out), "48842 objects") {
		t.Fatalf("building: %v\n%s", err, out)
	}
	x, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	table := readAdult(t, x)
	if len(table.keywords) != 48_842 {
		t.Fatalf("%d rows", len(table.keywords))
	}
	rng := seeded(t)
	queries := make([]crowdQuery, 1000)
	var file bytes.Buffer
	for i := range queries {
		queries[i] = table.query(rng, fmt.Sprintf("q%d", i))
		file.Write(append(wire.AppendQuery(nil, wire.JSON, &queries[i].query), '\n'))
	}

	worker := run(t, "serve", "--index", path, "--nats-listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "data"), "--admin", "off")
	url := worker.says("NATS")

	ask := exec.Command(geniemq(t), "query", "--nats", url, "--index", "adult", "--file", "-")
	ask.Stdin, ask.Stderr = &file, testWriter{t}
	out, err := ask.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if len(answers) != len(queries) {
		t.Fatalf("the command printed %d lines for %d queries", len(answers), len(queries))
	}
	for i, line := range answers {
		if res := result(t, line); res.ID != queries[i].query.ID || keys(res) != queries[i].want {
			t.Errorf("the command, query %d: %s\n got %s %s\nwant %s", i, wire.AppendQuery(nil, wire.JSON, &queries[i].query), res.ID, keys(res), queries[i].want)
		}
	}

	nc, _ := connect(t, url)
	asker, err := client.New(nc, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer asker.Close()
	for first := 0; first < len(queries); first += 100 {
		batch := make([]client.Query, 100)
		for i := range batch {
			batch[i] = queries[first+i].query
		}
		results, err := asker.RequestBatch(within(t), "adult", batch)
		if err != nil {
			t.Fatal(err)
		}
		for i := range results {
			if got := keys(&results[i]); got != queries[first+i].want {
				t.Errorf("the client, query %d:\n got %s\nwant %s", first+i, got, queries[first+i].want)
			}
		}
	}
	// One by one, directly.
	for i := range 50 {
		res, err := asker.Search(within(t), "adult", queries[i].query)
		if err != nil {
			t.Fatal(err)
		}
		if got := keys(res); got != queries[i].want {
			t.Errorf("directly, query %d:\n got %s\nwant %s", i, got, queries[i].want)
		}
	}
}
