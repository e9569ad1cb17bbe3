package tests

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/service/translate"
	"github.com/geniemq/geniemq/wire"
)

// The documented query for texts: words weigh by how rare they are, none are left out, and the hits are in the order of BM25.
// docs/benchmarks/ranking.md has what was measured with others.
const rankedText = "name: ranked\ncolumns:\n  - {name: text, type: text, stop_words: none, idf: true}\n"

// rankedBy is how it is asked for.
var rankedBy = object{"by": "bm25"}

type object = map[string]any

// slack is how far below BM25 over all texts the best of the candidates may rank.
const slack = 0.003

// asker answers queries of one index by counting on this machine.
type asker struct {
	t          testing.TB
	translator *translate.Translator
	searcher   gpuexec.Searcher
}

// newAsker builds an index of columns of texts.
func newAsker(t testing.TB, text string, columns ...[]string) *asker {
	t.Helper()
	s, err := index.Builtin().ParseSchema([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	b, err := onebyone.NewObjects(s, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for row := range columns[0] {
		rec := schema.Record{Cells: make([]schema.Cell, len(columns))}
		for i := range columns {
			if v := strings.TrimSpace(columns[i][row]); v != "" {
				rec.Cells[i].Values = []string{v}
			}
		}
		if err := b.Add(&rec); err != nil {
			t.Fatal(err)
		}
	}
	file, err := b.Bytes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x, err := index.OpenBytes(file)
	if err != nil {
		t.Fatal(err)
	}
	return askerOf(t, x)
}

// askerOf answers queries of an index, which it closes at last.
func askerOf(t testing.TB, x *index.Index) *asker {
	t.Helper()
	translator, err := translate.New("ranked", x, 0)
	if err != nil {
		t.Fatal(err)
	}
	a := &asker{t: t, translator: translator}
	e := cpu.New(gpuexec.CPUOptions{})
	if a.searcher, err = e.Load(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, err := range []error{a.searcher.Close(), e.Close(), x.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return a
}

// ask returns the hits of queries.
func (a *asker) ask(queries []object) (found [][]uint32) {
	a.t.Helper()
	for some := range slices.Chunk(queries, 256) {
		plans, asked := make([]gpuexec.Plan, len(some)), make([]translate.Query, len(some))
		for i, q := range some {
			text, err := json.Marshal(q)
			if err != nil {
				a.t.Fatal(err)
			}
			m, err := wire.DecodeMessage(wire.JSON, text, wire.Limits{})
			if err != nil || m.Queries[0].Err != nil {
				a.t.Fatalf("%s: %v %v", text, err, m.Queries[0].Err)
			}
			if a.translator.Plan(&asked[i], &m.Queries[0].Query); asked[i].Err != nil {
				a.t.Fatalf("%s: %v", text, asked[i].Err)
			}
			plans[i] = asked[i].Plan
		}
		answers := make([]gpuexec.Answer, len(some))
		if err := a.searcher.Search(a.t.Context(), plans, answers, nil); err != nil {
			a.t.Fatal(err)
		}
		for i := range answers {
			if answers[i].Err != nil {
				a.t.Fatal(answers[i].Err)
			}
			var hits []uint32
			for _, h := range answers[i].Hits {
				hits = append(hits, h.ID)
			}
			found = append(found, hits)
		}
	}
	return found
}

// texts asks for texts, with fields besides.
func (a *asker) texts(texts []string, k int, fields object) [][]uint32 {
	a.t.Helper()
	var queries []object
	for _, text := range texts {
		q := object{"k": k, "text": text}
		for name, v := range fields {
			q[name] = v
		}
		queries = append(queries, q)
	}
	return a.ask(queries)
}

// rank is how often the gold comes first, and in ten.
type rank struct{ first, ten float64 }

func (r rank) String() string { return fmt.Sprintf("%.4f first, %.4f in ten", r.first, r.ten) }

// atLeast compares with what was measured, which has four digits.
func (r rank) atLeast(want rank, less float64) bool {
	return r.first >= want.first-less-0.00005 && r.ten >= want.ten-less-0.00005
}

func rankOf(found [][]uint32, gold [][2]int) (r rank) {
	for _, pair := range gold {
		switch at := slices.Index(found[pair[0]], uint32(pair[1])); {
		case at == 0:
			r.first++
			fallthrough
		case at > 0:
			r.ten++
		}
	}
	return rank{r.first / float64(len(gold)), r.ten / float64(len(gold))}
}

// catalogues are two of records, one of which is indexed and the other asked, and which records people found to be the same.
type catalogues struct {
	name, folder, indexed, asked, gold string
	goldIndexed, goldAsked             int         // columns of the gold file
	columns                            [][2]string // what they are called in both; the first is the title, the last a number
	kinds                              []string    // of the columns
	near                               float64     // numbers that count: up to so many times as large or small

	title     rank // of BM25 over all titles
	documents rank // by the words in common, as kind documents counts
}

func allCatalogues() []catalogues {
	goods := []string{"text", "text", "text", "number"}
	return []catalogues{
		{"dblp_acm", "er_dblp_acm", "ACM.csv.gz", "DBLP2.csv.gz", "DBLP-ACM_perfectMapping.csv.gz", 1, 0,
			[][2]string{{"title", "title"}, {"authors", "authors"}, {"venue", "venue"}, {"year", "year"}}, goods, 1,
			rank{0.9757, 0.9996}, rank{0.9667, 0.9987}},
		{"abt_buy", "er_abt_buy", "Buy.csv.gz", "Abt.csv.gz", "abt_buy_perfectMapping.csv", 1, 0,
			[][2]string{{"name", "name"}, {"description", "description"}, {"manufacturer", ""}, {"price", "price"}}, goods, 1.25,
			rank{0.6627, 0.9444}, rank{0.5934, 0.9143}},
		{"amazon_google", "er_amazon_google", "GoogleProducts.csv.gz", "Amazon.csv.gz", "Amzon_GoogleProducts_perfectMapping.csv.gz", 1, 0,
			[][2]string{{"name", "title"}, {"description", "description"}, {"manufacturer", "manufacturer"}, {"price", "price"}}, goods, 1.25,
			rank{0.6277, 0.9738}, rank{0.5800, 0.9208}},
	}
}

// load reads both catalogues: columns by name, and pairs of a record asked and the one that should be found.
func (c *catalogues) load(t testing.TB) (indexed, asked map[string][]string, gold [][2]int) {
	t.Helper()
	read := func(name string) map[string][]string {
		rows := readCSV(t, data(t, c.folder, name))
		columns := make(map[string][]string)
		for i, column := range rows[0] {
			for _, row := range rows[1:] {
				columns[column] = append(columns[column], row[i])
			}
		}
		return columns
	}
	indexed, asked = read(c.indexed), read(c.asked)
	for _, pair := range readCSV(t, data(t, c.folder, c.gold))[1:] {
		gold = append(gold, [2]int{slices.Index(asked["id"], pair[c.goldAsked]), slices.Index(indexed["id"], pair[c.goldIndexed])})
	}
	return indexed, asked, gold
}

// amount is the number in a cell such as $399.00.
func amount(cell string) (float64, bool) {
	digits := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return -1
	}, cell)
	v, err := strconv.ParseFloat(strings.Trim(digits, "."), 64)
	return v, err == nil && v > 0
}

// schema is that of all columns.
func (c *catalogues) schema() string {
	text := "name: ranked\ncolumns:\n"
	for i, kind := range c.kinds {
		if kind == "text" {
			kind += ", stop_words: none, idf: true"
		}
		text += fmt.Sprintf("  - {name: %s, type: %s}\n", c.columns[i][0], kind)
	}
	return text
}

// row asks for all that a record has. The title counts eight times, and a number as much as a rare word of it.
func (c *catalogues) row(asked map[string][]string, at int) object {
	title := c.columns[0][0]
	row, weights := object{title: "nothing"}, object{title: 8}
	for i, names := range c.columns {
		if names[1] == "" {
			continue
		}
		cell := strings.TrimSpace(asked[names[1]][at])
		v, ok := amount(cell)
		switch {
		case cell == "" || c.kinds[i] == "number" && !ok:
		case c.kinds[i] == "number":
			row[names[0]], weights[names[0]] = object{"min": v / c.near, "max": v * c.near}, 8*schema.DefaultIDFScale
		default:
			row[names[0]] = cell
		}
	}
	return object{"k": 10, "row": row, "weights": weights, "rescore": object{"by": "bm25", "column": title}}
}

// TestRankingOfRecords: the documented query finds the record that people found to be the same as often as BM25 over all titles, less next to
// nothing, and with all columns more often; documents answer as they did.
func TestRankingOfRecords(t *testing.T) {
	if testing.Short() {
		t.Skip("quality does not depend on the race detector: go test without -short measures it")
	}
	t.Parallel()
	for _, c := range allCatalogues() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			indexed, asked, gold := c.load(t)
			titles := asked[c.columns[0][1]]
			own := indexed[c.columns[0][0]]
			a := newAsker(t, rankedText, own)
			bm25 := rankOf(a.texts(titles, 10, object{"rescore": rankedBy, "certify": true}), gold)
			query := rankOf(a.texts(titles, 10, object{"rescore": rankedBy}), gold)
			documents := rankOf(newAsker(t, "name: ranked\nkind: documents\n", own).texts(titles, 10, nil), gold)
			var columns [][]string
			for i, names := range c.columns {
				column := slices.Clone(indexed[names[0]])
				for row := range column {
					if v, ok := amount(column[row]); c.kinds[i] == "number" {
						if column[row] = ""; ok {
							column[row] = strconv.FormatFloat(v, 'g', -1, 64)
						}
					}
				}
				columns = append(columns, column)
			}
			var rows []object
			for at := range titles {
				rows = append(rows, c.row(asked, at))
			}
			all := rankOf(newAsker(t, c.schema(), columns...).ask(rows), gold)
			t.Logf("BM25 over all titles %v; the documented query %v; all columns %v; documents %v", bm25, query, all, documents)
			if !bm25.atLeast(c.title, 0) || !c.title.atLeast(bm25, 0) {
				t.Errorf("BM25 over all titles: %v, it was %v", bm25, c.title)
			}
			if !query.atLeast(bm25, slack) {
				t.Errorf("the documented query: %v, BM25 over all titles: %v", query, bm25)
			}
			if !all.atLeast(bm25, 0) || all.first <= query.first {
				t.Errorf("all columns: %v, titles alone %v", all, query)
			}
			if !documents.atLeast(c.documents, 0) || !c.documents.atLeast(documents, 0) {
				t.Errorf("documents: %v, they were %v", documents, c.documents)
			}
		})
	}
}

// headlinesByWords are headlines, queries of three fifths of the words of one, in any order, and which that is.
func headlinesByWords(t testing.TB) (headlines, texts []string, gold [][2]int) {
	t.Helper()
	for _, name := range []string{"clickbait_data.txt.gz", "non_clickbait_data.txt.gz"} {
		for _, line := range lines(t, data(t, "headlines", name)) {
			if strings.TrimSpace(line) != "" {
				headlines = append(headlines, line)
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2)) // the figures are of these headlines
	for i := range 4000 {
		at := r.IntN(len(headlines))
		words := strings.Fields(headlines[at])
		r.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
		texts, gold = append(texts, strings.Join(words[:max(1, len(words)*6/10)], " ")), append(gold, [2]int{i, at})
	}
	return headlines, texts, gold
}

// TestRankingOfHeadlines: three fifths of the words of a headline, in any order, find it.
func TestRankingOfHeadlines(t *testing.T) {
	if testing.Short() {
		t.Skip("quality does not depend on the race detector: go test without -short measures it")
	}
	t.Parallel()
	headlines, texts, gold := headlinesByWords(t)
	a := newAsker(t, rankedText, headlines)
	query := rankOf(a.texts(texts, 10, object{"rescore": rankedBy}), gold)
	counting := rankOf(a.texts(texts, 10, object{"idf": false}), gold)
	documents := rankOf(newAsker(t, "name: ranked\nkind: documents\n", headlines).texts(texts, 10, nil), gold)
	t.Logf("the documented query %v; counting %v; documents %v", query, counting, documents)
	if want := (rank{0.9750, 0.9968}); !query.atLeast(want, slack) { // BM25 over all headlines
		t.Errorf("the documented query: %v, BM25: %v", query, want)
	}
	if want := (rank{0.9345, 0.9832}); !documents.atLeast(want, 0) || !want.atLeast(documents, 0) {
		t.Errorf("documents: %v, they were %v", documents, want)
	}
}

// labelled are short texts and the label of each.
func labelled(t testing.TB) (texts, labels []string) {
	t.Helper()
	for _, files := range [][2]string{{"Biomedical.txt.gz", "Biomedical_label.txt"}, {"GoogleNews.txt.gz", "GoogleNews_LABEL.txt"},
		{"SearchSnippets.txt.gz", "SearchSnippets_label.txt"}, {"StackOverflow.txt.gz", "StackOverflow_label.txt"}} {
		some := lines(t, data(t, "shortdocs_labelled", files[0]))
		texts = append(texts, some...)
		for _, label := range lines(t, data(t, "shortdocs_labelled", files[1]))[:len(some)] {
			labels = append(labels, files[0]+" "+strings.TrimSpace(label))
		}
	}
	return texts, labels
}

// TestRankingOfLabels: of ten texts found for a text, how many have its label.
func TestRankingOfLabels(t *testing.T) {
	if testing.Short() {
		t.Skip("quality does not depend on the race detector: go test without -short measures it")
	}
	t.Parallel()
	texts, labels := labelled(t)
	own := rand.New(rand.NewPCG(1, 2)).Perm(len(texts))[:3000]
	var asked []string
	for _, at := range own {
		asked = append(asked, texts[at]+" ") // none is empty
	}
	same := func(found [][]uint32) float64 {
		n := 0
		for i, hits := range found {
			others := slices.DeleteFunc(hits, func(id uint32) bool { return int(id) == own[i] })
			for _, id := range others[:min(10, len(others))] {
				if labels[id] == labels[own[i]] {
					n++
				}
			}
		}
		return float64(n) / float64(10*len(found))
	}
	query := same(newAsker(t, rankedText, texts).texts(asked, 11, object{"rescore": rankedBy}))
	documents := same(newAsker(t, "name: ranked\nkind: documents\n", texts).texts(asked, 11, nil))
	t.Logf("of ten texts %.4f have the label, of documents %.4f", query, documents)
	if query < 0.645-slack {
		t.Errorf("of ten texts %.4f have the label, want 0.645", query)
	}
	if documents < 0.5852-0.00005 || documents > 0.5852+0.00005 {
		t.Errorf("of ten documents %.4f have the label, it was 0.5852", documents)
	}
}
