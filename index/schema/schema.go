// Package schema is what an index is described by, before anything is known of what it holds: its kind, its columns, the attributes that they are
// indexed by and the layouts that these may have; and records, which is what the columns describe. It is the words in which loaders, types of
// columns and structures speak of the same things, and knows none of them.
package schema

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/geniemq/geniemq/index/stopwords"
)

// Kind says what the objects of an index are and therefore how they become keywords.
type Kind string

const (
	// Records have columns of any types in any mix. A schema that names no kind is of records.
	Records Kind = ""
	// Rows are table rows: one attribute a number or category column.
	Rows Kind = "rows"
	// Documents are bags of words.
	Documents Kind = "documents"
	// Sequences are strings compared by edit distance through their ordered n-grams.
	Sequences Kind = "sequences"
	// Sets are records of which one column at least is a set. The short form: without columns they are sets of words, separated by blanks.
	Sets Kind = "sets"
	// Vectors are records of which one column at least is of vectors. The short form: without columns they have one, "vector".
	Vectors Kind = "vectors"
	// Points are records of which one column at least is of places on earth. The short form: without columns they have one, "point".
	Points Kind = "points"
)

// Kinds are those that an index can have.
func Kinds() []Kind { return []Kind{Records, Rows, Documents, Sequences, Sets, Vectors, Points} }

// Known says that k is a kind that an index can have.
func (k Kind) Known() bool { return slices.Contains(Kinds(), k) }

// Mixed says that columns of all types that are not for one kind alone may stand side by side.
func (k Kind) Mixed() bool { return k == Records || k == Sets || k == Vectors || k == Points }

// String is what objects of the kind are called.
func (k Kind) String() string {
	if k == Records {
		return "records"
	}
	return string(k)
}

// ColumnType says what becomes of a column.
type ColumnType string

const (
	NumberColumn   ColumnType = "number"   // indexed by buckets of its values; ranges can be asked
	CategoryColumn ColumnType = "category" // indexed by its texts as they are
	TextColumn     ColumnType = "text"     // indexed by its words (documents, records) or n-grams (sequences)
	StringColumn   ColumnType = "string"   // indexed by its n-grams (records)
	SetColumn      ColumnType = "set"      // indexed by its elements
	BoolColumn     ColumnType = "bool"     // true or false
	DateColumn     ColumnType = "date"     // a number in disguise: see package index/column
	TreeColumn     ColumnType = "tree"     // indexed by its binary branches
	GraphColumn    ColumnType = "graph"    // indexed by its stars
	VectorColumn   ColumnType = "vector"   // indexed by hashes of its vectors, or searched by distance
	PointColumn    ColumnType = "point"    // latitude and longitude, searched by distance
	PayloadColumn  ColumnType = "payload"  // stored and returned with hits, not indexed
	SkipColumn     ColumnType = "skip"     // present in the input, otherwise ignored
)

// Indexed says that objects can be found by columns of the type.
func (t ColumnType) Indexed() bool { return t != PayloadColumn && t != SkipColumn && t != "" }

// Nested says that cells of such columns may be JSON of any shape, which is kept as it is; of others they are scalars or lists of them.
func (t ColumnType) Nested() bool {
	return t == PayloadColumn || t == TreeColumn || t == GraphColumn || t == PointColumn
}

// EdgeRule says where the bucket edges of a number column lie.
type EdgeRule string

const (
	EqualWidth EdgeRule = "equal-width" // the default: buckets of the same width between the extremes
	EquiDepth  EdgeRule = "equi-depth"  // buckets of about the same number of values
	Exact      EdgeRule = "exact"       // one bucket per distinct value
)

const (
	// DefaultBuckets and MaxBuckets bound Column.Buckets.
	DefaultBuckets = 1024
	MaxBuckets     = 1 << 20
	// DefaultNGram and MaxNGram bound Schema.NGram and Column.NGram.
	DefaultNGram = 3
	MaxNGram     = 8
	// MaxWordNGram bounds Column.NGrams.
	MaxWordNGram = 4
	// DefaultIDFScale and MaxIDFScale bound Column.IDFScale.
	DefaultIDFScale = 1
	MaxIDFScale     = 64
	// MaxCandidates bounds Rescore.Candidates.
	MaxCandidates = 65_536
	// KeepTerms is what Column.Keep says of texts of documents.
	KeepTerms = "terms"
	// InvalidMissing and InvalidError are what Column.Invalid says.
	InvalidMissing = "missing"
	InvalidError   = "error"
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
	Kind Kind   `yaml:"kind,omitempty"`
	// Key is the column whose values are the objects' keys: unique and not empty. Default: none, and the key
	// is the decimal object id. It may but need not be one of Columns as well.
	Key string `yaml:"key,omitempty"`
	// Input says how the files of records are written, where their names do not. Default: UTF-8, and what separates fields is a comma.
	Input *Input `yaml:"input,omitempty"`
	// Header tells of CSV and TSV input whether its first line names the columns. Default true.
	Header *bool `yaml:"header,omitempty"`
	// Missing lists the texts that mean "no value"; blanks around a cell are trimmed before. Default [""]; an
	// empty list means that an empty cell is a value too.
	Missing []string `yaml:"missing"`
	// Columns in the order of the attributes. Default for documents and sequences: one text column "text"; for sets one set "set", split at
	// blanks.
	Columns []Column `yaml:"columns,omitempty"`
	// NGram is the n of the n-grams of sequences, 1 to 8. Default 3.
	NGram int `yaml:"ngram,omitempty"`
	// Words names how texts of documents and records become words. Default, and the only one: uax29-lower, Unicode text segmentation
	// (UAX #29), normal form and lower case as index/column defines them. Stored, so that a later way does not
	// change what existing indexes answer.
	Words string `yaml:"words,omitempty"`
	// StopWords are the words left out of documents: those of a language, none, or a list; default english. A parsed schema
	// always holds the list itself.
	StopWords StopWords `yaml:"stop_words,omitempty"`
	// Rescore is the order of hits where a query asks the column and says nothing of it. Default: that of counts.
	Rescore *Rescore `yaml:"rescore,omitempty"`
}

// Rescore is an order of hits: by a measure of what objects hold in a column, of so many objects of highest count.
type Rescore struct {
	By     string `yaml:"by"`
	Column string `yaml:"column"`
	// Candidates, at most MaxCandidates. Default: as for queries.
	Candidates int `yaml:"candidates,omitempty"`
}

// Input is how files of records are written. What `geniemq build` is told by its flags goes before.
type Input struct {
	Format    string `yaml:"format,omitempty"`     // csv, tsv, ...; default: by the extension of the file
	Encoding  string `yaml:"encoding,omitempty"`   // default utf-8
	Separator string `yaml:"separator,omitempty"`  // between the fields of csv, one character; default a comma
	SkipLines int    `yaml:"skip_lines,omitempty"` // before the header or the first record
}

// Column describes one input column.
type Column struct {
	Name string     `yaml:"name"`
	Type ColumnType `yaml:"type"`
	// Parse is how numbers and dates are written in the input, see package index/notation. Default: plain decimal numbers, and dates of ISO 8601.
	Parse string `yaml:"parse,omitempty"`
	// Invalid is what a cell that the type cannot take is: InvalidMissing, as if there were no value, or InvalidError, a fault of its record. Default
	// InvalidMissing.
	Invalid string `yaml:"invalid,omitempty"`
	// Buckets of a number or date column, 1 to 1,048,576; fewer come out when values coincide. Default 1,024.
	Buckets int `yaml:"buckets,omitempty"`
	// Edges of a number or date column. Default equal-width.
	Edges EdgeRule `yaml:"edges,omitempty"`
	// Split, when set, makes the cell a list of values separated by this text: tags, bags. Default: one value.
	Split string `yaml:"split,omitempty"`
	// Layout overrides how the postings are stored: auto (default), postings, sliced (at most one value per object)
	// or rare (texts and categories).
	Layout string `yaml:"layout,omitempty"`
	// Store keeps the value for the payload. Sequences always keep their text.
	Store bool `yaml:"store,omitempty"`
	// Fold makes categories and elements of sets equal that differ in case and accents alone.
	Fold bool `yaml:"fold,omitempty"`
	// StopWords are the words left out of a text column of records, as Schema.StopWords are of documents. Default english.
	StopWords StopWords `yaml:"stop_words,omitempty"`
	// NGrams adds to the words of a text column of records those of 2 to so many words in a row, at most MaxWordNGram. Default 1: none.
	NGrams int `yaml:"ngrams,omitempty"`
	// NGram is the n of the n-grams of a string column, 1 to MaxNGram. Default 3.
	NGram int `yaml:"ngram,omitempty"`
	// IDF makes the values of a text, set or category column that queries ask for weigh the more the fewer objects have them, unless a query
	// says otherwise. IDFScale is how finely, 1 to MaxIDFScale. Default DefaultIDFScale.
	IDF      bool `yaml:"idf,omitempty"`
	IDFScale int  `yaml:"idf_scale,omitempty"`
	// MinHash indexes a set by so many hash functions in place of its elements. Default: by its elements.
	MinHash int `yaml:"minhash,omitempty"`
	// Of vectors, see package index/column/vector. What is left out is learned from the data when the index is built; a stored schema has all of it.
	Similarity string `yaml:"similarity,omitempty"`
	Dims       int    `yaml:"dims,omitempty"`
	Functions  int    `yaml:"functions,omitempty"`
	// Width of the buckets of hash functions, in units of distance; how many neighbours of a query's bucket count too, on each side; what the
	// functions are drawn by. Buckets says how many there are.
	Width float64 `yaml:"width,omitempty"`
	Reach *int    `yaml:"reach,omitempty"`
	Seed  uint64  `yaml:"seed,omitempty"`
	// Recall is the share of nearest neighbours that is to be found among the candidates, above 0 and below 1. Default: it is not measured.
	Recall float64 `yaml:"recall,omitempty"`
	// Keep says how vectors are kept for comparing them with queries: f32, u8 (integers from 0 to 255), none; default f32. Of texts of documents:
	// terms, or nothing, which is the default unless Schema.Rescore names the column.
	Keep string `yaml:"keep,omitempty"`
	// From are the input's columns that the elements of a vector are, by names or, with a *, all that match, in their natural order (x2 before
	// x10). Default: one input column has all.
	From Names `yaml:"from,omitempty"`
	// Learned is all that hash functions are made of. Building fills it in.
	Learned Bytes `yaml:"learned,omitempty"`
	// Of columns that are searched by distance, see package index/distance: how values are compared, how vectors are stored for it (f32, f16, u8), by which
	// ways they are searched beside a scan, and the options of these.
	Metric      string              `yaml:"metric,omitempty"`
	Storage     string              `yaml:"storage,omitempty"`
	Index       Names               `yaml:"index,omitempty"`
	Tree        *TreeOptions        `yaml:"tree,omitempty"`
	Permutation *PermutationOptions `yaml:"permutation,omitempty"`
	Cells       *CellsOptions       `yaml:"cells,omitempty"`
	// AutoFor is by whose times auto takes a way that may miss hits, where a query asks for a recall: cpu, the default, or gpu.
	AutoFor string `yaml:"auto_for,omitempty"`
}

// fields returns the names of the fields of a schema or a column, as YAML has them.
func fields(of any) string {
	t := reflect.TypeOf(of)
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
	}
	return strings.Join(names, ", ")
}

// ColumnCheck fills in the defaults of a column and returns every fault: it knows what types of columns there are.
type ColumnCheck func(s *Schema, c *Column) []error

// Load reads and checks a schema file.
func Load(path string, check ColumnCheck) (*Schema, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		if about, ok := errors.AsType[*os.PathError](err); ok {
			err = about.Err // the path is in the message already
		}
		return nil, fmt.Errorf("read schema %s: %w", path, err)
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
		return nil, errors.New("the schema is empty; it needs at least name and columns")
	case errors.As(err, &typeError):
		for _, text := range typeError.Errors {
			faults = append(faults, errors.New(explainYAML(text)))
		}
	case err != nil:
		return nil, fmt.Errorf("not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	default:
		if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
			faults = append(faults, errors.New("a schema is one YAML document; nothing may follow it"))
		}
	}
	if err := errors.Join(append(append(faults, zeros(data)...), s.Check(check))...); err != nil {
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
	place, names := "the schema", fields(Schema{})
	switch m[3] {
	case "Column":
		place, names = "a column", fields(Column{})
	case "Rescore":
		place, names = "rescore", fields(Rescore{})
	case "Input":
		place, names = "input", fields(Input{})
	}
	return fmt.Sprintf("%sunknown field %q: %s has %s", m[1], m[2], place, names)
}

func (s *Schema) fillDefaults() {
	if s.Header == nil {
		header := true
		s.Header = &header
	}
	if s.Missing == nil {
		s.Missing = []string{""}
	}
	if s.Columns == nil {
		switch s.Kind {
		case Documents, Sequences:
			s.Columns = []Column{{Name: "text", Type: TextColumn}}
		case Sets:
			s.Columns = []Column{{Name: "set", Type: SetColumn, Split: " "}}
		case Vectors:
			s.Columns = []Column{{Name: "vector", Type: VectorColumn}}
		case Points:
			s.Columns = []Column{{Name: "point", Type: PointColumn}}
		}
	}
	if s.Words == "" && s.hasWords() {
		s.Words = UAX29Lower
	}
	switch s.Kind {
	case Documents:
		if s.StopWords == nil {
			s.StopWords = EnglishStopWords()
		}
	case Sequences:
		s.NGram = cmp.Or(s.NGram, DefaultNGram)
	}
}

// hasWords says that there are columns of words.
func (s *Schema) hasWords() bool {
	return s.Kind == Documents ||
		s.Kind.Mixed() && slices.ContainsFunc(s.Columns, func(c Column) bool { return c.Type == TextColumn })
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
	if !s.Kind.Known() {
		fault("kind %q is unknown: use rows, documents, sequences, sets, vectors, points, or leave kind out for records of columns of any type", string(s.Kind))
	}
	faults = append(faults, s.inputFaults()...)
	faults = append(faults, s.kindFaults()...)
	faults = append(faults, s.columnFaults(check)...)
	faults = append(faults, s.rescoreFaults()...)
	return errors.Join(faults...)
}

// inputFaults checks what can be checked without knowing formats and encodings: the loader knows those.
func (s *Schema) inputFaults() []error {
	if s.Input == nil {
		return nil
	}
	var faults []error
	if n := utf8.RuneCountInString(s.Input.Separator); n > 1 {
		faults = append(faults, fmt.Errorf("input: separator %q must be one character", s.Input.Separator))
	}
	if s.Input.SkipLines < 0 {
		faults = append(faults, fmt.Errorf("input: skip_lines %d: must not be negative", s.Input.SkipLines))
	}
	return faults
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
		fault("ngram belongs to kind sequences, and to columns of type string")
	}
	switch {
	case !s.hasWords() && s.Words != "":
		fault("words belongs to kind documents, and to records with columns of type text")
	case s.hasWords() && s.Words != UAX29Lower:
		fault("words %q is unknown: the only way is %s", s.Words, UAX29Lower)
	}
	if s.Kind != Documents && s.StopWords != nil {
		fault("stop_words belongs to kind documents, and to columns of type text")
	}
	return faults
}

// rescoreFaults checks the order of hits, but for whether what it compares is kept: that is the column's.
func (s *Schema) rescoreFaults() []error {
	r := s.Rescore
	if r == nil {
		return nil
	}
	var faults []error
	if r.By == "" || r.Column == "" {
		faults = append(faults, errors.New("rescore: by and column are needed, as in {by: bm25, column: title}"))
	} else if !slices.ContainsFunc(s.Columns, func(c Column) bool { return c.Name == r.Column }) {
		faults = append(faults, fmt.Errorf("rescore: there is no column %q", r.Column))
	}
	if r.Candidates < 0 || r.Candidates > MaxCandidates {
		faults = append(faults, fmt.Errorf("rescore: candidates %d: must be 1 to %d", r.Candidates, MaxCandidates))
	}
	if s.Kind == Sequences {
		faults = append(faults, errors.New("rescore: sequences are always in the order of their edit distances"))
	}
	return faults
}

// columnFaults checks the columns, one by one and together.
func (s *Schema) columnFaults(check ColumnCheck) []error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	seen := make(map[string]bool, len(s.Columns))
	indexed, of := 0, make(map[ColumnType]int)
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
		if c.Type.Indexed() {
			indexed++
		}
		of[c.Type]++
		if c.Invalid != "" && c.Invalid != InvalidMissing && c.Invalid != InvalidError {
			fault("%s: invalid %q is unknown: use %s or %s", where, c.Invalid, InvalidMissing, InvalidError)
		}
		for _, err := range check(s, c) {
			fault("%s: %w", where, err)
		}
	}
	return append(faults, s.lacks(indexed, of)...)
}

// lacks says which columns a kind needs that the schema has not: so many are indexed, and so many are of each type.
func (s *Schema) lacks(indexed int, of map[ColumnType]int) []error {
	var fault string
	switch {
	case s.Kind == Records && indexed == 0:
		fault = "columns: records need at least one column that is neither payload nor skip (or did you mean kind: rows, documents or sequences?)"
	case s.Kind == Sets && of[SetColumn] == 0:
		fault = "columns: sets need at least one column of type set"
	case s.Kind == Vectors && of[VectorColumn] == 0:
		fault = "columns: vectors need at least one column of type vector"
	case s.Kind == Points && of[PointColumn] == 0:
		fault = "columns: points need at least one column of type point"
	case s.Kind == Rows && indexed == 0:
		fault = "columns: rows need at least one column of type number or category"
	case s.Kind == Documents && of[TextColumn] == 0:
		fault = "columns: documents need at least one column of type text"
	case s.Kind == Sequences && of[TextColumn] != 1:
		fault = fmt.Sprintf("columns: sequences need exactly one column of type text, not %d", of[TextColumn])
	default:
		return nil
	}
	return []error{errors.New(fault)}
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
	c.Header, c.Input = copied(s.Header), copied(s.Input)
	c.Missing = slices.Clone(s.Missing)
	c.Columns = slices.Clone(s.Columns)
	for i := range c.Columns {
		column := &c.Columns[i]
		column.StopWords, column.From, column.Learned = slices.Clone(column.StopWords), slices.Clone(column.From), slices.Clone(column.Learned)
		column.Reach, column.Index = copied(column.Reach), slices.Clone(column.Index)
		column.Tree, column.Permutation, column.Cells = copied(column.Tree), copied(column.Permutation), copied(column.Cells)
	}
	c.StopWords = slices.Clone(s.StopWords)
	c.Rescore = copied(s.Rescore)
	return &c
}

// copied returns a copy of what a pointer points to; nil of nil.
func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// StopWords is a list of words; in YAML also the name of a language (package stopwords) or none. A nil list is unset, an empty
// one is none.
type StopWords []string

// UnmarshalYAML reads a language, none or a list of words.
func (w *StopWords) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		name := strings.ToLower(node.Value)
		if name == "none" {
			*w = StopWords{}
			return nil
		}
		words, ok := stopwords.Of(name)
		if !ok {
			return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: stop_words %q is unknown: use a language (%s), none or a list of words",
				node.Line, node.Value, strings.Join(stopwords.Languages(), ", "))}}
		}
		*w = words
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
	words, _ := stopwords.Of("english")
	return words
}
