// Package measured shows measurements to people.
package measured

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
)

// figure is a field of a measurement.
type figure struct{ name, value string }

// Print writes a measurement, which marshals to a JSON object, as a table of its fields in their order. What is within another field has the names of both.
func Print(p *table.Page, measurement any) error {
	text, err := json.Marshal(measurement)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	figures, err := read(decoder, "", nil)
	if err != nil {
		return err
	}
	t := table.New(table.Text("figure").Kept(), table.Number("value").Kept())
	for _, f := range figures {
		t.Row(f.name, f.value)
	}
	t.Print(p)
	_, err = fmt.Fprintln(p)
	return err
}

// read reads a value and all that is within it.
func read(decoder *json.Decoder, name string, figures []figure) ([]figure, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case json.Delim:
		for i := 0; decoder.More(); i++ {
			within := strconv.Itoa(i + 1)
			if v == '{' {
				key, err := decoder.Token()
				if err != nil {
					return nil, err
				}
				within = fmt.Sprint(key)
			}
			if name != "" {
				within = name + " " + within
			}
			if figures, err = read(decoder, within, figures); err != nil {
				return nil, err
			}
		}
		_, err = decoder.Token() // its end
		return figures, err
	case json.Number:
		return append(figures, figure{name, number(v)}), nil
	case nil:
		return figures, nil
	case string:
		if name == "command" {
			return figures, nil // who reads the table has typed it
		}
	}
	return append(figures, figure{name, fmt.Sprint(token)}), nil
}

// number is a number with as many digits as say something, and its thousands apart.
func number(n json.Number) string {
	v, err := n.Float64()
	if err != nil {
		return n.String()
	}
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if v != float64(int64(v)) {
		digits := 4
		switch {
		case v >= 1000 || v <= -1000:
			digits = 0
		case v >= 1 || v <= -1:
			digits = 2
		}
		text = strconv.FormatFloat(v, 'f', digits, 64)
	}
	whole, rest := text, ""
	if dot := bytes.IndexByte([]byte(text), '.'); dot >= 0 {
		whole, rest = text[:dot], text[dot:]
	}
	for at := len(whole) - 3; at > 0 && whole[at-1] != '-'; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	return whole + rest
}

// Progress writes what is being done to a terminal, in one line that the next one replaces. The zero value, or one without a writer, is silent.
type Progress struct {
	out  *table.Page
	open bool
}

// NewProgress writes to a terminal; to anything else it writes nothing.
func NewProgress(out io.Writer) *Progress {
	if page := table.On(out); page.Terminal() {
		return &Progress{out: page}
	}
	return &Progress{}
}

// Say replaces the line.
func (p *Progress) Say(format string, args ...any) {
	if p.out == nil {
		return
	}
	p.open = true
	fmt.Fprintf(p.out, "\r\x1b[K%s", table.Cut(table.Clean(fmt.Sprintf(format, args...)), p.out.Width-1))
}

// End removes the line, so that something else can be written.
func (p *Progress) End() {
	if p.open {
		p.open = false
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
