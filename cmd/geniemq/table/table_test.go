package table

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

func printed(t *Table, width int) string {
	var out bytes.Buffer
	t.Print(&Page{Writer: &out, Width: width})
	return out.String()
}

func people() *Table {
	t := New(Text("key").Kept(), Number("age"), Text("name"), Text("city"), Text("remark"))
	t.Row("a1", 7, "Zoë", "東京都千代田区", "short")
	t.Row("b22", 1234, "e\u0301clair", "👩‍👩‍👧‍👦 and 🇫🇷", "a remark that takes a good deal more room than the others do")
	return t.Row("c", 3.25, "bell\arings\x1b[2J", nil, "two\nlines")
}

// TestPrint: numbers are right, texts left, and what is wide, combined or joined takes the cells that a terminal gives it.
func TestPrint(t *testing.T) {
	for width, want := range map[int]string{
		0: `
key   age  name            city            remark
a1      7  Zoë             東京都千代田区  short
b22  1234  éclair          👩‍👩‍👧‍👦 and 🇫🇷       a remark that takes a good deal more room than the others do
c    3.25  bell␇rings␛[2J                  two␊lines
`,
		60: `
key   age  name            city            remark
a1      7  Zoë             東京都千代田区  short
b22  1234  éclair          👩‍👩‍👧‍👦 and 🇫🇷       a remark that ta…
c    3.25  bell␇rings␛[2J                  two␊lines
`,
		40: `
key   age  name           city
a1      7  Zoë            東京都千代田…
b22  1234  éclair         👩‍👩‍👧‍👦 and 🇫🇷
c    3.25  bell␇rings␛[…
not shown for lack of room: remark
`,
		12: `
key   age
a1      7
b22  1234
c    3.25
not shown f…
`,
	} {
		got := printed(people(), width)
		for line := range strings.Lines(got) {
			if w := Width(strings.TrimSuffix(line, "\n")); width > 0 && w > width {
				t.Errorf("at %d cells a line has %d: %q", width, w, line)
			}
		}
		if got != want[1:] {
			t.Errorf("at %d cells:\n%s\nwant:%s", width, got, want)
		}
	}
}

// TestFits: whatever the cells hold, lines of texts are no wider than the page, columns stand under each other, and nothing commands the terminal.
func TestFits(t *testing.T) {
	rng := seeded.Rand(t)
	for range 300 {
		columns := []Column{Text("key").Kept()}
		for range rng.IntN(8) {
			column := Text(anyText(rng))
			if rng.IntN(3) == 0 {
				column = column.Wrapped()
			}
			columns = append(columns, column)
		}
		made := New(columns...)
		made.Indent = rng.IntN(3)
		for range 1 + rng.IntN(6) {
			var row []any
			for range columns {
				row = append(row, anyText(rng))
			}
			made.Row(row...)
		}
		width := 5 + rng.IntN(200)
		text := printed(made, width)
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if Width(line) > width {
				t.Fatalf("at %d cells a line has %d: %q of\n%s", width, Width(line), line, text)
			}
			for _, r := range line {
				if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
					t.Fatalf("%q of %q commands the terminal", r, line)
				}
			}
		}
	}
}

var pieces = []string{"a", "word", " ", "\x1b[31m", "\u009b2J", "\r", "\t", "東", "한국어", "👍🏽", "👩‍👩‍👧‍👦", "é", "e\u0301", "\u202e", "\u2066", "\xff", "\u200b", "🇩🇪", "ไทย", "عربى", "\u00ad", "\ufeff", "﷽"}

func anyText(rng *rand.Rand) string {
	var text strings.Builder
	for range rng.IntN(20) {
		text.WriteString(pieces[rng.IntN(len(pieces))])
	}
	return text.String()
}

// TestWrapped: what is too long for its column, or a line for the page, goes on below with nothing lost, and breaks neither dates nor names at hyphens.
func TestWrapped(t *testing.T) {
	made := New(Text("key"), Number("n"), Text("said").Wrapped()).Row("a", 1, "a 2024-05-17 2024-08-15 and 赤い靴東京 after").Row("b", 22, "short").Row("c", 3, strings.Repeat("x", 30))
	want := `
key   n  said
a     1  a 2024-05-17
         2024-08-15 and
         赤い靴東京 after
b    22  short
c     3  xxxxxxxxxxxxxxxxxxx
         xxxxxxxxxxx
`
	if got := printed(made, 28); got != want[1:] {
		t.Errorf("%s\nwant%s", got, want)
	}
	var out bytes.Buffer
	page := &Page{Writer: &out, Width: 28}
	page.Say("  in the order of count; 123351 postings\n\n%s\n", "a\x1b[2Jb\nc")
	page.Copy("geniemq serve --index a=a.gmq --index b=b.gmq")
	want = `
  in the order of count;
    123351 postings

a␛[2Jb␊c
geniemq serve --index a=a.gmq --index b=b.gmq
`
	if out.String() != want[1:] {
		t.Errorf("%s\nwant%s", out.String(), want)
	}
}

// TestJSON: what is valid JSON in one line or more commands no terminal.
func TestJSON(t *testing.T) {
	var out bytes.Buffer
	page := &Page{Writer: &out}
	if err := page.JSON(map[string]string{"a<b": "\x7f\u009b2J\x1b"}, ""); err != nil {
		t.Fatal(err)
	}
	if err := page.JSON([]int{1}, "  "); err != nil {
		t.Fatal(err)
	}
	if want := `{"a<b":"\u007f\u009b2J\u001b"}` + "\n[\n  1\n]\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// TestColour: only a page with colours has escape sequences.
func TestColour(t *testing.T) {
	var out bytes.Buffer
	people().Print(&Page{Writer: &out, Width: 80, Colour: true})
	if !strings.Contains(out.String(), "\x1b[1m") {
		t.Errorf("no colour: %q", out.String())
	}
	if text := printed(people(), 80); strings.Contains(text, "\x1b") {
		t.Errorf("colour that nobody wants: %q", text)
	}
}

// FuzzClean: what is clean is one line of valid text without commands, and stays as it is when it is cleaned again; JSON means the same.
func FuzzClean(f *testing.F) {
	for _, p := range pieces {
		f.Add(p)
	}
	f.Add("\xfe\x89\x80$Iu\ufe0fm") // a wide u
	f.Fuzz(func(t *testing.T, text string) {
		clean := Clean(text)
		if Clean(clean) != clean || strings.ContainsFunc(clean, unicode.IsControl) || strings.ToValidUTF8(clean, "") != clean {
			t.Errorf("%q becomes %q", text, clean)
		}
		if cut := Cut(clean, 5); Width(cut) > 5 {
			t.Errorf("%q has %d cells", cut, Width(cut))
		}
		for _, line := range wrapped(clean, 5) {
			if Width(line) > 5 {
				t.Errorf("%q has %d cells", line, Width(line))
			}
		}
		encoded, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		escaped := EscapeJSON(encoded)
		var before, after any
		if json.Unmarshal(encoded, &before) != nil || json.Unmarshal(escaped, &after) != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("%s becomes %s", encoded, escaped)
		}
		if strings.ContainsFunc(string(escaped), unicode.IsControl) {
			t.Errorf("%q has control characters", escaped)
		}
	})
}
