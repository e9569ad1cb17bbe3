package wire

import (
	"strings"

	"github.com/geniemq/geniemq/internal/msgpack"
)

// Batch is a message of many queries that has been looked through, but not decoded: where its queries begin, and that nothing
// about their number and size keeps all of them from being decoded. So each can be decoded for itself, by whoever has time and
// in any order, and each is what [DecodeMessage] makes of it. A message of hundreds of large queries takes milliseconds to
// decode; to look through takes a small part of that.
//
// A batch is not changed by being decoded, and is valid until its decoder's Forget.
type Batch struct {
	codec      ContentType
	body       []byte
	text       string // a copy of the body
	limits     Limits
	starts     []int  // of the queries
	conditions []int  // see Conditions
	table      *table // that it is; it has no starts then
}

// Len returns the number of queries.
func (b *Batch) Len() int {
	if b.table != nil {
		return b.table.rows
	}
	return len(b.starts)
}

// Size is about how many bytes the queries have, or would have if they were written one by one.
func (b *Batch) Size() int {
	if b.table != nil {
		return b.table.size
	}
	return len(b.body)
}

// Conditions returns how many conditions the first n queries have at most. For queries without fault it is exact, but for
// tables in which some have no value, and those of texts, of which each word is about one.
func (b *Batch) Conditions(n int) int {
	if b.table != nil {
		return n * b.table.counts
	}
	return b.conditions[n]
}

// CheckSumK checks how many hits all queries ask for together, which the calls of Queries say of theirs. The error, an
// *[Error], concerns the message as a whole.
func (b *Batch) CheckSumK(sum int) error {
	return b.limits.checkSumK(sum).orNil()
}

// Scan looks through a body, which must not change until Forget. It is false for whatever is no batch, for a batch that is seen
// to be answered by one error, and for one that is spelled in unusual ways: Decode it, which also says what is wrong.
func (d *Decoder) Scan(ct ContentType, body []byte, limits Limits) (*Batch, bool) {
	d.Forget()
	d.used = true
	b := &d.batch
	b.limits = limits
	b.limits.EnsureDefaults()
	if b.limits.checkBody(len(body)) != nil || b.limits.Depth < 2 {
		return nil, false
	}
	b.codec, b.body, b.text = ct, body, string(body)
	b.starts, b.conditions = b.starts[:0], append(b.conditions[:0], 0)
	switch {
	case b.beginsTable():
		d.d.limits = &b.limits
		d.d.open(ct, body, b.text)
		_, err := d.d.read()
		b.table = d.d.table
		return b, err == nil
	case ct == MessagePack:
		return b, b.scanMessagePack()
	}
	return b, b.scanJSON()
}

// beginsTable says that a message is a table, spelled as usual.
func (b *Batch) beginsTable() bool {
	if b.codec == MessagePack {
		return strings.HasPrefix(b.text, "\x81\xa5table")
	}
	i, ok := 0, false
	for _, token := range [...]string{"{", `"table"`, ":"} {
		if i, ok = stepOver(b.text, i, token); !ok {
			return false
		}
	}
	return true
}

// depth is how deeply a query may nest where queries are decoded for themselves.
func (b *Batch) depth() int { return min(b.limits.Depth-2, maxScan) } // the message and its array are open

// add notes that a query begins at start, with so many conditions at most.
func (b *Batch) add(start, conditions int) {
	b.starts = append(b.starts, start)
	b.conditions = append(b.conditions, b.conditions[len(b.conditions)-1]+conditions)
}

func (b *Batch) scanMessagePack() bool {
	if b.text == "" || b.text[0] != msgpack.FixMap+1 {
		return false
	}
	name, i, ok := quickString(b.text, 1)
	if !ok || name != "queries" {
		return false
	}
	head, ok := msgpack.ParseHead(b.text[i:])
	if !ok || head.Kind != arrayKind || head.N == 0 || head.N > uint64(len(b.text)) || b.limits.checkQueries(int(head.N)) != nil {
		return false
	}
	i += head.Size
	for range head.N {
		start, conditions := i, 0
		if i, conditions = b.scanQuery(i); i < 0 {
			return false
		}
		b.add(start, conditions)
	}
	return i == len(b.text)
}

// maxScan is how deeply arrays and objects of a query may nest for Scan; those of sensible queries do 4 deep.
const maxScan = 8

// scanQuery steps over the query at s[i:]. It returns where the query ends, or -1 if the message cannot be read on from
// there, and how many conditions the query has at most.
func (b *Batch) scanQuery(i int) (end, conditions int) {
	s, l := b.text, &b.limits
	var left [maxScan + 1]int // items to come in each open container; in the message, one
	open := 0
	left[0] = 1
	depth := b.depth()
	for {
		for left[open] == 0 {
			if open--; open < 0 {
				return i, conditions
			}
		}
		left[open]--
		if i >= len(s) {
			return -1, 0
		}
		var n int // items that follow
		object := false
		switch c := s[i]; {
		case c < msgpack.FixMap || c >= msgpack.Negative:
			i++
			continue
		case c >= msgpack.FixStr && c < msgpack.Nil:
			if i += 1 + int(c-msgpack.FixStr); i > len(s) {
				return -1, 0
			}
			continue
		case c < msgpack.FixArray:
			n, object = 2*int(c-msgpack.FixMap), true
			i++
		default:
			head, ok := msgpack.ParseHead(s[i:])
			if !ok || head.N > uint64(len(s)-i-head.Size) {
				return -1, 0
			}
			i += head.Size
			n, object = int(head.N), head.Kind == objectKind
			if !object && head.Kind != arrayKind {
				i += n
				continue
			}
		}
		if open == 1 { // a field of the query: if it has conditions, a row or items, which are objects
			switch {
			case object && n/2 <= l.Items:
				conditions += n / 2
			case !object && n <= l.Items && i < len(s) && objectAt(s[i]):
				conditions += n
			}
		}
		if open++; open > depth {
			return -1, 0
		}
		left[open] = n
	}
}

// objectAt says that an object begins with c.
func objectAt(c byte) bool {
	return c&0xf0 == msgpack.FixMap || c == msgpack.Map16 || c == msgpack.Map32
}

// Queries decodes the queries from first to end and hands each of them to each, which must not hold on to anything of it but
// its strings. It returns how many hits those without error ask for together. It is false, and may have left queries out,
// when the message turns out to be malformed: Decode it, which says how. Several decoders may work on one batch at once; this
// one need not be its own.
func (d *Decoder) Queries(b *Batch, first, end int, each func(i int, q *QueryOrError)) (sumK int, ok bool) {
	d.used = true
	q := &d.d
	q.begin(b, first, end)
	for i := first; i < end; i++ {
		if b.table != nil {
			q.last = q.tableRow(b.table, i, false)
			each(i, &q.last)
			continue
		}
		q.next(b, i)
		if q.last = q.element(); q.r.failed() != nil {
			return q.sumK, false
		}
		each(i, &q.last)
		q.conds.rewind()
		q.vals.rewind()
	}
	return q.sumK, true
}

// Group is Queries for those that are worked on together: they are valid until the next call or Forget.
func (d *Decoder) Group(b *Batch, first, end int) (queries []QueryOrError, sumK int, ok bool) {
	d.used = true
	q := &d.d
	q.begin(b, first, end)
	clear(q.queries) // nothing is held on to
	q.queries = q.queries[:0]
	if b.table != nil {
		q.rows.kept.rewind()
		return q.rowsOf(b.table, first, end), q.sumK, true
	}
	q.conds.rewind()
	q.vals.rewind()
	for i := first; i < end; i++ {
		q.next(b, i)
		q.queries = append(q.queries, q.element())
		if q.r.failed() != nil {
			return nil, q.sumK, false
		}
	}
	return q.queries, q.sumK, true
}

// begin begins the decoding of queries of a batch.
func (q *queryDecoder) begin(b *Batch, first, end int) {
	q.limits, q.sumK = &b.limits, 0
	if b.codec == MessagePack && first < end && b.table == nil {
		q.own = msgpackReader{text: b.text, off: b.starts[first], maxDepth: b.limits.Depth,
			open: append(q.own.open[:0], container{object: true}, container{left: uint64(end - first)})}
		q.r, q.quick = &q.own, &q.own
	}
}

// next goes on to a query of the batch.
func (q *queryDecoder) next(b *Batch, i int) {
	if b.codec == JSON {
		q.json.reset(b.body[b.starts[i]:], b.text[b.starts[i]:], b.depth())
		q.r, q.quick = &q.json, nil
	}
}
