package guess

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/index/schema"
)

var numbered = regexp.MustCompile(`^(.*?)[ _-]?(\d+)$`)

const fewestElements = 16 // columns that are taken for one vector

// together finds columns that are one thing: a vector's elements, a place's latitude and longitude. Where the input names none, they stay apart.
func (g *Guess) together() {
	switch {
	case g.Text:
		g.guessLines()
		return
	case g.headerless() && !g.told:
		return
	}
	g.findVectors()
	g.findPoints()
}

// guessLines says what records are that are lines.
func (g *Guess) guessLines() {
	c := &g.Columns[0]
	switch c.Type {
	case schema.SetColumn:
		g.Kind = schema.Sets
		g.note("each line is a set: %s", c.Why)
		g.nameLine("set", "stored, so that hits show what they hold")
	case schema.VectorColumn:
		g.Kind = schema.Vectors
		g.note("each line is a vector: %s", c.Why)
	case schema.TextColumn:
		g.Kind = schema.Documents
		g.note("each line is a text: %s", c.Why)
		g.nameLine("text", "stored, so that hits show it")
		g.Columns[0].IDF = false // counts of documents are words in common
	default:
		g.Kind = schema.Sequences
		g.note("each line is a string, found by what is spelled alike")
	}
}

// nameLine has the one column of lines written into the schema. Without it, nothing would be stored.
func (g *Guess) nameLine(name, why string) {
	c := &g.Columns[0]
	g.Text, c.Name, c.Known, c.Store, c.Why = false, name, true, true, why
}

// findVectors makes one vector of many columns of numbers that are called alike.
func (g *Guess) findVectors() {
	members := make(map[string][]int)
	var order []string
	for i := range g.Columns {
		m := numbered.FindStringSubmatch(g.Columns[i].Name)
		if m == nil || g.Columns[i].Type != schema.NumberColumn {
			continue
		}
		if members[m[1]] == nil {
			order = append(order, m[1])
		}
		members[m[1]] = append(members[m[1]], i)
	}
	for _, prefix := range order {
		of := members[prefix]
		pattern := prefix + "*"
		others := slices.ContainsFunc(g.Columns, func(c Column) bool {
			return strings.HasPrefix(c.Name, prefix) && !slices.ContainsFunc(of, func(i int) bool { return g.Columns[i].Name == c.Name })
		})
		if len(of) < fewestElements || others {
			continue
		}
		c := Column{Known: true, Why: fmt.Sprintf("%d columns of numbers, %s to %s", len(of), g.Columns[of[0]].Name, g.Columns[of[len(of)-1]].Name)}
		name := strings.Trim(strings.ToLower(strings.TrimSpace(prefix)), "_- .")
		if name == "" || slices.ContainsFunc(g.Columns, func(c Column) bool { return c.Name == name }) {
			name = strings.TrimPrefix(name+"_vector", "_")
		}
		c.Name, c.Type, c.From = name, schema.VectorColumn, schema.Names{pattern}
		for _, i := range of {
			g.place(i, "part of "+name)
		}
		g.Columns = append(g.Columns, c)
	}
}

// coordinate finds what a name says of the earth, and what is before that: "start_lat" is the latitude of "start". A path within JSON is none: a column cannot be from paths.
var coordinate = regexp.MustCompile(`(?i)^(?:([^.]+)[_ -])?(?:(lat|latitude)|lon|lng|long|longitude)$`)

// findPoints makes a place of two columns that say so by their names, and may have another in front that they share.
func (g *Guess) findPoints() {
	find := func(latitude bool, of string) int {
		return slices.IndexFunc(g.Columns, func(c Column) bool {
			m := coordinate.FindStringSubmatch(c.Name)
			return m != nil && c.Known && c.Type == schema.NumberColumn && m[1] == of && (m[2] != "") == latitude
		})
	}
	for lat := range len(g.Columns) {
		m := coordinate.FindStringSubmatch(g.Columns[lat].Name)
		if m == nil || find(true, m[1]) != lat {
			continue
		}
		lon, name := find(false, m[1]), cmp.Or(m[1], "where")
		if lon < 0 || slices.ContainsFunc(g.Columns, func(c Column) bool { return c.Name == name }) {
			continue
		}
		c := Column{Known: true, Why: fmt.Sprintf("the place that %s and %s say: found by its distance", g.Columns[lat].Name, g.Columns[lon].Name)}
		c.Name, c.Type, c.From, c.Store = name, schema.PointColumn, schema.Names{g.Columns[lat].Name, g.Columns[lon].Name}, true
		g.Columns = append(g.Columns, c)
	}
}

var keyNames = regexp.MustCompile(`(?i)^(id|key|uuid|guid|sku|isbn|asin|ean|doi|code)$|(_|-| |^)(id|key|uuid|sku|code)$|^id[_A-Z]|Id$`)

// findKey proposes a key: a column that is called as keys are, or the first, whose values are different in all of the file.
func (g *Guess) findKey(s *sample) error {
	if g.Kind != schema.Records || binary(s.opts.Format) {
		return nil
	}
	var candidates []int
	for i := range g.Columns {
		c := &g.Columns[i]
		if c.values == nil || c.values.empty > 0 || len(c.values.texts) == 0 || c.values.nested > 0 || len(c.values.lists) > 0 {
			continue
		}
		if distinct, _ := count(c.values.texts); distinct < len(c.values.texts) {
			continue
		}
		if (keyNames.MatchString(c.Name) || i == 0) && (c.Type != schema.NumberColumn || !strings.ContainsAny(c.values.texts[0], ".,")) {
			candidates = append(candidates, i)
		}
	}
	slices.SortStableFunc(candidates, func(a, b int) int {
		return boolean(keyNames.MatchString(g.Columns[b].Name)) - boolean(keyNames.MatchString(g.Columns[a].Name))
	})
	for _, i := range candidates {
		c := &g.Columns[i]
		called := keyNames.MatchString(c.Name)
		if !called && (c.Type != schema.NumberColumn && c.Type != schema.CategoryColumn || g.Records < fewRecords) {
			continue
		}
		why, err := g.noKey(s, c.Name)
		if err != nil {
			return err
		}
		if why != "" {
			g.note("column %q is no key: %s", c.Name, why)
			continue
		}
		if !called {
			g.doubt("column %q is the first and has no value twice: if it is what you call the objects by, add: key: %[1]s", c.Name)
			return nil
		}
		g.Key = c.Name
		g.note("column %q is the key: no value is empty, none comes twice", c.Name)
		g.place(i, "the key")
		return nil
	}
	return nil
}

// headerless says that columns are found by their places.
func (g *Guess) headerless() bool { return g.Header != nil && !*g.Header }

// place makes a column one that is skipped: in a table without a header its place has to be told.
func (g *Guess) place(column int, why string) {
	c := &g.Columns[column]
	c.Column = schema.Column{Name: c.Name, Type: schema.SkipColumn}
	c.Known, c.Why, c.Unsure = g.headerless(), why, ""
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// noKey reads the whole file and says why a column is no key; "" if it can be one.
func (g *Guess) noKey(s *sample, column string) (why string, err error) {
	described := &schema.Schema{Name: "keys", Input: &g.Input, Header: g.Header, Missing: g.Missing}
	for i := range g.Columns {
		if c := &g.Columns[i]; c.values != nil {
			t := schema.SkipColumn
			if c.Name == column {
				t = schema.CategoryColumn
			}
			described.Columns = append(described.Columns, schema.Column{Name: c.Name, Type: t})
		}
	}
	at := slices.IndexFunc(described.Columns, func(c schema.Column) bool { return c.Name == column })
	r, err := load.Open(s.name, described, load.Options{Format: s.opts.Format})
	if err != nil {
		return "", err
	}
	defer r.Close()
	seed := maphash.MakeSeed()
	seen := make(map[uint64]struct{})
	var rec schema.Record
	for {
		err := r.Next(&rec)
		switch {
		case errors.Is(err, io.EOF):
			return "", nil
		case errors.As(err, new(*load.BadRecord)):
			continue
		case err != nil:
			return "", err
		}
		if len(rec.Cells[at].Values) != 1 {
			return fmt.Sprintf("line %d has no value", rec.Line), nil
		}
		// Two values of one hash would make a key look like none, which is the safe side.
		h := maphash.String(seed, rec.Cells[at].Values[0])
		if _, ok := seen[h]; ok {
			return fmt.Sprintf("%.60q comes twice", rec.Cells[at].Values[0]), nil
		}
		seen[h] = struct{}{}
	}
}
