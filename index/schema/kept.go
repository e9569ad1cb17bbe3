package schema

import "fmt"

// KeptForm is the form in which an index keeps what objects hold in a column, addressed by object: for rescoring, for exact filters, and to
// return it. Package forward is where.
type KeptForm uint8

const (
	// KeptNumbers: float64, as many as an object has.
	KeptNumbers KeptForm = iota + 1
	// KeptTerms: distinct keywords with how often each occurs, of texts as words and of sets.
	KeptTerms
	// KeptVectors: a row of float32 or of bytes.
	KeptVectors
	// KeptTexts: a string as it is.
	KeptTexts
	// KeptTrees and KeptGraphs: bytes that packages tree and graph read.
	KeptTrees
	KeptGraphs
)

// String returns a word for people.
func (f KeptForm) String() string {
	switch f {
	case 0:
		return "nothing"
	case KeptNumbers:
		return "numbers"
	case KeptTerms:
		return "terms"
	case KeptVectors:
		return "vectors"
	case KeptTexts:
		return "texts"
	case KeptTrees:
		return "trees"
	case KeptGraphs:
		return "graphs"
	}
	return fmt.Sprintf("form %d", uint8(f))
}

// KeptSpec says what is kept of a column. The zero value keeps nothing.
type KeptSpec struct {
	Form KeptForm // 0: nothing to compute with
	// Returned: the value is returned with hits (store: true). Numbers, vectors and texts that are kept anyway are not kept twice: of them
	// Values.JSON is not needed.
	Returned bool
	// Dimensions of vectors, and whether their elements are integers from 0 to 255, of a byte each.
	Dimensions int
	Bytes      bool
	// Halves: they are 16-bit floats (IEEE 754 binary16).
	Halves bool
	// IDFScale is the scale at which the weights of an object's terms are summed, 1 to 64; 0: they are not.
	IDFScale int
	// Vocabulary keeps the terms' strings too: for columns whose attributes do not have them as keywords (MinHash). Else a term's number is
	// that of the keyword in the column's one attribute.
	Vocabulary bool
}
