package dates

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestParse compares with times that were not read from text.
func TestParse(t *testing.T) {
	at := func(y, mo, d, h, mi, s, us int) float64 {
		return float64(time.Date(y, time.Month(mo), d, h, mi, s, us*1000, time.UTC).UnixMicro())
	}
	below := func(v float64) float64 { return math.Nextafter(v, math.Inf(-1)) }
	end := at(10_000, 1, 1, 0, 0, 0, 0)
	for text, want := range map[string]Span{
		"1970-01-01":                   {0, below(86_400e6)},
		"2024-02":                      {at(2024, 2, 1, 0, 0, 0, 0), below(at(2024, 3, 1, 0, 0, 0, 0))},
		"2024":                         {at(2024, 1, 1, 0, 0, 0, 0), below(at(2025, 1, 1, 0, 0, 0, 0))},
		" 2024-02-29T23:59:59Z ":       {at(2024, 2, 29, 23, 59, 59, 0), at(2024, 2, 29, 23, 59, 59, 0)},
		"2024-02-29 10:30":             {at(2024, 2, 29, 10, 30, 0, 0), at(2024, 2, 29, 10, 30, 0, 0)},
		"2024-02-29t10:30:15.25z":      {at(2024, 2, 29, 10, 30, 15, 250_000), at(2024, 2, 29, 10, 30, 15, 250_000)},
		"2024-02-29T10:30:15,000001":   {at(2024, 2, 29, 10, 30, 15, 1), at(2024, 2, 29, 10, 30, 15, 1)},
		"2024-02-29T10:30:15.0000019":  {at(2024, 2, 29, 10, 30, 15, 1), at(2024, 2, 29, 10, 30, 15, 1)},
		"1969-12-31T23:59:59.9999999Z": {-1, -1},
		"2024-03-01T00:30:00+02:00":    {at(2024, 2, 29, 22, 30, 0, 0), at(2024, 2, 29, 22, 30, 0, 0)},
		"2024-02-29T22:30-0330":        {at(2024, 3, 1, 2, 0, 0, 0), at(2024, 3, 1, 2, 0, 0, 0)},
		"2024-02-29T22:30+05":          {at(2024, 2, 29, 17, 30, 0, 0), at(2024, 2, 29, 17, 30, 0, 0)},
		"9999-12-31T23:59:59.999Z":     {at(9999, 12, 31, 23, 59, 59, 999_000), at(9999, 12, 31, 23, 59, 59, 999_000)},
		"9999-12-31T23:59:59.999999Z":  {below(end), below(end)},
		"9999-12-31T23:59:59.99999Z":   {below(end), below(end)},
		"9999-12-31T23:59:59.99995Z":   {below(below(end)), below(below(end))},
		"9999-12-31":                   {at(9999, 12, 31, 0, 0, 0, 0), below(end)},
		"9999-12-31T22:30-01:29":       {at(9999, 12, 31, 23, 59, 0, 0), at(9999, 12, 31, 23, 59, 0, 0)},
		"0000-01-01":                   {at(0, 1, 1, 0, 0, 0, 0), below(at(0, 1, 2, 0, 0, 0, 0))},
	} {
		if got, ok := Parse(text); !ok || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "today", "24-05-17", "2024-5-17", "2024-02-30", "2023-02-29", "2024-13", "20240517", "2024-W20", "2024-05-17T", "2024-05-17T10", "2024-05T10:30",
		"2024-05-17T24:00", "2024-05-17T10:60", "2024-05-17T10:30:60", "2024-05-17T10:30:", "2024-05-17T10:30:15.", "2024-05-17T10:30.5", "2024-05-17T10:30:15.x",
		"2024-05-17T10:30+", "2024-05-17T10:30+2", "2024-05-17T10:30+24:00", "2024-05-17T10:30+02:60", "2024-05-17T10:30+02:0", "2024-05-17T10:30+2:000", "2024-05-17T10:30+020:0", "2024-05-17T10:30ZZ",
		"2024-05-17T1:30", "+2024-05-17", "2024-05-17T-1:30", "2024-05-17T10:30:15Z+01:00", "12024-05-17", "2024-05-17 10:30 PM",
		"9999-12-31T23:00-01:00", "9999-12-31T23:59:59.9-23:59", "0000-01-01T00:59+01:00", // of the years 10000 and -1
	} {
		if got, ok := Parse(text); ok {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

// TestOrder: times keep their order, whatever zone they are written in, and come back as they went in.
func TestOrder(t *testing.T) {
	r := seeded.Rand(t)
	for range 20_000 {
		a := time.UnixMicro(r.Int64N(8e15) - 2e15).UTC() // 1906 to 2160
		b := a.Add(time.Duration(r.Int64N(2e6)-1e6) * time.Microsecond)
		write := func(t time.Time) float64 {
			zone := time.FixedZone("", (r.IntN(96)-48)*900)
			s, ok := Parse(t.In(zone).Format("2006-01-02T15:04:05.000000-07:00"))
			if !ok || s.Low != s.High {
				panic(fmt.Sprint(t.In(zone), s, ok))
			}
			return s.Low
		}
		if x, y := write(a), write(b); (x < y) != a.Before(b) || (x == y) != a.Equal(b) {
			t.Fatalf("%v and %v: %v and %v", a, b, x, y)
		}
		if s, ok := Parse(Format(write(a))); !ok || s.Low != float64(a.UnixMicro()) {
			t.Fatalf("%v comes back as %v", a, s)
		}
	}
}

// FuzzParse: whatever is read is a span of numbers that can be written, and read again as what it was.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"2024-05-17T10:30:15.25+02:00", "2024", "0000-01-01", "9999-12-31 23:59", "2024-05-17t10:30z"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, ok := Parse(text)
		if !ok {
			return
		}
		if !(s.Low <= s.High) || math.IsInf(s.High, 0) {
			t.Fatalf("%q: %v", text, s)
		}
		if again, ok := Parse(Format(s.Low)); !ok || again.Low != s.Low {
			t.Errorf("%q is written as %s and read as %v", text, Format(s.Low), again)
		}
	})
}
