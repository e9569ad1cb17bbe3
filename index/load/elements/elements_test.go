package elements

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

func TestLines(t *testing.T) {
	for _, c := range []struct {
		in, out string
		err     error
	}{
		{"", "", nil},
		{" \n", " \n", nil},
		{"{\"a\":1}\n{\"a\":2}\n", "{\"a\":1}\n{\"a\":2}\n", nil},
		{"[]", "", nil},
		{" [\n]\n", "", nil},
		{`[{"a":1},{"a":[2,{"b":"],"}]}]`, "{\"a\":1}\n{\"a\":[2,{\"b\":\"],\"}]}\n", nil},
		{"\n[\r\n{\"a\":\n1} , \"x\\\"]\",\n3\n]\n\n", "{\"a\": 1} \n\"x\\\"]\"\n3 \n", nil},
		{`[{"a":1}`, `{"a":1}`, ErrOpen},
		{`[{"a":1},`, "{\"a\":1}\n", ErrOpen},
		{`["a`, `"a`, ErrOpen},
		{`[`, "", ErrOpen},
		{`[1,]`, "1\n", ErrEmpty},
		{`[,1]`, "", ErrEmpty},
		{`[1,,2]`, "1\n", ErrEmpty},
		{`[1] x`, "1\n", ErrAfter},
		{`[1][2]`, "1\n", ErrAfter},
		{`[}]`, "}\n", nil},
	} {
		for name, in := range map[string]io.Reader{"at once": strings.NewReader(c.in), "byte by byte": iotest.OneByteReader(strings.NewReader(c.in))} {
			out, err := io.ReadAll(Lines(in))
			if string(out) != c.out || !errors.Is(err, c.err) {
				t.Errorf("%q %s: %q %v, not %q %v", c.in, name, out, err, c.out, c.err)
			}
		}
	}
	broken := errors.New("broken")
	if _, err := io.ReadAll(Lines(io.MultiReader(strings.NewReader("[1,"), iotest.ErrReader(broken)))); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// TestArrays: an array is as many lines as elements, each of them the element, however it is written and read.
func TestArrays(t *testing.T) {
	r := seeded.Rand(t)
	for range 500 {
		values := []any{}
		for range r.IntN(6) {
			values = append(values, []any{1.5, "a\n]\\\"", map[string]any{"k": []any{"x", 1.0}, "l\"": nil}, []any{}, true}[r.IntN(5)])
		}
		text, err := json.MarshalIndent(values, "", strings.Repeat(" ", r.IntN(3)))
		if err != nil {
			t.Fatal(err)
		}
		out, err := io.ReadAll(Lines(iotest.HalfReader(bytes.NewReader(text))))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(string(out), "\n")
		if lines = lines[:len(lines)-1]; len(lines) != len(values) {
			t.Fatalf("%q are the lines of %s", lines, text)
		}
		for i, line := range lines {
			want, _ := json.Marshal(values[i])
			var compact bytes.Buffer
			if err := json.Compact(&compact, []byte(line)); err != nil || compact.String() != string(want) {
				t.Fatalf("line %d of %s is %q: %v", i, text, line, err)
			}
		}
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte(`[{"a":1}, [2], "x"]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		out, err := io.ReadAll(Lines(bytes.NewReader(text)))
		slow, slowErr := io.ReadAll(Lines(iotest.OneByteReader(bytes.NewReader(text))))
		if !bytes.Equal(out, slow) || !errors.Is(slowErr, err) {
			t.Fatalf("%q %v at once, %q %v byte by byte", out, err, slow, slowErr)
		}
		var values []json.RawMessage
		if json.Unmarshal(text, &values) == nil && values != nil && (err != nil || bytes.Count(out, []byte("\n")) != len(values)) {
			t.Fatalf("%q %v of %d values", out, err, len(values))
		}
	})
}
