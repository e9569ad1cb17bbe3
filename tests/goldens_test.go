package tests

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
)

var updateGoldens = flag.Bool("update-goldens", false, "write testdata/goldens.json anew: only when answers or files are meant to change")

// golden is what became of one index: its file, and the answers to its queries, by hash, some at a time.
type golden struct {
	File    string   `json:"file"`
	Answers []string `json:"answers"`
}

// goldenIndex is one index of the goldens.
type goldenIndex struct {
	name, schema, extension, data string
	queries                       []string
}

const (
	goldenQueries = 2000 // of an index
	goldenStep    = 200  // of a message, and so of a hash
)

// Index files, and answers but for the times they took, are what they always were, to the byte: for every kind and layout. The data
// are made here, from seeds, by formulas that must not change.
func TestGoldens(t *testing.T) {
	raced.Skip(t, raced.Same)
	t.Parallel()
	path := filepath.Join("testdata", "goldens.json")
	want := make(map[string]golden)
	if text, err := os.ReadFile(path); err == nil {
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
	} else if !*updateGoldens {
		t.Fatal(err)
	}
	dir := t.TempDir()
	indexes := goldenIndexes()
	got := make(map[string]golden)
	var sources []config.IndexSource
	for _, x := range indexes {
		file := buildFile(t, dir, x.name+x.extension, x.schema, x.data)
		bytes, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, config.IndexSource{Path: file})
		got[x.name] = golden{File: hash(bytes)}
	}
	r := start(t, config.Config{Indexes: sources, Engine: "cpu"}, service.Options{})
	took := regexp.MustCompile(`,"took_us":\{[^}]*\}`)
	for _, x := range indexes {
		g := got[x.name]
		for first := 0; first < len(x.queries); first += goldenStep {
			body := `{"queries":[` + strings.Join(x.queries[first:first+goldenStep], ",") + `]}`
			reply, err := r.nc.Request("genie.search."+x.name, []byte(body), patience)
			if err != nil {
				t.Fatal(err)
			}
			if reply.Header.Get("Nats-Service-Error") != "" {
				t.Fatalf("%s: %s", x.name, reply.Data)
			}
			g.Answers = append(g.Answers, hash(took.ReplaceAll(reply.Data, nil)))
		}
		got[x.name] = g
	}
	if *updateGoldens {
		text, err := json.MarshalIndent(got, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for name, w := range want {
		g := got[name]
		if g.File != w.File {
			t.Errorf("%s: the file is %s, was %s", name, g.File, w.File)
		}
		for i := range w.Answers {
			if i >= len(g.Answers) || g.Answers[i] != w.Answers[i] {
				t.Errorf("%s: answers to queries %d to %d are not what they were", name, i*goldenStep, (i+1)*goldenStep-1)
			}
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d indexes, there were %d", len(got), len(want))
	}
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// goldenIndexes are the indexes, which share their data and queries by kind.
func goldenIndexes() []goldenIndex {
	rng := rand.New(rand.NewPCG(2018, 11))
	var all []goldenIndex

	const rows = 70_000 // two tiles
	var table strings.Builder
	table.WriteString("id,price,year,brand,code,tags,note\n")
	for i := range rows {
		tags := make([]string, rng.IntN(4))
		for j := range tags {
			tags[j] = fmt.Sprint("t", rng.IntN(30))
		}
		fmt.Fprintf(&table, "k%d,%d.%02d,%d,b%d,c%d,%s,note %d\n", i, rng.IntN(5000), rng.IntN(100), 1950+rng.IntN(70),
			int(rng.ExpFloat64()*5), rng.IntN(40_000), strings.Join(tags, "|"), i%97)
	}
	var asked []string
	for i := range goldenQueries {
		var conditions []string
		condition := func(format string, args ...any) { conditions = append(conditions, fmt.Sprintf(format, args...)) }
		low := rng.IntN(5000)
		condition(`{"attr":"price","min":%d,"max":%d,"weight":%d}`, low, low+rng.IntN(800), 1+rng.IntN(3))
		condition(`{"attr":"brand","value":"b%d"}`, rng.IntN(20))
		if rng.IntN(2) == 0 {
			condition(`{"attr":"year","in":[%d,%d,%d]}`, 1950+rng.IntN(70), 1950+rng.IntN(70), 1950+rng.IntN(70))
		}
		if rng.IntN(2) == 0 {
			condition(`{"attr":"tags","value":"t%d"}`, rng.IntN(35))
		}
		if rng.IntN(2) == 0 {
			condition(`{"attr":"code","min":"c%d","max":"c%d"}`, rng.IntN(4), 4+rng.IntN(5))
		}
		asked = append(asked, fmt.Sprintf(`{"id":"q%d","k":%d,"min_count":%d,"with_payload":%t,"items":[%s]}`,
			i, 1+rng.IntN(40), rng.IntN(3), i%4 == 0, strings.Join(conditions, ",")))
	}
	schema := func(name string, layouts ...string) string {
		text := "name: " + name + "\nkind: rows\nkey: id\ncolumns:\n  - {name: id, type: skip}\n"
		for i, column := range []string{"price, type: number, buckets: 300", "year, type: number, edges: exact", "brand, type: category",
			"code, type: category", `tags, type: category, split: "|"`} {
			if layout := layouts[i%len(layouts)]; layout != "" {
				column += ", layout: " + layout
			}
			text += "  - {name: " + column + "}\n"
		}
		return text + "  - {name: note, type: payload}\n"
	}
	for name, layouts := range map[string][]string{
		"rows-auto":     {""},
		"rows-postings": {"postings"},
		"rows-sliced":   {"sliced", "sliced", "sliced", "", "postings"},
		"rows-rare":     {"", "sliced", "rare", "rare", "rare"},
	} {
		all = append(all, goldenIndex{name, schema(name, layouts...), ".csv", table.String(), asked})
	}

	word := func() string { return fmt.Sprintf("w%x", int(rng.ExpFloat64()*400)) }
	text := func(words int) string {
		list := make([]string, words)
		for i := range list {
			list[i] = word()
		}
		return strings.Join(list, " ")
	}
	var texts strings.Builder
	for range rows {
		texts.WriteString(text(1+rng.IntN(12)) + "\n")
	}
	asked = nil
	for i := range goldenQueries {
		asked = append(asked, fmt.Sprintf(`{"k":%d,"with_payload":%t,"text":%q}`, 1+rng.IntN(30), i%5 == 0, text(1+rng.IntN(9))))
	}
	for name, layout := range map[string]string{"documents-auto": "", "documents-postings": ", layout: postings", "documents-rare": ", layout: rare"} {
		all = append(all, goldenIndex{name, "name: " + name + "\nkind: documents\ncolumns: [{name: title, type: text, store: true" + layout + "}]\n",
			".txt", texts.String(), asked})
	}

	var strs strings.Builder
	names := make([]string, 66_000)
	for i := range names {
		b := make([]rune, 3+rng.IntN(14))
		for j := range b {
			b[j] = rune('a' + rng.IntN(12))
		}
		if i%50 == 0 {
			b[0] = 'é'
		}
		names[i] = string(b)
		strs.WriteString(names[i] + "\n")
	}
	asked = nil
	for i := range goldenQueries {
		typo := []rune(names[rng.IntN(len(names))])
		typo[rng.IntN(len(typo))] = rune('a' + rng.IntN(12))
		asked = append(asked, fmt.Sprintf(`{"k":%d,"candidates":%d,"certify":%t,"with_payload":%t,"text":%q}`,
			1+rng.IntN(8), 8+rng.IntN(100), i%20 == 0, i%7 == 0, string(typo)))
	}
	for name, layout := range map[string]string{"sequences-auto": "", "sequences-postings": ", layout: postings", "sequences-rare": ", layout: rare"} {
		all = append(all, goldenIndex{name, "name: " + name + "\nkind: sequences\nngram: 2\ncolumns: [{name: word, type: text" + layout + "}]\n",
			".txt", strs.String(), asked})
	}
	return all
}
