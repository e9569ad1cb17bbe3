package match

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/real"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
)

// outcome is what a command did.
type outcome struct {
	out, said string
	usage     bool
	err       error
}

// command runs match or dedupe in this process.
func command(ctx context.Context, stdin string, args ...string) outcome {
	var out, said bytes.Buffer
	var result outcome
	h := &Host{
		In: strings.NewReader(stdin), Out: &out, Err: &said,
		Environment: func(*cobra.Command, ...string) error { return nil }, Warn: func(*cobra.Command) {},
		Usage: func(err error) error { result.usage = true; return err },
	}
	cmd := h.Match()
	if args[0] == "dedupe" {
		cmd = h.Dedupe()
	}
	cmd.SetArgs(args[1:])
	cmd.SetOut(&out)
	cmd.SetErr(&said)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	result.err = cmd.ExecuteContext(ctx)
	result.out, result.said = out.String(), said.String()
	return result
}

func succeeds(t testing.TB, args ...string) outcome {
	t.Helper()
	o := command(t.Context(), "", args...)
	if o.err != nil {
		t.Fatalf("%v: %v\n%s", args, o.err, o.said)
	}
	return o
}

func write(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// build makes an index of a file by a schema, or by the one that is guessed, without asking anything else of this package.
func build(t testing.TB, dir, input, text string) string {
	t.Helper()
	var spec *schema.Schema
	var err error
	if text == "" {
		spec, err = (&options{input: input}).proposed()
	} else {
		spec, err = index.Builtin().ParseSchema([]byte(text))
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := load.Open(input, spec, load.Options{}.For(spec))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	next, err := index.Builtin().Learn(spec, r.Next, nil)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := index.NewObjects(spec, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := objects.AddAll(t.Context(), index.Source{Name: input, Next: next}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, spec.Name+".gmq")
	if err := objects.WriteFile(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	return path
}

// worker serves files by their schemas' names and returns the address of its server.
func worker(t testing.TB, files ...string) string {
	t.Helper()
	cfg := config.Config{NATSListen: "127.0.0.1:0", Admin: config.Off, DataDir: filepath.Join(t.TempDir(), "streams"), Engine: "cpu"}
	for _, file := range files {
		cfg.Indexes = append(cfg.Indexes, config.IndexSource{Path: file})
	}
	cfg.EnsureDefaults()
	srv, err := service.Start(t.Context(), cfg, service.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return srv.NATSURL()
}

const (
	shopSchema = `name: shop
key: sku
columns:
  - {name: title, type: text, stop_words: none, idf: true, store: true}
  - {name: price, type: number, edges: equi-depth, store: true}
  - {name: year, type: number, edges: exact, store: true}
  - {name: brand, type: category, fold: true, store: true}
`
	shop = `sku,title,price,year,brand
s1,red canvas shoes,50,2020,Acme
s2,blue canvas shoes,60,2021,Acme
s3,garden hose twenty metres,20,2019,Hozelock
s4,copper kettle,80,2020,Ketl
`
	offersSchema = `name: offers
key: id
columns:
  - {name: name, type: text, stop_words: none}
  - {name: price, type: number, parse: "1,234.5"}
  - {name: year, type: number, edges: exact}
  - {name: brand, type: category}
`
	offers = `id,name,price,year,brand
a,red canvas shoes,$50.00,2020,ACME
b,Blue shoes canvas,$48.00,2021,
c,a piano,,,
d,,,,
e,kettle copper,$80,1999,ketl
`
)

// TestPairs: equal rows score 1, others by what their columns share, and each form of output has them.
func TestPairs(t *testing.T) {
	dir := t.TempDir()
	file := build(t, dir, write(t, dir, "shop.csv", shop), shopSchema)
	input, spec := write(t, dir, "offers.csv", offers), write(t, dir, "offers.yaml", offersSchema)
	args := []string{"match", "--index", "shop=" + file, "--input", input, "--schema", spec, "--map", "title=name", "--map", "price=price", "--map", "year=year", "--map", "brand=brand", "--min", "0.8"}
	// b: of brand it says nothing, and 48 is .8 of 60: (4 + .8 + 1) / 6. e: another year: (4 + 1 + 0 + 1) / 7.
	const want = "row,key,found,found_key,rank,score\n0,a,0,s1,1,1.000000\n1,b,1,s2,1,0.966667\n4,e,3,s4,1,0.857143\n"
	if o := succeeds(t, args...); o.out != want {
		t.Errorf("%s\n%s", o.out, o.said)
	}
	o := succeeds(t, append(args, "--unmatched", "--to", "jsonl", "--k", "1")...)
	const lines = `{"row":0,"key":"a","found":0,"found_key":"s1","rank":1,"score":1.000000}
{"row":1,"key":"b","found":1,"found_key":"s2","rank":1,"score":0.966667}
{"row":2,"key":"c","found":null,"found_key":null,"rank":null,"score":null}
{"row":3,"key":"d","found":null,"found_key":null,"rank":null,"score":null}
{"row":4,"key":"e","found":3,"found_key":"s4","rank":1,"score":0.857143}
`
	if o.out != lines {
		t.Errorf("%s\n%s", o.out, o.said)
	}
	if o := succeeds(t, append(args, "--weight", "year=0", "--one-to-one")...); !strings.Contains(o.out, "4,e,3,s4,1,1.000000\n") {
		t.Errorf("without the year: %s", o.out)
	}

	// A worker elsewhere finds the same. It does not tell its columns: here they are as the input's are said to be.
	url := worker(t, file)
	elsewhere := slices.Clone(args)
	elsewhere[2] = "shop"
	if o := succeeds(t, append(elsewhere, "--nats", url)...); o.out != want {
		t.Errorf("of a worker: %s\n%s", o.out, o.said)
	}
	out := filepath.Join(dir, "pairs.csv")
	if o := succeeds(t, append(elsewhere, "--nats", url, "--output", out)...); !strings.Contains(o.out, "5 rows, 3 of them in 3 pairs") {
		t.Errorf("said: %s", o.out)
	}
	if got, err := os.ReadFile(out); err != nil || string(got) != want {
		t.Errorf("%s %v", got, err)
	}
	if o := command(t.Context(), offers, append(elsewhere[:3:3], "--nats", url, "--input", "-", "--format", "csv", "--schema", spec, "--map", "title=name", "--min", ".99")...); o.err != nil || strings.Count(o.out, "\n") != 4 {
		t.Errorf("of the standard input: %s %v", o.out, o.err)
	}
}

// titles draws rows of a few words, some of them nearly alike.
func titles(r *rand.Rand, n int) string {
	words := strings.Fields("red blue green canvas leather shoes boots kettle copper garden hose long short small large old new piano chair table lamp")
	var b strings.Builder
	b.WriteString("id,title,price\n")
	var last []string
	for i := range n {
		var title []string
		if len(last) > 0 && r.IntN(3) == 0 {
			title = slices.Clone(last)
			title[r.IntN(len(title))] = words[r.IntN(len(words))]
		} else {
			for range 4 + r.IntN(4) {
				title = append(title, words[r.IntN(len(words))])
			}
		}
		last = title
		fmt.Fprintf(&b, "k%d,%s,%d\n", i, strings.Join(title, " "), 10+r.IntN(90))
	}
	return b.String()
}

const titlesSchema = "name: titles\nkey: id\ncolumns:\n  - {name: title, type: text, stop_words: none, idf: true, store: true}\n  - {name: price, type: number, store: true}\n"

func records(t testing.TB, text string) [][]string {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestGoesOn: wherever a run was killed, the same command ends with the file that it would have made, each row once.
func TestGoesOn(t *testing.T) {
	r := seeded.Rand(t)
	dir := t.TempDir()
	const n = 500
	data := write(t, dir, "titles.csv", titles(r, n))
	url := worker(t, build(t, dir, data, titlesSchema))
	input, spec := write(t, dir, "asked.csv", titles(r, n)), write(t, dir, "titles.yaml", titlesSchema)
	for _, extra := range [][]string{{"--unmatched", "--min", "0.7"}, {"--one-to-one"}} {
		out := filepath.Join(dir, "out.csv")
		args := append([]string{"match", "--index", "titles", "--nats", url, "--input", input, "--schema", spec, "--output", out}, extra...)
		succeeds(t, args...)
		want, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(out + journalTail); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("the journal is still there: %v", err)
		}
		if extra[0] == "--unmatched" {
			seen := make(map[string]bool)
			for _, record := range records(t, string(want))[1:] {
				seen[record[0]] = true
			}
			if len(seen) != n {
				t.Fatalf("%d of %d rows are in the output", len(seen), n)
			}
		}
		// The output cannot be written where a folder is, so the journal stays.
		if err := errors.Join(os.Remove(out), os.Mkdir(out, 0o700)); err != nil {
			t.Fatal(err)
		}
		write(t, out, "file", "")
		if o := command(t.Context(), "", args...); o.err == nil {
			t.Fatal("a folder is replaced")
		}
		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
		journal, err := os.ReadFile(out + journalTail)
		if err != nil {
			t.Fatal(err)
		}
		for range 6 {
			cut := 400 + r.IntN(len(journal)-400)
			if err := os.WriteFile(out+journalTail, journal[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
			o := succeeds(t, args...)
			if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("cut off at %d: another file: %v\n%s", cut, err, o.said)
			}
		}
		// What another run has left is not taken for this one's.
		if err := os.WriteFile(out+journalTail, journal, 0o600); err != nil {
			t.Fatal(err)
		}
		if o := command(t.Context(), "", append(args, "--k", "2")...); o.err == nil || !strings.Contains(o.err.Error(), "--restart") {
			t.Errorf("with another k: %v", o.err)
		}
		succeeds(t, append(args, "--k", "2", "--restart")...)
	}
}

// TestDedupe: pairs come once, with the score that they have from either side, and clusters have each row once.
func TestDedupe(t *testing.T) {
	r := seeded.Rand(t)
	dir := t.TempDir()
	const n = 200
	data, spec := write(t, dir, "titles.csv", titles(r, n)), write(t, dir, "titles.yaml", titlesSchema)
	args := []string{"dedupe", data, "--schema", spec, "--min", "0.6", "--k", "300", "--candidates", "300"}
	pairs := records(t, succeeds(t, args...).out)[1:]
	seen := make(map[[2]string]bool)
	parent := make([]int, n)
	for i := range parent {
		parent[i] = i
	}
	for _, p := range pairs {
		a, errA := strconv.Atoi(p[0])
		b, errB := strconv.Atoi(p[2])
		if errA != nil || errB != nil || a >= b || seen[[2]string{p[0], p[2]}] || p[1] != fmt.Sprint("k", a) || p[3] != fmt.Sprint("k", b) {
			t.Fatalf("%v", p)
		}
		seen[[2]string{p[0], p[2]}] = true
		for low, high := min(parent[a], parent[b]), max(parent[a], parent[b]); high != low; high = low {
			for i := range parent {
				if parent[i] == high {
					parent[i] = low
				}
			}
		}
	}
	if len(pairs) == 0 {
		t.Fatal("no pairs, though a third of the rows differ in a word")
	}
	clusters := records(t, succeeds(t, append(args, "--clusters")...).out)[1:]
	if len(clusters) != n {
		t.Fatalf("%d rows have clusters", len(clusters))
	}
	for i, c := range clusters {
		if c[0] != strconv.Itoa(i) || c[2] != strconv.Itoa(parent[i]) {
			t.Fatalf("row %d: %v, not of cluster %d", i, c, parent[i])
		}
	}
	// A worker's index of the same file tells the same.
	url := worker(t, build(t, dir, data, titlesSchema))
	if again := records(t, succeeds(t, append(args, "--index", "titles", "--nats", url)...).out)[1:]; !slices.EqualFunc(again, pairs, slices.Equal) {
		t.Errorf("a worker finds others: %v, not %v", again, pairs)
	}
	short := write(t, dir, "short.csv", "id,title,price\nk0,red shoes,1\n")
	if o := command(t.Context(), "", "dedupe", short, "--schema", spec, "--index", "titles", "--nats", url); o.err == nil || !strings.Contains(o.err.Error(), "no index of this file") {
		t.Errorf("of another file: %v", o.err)
	}
	apart := records(t, succeeds(t, append(args, "--one-to-one")...).out)[1:]
	rows := make(map[string]bool)
	for _, p := range apart {
		if rows[p[0]] || rows[p[2]] {
			t.Fatalf("a row comes twice: %v", apart)
		}
		rows[p[0]], rows[p[2]] = true, true
	}
}

// TestBadRows: what cannot be read has no number, and ends the run unless it is to be left out.
func TestBadRows(t *testing.T) {
	dir := t.TempDir()
	data := write(t, dir, "d.csv", "id,title,price\nk0,red canvas shoes,1\nk1,blue\nk2,red canvas shoes,1\n")
	spec := write(t, dir, "s.yaml", titlesSchema)
	if o := command(t.Context(), "", "dedupe", data, "--schema", spec); o.err == nil || !strings.Contains(o.err.Error(), "--skip-bad") {
		t.Errorf("%v", o.err)
	}
	if o := succeeds(t, "dedupe", data, "--schema", spec, "--skip-bad"); !strings.HasSuffix(o.out, "\n0,k0,1,k2,1.000000\n") || !strings.Contains(o.said, "skipped: 1") {
		t.Errorf("%s\n%s", o.out, o.said)
	}
}

func TestUsage(t *testing.T) {
	dir := t.TempDir()
	data := write(t, dir, "d.csv", "id,title,price\nk0,red canvas shoes,1\nk1,blue canvas shoes,2\n")
	spec := write(t, dir, "s.yaml", titlesSchema)
	file := build(t, dir, data, titlesSchema)
	other := write(t, dir, "o.csv", "id,name,price\nk0,red canvas shoes,1\nk1,blue canvas shoes,2\n")
	gold := write(t, dir, "g.csv", "a,b\nx,y\n")
	for _, c := range []struct {
		args  []string
		usage bool
		says  string
	}{
		{[]string{"match"}, true, "no input"},
		{[]string{"match", data}, true, "--index is missing"},
		{[]string{"match", data, "--index", "titles.gmq"}, true, "--index titles=titles.gmq"},
		{[]string{"match", data, "--index", "a b"}, true, "cannot be an index"},
		{[]string{"match", data, "--input", data, "--index", "x"}, true, "twice"},
		{[]string{"match", "-", "--index", "x"}, true, "add --schema"},
		{[]string{"match", data, "--index", "x=" + file, "--nats", "nats://127.0.0.1:1"}, true, "give one"},
		{[]string{"match", data, "--index", "x=" + file, "--context", "prod"}, true, "give one"},
		{[]string{"match", data, "--index", "x=" + file, "--k", "0", "--min", "2", "--to", "xml", "--report", "no", "--timeout", "0s", "--map", "x", "--weight", "x", "--plot", "x.svg"}, true,
			"--k 0 must be 1 to 1000\n--min 2 must be 0 to 1\n--timeout 0s is no time to wait: give one like 1m\n--report \"no\" is unknown"},
		{[]string{"match", data, "--index", "x=" + file, "--gold", gold, "--gold-columns", "a"}, true, "two names"},
		{[]string{"match", data, "--index", "x=" + file, "--map", "titel=title"}, false, `the index has no column "titel"; it has title, price`},
		{[]string{"match", data, "--index", "x=" + file, "--map", "title=titel"}, false, `the input has no column "titel"`},
		{[]string{"match", other, "--index", "x=" + file, "--map", "name=title"}, false, "goes first: --map title=name"},
		{[]string{"match", data, "--index", "x=" + file, "--weight", "name=2"}, false, "no column of that name is compared"},
		{[]string{"match", data, "--schema", spec, "--index", "x=" + file, "--gold", gold, "--gold-columns", "a,c"}, false, `no column "c"`},
		{[]string{"match", data, "--schema", spec, "--index", "x=" + file, "--gold", gold}, false, "no row of the input has a key that stands there"},
		{[]string{"match", data, "--index", "x=" + dir + "/none.gmq"}, false, "none.gmq"},
		{[]string{"match", data, "--index", "x=" + file, "--schema", spec, "--key", "name"}, false, "name"},
		{[]string{"dedupe", data, "--clusters", "--one-to-one"}, true, "exclude each other"},
		{[]string{"dedupe", "-", "--schema", spec}, true, "reads its input twice"},
	} {
		o := command(t.Context(), "", c.args...)
		if o.err == nil || o.usage != c.usage || !strings.Contains(o.err.Error(), c.says) {
			t.Errorf("%v: wrong usage %v, %v; it should say %q", c.args, o.usage, o.err, c.says)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if o := command(ended, "", "dedupe", data, "--schema", spec); o.err == nil {
		t.Error("an interrupted run succeeds")
	}
}

// TestRecordLinkage holds the figures of docs/matching.md: the best F1 by threshold on three pairs of catalogues, whose right pairs people have found.
func TestRecordLinkage(t *testing.T) {
	for _, c := range []struct {
		name, indexed, asked, gold string
		maps                       []string
		f1                         float64
	}{
		{"dblp-acm", "er_dblp_acm/ACM.csv.gz", "er_dblp_acm/DBLP2.csv.gz", "er_dblp_acm/DBLP-ACM_perfectMapping.csv.gz", nil, 0.991},
		{"abt-buy", "er_abt_buy/Buy.csv.gz", "er_abt_buy/Abt.csv.gz", "er_abt_buy/abt_buy_perfectMapping.csv", nil, 0.82},
		{"amazon-google", "er_amazon_google/GoogleProducts.csv.gz", "er_amazon_google/Amazon.csv.gz", "er_amazon_google/Amzon_GoogleProducts_perfectMapping.csv.gz",
			[]string{"--map", "name=title", "--map", "price=price", "--map", "manufacturer=manufacturer", "--map", "description=description"}, 0.67},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && c.name != "abt-buy" {
				t.Skip("the smallest catalogue goes the same way")
			}
			dir := t.TempDir()
			file := build(t, dir, real.File(t, c.indexed), "")
			args := append([]string{"match", "--index", "x=" + file, "--input", real.File(t, c.asked), "--gold", real.File(t, c.gold), "--min", "0", "--one-to-one",
				"--output", filepath.Join(dir, "pairs.csv"), "--plot", filepath.Join(dir, "f1.svg"), "--report", "json"}, c.maps...)
			o := succeeds(t, args...)
			var r report
			if err := json.Unmarshal([]byte(o.out), &r); err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v, %d of %d rows paired, %.2f s per million pairs", *r.Best, r.Paired, r.Rows, r.PerMillion)
			if r.Best.F1 < c.f1 || len(r.Thresholds) != 21 || r.GoldLost > 0 {
				t.Errorf("the best F1 is %v, not %v; %d gold pairs are lost", r.Best.F1, c.f1, r.GoldLost)
			}
			for i, q := range r.Thresholds[1:] {
				if before := r.Thresholds[i]; q.Pairs > before.Pairs || q.Recall > before.Recall {
					t.Errorf("%+v comes after %+v", q, before)
				}
			}
		})
	}
}
