package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// outcome is all that a source gives: records and bad ones in order, what ended it, and what its columns were found to lack.
type outcome struct {
	records  []schema.Record
	errs     []string
	warnings []string
}

// readOutcome reads a source by some workers, in parts of some bytes.
func readOutcome(t testing.TB, source io.Reader, s *schema.Schema, o Options, workers, size int) (out outcome) {
	t.Helper()
	o.Workers, o.partBytes, o.Columns = workers, size, NewColumns(s)
	r, err := NewReader(source, "source", s, o)
	if err != nil {
		return outcome{errs: []string{err.Error()}}
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	for {
		var rec schema.Record
		err := r.Next(&rec)
		if err == nil {
			out.records = append(out.records, rec)
			continue
		}
		out.errs = append(out.errs, fmt.Sprintf("after %d: %v", len(out.records), err))
		if !errors.As(err, new(*BadRecord)) {
			break
		}
	}
	var rec schema.Record
	out.errs = append(out.errs, fmt.Sprint("once more: ", r.Next(&rec)))
	out.warnings = o.Columns.Warnings()
	return out
}

// same compares what two readers gave. Empty and missing slices are the same.
func same(a, b outcome) bool {
	equal := func(x, y schema.Cell) bool {
		return slices.Equal(x.Values, y.Values) && bytes.Equal(x.JSON, y.JSON) && slices.Equal(x.Vector, y.Vector)
	}
	return slices.EqualFunc(a.records, b.records, func(x, y schema.Record) bool {
		return x.Line == y.Line && x.Key == y.Key && slices.EqualFunc(x.Cells, y.Cells, equal)
	}) && reflect.DeepEqual(a.errs, b.errs) && slices.Equal(a.warnings, b.warnings)
}

// pieces are what inputs are made of: what separates, what quotes, what ends lines, what is no UTF-8.
var pieces = map[Format][]string{
	CSV:   {"a", "1", ",", ",", "\n", "\n", "\r\n", "\r", `"`, `""`, `"a"`, "\"x\ny\"", " ", "\u00a0", "\xfc", "b,c\n", "1,2\n", `"q""r",s` + "\n", "\n\n", ";", `,"`, "\",\n"},
	TSV:   {"a", "1", "\t", "\t", "\n", "\r\n", "\r", `"`, " ", "\xfc", "b\tc\n", "\n\n"},
	JSONL: {`{"a":1}`, `{"a":"x","b":["y",2,null]}`, "\n", "\n", "\r\n", " ", `{"a":{"c":1}}`, `{"x":{"b":1},"y":2}`, "{", "\xfc", `{"b":"` + strings.Repeat("z", 40) + `"}`, "\n\n", `{"p":[1,{"q":2}]}` + "\n"},
	Text:  {"a", "word", " ", "\n", "\n", "\r\n", "\r", "\xfc", "\n\n", strings.Repeat("long ", 12)},
}

// TestPartsAreAsOne: however a source is cut and by however many it is decoded, it gives the same records, errors, line numbers and warnings as one
// reader of all of it.
func TestPartsAreAsOne(t *testing.T) {
	seed := seeded.Seed(t)
	random := rand.New(rand.NewPCG(seed, 1))
	schemas := map[Format][]*schema.Schema{
		Text: {parseSchema(t, textColumn)},
		JSONL: {parseSchema(t, `{name: n, kind: rows, key: a, columns: [{name: b, type: category}, {name: p, type: payload}]}`),
			parseSchema(t, `{name: n, kind: rows, columns: [{name: a, type: category}, {name: b, type: category, split: z}, {name: c, type: category}, {name: x.b, type: category}, {name: p, type: payload}]}`)},
	}
	header := parseSchema(t, "{name: n, kind: rows, columns: [{name: a, type: category}, {name: b, type: category}]}")
	schemas[CSV] = []*schema.Schema{parseSchema(t, twoColumns), header}
	schemas[TSV] = schemas[CSV]
	read, bad, ended := 0, 0, 0
	for round := range 1500 {
		format := []Format{CSV, CSV, TSV, JSONL, Text}[random.IntN(5)]
		s := schemas[format][random.IntN(len(schemas[format]))]
		var text strings.Builder
		if random.IntN(8) == 0 {
			text.WriteString("\ufeff")
		}
		if s == header {
			text.WriteString(map[Format]string{CSV: "a,b\n", TSV: "a\tb\n"}[format])
		}
		sound := random.IntN(2) == 0 // so that some are read to their ends
		for range random.IntN(60) {
			if piece := pieces[format][random.IntN(len(pieces[format]))]; !sound || strings.Count(piece, `"`)%2 == 0 && piece != "{" {
				text.WriteString(piece)
			}
			if sound && random.IntN(2) == 0 {
				text.WriteString(map[Format]string{CSV: "v,w\n", TSV: "v\tw\n", JSONL: "\n", Text: "\n"}[format])
			}
		}
		o := Options{Format: format, MaxRecord: []int{0, 0, 1 + random.IntN(40)}[random.IntN(3)]}
		if random.IntN(6) == 0 {
			o.Encoding = "latin1"
		}
		if format == CSV && random.IntN(4) == 0 {
			o.Comma = []rune{';', '\t', ' ', 'é'}[random.IntN(4)]
		}
		open := func() io.Reader {
			var source io.Reader = strings.NewReader(text.String())
			if round%7 == 0 {
				source = bytes.NewReader(compress(t, text.String()))
			}
			if round%5 == 0 {
				source = failing{source}
			}
			return source
		}
		want := readOutcome(t, open(), s, o, 1, 0)
		size, workers := 1+random.IntN(1+random.IntN(100)), 2+random.IntN(3)
		if got := readOutcome(t, open(), s, o, workers, size); !same(got, want) {
			t.Fatalf("seed %d, round %d, %s, %+v, parts of %d bytes, %d workers: %q\ngot  %+v\nwant %+v", seed, round, format, o, size, workers, text.String(), got, want)
		}
		read, bad, ended = read+len(want.records), bad+len(want.errs), ended+1
	}
	t.Logf("%d records, %d errors, %d sources", read, bad-2*ended, ended)
	if read < 1500 || bad-2*ended < 400 {
		t.Errorf("%d records and %d errors are too few to show anything", read, bad-2*ended)
	}
}

// TestPartsEnd: a reader that is closed before its end leaves no goroutine, whatever it is at.
func TestPartsEnd(t *testing.T) {
	s := parseSchema(t, textColumn)
	before := runtime.NumGoroutine()
	for _, records := range []int{0, 1, 5, 5000} {
		r, err := NewReader(strings.NewReader(strings.Repeat("word\n", 6000)), "source", s, Options{Format: Text, Workers: 3, partBytes: 10})
		if err != nil {
			t.Fatal(err)
		}
		var rec schema.Record
		for range records {
			if err := r.Next(&rec); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := r.Next(&rec); err == nil || !strings.Contains(err.Error(), "after close") {
			t.Errorf("after %d records and Close: %v", records, err)
		}
	}
	for n := 0; runtime.NumGoroutine() > before; n++ {
		if n == 1000 {
			t.Fatalf("%d goroutines, before there were %d", runtime.NumGoroutine(), before)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestLongLineInParts: of a line that is too long no more is kept than tells so, and those after it are read.
func TestLongLineInParts(t *testing.T) {
	s := parseSchema(t, textColumn)
	o := Options{Format: Text, MaxRecord: 100, Workers: 2}
	text := io.MultiReader(strings.NewReader("first\n"), io.LimitReader(endless{}, 64<<20), strings.NewReader("\nlast\n"))
	r, err := NewReader(text, "source", s, o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := readAll(t, r)
	if err != nil || len(got) != 3 || !strings.HasPrefix(got[1], "bad 2: is longer than 100 bytes") || !strings.HasPrefix(got[2], "3") {
		t.Errorf("%.200q %v", got, err)
	}
}

// endless is the letter x again and again.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
