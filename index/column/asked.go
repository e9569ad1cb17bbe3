package column

// Asked is what a query asks of one column, as encoders leave it for those who compare it with what objects hold there (package verify).
type Asked struct {
	Column     string
	Conditions int    // on the column. What the counts of several prove, nobody knows
	Presences  int    // of these, those that ask only whether there is a value
	Weight     uint32 // of the last one, times that of the column
	Weighed    bool   // terms weigh each their own besides

	missed map[string]struct{} // distinct words or elements that no object has; those that some have are items
	// Of strings: what is asked, and the length of its grams.
	Text  string
	NGram int
	// Of vectors: the elements. Of trees and graphs: their encoding.
	Vector []float32
	// Of sets that are no items: the elements, ascending.
	Elements []string
	Stored   []byte
}

// Unknown is how many words or elements are asked for that no object has.
func (a *Asked) Unknown() int { return len(a.missed) }

// asks says that somebody wants to know what the condition at hand asks.
func (d *Draft) asks() bool { return d.Asked != nil && d.Asked.Column == d.column }

// asked takes notice of a condition.
func (d *Draft) asked() {
	if d.asks() {
		d.Asked.Conditions++
		d.Asked.Weight, d.Asked.Weighed = uint32(d.weight), d.idf != nil
	}
}

// AskedPresence takes notice that the condition at hand asks only whether there is a value.
func (d *Draft) AskedPresence() {
	if d.asks() {
		d.Asked.Presences++
	}
}

// missed takes notice of a word or element that no object has.
func (d *Draft) missed(term string) {
	if !d.asks() {
		return
	}
	if d.Asked.missed == nil {
		d.Asked.missed = make(map[string]struct{})
	}
	d.Asked.missed[term] = struct{}{}
}
