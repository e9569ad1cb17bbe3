package index_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
)

// benchmarkRows is a table of 8 number columns and 6 categories, like Adult.
func benchmarkRows(b *testing.B) (*index.Queries, []column.Condition) {
	from := "name: t\nkind: rows\ncolumns:\n"
	for i := range 14 {
		kind := "number"
		if i >= 8 {
			kind = "category"
		}
		from += fmt.Sprintf("  - {name: column_%d, type: %s}\n", i, kind)
	}
	random := rand.New(rand.NewPCG(1, 2))
	builder := newBuilder(b, parseSchema(b, from))
	for range 5000 {
		rec := schema.Record{Cells: make([]schema.Cell, 14)}
		for i := range rec.Cells {
			value := strconv.FormatFloat(random.NormFloat64(), 'g', -1, 64)
			if i >= 8 {
				value = fmt.Sprintf("value %d", random.IntN(50))
			}
			rec.Cells[i].Values = []string{value}
		}
		builder.add(&rec)
	}
	_, q := builder.open()
	var conditions []column.Condition
	for i := range 14 {
		c := column.Condition{Attr: fmt.Sprintf("column_%d", i)}
		switch {
		case i >= 8:
			c.Value = text("value 7")
		case i%2 == 0:
			c.Min, c.Max = number(-0.5), number(0.7)
		default:
			c.Min, c.Max, c.Bucket = number(400), number(500), true
		}
		conditions = append(conditions, c)
	}
	return q, conditions
}

func BenchmarkConditions(b *testing.B) {
	q, conditions := benchmarkRows(b)
	sets := []column.Condition{{Attr: "column_9"}, {Attr: "column_0"}}
	for i := range 10 {
		sets[0].In = append(sets[0].In, *text(fmt.Sprintf("value %d", 9-i)))
		sets[1].In = append(sets[1].In, *number(float64(5 - i)))
	}
	for name, conditions := range map[string][]column.Condition{"14 conditions": conditions, "2 sets of 10": sets} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var query postings.MatchQuery
			for b.Loop() {
				if err := q.Conditions(&query, conditions); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkText(b *testing.B) {
	titles := []string{
		"A user-centered interface for querying distributed multimedia databases",
		"The WASA2 object-oriented workflow management system",
		"World Wide Database-integrating the Web, CORBA and databases",
		"Zugriffspfade für räumliche Anfragen über größere Datenmengen",
	}
	for _, kind := range []string{"documents", "sequences"} {
		_, q := textIndex(b, "{name: n, kind: "+kind+"}", titles...)
		for i, name := range []string{"ASCII", "German"} {
			title := titles[3*i]
			b.Run(fmt.Sprintf("%s/%s/%d", kind, name, len(title)), func(b *testing.B) {
				b.ReportAllocs()
				var query postings.MatchQuery
				for b.Loop() {
					if err := askText(q, &query, title); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkWeights encodes texts of ten words of a million, counted and weighed by how few objects have them: what a service does for each query of
// workload w3, which is to be at least two million per second on 16 cores.
func BenchmarkWeights(b *testing.B) {
	const objects, vocabulary, length = 200_000, 1_000_000, 10
	random := rand.New(rand.NewPCG(1, 2))
	text := func(n int) string {
		var words []string
		for range n {
			words = append(words, "w"+strconv.FormatUint(uint64(20*(math.Exp(random.Float64()*math.Log(vocabulary/20.0+1))-1)), 36))
		}
		return strings.Join(words, " ")
	}
	builder := newBuilder(b, parseSchema(b, "{name: n, kind: documents, stop_words: none}"))
	for range objects {
		builder.add(&schema.Record{Cells: []schema.Cell{{Values: []string{text(17)}}}})
	}
	_, q := builder.open()
	texts := make([]string, 10_000)
	for i := range texts {
		texts[i] = text(length)
	}
	for _, idf := range []bool{false, true} {
		b.Run(fmt.Sprintf("idf %v", idf), func(b *testing.B) {
			b.ReportAllocs()
			var query postings.MatchQuery
			for i := 0; b.Loop(); i++ {
				if _, err := q.Plan(&query, &index.Request{Text: &texts[i%len(texts)], IDF: &idf}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkObjects(b *testing.B) {
	line := "A user-centered interface for querying distributed multimedia databases " + strings.Repeat("of many words ", 5)
	for _, kind := range []string{"documents", "sequences"} {
		b.Run(kind, func(b *testing.B) {
			builder := newBuilder(b, parseSchema(b, "{name: n, kind: "+kind+"}"))
			rec := schema.Record{Cells: []schema.Cell{{Values: []string{line}}}}
			b.ReportAllocs()
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				builder.add(&rec)
			}
		})
	}
}
