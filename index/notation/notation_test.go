package notation

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/index/dates"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestNumber: what each notation takes, and what it refuses because it would mean something else.
func TestNumber(t *testing.T) {
	for _, c := range []struct{ notation, text, want string }{
		{"1,234.5", "$399.00", "399.00"},
		{"1,234.5", "$1,234,567.89", "1234567.89"},
		{"1,234.5", "12,34,567", "1234567"}, // India
		{"1,234.5", "-$5", "-5"},
		{"1,234.5", "$-5", "-5"},
		{"1,234.5", "(1,200)", "-1200"},
		{"1,234.5", "USD 7.5", "7.5"},
		{"1,234.5", "7.5 USD", "7.5"},
		{"1,234.5", "45 %", "45"},
		{"1,234.5", ".5", "0.5"},
		{"1,234.5", "+3", "3"},
		{"1,234.5", "−3", "-3"},
		{"1.234,5", "1.234.567,89 €", "1234567.89"},
		{"1.234,5", "€ 12,50", "12.50"},
		{"1 234,5", "1\u202f234,5\u00a0€", "1234.5"},
		{"1'234.5", "CHF 1’234.50", "1234.50"},
		{"1234,5", "12,5", "12.5"},
		{"1234.5", "12.5%", "12.5"},

		{"1,234.5", "1,23", ""},  // decimals, or a mistake
		{"1,234.5", "1.5.2", ""}, // a version
		{"1,234.5", "12,345,6", ""},
		{"1,234.5", "1234,567", ""},
		{"1,234.5", ",234", ""},
		{"1,234.5", "5.", ""},
		{"1,234.5", "$", ""},
		{"1,234.5", "$5€", ""},
		{"1,234.5", "(5", ""},
		{"1,234.5", "--5", ""},
		{"1,234.5", "1e5", ""},
		{"1,234.5", "12 34", ""},
		{"1,234.5", "", ""},
		{"1,234.5", "call", ""},
		{"1,234.5", "٣", ""},
		{"1234,5", "1.234,5", ""},
		{"1234.5", "1,234", ""},
	} {
		read, err := Number(c.notation)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := read(c.text); got != c.want || ok != (c.want != "") {
			t.Errorf("%q as %s: %q %v, want %q", c.text, c.notation, got, ok, c.want)
		}
	}
	if _, err := Number("1_000"); err == nil || !strings.Contains(err.Error(), "1.234,5") {
		t.Errorf("an unknown notation: %v", err)
	}
}

// TestNumbersWritten writes random numbers in each notation and reads them back.
func TestNumbersWritten(t *testing.T) {
	rng := seeded.Rand(t)
	for _, n := range numbers {
		read, err := Number(n.example)
		if err != nil {
			t.Fatal(err)
		}
		for range 2000 {
			v := math.Round(rng.NormFloat64()*math.Pow(10, float64(rng.IntN(9)))*100) / 100
			plain := strconv.FormatFloat(math.Abs(v), 'f', 2, 64)
			whole, decimals, _ := strings.Cut(plain, ".")
			var b strings.Builder
			for i, c := range whole {
				if i > 0 && (len(whole)-i)%3 == 0 && n.group != "" {
					b.WriteRune([]rune(n.group)[rng.IntN(len([]rune(n.group)))])
				}
				b.WriteRune(c)
			}
			text := []string{"", "$ ", "EUR ", "¥"}[rng.IntN(4)] + b.String() + string(n.decimal) + decimals
			if math.Signbit(v) {
				text = "-" + text
			}
			got, ok := read(text)
			if f, err := strconv.ParseFloat(got, 64); !ok || err != nil || f != v {
				t.Fatalf("%q as %s: %q, want %v", text, n.example, got, v)
			}
		}
	}
}

// TestDate: patterns, and what each makes of texts.
func TestDate(t *testing.T) {
	for _, c := range []struct{ pattern, text, want string }{
		{"DD.MM.YYYY", "3.4.2024", "2024-04-03"},
		{"DD.MM.YYYY", "03.04.2024", "2024-04-03"},
		{"MM/DD/YYYY", "03/04/2024", "2024-03-04"},
		{"MM/DD/YY", "3/4/99", "1999-03-04"},
		{"D MMM YYYY", "17 May 2024", "2024-05-17"},
		{"MMMM D, YYYY", "May  17, 2024", "2024-05-17"},
		{"MM/DD/YYYY h:mm AM", "12/31/2024 11:05 PM", "2024-12-31T23:05:00Z"},
		{"YYYY-MM-DDThh:mm:ssZZ", "2024-05-17T10:30:15+0200", "2024-05-17T10:30:15+02:00"},
		{"DD/MM/YYYY hh:mm:ss", "17/05/2024 10:30:15", "2024-05-17T10:30:15Z"},
		{"MM/YYYY", "05/2024", "2024-05"},
		{"YYYYMMDD", "20240517", "2024-05-17"},
		{"unix", "0", "1970-01-01T00:00:00Z"},
		{"unix", "1715941815.25", "2024-05-17T10:30:15.25Z"},
		{"unix-ms", "1715941815250", "2024-05-17T10:30:15.25Z"},

		{"DD.MM.YYYY", "31.02.2024", ""},
		{"DD.MM.YYYY", "2024-04-03", ""},
		{"DD.MM.YYYY", "3.13.2024", ""},
		{"YYYY-MM-DDThh:mm:ssZZ", "9999-12-31T23:59:59-0100", ""},
		{"unix", "1e300", ""},
		{"unix", "NaN", ""},
		{"unix", "soon", ""},
	} {
		read, err := Date(c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		got, ok := read(c.text)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%q as %s: %q %v, want %q", c.text, c.pattern, got, ok, c.want)
		}
		if _, parsed := dates.Parse(got); ok != parsed {
			t.Errorf("%q as %s is %q, which is no date", c.text, c.pattern, got)
		}
	}
	for _, pattern := range []string{"", "DD.MM", "YYYY", "2006-01-02", "DD.MM.YYYY DD", "h:mm YYYY-MM-DD", "YYYY-MM-DD mm", "YYYY MM hh", "Jan 2 YYYY MM"} {
		if _, err := Date(pattern); err == nil {
			t.Errorf("%q is taken for a pattern of dates", pattern)
		}
	}
}

// TestDatesWritten writes random days as each of some patterns and reads them back.
func TestDatesWritten(t *testing.T) {
	rng := seeded.Rand(t)
	for pattern, write := range map[string]string{
		"DD.MM.YYYY": "02.01.2006", "MM/DD/YYYY": "1/2/2006", "YYYYMMDD": "20060102", "D MMM YYYY": "2 Jan 2006", "MMMM D, YYYY": "January 2, 2006",
	} {
		read, err := Date(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for range 500 {
			day := time.Unix(rng.Int64N(4e9), 0).UTC()
			if got, ok := read(day.Format(write)); !ok || got != day.Format(time.DateOnly) {
				t.Fatalf("%s as %s: %q", day.Format(write), pattern, got)
			}
		}
	}
}

// FuzzRead: whatever the text, what is read is a number, or a date.
func FuzzRead(f *testing.F) {
	f.Add("$1,234.5", uint8(1), "DD.MM.YYYY")
	f.Add("17 May 2024", uint8(3), "D MMM YYYY")
	f.Fuzz(func(t *testing.T, text string, notation uint8, pattern string) {
		read, err := Number(numbers[int(notation)%len(numbers)].example)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := read(text); ok {
			if v, err := strconv.ParseFloat(got, 64); err != nil && !math.IsInf(v, 0) {
				t.Errorf("%q is read as %q", text, got)
			}
		}
		read, err = Date(pattern)
		if err != nil {
			return
		}
		if got, ok := read(text); ok {
			if _, ok := dates.Parse(got); !ok {
				t.Errorf("%q as %q is read as %q", text, pattern, got)
			}
		}
	})
}

func ExampleNumber() {
	read, _ := Number("1.234,5")
	fmt.Println(read("1.234.567,89 €"))
	// Output: 1234567.89 true
}
