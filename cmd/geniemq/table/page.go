// Package table writes tables for people: fitted to the terminal, measured as terminals show text, and free of whatever in data would
// command one.
package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

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

// Say writes whole lines of words around texts of data, which command nothing. Lines end where the format ends them; those that the page is too narrow for go
// on below, further in than they began.
func (p *Page) Say(format string, args ...any) {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = Clean(text)
		}
	}
	for line := range strings.Lines(fmt.Sprintf(format, args...)) {
		text := strings.TrimSuffix(line, "\n")
		if p.Width > 0 && Width(text) > p.Width {
			words := strings.TrimLeft(text, " ")
			in := min(len(text)-len(words), p.Width/2)
			text = strings.Repeat(" ", in) + strings.Join(wrapped(words, p.Width-in-gap), "\n"+strings.Repeat(" ", in+gap))
		}
		fmt.Fprint(p, text, line[len(strings.TrimSuffix(line, "\n")):])
	}
}

// Flow is a text of paragraphs, filled anew where one has a line that is too wide. Lines that begin with blanks, such as commands, stay as they are.
func Flow(text string, width int) string {
	var out, paragraph []string
	end := func() {
		if slices.ContainsFunc(paragraph, func(line string) bool { return Width(line) > width }) {
			paragraph = wrapped(strings.Join(paragraph, " "), width)
		}
		out, paragraph = append(out, paragraph...), nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || line[0] == ' ' {
			end()
			out = append(out, line)
			continue
		}
		paragraph = append(paragraph, line)
	}
	end()
	return strings.Join(out, "\n")
}

// Copy writes a text of data in one line, however long: a person takes it from the terminal as it is.
func (p *Page) Copy(text string) { fmt.Fprintln(p, Clean(text)) }

// JSON writes a value as JSON in one line, or, with an indent, in lines that begin with it.
func (p *Page) JSON(v any, indent string) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", indent)
	encoder.SetEscapeHTML(false) // no page of a browser
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := p.Write(EscapeJSON(text.Bytes()))
	return err
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
