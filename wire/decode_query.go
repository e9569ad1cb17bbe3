package wire

import (
	"slices"

	"github.com/geniemq/geniemq/wire/fields"
	"github.com/geniemq/geniemq/wire/value"
)

// Message is the decoded body of a query message.
type Message struct {
	// Batch says that the message was {"queries":[...]}, so that its answer is an [Answer] with Batch set, even
	// for one query.
	Batch   bool
	Queries []QueryOrError // in the order of the message; at least one
	// Table is set by [Decoder.Decode] where the message is a table, in place of Queries, of which there may be more than a body has bytes.
	Table *Batch
}

// QueryOrError is one query of a message, or why it is none. With an error the query holds its ID, where that could
// be read, and nothing else.
type QueryOrError struct {
	Query Query
	Err   *Error
}

// DecodeMessage decodes a body of one query or of many. The error, which is an *[Error], means that the message as a
// whole cannot be answered but by that error; a fault within one query is in its place in the message instead. Zero
// limits mean the defaults.
//
// The body is not kept. Strings of the queries share one copy of it.
func DecodeMessage(ct ContentType, body []byte, limits Limits) (*Message, error) {
	d := queryDecoder{}
	if err := d.begins(ct, body, &limits); err != nil {
		return nil, err
	}
	return d.whole()
}

// A Decoder is DecodeMessage for who needs a message no longer when the next one comes: the memory of queries,
// conditions and values is used again. The zero value is ready. It is not safe for concurrent use.
type Decoder struct {
	d      queryDecoder
	limits Limits
	batch  Batch // of Scan
	used   bool  // there is something to forget
}

// Decode is DecodeMessage. The message, but not its strings, is valid until Forget.
func (d *Decoder) Decode(ct ContentType, body []byte, limits Limits) (*Message, error) {
	d.Forget()
	d.used, d.limits = true, limits
	if err := d.d.begins(ct, body, &d.limits); err != nil {
		return nil, err
	}
	m, err := d.d.read()
	if err != nil {
		return nil, err
	}
	if d.d.table != nil {
		d.batch.limits, d.batch.codec, d.batch.table = d.limits, ct, d.d.table
		m.Table = &d.batch
	}
	return m, nil
}

// Forget ends the use of the last message: nothing of it is held on to.
func (d *Decoder) Forget() {
	if !d.used {
		return
	}
	d.used = false
	q, b := &d.d, &d.batch
	q.atHand = atHand{}
	q.build.Reset()
	q.conds.again()
	q.vals.again()
	if q.rows.of != nil {
		q.rows = q.rows.again()
	}
	clear(q.queries)
	if q.queries = q.queries[:0]; cap(q.queries) > maxKept {
		q.queries = nil
	}
	clear(q.names[:cap(q.names)])
	q.names = q.names[:0]
	q.own = msgpackReader{open: q.own.open[:0]}
	if q.json.body != nil {
		q.json.reset(nil, "", 0)
	}
	if q.json.inner != nil && q.json.inner.body != nil {
		q.json.inner.reset(nil, "", 0)
	}
	b.body, b.text, b.table = nil, "", nil
	if b.starts, b.conditions = b.starts[:0], b.conditions[:0]; cap(b.starts) > maxKept {
		b.starts, b.conditions = nil, nil
	}
}

// begins begins to read a message.
func (d *queryDecoder) begins(ct ContentType, body []byte, limits *Limits) error {
	limits.EnsureDefaults()
	if err := limits.checkBody(len(body)); err != nil {
		return err
	}
	if len(body) == 0 {
		return badRequest("the body is empty: send a query, such as {\"text\":\"...\",\"k\":10}")
	}
	d.limits = limits
	d.open(ct, body, string(body))
	return nil
}

// open begins to read a body, of which text is a copy.
func (d *queryDecoder) open(ct ContentType, body []byte, text string) {
	if ct == MessagePack {
		d.own = msgpackReader{text: text, maxDepth: d.limits.Depth, open: d.own.open[:0]}
		d.r, d.quick = &d.own, &d.own
		return
	}
	d.json.reset(body, text, d.limits.Depth)
	d.r, d.quick = &d.json, nil
}

// whole decodes the message that d.r begins with, which is not kept in the decoder.
func (d *queryDecoder) whole() (*Message, error) {
	m, err := d.read()
	if err == nil && d.table != nil {
		m.Queries = d.rowsOf(d.table, 0, d.table.rows)
		err = d.limits.checkSumK(d.sumK)
	}
	if err != nil {
		return nil, err
	}
	own := *m
	return &own, nil
}

// read reads the message that d.r begins with. Of a table no queries are made yet.
func (d *queryDecoder) read() (*Message, *Error) {
	m, err := d.message()
	if err == nil {
		d.r.finish()
		err = d.r.failed()
	}
	if err == nil && d.table != nil {
		err = d.table.fit(d.limits, d.r.offset())
	}
	return m, err
}

// queryDecoder decodes one message. Its methods return the first fault of the query at hand; whether it is the
// message's is up to the reader's failed.
type queryDecoder struct {
	atHand
	// What is kept for later messages:
	build   value.Builder
	conds   slab[Condition]
	vals    slab[Value]
	rows    tableRows      // of a table, which need not be this message's
	queries []QueryOrError // of the message
	names   rowNames       // of its last row
	own     msgpackReader  // r is one of these
	json    jsonReader
}

// atHand is what a decoder has of a message, and Forget forgets.
type atHand struct {
	r      reader
	quick  *msgpackReader // r, where conditions may be read by the short cut; nil otherwise
	limits *Limits
	sumK   int
	items  int    // of the query at hand
	keys   Choice // what it says of them
	// unknown says that the condition at hand is of a shape that is not known here.
	unknown bool

	made  Message
	table *table       // that the message is
	one   Query        // of its queries, while it is decoded
	last  QueryOrError // of a Batch, the one that is handed out
}

func (d *queryDecoder) message() (*Message, *Error) {
	if k := d.r.peek(); k != objectKind {
		skip(d.r) // what cannot be read through is no JSON, whatever its first letter promises
		d.r.finish()
		if err := d.r.failed(); err != nil {
			return nil, err
		}
		return nil, badRequest("a message is an object, a query or {\"queries\":[...]}, not %s", k)
	}
	if err := d.r.enter(); err != nil {
		return nil, err
	}
	m, q := &d.made, &d.one
	*m, *q = Message{}, Query{}
	err := d.query(q, m)
	if failed := d.r.failed(); failed != nil {
		return nil, failed
	}
	if m.Batch { // an error is of the batch: those of its queries are in m
		return m, err
	}
	m.Queries = append(d.queries[:0], d.finishQuery(q, err, 0))
	d.queries = m.Queries
	if failed := d.r.failed(); failed != nil {
		return nil, failed
	}
	return m, d.limits.checkSumK(d.sumK)
}

// many decodes the value of "queries" or "table".
func (d *queryDecoder) many(m *Message, name string) (err *Error) {
	if name == "queries" {
		return d.batch(m)
	}
	if d.table, err = d.readTable(); err != nil {
		return err.in("%s", name)
	}
	return nil
}

// batch decodes the value of "queries".
func (d *queryDecoder) batch(m *Message) *Error {
	if err := open(d.r, arrayKind, "an array of queries"); err != nil {
		return err.in("queries")
	}
	m.Queries = d.queries[:0]
	defer func() { d.queries = m.Queries }()
	for d.r.more() {
		if err := d.limits.checkQueries(len(m.Queries) + 1); err != nil {
			return err
		}
		m.Queries = append(m.Queries, d.element())
		if failed := d.r.failed(); failed != nil {
			return failed
		}
		if err := d.limits.checkSumK(d.sumK); err != nil {
			return err
		}
	}
	if failed := closed(d.r); failed != nil {
		return failed
	}
	if len(m.Queries) == 0 {
		return badRequest("queries is empty: send at least one")
	}
	return nil
}

// element decodes the next query of a batch.
func (d *queryDecoder) element() QueryOrError {
	depth := d.r.depth()
	q := &d.one
	*q = Query{}
	var err *Error
	if k := d.r.peek(); k == objectKind {
		d.r.enter()
		err = d.query(q, nil)
	} else {
		err = badRequest("a query must be an object, not %s", k)
		skip(d.r)
	}
	return d.finishQuery(q, err, depth)
}

// finishQuery leaves the query's object, and picks up an id that comes after a fault.
func (d *queryDecoder) finishQuery(q *Query, err *Error, depth int) QueryOrError {
	if err == nil {
		err = q.validate(d.limits, &d.names)
	}
	if err == nil {
		q.EnsureDefaults()
		d.sumK += q.K
		return QueryOrError{Query: *q}
	}
	id := q.ID
	skipTo(d.r, depth+1)
	for d.r.depth() > depth && d.r.more() {
		isID := false
		if d.r.atName() {
			if d.r.peek() == stringKind {
				name, _ := d.r.str()
				isID = name == "id"
			} else {
				skip(d.r)
			}
		}
		if kind := d.r.peek(); isID && id == "" && (kind == stringKind || kind == numberKind) {
			id, _ = d.id()
		} else {
			skip(d.r)
		}
	}
	skipTo(d.r, depth)
	if len(id) > d.limits.String {
		id = ""
	}
	return QueryOrError{Query: Query{ID: id}, Err: err}
}

// field is a set of a query's or condition's fields.
type field uint64

// QueryFields are the fields of a query that this package reads. A worker that does not know a field refuses the query.
func QueryFields() []string {
	return slices.DeleteFunc(fields.Query.Names(), func(name string) bool { return name == "queries" || fields.Query.Find(name).Holds == fields.Reserved })
}

// FieldsMetadata is under which name the metadata of a worker's search endpoint, in the INFO of its micro service, have the fields that it
// understands, with blanks between them. Older workers have none.
const FieldsMetadata = "query_fields"

// query decodes the members of an object that has been entered, up to its first fault, and leaves it if there is
// none. At the top of a message, m is where a batch goes.
func (d *queryDecoder) query(q *Query, m *Message) *Error {
	var seen field
	d.items, d.keys = 0, Unsaid
	first := true
	for d.r.more() {
		name, err := d.r.str()
		if err != nil {
			return err.in("the name of a field")
		}
		if m != nil && (name == "queries" || name == "table") {
			m.Batch = true
			if first {
				err = d.many(m, name)
			}
			if err == nil && (!first || d.r.more()) {
				err = badRequest("%s must be the only field of its message: options belong to each query", name)
			}
			if err != nil {
				return err
			}
			break
		}
		first = false
		f, err := once(&seen, &fields.Query, name)
		if err != nil {
			return err
		}
		if err := d.queryField(q, f); err != nil {
			return err
		}
	}
	if err := closed(d.r); err != nil || m != nil && m.Batch {
		return err
	}
	return q.withKeys(d.keys)
}

// queryField reads a field, within the bounds of the table.
func (d *queryDecoder) queryField(q *Query, f *fields.Field) (err *Error) {
	switch f.Name {
	case "id":
		q.ID, err = d.id()
	case "k":
		err = d.hits(q, f)
	case "candidates":
		q.Candidates, err = integer[int](d.r, f)
	case "min_count":
		q.MinCount, err = integer[uint32](d.r, f)
	case "timeout_ms":
		q.TimeoutMS, err = integer[uint32](d.r, f)
	case "certify":
		q.Certify, err = d.r.boolean()
	case "with_payload":
		q.WithPayload, err = d.r.boolean()
	case "row":
		q.Row, err = d.row(f.Name)
	case "items":
		q.Items, err = d.itemList()
	case "text":
		q.Text, err = d.text("nothing matches it")
	case "set":
		q.Set, err = d.values()
	case "vector":
		q.Vector, err = d.r.floats([]float32{}, d.limits.Items)
		if err == nil {
			err = d.limits.checkItems(len(q.Vector))
		}
	case "queries", "table":
		return badRequest("a batch cannot hold a batch: %s belongs at the top of a message", f.Name)
	default:
		if f.Holds == fields.Reserved {
			return Errorf(Unsupported, "field %q is reserved for a later version of the protocol", f.Name)
		}
		err = d.refinement(q, f)
	}
	if err != nil {
		return err.in("%s", f.Name)
	}
	return nil
}
