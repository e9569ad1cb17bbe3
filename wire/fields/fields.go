// Package fields is the table of protocol version 1: every field of queries and results with its type, limits and default, every header, every
// error code. The decoders of package wire go by it, and so do the JSON Schemas, the AsyncAPI and OpenAPI documents and the tables of
// docs/protocol.md, which package wire/schema makes. A new field is a line here, its place in a struct of package wire, and what it means.
package fields

// Kind is what a field holds.
type Kind uint8

const (
	Reserved Kind = iota // nothing yet: refused as `unsupported`
	Bool
	Integer // from Least to Most
	Number  // from Least to Most
	Text    // a string of Least bytes at least
	ID      // a string or an integer
	Hits    // an integer from Least to Most; beside a radius also 0

	Scalar     // a number, a string or a bool
	Scalars    // a list of scalars, not empty
	Set        // a list of numbers and strings, not empty
	Vector     // a list of float32s, not empty; binary of them in MessagePack
	Point      // [latitude, longitude] or {"lat":…,"lon":…}
	Row        // conditions by attribute, not empty
	Conditions // a list of conditions, not empty
	Filter     // conditions without weights by attribute, or a list of such
	Weights    // weights by column
	Unit       // of a condition
	Form       // of hits
	Queries    // a list of queries, not empty
	Rows       // a table of queries
	Common     // of a table: an object of fields of a query
	Array      // one element or more for each query of a table: a list, or what Array says
	Groups     // a list of conditions that the queries of a table have

	Texts     // a list of strings
	Packed    // numbers side by side: binary in MessagePack, base64 in JSON
	JSON      // an object whose fields belong to the index
	Estimates // objects by column
	List      // a list of objects
	Nullables // a list of what Of says, or null where a hit has none
	HitList   // a list of hits, or an object of columns
	Nested    // an object
)

// Field is a field of an object.
type Field struct {
	Name  string
	Holds Kind
	// Least and Most bound a number, and Least the length of a text. Both belong to it, unless AboveLeast or BelowMost say otherwise.
	Least, Most           float64
	AboveLeast, BelowMost bool
	// Of says what a list or an object consists of.
	Of *Object
	// Required fields are in every object.
	Required bool
	Default  string // as people read it; empty where there is none
	Means    string // for people, in a sentence
}

// Object is an object of the protocol.
type Object struct {
	Name   string // of its definition in a schema
	Means  string
	Fields []Field
}

// Find returns the field of a name, nil if there is none.
func (o *Object) Find(name string) *Field {
	for i := range o.Fields {
		if o.Fields[i].Name == name {
			return &o.Fields[i]
		}
	}
	return nil
}

// Names are those of the fields, in their order.
func (o *Object) Names() []string {
	names := make([]string, len(o.Fields))
	for i := range o.Fields {
		names[i] = o.Fields[i].Name
	}
	return names
}
