package load

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index/schema"
)

func compress(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGzip(t *testing.T) {
	schema := parseSchema(t, people)
	inputs := map[Format]string{
		CSV:   "age,city,tags,note,junk\n1,\"a\nb\",,,\n2,c,,,\n",
		TSV:   "age\tcity\ttags\tnote\tjunk\n1\ta\t\t\t\n2\tc\t\t\t\n",
		JSONL: "{\"age\":1}\n{\"age\":2}\n",
	}
	for format, input := range inputs {
		plain, err := NewReader(strings.NewReader(input), "plain", schema, Options{Format: format})
		if err != nil {
			t.Fatal(err)
		}
		want, err := readAll(t, plain)
		if err != nil {
			t.Fatal(err)
		}
		if len(want) != 2 {
			t.Fatal(want)
		}
		// The name does not matter, and neither does the number of members.
		half := len(input) / 2
		for _, packed := range [][]byte{
			compress(t, input),
			compress(t, "\ufeff"+input),
			append(compress(t, input[:half]), compress(t, input[half:])...),
		} {
			r, err := NewReader(bytes.NewReader(packed), "plain."+string(format), schema, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := readAll(t, r); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %v, %v", format, got, err)
			}
			if r.BytesRead() != int64(len(packed)) {
				t.Errorf("%s: read %d of %d bytes", format, r.BytesRead(), len(packed))
			}
		}
	}
}

func TestDamagedGzip(t *testing.T) {
	schema := parseSchema(t, "{name: n, kind: documents}")
	var text strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&text, "line %d\n", i*i)
	}
	packed := compress(t, text.String())
	options := Options{Format: Text}
	read := func(packed []byte) ([]string, error) {
		r, err := NewReader(bytes.NewReader(packed), "input", schema, options)
		if err != nil {
			return nil, err
		}
		return readAll(t, r)
	}
	got, err := read(packed[:len(packed)/2])
	if err == nil || !strings.Contains(err.Error(), "truncated") || !strings.Contains(err.Error(), fmt.Sprintf("input: line %d:", len(got)+1)) {
		t.Errorf("truncated after %d records: %v", len(got), err)
	}
	broken := bytes.Clone(packed)
	broken[len(broken)-6] ^= 1 // the checksum
	if _, err := read(broken); !errors.Is(err, gzip.ErrChecksum) {
		t.Errorf("checksum: %v", err)
	}
	if _, err := read(packed[:5]); err == nil || !strings.Contains(err.Error(), "gzip header") {
		t.Errorf("header: %v", err)
	}
	if _, err := read(append(bytes.Clone(packed), "junk"...)); !errors.Is(err, gzip.ErrHeader) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("trailing junk: %v", err)
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "people.csv")
	const input = "age,city,tags,note,junk\n1,a,,,\n"
	if err := os.WriteFile(path, []byte(input), 0o600); err != nil {
		t.Fatal(err)
	}
	schema := parseSchema(t, people)
	r, err := Open(path, schema, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := readAll(t, r); err != nil || len(got) != 1 {
		t.Error(got, err)
	}
	if r.Size() != int64(len(input)) || r.BytesRead() != r.Size() {
		t.Errorf("read %d of %d bytes, the file has %d", r.BytesRead(), r.Size(), len(input))
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Open(filepath.Join(dir, "none.csv"), schema, Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Open(dir, schema, Options{Format: CSV}); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Error(err)
	}
}

// failing fails after some bytes.
type failing struct{ r io.Reader }

var errDisk = errors.New("disk on fire")

func (f failing) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err == io.EOF {
		err = errDisk
	}
	return n, err
}

func TestReadErrorIsNotSkippable(t *testing.T) {
	schema := parseSchema(t, "{name: n, kind: rows, columns: [{name: a, type: category}]}")
	for format, input := range map[Format]string{CSV: "a\nx\ny", TSV: "a\nx\ny", JSONL: "\n{}\n{}", Text: "u\nx\ny"} {
		r, err := NewReader(failing{strings.NewReader(input)}, "input", schema, Options{Format: format})
		if err != nil {
			t.Fatal(err)
		}
		_, err = readAll(t, r)
		if !errors.Is(err, errDisk) || !strings.Contains(err.Error(), "input: line ") {
			t.Errorf("%s: %v", format, err)
		}
	}
}

// Next reuses the memory of a record, but what a caller kept of it stays.
func TestRecordStringsStay(t *testing.T) {
	s := parseSchema(t, people)
	for format, input := range map[Format]string{
		CSV:   "age,city,tags,note,junk\n1,aaaa,b;c,dddd,\n2,eeee,f;g,hhhh,\n",
		TSV:   "age\tcity\ttags\tnote\tjunk\n1\taaaa\tb;c\tdddd\t\n2\teeee\tf;g\thhhh\t\n",
		JSONL: `{"age":1,"city":"aaaa","tags":"b;c","note":"dddd"}` + "\n" + `{"age":2,"city":"eeee","tags":["f","g"],"note":"hhhh"}`,
	} {
		r, err := NewReader(strings.NewReader(input), "input", s, Options{Format: format})
		if err != nil {
			t.Fatal(err)
		}
		var rec schema.Record
		if err := r.Next(&rec); err != nil {
			t.Fatal(err)
		}
		before := render(&rec)
		var kept schema.Record
		kept.Line = rec.Line
		for _, cell := range rec.Cells {
			kept.Cells = append(kept.Cells, schema.Cell{Values: slices.Clone(cell.Values), JSON: cell.JSON})
		}
		if err := r.Next(&rec); err != nil {
			t.Fatal(err)
		}
		if after := render(&kept); after != before {
			t.Errorf("%s: %s became %s", format, before, after)
		}
	}
}
