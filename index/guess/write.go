package guess

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/geniemq/geniemq/index/schema"
)

func (g *Guess) note(format string, args ...any) {
	g.Notes = append(g.Notes, fmt.Sprintf(format, args...))
}
func (g *Guess) doubt(format string, args ...any) {
	g.Doubts = append(g.Doubts, fmt.Sprintf(format, args...))
}

// YAML is the schema as a person reads it: each column with what speaks for it.
func (g *Guess) YAML() ([]byte, error) {
	var b bytes.Buffer
	for _, note := range g.Notes {
		fmt.Fprintf(&b, "# %s\n", oneLine(note))
	}
	for _, doubt := range g.Doubts {
		fmt.Fprintf(&b, "# unsure: %s\n", oneLine(doubt))
	}
	line := func(name string, value any) error {
		text, err := flow(value)
		fmt.Fprintf(&b, "%s: %s\n", name, text)
		return err
	}
	err := line("name", g.Name)
	if g.Kind != schema.Records && err == nil {
		err = line("kind", string(g.Kind))
	}
	if g.Key != "" && err == nil {
		err = line("key", g.Key)
	}
	if g.Input != (schema.Input{}) && err == nil {
		err = line("input", g.Input)
	}
	if g.Header != nil && !*g.Header && err == nil {
		err = line("header", false)
	}
	if len(g.Missing) > 1 && err == nil {
		err = line("missing", g.Missing)
	}
	if g.Rescore != nil && err == nil {
		err = line("rescore", g.Rescore)
	}
	if !g.Text && err == nil {
		err = g.columns(&b)
	}
	if err != nil {
		return nil, fmt.Errorf("write the proposed schema: %w", err)
	}
	return b.Bytes(), nil
}

// columns writes the columns, and after each why.
func (g *Guess) columns(b *bytes.Buffer) error {
	const widest = 72 // of what comments stand beside
	var texts, comments []string
	width := 0
	for i := range g.Columns {
		c := &g.Columns[i]
		if !c.Known {
			continue
		}
		text, err := flow(c.Column)
		if err != nil {
			return err
		}
		comment := c.Why
		if c.Unsure != "" {
			comment += "; unsure: " + c.Unsure
		}
		texts, comments = append(texts, "  - "+text), append(comments, oneLine(comment))
		if n := utf8.RuneCountInString(texts[len(texts)-1]); n <= widest {
			width = max(width, n)
		}
	}
	b.WriteString("columns:\n")
	for i, text := range texts {
		if comments[i] == "" {
			fmt.Fprintln(b, text)
			continue
		}
		pad := max(0, width-utf8.RuneCountInString(text))
		fmt.Fprintf(b, "%s%s  # %s\n", text, strings.Repeat(" ", pad), comments[i])
	}
	return nil
}

// oneLine is a text as it can stand in a comment, where YAML takes no control characters, and a terminal would obey them.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r != ' ' && !unicode.IsGraphic(r) {
			return '·'
		}
		return r
	}, strings.Join(strings.Fields(text), " "))
}

// flow writes a value on one line.
func flow(value any) (string, error) {
	var node yaml.Node
	if err := node.Encode(value); err != nil {
		return "", err
	}
	flowing(&node)
	text, err := yaml.Marshal(&node)
	return strings.TrimSuffix(string(text), "\n"), err
}

func flowing(n *yaml.Node) {
	n.Style |= yaml.FlowStyle
	for _, child := range n.Content {
		flowing(child)
	}
}
