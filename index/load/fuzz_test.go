package load

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index/load/elements"
	"github.com/geniemq/geniemq/index/schema"
)

// drain reads a source to its end and checks what holds for every input: lines never go back, bad records name the
// source and a reason, and the reader ends.
func drain(t *testing.T, r *Reader, input int) (records []schema.Record, bad int, err error) {
	t.Helper()
	line := int64(0)
	for steps := 0; ; steps++ {
		if steps > input+2 {
			t.Fatalf("%d records out of %d bytes", steps, input)
		}
		var rec schema.Record
		err := r.Next(&rec)
		var skip *BadRecord
		switch {
		case err == io.EOF:
			return records, bad, nil
		case errors.As(err, &skip):
			if skip.Line < line || skip.Source != "fuzz" || skip.Reason == "" {
				t.Fatalf("after line %d: %#v", line, skip)
			}
			line = skip.Line
			bad++
		case err != nil:
			return records, bad, err
		default:
			if rec.Line < line {
				t.Fatalf("line %d after line %d", rec.Line, line)
			}
			for _, cell := range rec.Cells {
				for _, value := range cell.Values {
					if !utf8.ValidString(value) {
						t.Fatalf("line %d: value %q", rec.Line, value)
					}
				}
			}
			line = rec.Line
			records = append(records, rec)
		}
	}
}

func openFuzz(t *testing.T, data []byte, schema string, options Options) *Reader {
	t.Helper()
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		t.Skip("UTF-16, whose lines and letters are counted otherwise")
	}
	r, err := NewReader(bytes.NewReader(data), "fuzz", parseSchema(t, schema), options)
	if err != nil {
		t.Skip(err) // a header or gzip header at fault
	}
	return r
}

// inParts checks that a source that is decoded in parts gives what it does as a whole.
func inParts(t *testing.T, data []byte, text string, o Options) {
	t.Helper()
	s := parseSchema(t, text)
	size := 1 + len(data)%61
	if want, got := readOutcome(t, bytes.NewReader(data), s, o, 1, 0), readOutcome(t, bytes.NewReader(data), s, o, 2, size); !same(got, want) {
		t.Fatalf("in parts of %d bytes %+v, as a whole %+v", size, got, want)
	}
}

const (
	twoColumns  = "{name: n, kind: rows, header: false, missing: [], columns: [{name: a, type: category}, {name: b, type: category}]}"
	textColumn  = "{name: n, kind: documents}"
	fuzzLimit   = 1 << 16
	jsonColumns = `{name: n, kind: rows, missing: [], columns: [{name: a, type: category}, {name: p, type: payload}, {name: 'p.q[0]', type: category}, {name: p.r, type: payload}]}`
)

func FuzzCSV(f *testing.F) {
	for _, seed := range []string{"a,b\n", "\"a\n\nb\", c\n\n\nd,\"e\"\"\"\n", "\"a", "a\"b,c\nd,e", "\xef\xbb\xbfa,b\r\n\r\nc,d", "a\n,\n,,\n", "M\xfc,b"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		inParts(t, data, twoColumns, Options{Format: CSV, MaxRecord: fuzzLimit})
		got, bad, err := drain(t, openFuzz(t, data, twoColumns, Options{Format: CSV, MaxRecord: fuzzLimit}), len(data))

		plain := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
		plain.FieldsPerRecord, plain.TrimLeadingSpace = -1, true
		all, plainErr := plain.ReadAll()
		if plainErr != nil || !utf8.Valid(data) || len(data) > fuzzLimit {
			return
		}
		if err != nil || len(got)+bad != len(all) {
			t.Fatalf("%d records and %d bad ones out of %d: %v", len(got), bad, len(all), err)
		}
		all = slices.DeleteFunc(all, func(fields []string) bool { return len(fields) != 2 || strings.Contains(fields[0]+fields[1], "\x00") })
		for i, fields := range all {
			for j, field := range fields {
				if value := got[i].Cells[j].Values; len(value) != 1 || value[0] != strings.TrimSpace(field) {
					t.Fatalf("record %d: %q, want %q", i, value, field)
				}
			}
		}
	})
}

func FuzzTSV(f *testing.F) {
	for _, seed := range []string{"a\tb\n", "\"a\t\"\r\n\nc\td", "a\n\t\t\n", "M\xfc\tb"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, bad, err := drain(t, openFuzz(t, data, twoColumns, Options{Format: TSV, MaxRecord: fuzzLimit}), len(data))
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		for line := range strings.Lines(strings.TrimPrefix(string(data), "\ufeff")) {
			if line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"); line != "" {
				want++
			}
		}
		if len(got)+bad != want {
			t.Fatalf("%d records and %d bad ones out of %d", len(got), bad, want)
		}
	})
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{"a\nb", "\n\r\n \n", "\xef\xbb\xbf\n", "M\xfc\nb\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, bad, err := drain(t, openFuzz(t, data, textColumn, Options{Format: Text, MaxRecord: fuzzLimit}), len(data))
		if err != nil {
			t.Fatal(err)
		}
		data = bytes.TrimPrefix(data, []byte("\ufeff"))
		lines := bytes.Count(data, []byte("\n"))
		if len(data) > 0 && data[len(data)-1] != '\n' {
			lines++
		}
		if len(got)+bad != lines {
			t.Fatalf("%d records and %d bad ones of %d lines: ids shift", len(got), bad, lines)
		}
	})
}

func FuzzJSONL(f *testing.F) {
	for _, seed := range []string{
		`{"a":"x","p":{"y":[1,2,{"z":null}]}}`, "{\"a\":[1,\"2\",null,true]}\n\n{}", `{"a":"\u00fc\ud83d\ude00\n"}`, `[1]`, "[{\"p\":{\"q\":[1,{}],\"r\":[]}},\n{\"p\":[{\"r\":1},{\"r\":2}]}]", `{"a":1}x`, `{"a":{}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		inParts(t, data, jsonColumns, Options{Format: JSONL, MaxRecord: fuzzLimit})
		got, bad, err := drain(t, openFuzz(t, data, jsonColumns, Options{Format: JSONL, MaxRecord: fuzzLimit}), len(data))
		if errors.Is(err, elements.ErrOpen) || errors.Is(err, elements.ErrEmpty) || errors.Is(err, elements.ErrAfter) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range got {
			for _, c := range []int{1, 3} {
				if payload := rec.Cells[c].JSON; payload != nil && !json.Valid(payload) {
					t.Fatalf("payload %q", payload)
				}
			}
		}
		// encoding/json judges the first line where it is as strict.
		line, _, more := bytes.Cut(data, []byte("\n"))
		var object struct{ A *string }
		if more || len(got)+bad != 1 || json.Unmarshal(line, &object) != nil || object.A == nil {
			return
		}
		if bad == 0 && len(got[0].Cells[0].Values) == 1 && got[0].Cells[0].Values[0] != *object.A &&
			bytes.Contains(line, []byte(`"a"`)) && !bytes.Contains(line, []byte(`"A"`)) {
			t.Fatalf("%q, encoding/json reads %q", got[0].Cells[0].Values[0], *object.A)
		}
	})
}

func FuzzLatin1(f *testing.F) {
	for _, seed := range []string{"M\xfcnchen\n", "\xa0\n\x85x\n", "\x00\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := openFuzz(t, data, textColumn, Options{Format: Text, Encoding: "latin1"})
		if r.source.Packed {
			t.Skip("compressed")
		}
		got, bad, err := drain(t, r, len(data))
		if bytes.IndexByte(data, 0) >= 0 {
			return // it is refused
		}
		if err != nil || bad > 0 {
			t.Fatalf("%d bad, %v: every byte is a Latin-1 character", bad, err)
		}
		i := 0
		for line := range bytes.Lines(data) {
			var want strings.Builder
			for _, c := range bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")) {
				want.WriteRune(rune(c))
			}
			if text := strings.TrimSpace(want.String()); text != "" && text != got[i].Cells[0].Values[0] {
				t.Fatalf("line %d: %q, want %q", i+1, got[i].Cells[0].Values[0], text)
			}
			i++
		}
		if i != len(got) {
			t.Fatalf("%d records of %d lines", len(got), i)
		}
	})
}

func FuzzGzip(f *testing.F) {
	for _, seed := range []string{"a\nb\n", ""} {
		f.Add([]byte(seed))
		f.Add(compress(f, seed))
		f.Add(compress(f, seed)[:12])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		options := Options{Format: Text, MaxRecord: fuzzLimit}
		// Damaged streams: any end is right, as long as there is one.
		raw := append([]byte{0x1f, 0x8b, 8}, data...)
		if r, err := NewReader(bytes.NewReader(raw), "fuzz", parseSchema(t, textColumn), options); err == nil {
			_, _, _ = drain(t, r, 1<<30)
		}
		// Sound streams: as if they were not compressed.
		if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) || bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
			return
		}
		want, badWant, err := drain(t, openFuzz(t, data, textColumn, options), len(data))
		if err != nil {
			t.Fatal(err)
		}
		got, bad, err := drain(t, openFuzz(t, compress(t, string(data)), textColumn, options), len(data))
		if err != nil || bad != badWant || len(got) != len(want) {
			t.Fatalf("%d records and %d bad, want %d and %d: %v", len(got), bad, len(want), badWant, err)
		}
	})
}
