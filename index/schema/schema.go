// Package schema is what an index is described by, before anything is known of what it holds: its kind, its columns, the attributes that they are
// indexed by and the layouts that these may have; and records, which is what the columns describe. It is the words in which loaders, types of
// columns and structures speak of the same things, and knows none of them.
package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Kind says what the objects of an index are and therefore how they become keywords.
type Kind string

const (
	// Rows are table rows: one attribute a number or category column.
	Rows Kind = "rows"
	// Documents are bags of words.
	Documents Kind = "documents"
	// Sequences are strings compared by edit distance through their ordered n-grams.
	Sequences Kind = "sequences"
	// Vectors and Sets are known names that Validate refuses as not supported yet.
	Vectors Kind = "vectors"
	Sets    Kind = "sets"
)

// Known says that k is a kind that an index can have.
func (k Kind) Known() bool { return k == Rows || k == Documents || k == Sequences }

// ColumnType says what becomes of a column.
type ColumnType string

const (
	NumberColumn   ColumnType = "number"   // indexed by buckets of its values; ranges can be asked
	CategoryColumn ColumnType = "category" // indexed by its texts as they are
	TextColumn     ColumnType = "text"     // indexed by its words (documents) or n-grams (sequences)
	PayloadColumn  ColumnType = "payload"  // stored and returned with hits, not indexed
	SkipColumn     ColumnType = "skip"     // present in the input, otherwise ignored
)

// EdgeRule says where the bucket edges of a number column lie.
type EdgeRule string

const (
	EqualWidth EdgeRule = "equal-width" // the default: buckets of the same width between the extremes
	EquiDepth  EdgeRule = "equi-depth"  // buckets of about the same number of values
	Exact      EdgeRule = "exact"       // one bucket a distinct value
)

const (
	// DefaultBuckets and MaxBuckets bound Column.Buckets.
	DefaultBuckets = 1024
	MaxBuckets     = 1 << 20
	// DefaultNGram and MaxNGram bound Schema.NGram.
	DefaultNGram = 3
	MaxNGram     = 8
	// UAX29Lower is the one way documents become words today; see Schema.Words.
	UAX29Lower = "uax29-lower"
	// MaxNameBytes bounds the names of columns and attributes.
	MaxNameBytes = 1024
)

// Schema describes an index: what its objects are and how columns become attributes. It is read from YAML and
// stored, with every default filled in, in the index file, so that queries are encoded exactly as objects were.
type Schema struct {
	// Name is the name of the index: 1 to 64 of A-Z a-z 0-9 _ -.
	Name string `yaml:"name"`
	Kind Kind   `yaml:"kind"`
	// Key is the column whose values are the objects' keys: unique and not empty. Default: none, and the key
	// is the decimal object id. It may but need not be one of Columns as well.
	Key string `yaml:"key,omitempty"`
	// Header tells of CSV and TSV input whether its first line names the columns. Default true.
	Header *bool `yaml:"header,omitempty"`
	// Missing lists the texts that mean "no value"; blanks around a cell are trimmed before. Default [""]; an
	// empty list means that an empty cell is a value too.
	Missing []string `yaml:"missing"`
	// Columns in the order of the attributes. Default for documents and sequences: one text column "text".
	Columns []Column `yaml:"columns,omitempty"`
	// NGram is the n of the n-grams of sequences, 1 to 8. Default 3.
	NGram int `yaml:"ngram,omitempty"`
	// Words names how documents become words. Default, and the only one: uax29-lower, Unicode text segmentation
	// (UAX #29), normal form and lower case as index/column defines them. Stored, so that a later way does not
	// change what existing indexes answer.
	Words string `yaml:"words,omitempty"`
	// StopWords are the words left out of documents: english (default), none, or a list. A parsed schema
	// always holds the list itself.
	StopWords StopWords `yaml:"stop_words,omitempty"`
}

// Column describes one input column.
type Column struct {
	Name string     `yaml:"name"`
	Type ColumnType `yaml:"type"`
	// Buckets of a number column, 1 to 1,048,576; fewer come out when values coincide. Default 1,024.
	Buckets int `yaml:"buckets,omitempty"`
	// Edges of a number column. Default equal-width.
	Edges EdgeRule `yaml:"edges,omitempty"`
	// Split, when set, makes the cell a list of values separated by this text: tags, bags. Default: one value.
	Split string `yaml:"split,omitempty"`
	// Layout overrides how the postings are stored: auto (default), postings, sliced (at most one value per object)
	// or rare (texts and categories).
	Layout string `yaml:"layout,omitempty"`
	// Store keeps the text of a documents' text column for the payload. Sequences always keep their text.
	Store bool `yaml:"store,omitempty"`
}

// ColumnCheck fills in the defaults of a column and returns every fault: it knows what types of columns there are.
type ColumnCheck func(s *Schema, c *Column) []error

// Load reads and checks a schema file.
func Load(path string, check ColumnCheck) (*Schema, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	s, err := Parse(data, check)
	if err != nil {
		return nil, fmt.Errorf("schema %s:\n%w", path, err)
	}
	return s, nil
}

// Parse reads a schema from YAML, fills in the defaults and checks it. It reports every fault at once,
// joined with errors.Join.
func Parse(data []byte, check ColumnCheck) (*Schema, error) {
	s := new(Schema)
	var faults []error
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	err := decoder.Decode(s)
	var typeError *yaml.TypeError
	switch {
	case errors.Is(err, io.EOF):
		return nil, errors.New("the schema is empty; it needs at least name, kind and columns")
	case errors.As(err, &typeError):
		for _, text := range typeError.Errors {
			faults = append(faults, errors.New(explainYAML(text)))
		}
	case err != nil:
		return nil, fmt.Errorf("not valid YAML: %w", err)
	default:
		if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
			faults = append(faults, errors.New("a schema is one YAML document; nothing may follow it"))
		}
	}
	if s.Kind == Vectors || s.Kind == Sets {
		faults = nil // the fields of these kinds are not known yet either: one clear message, not ten
	}
	if err := errors.Join(append(faults, s.Check(check))...); err != nil {
		return nil, err
	}
	return s, nil
}

var unknownField = regexp.MustCompile(`^(line \d+: )field (.*) not found in type schema\.(\w+)$`)

// explainYAML turns the decoder's words, which name Go types, into the user's.
func explainYAML(text string) string {
	m := unknownField.FindStringSubmatch(text)
	if m == nil {
		return text
	}
	place, fields := "the schema", "name, kind, key, header, missing, columns, ngram, words, stop_words"
	if m[3] == "Column" {
		place, fields = "a column", "name, type, buckets, edges, split, layout, store"
	}
	return fmt.Sprintf("%sunknown field %q: %s has %s", m[1], m[2], place, fields)
}

func (s *Schema) fillDefaults() {
	if s.Header == nil {
		header := true
		s.Header = &header
	}
	if s.Missing == nil {
		s.Missing = []string{""}
	}
	if s.Kind == Documents || s.Kind == Sequences {
		if s.Columns == nil {
			s.Columns = []Column{{Name: "text", Type: TextColumn}}
		}
	}
	switch s.Kind {
	case Documents:
		if s.Words == "" {
			s.Words = UAX29Lower
		}
		if s.StopWords == nil {
			s.StopWords = EnglishStopWords()
		}
	case Sequences:
		if s.NGram == 0 {
			s.NGram = DefaultNGram
		}
	}
}

var indexName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Check fills in the defaults of a schema and reports every fault at once.
func (s *Schema) Check(check ColumnCheck) error {
	s.fillDefaults()
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }

	if !indexName.MatchString(s.Name) {
		fault("name %q: an index name is 1 to 64 of A-Z a-z 0-9 _ -", s.Name)
	}
	switch s.Kind {
	case Rows, Documents, Sequences:
	case Vectors, Sets:
		fault("kind %s is not supported yet; use rows, documents or sequences", s.Kind)
		return errors.Join(faults...)
	case "":
		fault("kind is missing: rows, documents or sequences")
	default:
		fault("kind %q is unknown: use rows, documents or sequences", s.Kind)
	}
	faults = append(faults, s.kindFaults()...)
	faults = append(faults, s.columnFaults(check)...)
	return errors.Join(faults...)
}

// kindFaults checks the fields that belong to one kind.
func (s *Schema) kindFaults() []error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if s.Kind == Sequences {
		if s.NGram < 1 || s.NGram > MaxNGram {
			fault("ngram %d: must be 1 to %d", s.NGram, MaxNGram)
		}
	} else if s.NGram != 0 {
		fault("ngram belongs to kind sequences")
	}
	if s.Kind == Documents {
		if s.Words != UAX29Lower {
			fault("words %q is unknown: the only way is %s", s.Words, UAX29Lower)
		}
	} else {
		if s.Words != "" {
			fault("words belongs to kind documents")
		}
		if s.StopWords != nil {
			fault("stop_words belongs to kind documents")
		}
	}
	return faults
}

// columnFaults checks the columns, one by one and together.
func (s *Schema) columnFaults(check ColumnCheck) []error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	seen := make(map[string]bool, len(s.Columns))
	indexed, texts := 0, 0
	for i := range s.Columns {
		c := &s.Columns[i]
		where := fmt.Sprintf("column %q", c.Name)
		switch {
		case c.Name == "":
			where = fmt.Sprintf("column %d", i+1)
			fault("%s: name is missing", where)
		case len(c.Name) > MaxNameBytes || !utf8.ValidString(c.Name):
			fault("column %d: a name is UTF-8 of at most %d bytes", i+1, MaxNameBytes)
		case seen[c.Name]:
			fault("%s is listed twice", where)
		}
		seen[c.Name] = true
		switch c.Type {
		case PayloadColumn, SkipColumn, "":
		case TextColumn:
			indexed++
			texts++
		default:
			indexed++
		}
		for _, err := range check(s, c) {
			fault("%s: %w", where, err)
		}
	}
	switch {
	case s.Kind == Rows && indexed == 0:
		fault("columns: rows need at least one column of type number or category")
	case s.Kind == Documents && texts == 0:
		fault("columns: documents need at least one column of type text")
	case s.Kind == Sequences && texts != 1:
		fault("columns: sequences need exactly one column of type text, not %d", texts)
	}
	return faults
}

// Encode returns the schema as it is stored: YAML with every default filled in.
func (s *Schema) Encode() ([]byte, error) {
	data, err := yaml.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode schema: %w", err)
	}
	return data, nil
}

// Clone returns a deep copy.
func (s *Schema) Clone() *Schema {
	c := *s
	if s.Header != nil {
		header := *s.Header
		c.Header = &header
	}
	c.Missing = slices.Clone(s.Missing)
	c.Columns = slices.Clone(s.Columns)
	c.StopWords = slices.Clone(s.StopWords)
	return &c
}

// StopWords is a list of words; in YAML also one of the names english and none. A nil list is unset, an empty
// one is none.
type StopWords []string

// UnmarshalYAML reads english, none or a list of words.
func (w *StopWords) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		switch strings.ToLower(node.Value) {
		case "english":
			*w = EnglishStopWords()
		case "none":
			*w = StopWords{}
		default:
			return &yaml.TypeError{Errors: []string{fmt.Sprintf(
				"line %d: stop_words %q is unknown: use english, none or a list of words", node.Line, node.Value)}}
		}
		return nil
	}
	words := []string{}
	if err := node.Decode(&words); err != nil {
		return err
	}
	*w = words
	return nil
}

// MarshalYAML writes the list itself, so that a stored schema does not depend on what english means later.
func (w StopWords) MarshalYAML() (any, error) {
	if len(w) == 0 {
		return "none", nil
	}
	return []string(w), nil
}

// IsZero keeps an empty list, which means none, from being left out like an unset one.
func (w StopWords) IsZero() bool { return w == nil }

// EnglishStopWords returns the list that stop_words: english stands for, the classic 33 words of Apache
// Lucene's English analyzer.
func EnglishStopWords() StopWords {
	return strings.Fields(`a an and are as at be but by for if in into is it no not of on or such that the
		their then there these they this to was will with`)
}
