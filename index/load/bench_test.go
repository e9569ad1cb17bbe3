package load

import (
	"io"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index/schema"
)

func BenchmarkReader(b *testing.B) {
	s := parseSchema(b, people)
	for _, c := range []struct {
		format       Format
		header, line string
	}{
		{CSV, "age,city,tags,note,junk\n", "39,Bonn,a;b;c,some note of moderate length,junk\n"},
		{TSV, "age\tcity\ttags\tnote\tjunk\n", "39\tBonn\ta;b;c\tsome note of moderate length\tjunk\n"},
		{JSONL, "", `{"age":39,"city":"Bonn","tags":["a","b","c"],"note":"some note of moderate length","junk":1}` + "\n"},
	} {
		b.Run(string(c.format), func(b *testing.B) {
			input := c.header + strings.Repeat(c.line, 10_000)
			b.SetBytes(int64(len(input)))
			b.ReportAllocs()
			var rec schema.Record
			for b.Loop() {
				r, err := NewReader(strings.NewReader(input), "input", s, Options{Format: c.format})
				if err != nil {
					b.Fatal(err)
				}
				for err == nil {
					err = r.Next(&rec)
				}
				if err != io.EOF {
					b.Fatal(err)
				}
			}
		})
	}
}
