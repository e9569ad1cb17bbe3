// Package table writes tables for people: fitted to the terminal, measured as terminals show text, and free of whatever in data would
// command one.
package table

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/charmbracelet/colorprofile"
	"golang.org/x/term"
)

// Page is what tables are written to: an output, how wide it is, and whether it shows colours.
type Page struct {
	io.Writer
	Width  int // in cells; 0: as wide as it takes
	Colour bool
}

// On is the page of an output. A terminal has its width, and colours unless NO_COLOR or TERM=dumb say otherwise; anything else has neither, so
// that what goes into a pipe does not depend on who looks.
func On(out io.Writer) *Page {
	p := &Page{Writer: out}
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return p
	}
	if width, _, err := term.GetSize(int(file.Fd())); err == nil {
		p.Width = width
	}
	p.Colour = colorprofile.Detect(file, os.Environ()) >= colorprofile.ANSI
	return p
}

// To is the same page, written to another writer in front of it.
func (p *Page) To(out io.Writer) *Page { return &Page{out, p.Width, p.Colour} }

// Terminal says whether a person looks.
func (p *Page) Terminal() bool { return p.Width > 0 }

// Say writes words around texts of data, which command nothing. Lines end where the format ends them.
func (p *Page) Say(format string, args ...any) {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = Clean(text)
		}
	}
	fmt.Fprintf(p, format, args...)
}

// EscapeJSON writes what of a JSON text could command a terminal as \u escapes: DEL, and the control characters U+0080 to U+009F, which JSON allows in
// strings. The text means the same.
func EscapeJSON(text []byte) []byte {
	const hex = "0123456789abcdef"
	if bytes.IndexByte(text, 0x7f) < 0 && bytes.IndexByte(text, 0xc2) < 0 {
		return text
	}
	out := make([]byte, 0, len(text)+16)
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == 0xc2 && i+1 < len(text) && text[i+1] >= 0x80 && text[i+1] <= 0x9f {
			i++
			c = text[i]
		} else if c != 0x7f {
			out = append(out, c)
			continue
		}
		out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
	}
	return out
}
