package figure

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
)

// TestDraw: the file is XML with the names of curves, axes and marks.
func TestDraw(t *testing.T) {
	f := Figure{
		Title: "two curves", X: Axis{Name: "threshold", Most: 1, Step: .1}, Y: Axis{Name: "share", Most: 1, Step: .2},
		Curves: []Curve{{"precision", []float64{0, .5, 1}, []float64{.1, .8, 1}}, {"recall", []float64{0, .5, 1}, []float64{1, .6, 0}}},
		Marks:  []Mark{{.5, .7, "best"}},
	}
	path := filepath.Join(t.TempDir(), "f.svg")
	if err := f.Draw(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, word := range []string{"two curves", "threshold", "precision", "recall", "best", "0.8"} {
		if !strings.Contains(string(text), word) {
			t.Errorf("the file lacks %q", word)
		}
	}
	if err := f.Draw(filepath.Join(path, "none")); err == nil {
		t.Error("a file within a file is drawn")
	}
}

// TestLetters: a curve is no wider than the page, and as wide as its points where there is room.
func TestLetters(t *testing.T) {
	var b bytes.Buffer
	Letters(&table.Page{Writer: &b}, "m against s", 2, []float64{0, .5, 1}, []float64{1, .5, 0})
	if text := b.String(); !strings.Contains(text, "m against s") || !strings.Contains(text, "1.00") {
		t.Error(text)
	}
	long := make([]float64, 99)
	for i := range long {
		long[i] = float64(i * 10)
	}
	for _, width := range []int{12, 40, 80, 120, 0} {
		b.Reset()
		Letters(&table.Page{Writer: &b, Width: width}, "a caption of some words", 0, long)
		wide := 0
		for line := range strings.Lines(b.String()) {
			wide = max(wide, table.Width(strings.TrimSuffix(line, "\n")))
		}
		if fits := width == 0 || wide <= width; !fits || width == 80 && wide < 70 || width == 0 && wide < 99 {
			t.Errorf("at %d cells the widest line has %d:\n%s", width, wide, b.String())
		}
	}
}
