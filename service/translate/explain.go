package translate

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
)

// Bounds of an explanation, which is for people: what is beyond is counted.
const (
	maxExplainedItems  = 64 // entries, and parts of a filter
	maxExplainedHits   = 20
	maxExplainedSpans  = 3072 // of all items that are told: 20 hits each of as many queries as a message may have explained are looked up within its bound of lookups
	maxExplainedValues = 8    // of an item
	maxListed          = 4096 // keywords of an item whose lists are added up
	maxName            = 80   // bytes of a name or value
	// explainedBytes is what an explanation takes at most, encoded: where it would take more, fewer items are told.
	explainedBytes = 64 << 10
)

// Explanation is what an answer came from. Its fields are for people and may change.
type Explanation struct {
	Items []ExplainedItem `json:"items,omitempty"`
	// ItemsMore are the items of the query that Items leaves out, and MoreColumns the first of the columns that they ask.
	ItemsMore   int      `json:"items_more,omitempty"`
	MoreColumns []string `json:"more_columns,omitempty"`
	// Presences are what counts for a value that is there or missing.
	Presences []ExplainedPresence `json:"presences,omitempty"`
	Unknown   []UnknownValue      `json:"unknown,omitempty"`
	// UnknownMore says that there may be more values that no object has.
	UnknownMore bool            `json:"unknown_more,omitempty"`
	Filter      []ExplainedPart `json:"filter,omitempty"`
	FilterMore  int             `json:"filter_more,omitempty"` // parts of filter and exclude that Filter leaves out
	Order       string          `json:"order"`
	Hits        []ExplainedHit  `json:"hits,omitempty"`
	HitsMore    int             `json:"hits_more,omitempty"`
	Engine      string          `json:"engine,omitempty"`
	Postings    uint64          `json:"postings"` // that were counted
	Entries     uint64          `json:"entries"`  // that were candidates of some part of the work
	Rescoring   int64           `json:"rescoring_us,omitempty"`
	// Distance is of searches by distance, which count no postings.
	Distance *ExplainedDistance `json:"distance,omitempty"`
}

// ExplainedDistance is what a search by distance did.
type ExplainedDistance struct {
	Column    string   `json:"column"`
	Metric    string   `json:"metric"`
	Method    string   `json:"method"`    // that was taken
	Methods   []string `json:"methods"`   // that the column has
	Distances uint64   `json:"distances"` // that were computed
	Blocks    uint64   `json:"blocks"`    // of objects that were looked at
	Objects   uint32   `json:"objects"`   // of the index
	// Why the method was taken, and what the ways to answer were expected to take a core, in microseconds; Took is what this one did.
	Why  string         `json:"why,omitempty"`
	Took float64        `json:"took_us"`
	Ways []ExplainedWay `json:"ways,omitempty"`
}

// ExplainedWay is a way to answer a search by distance.
type ExplainedWay struct {
	Method    string  `json:"method"`
	Predicted float64 `json:"predicted_us"`
	Factor    float64 `json:"factor"` // that such queries took longer lately than was expected
	Exact     bool    `json:"exact"`
}

// ExplainedItem is an item of the query, or the hash functions of a vector in it, each of which is one.
type ExplainedItem struct {
	// First is the position of the first item in the query, and Items how many there are.
	First    int      `json:"first"`
	Items    int      `json:"items"`
	Column   string   `json:"column"`
	Weight   uint32   `json:"weight"`
	Keywords uint64   `json:"keywords"`
	Of       uint32   `json:"of"`               // keywords that there are
	Values   []string `json:"values,omitempty"` // the first ones; of numbers and dates from where to where; of hash functions none, which are numbers that say nothing
	Objects  uint64   `json:"objects"`          // in their lists
	AtLeast  bool     `json:"at_least,omitempty"`
	// By is what keywords are that are no texts: bucket or value, of numbers and dates; piece, of a string; hash, of hash functions.
	By string `json:"by,omitempty"`
}

// ExplainedPresence is a condition that counts for a value that is there or missing.
type ExplainedPresence struct {
	Column  string `json:"column"`
	Weight  uint32 `json:"weight"`
	Missing bool   `json:"missing"`
}

// UnknownValue is a value that no object has.
type UnknownValue struct {
	Column  string `json:"column"`
	Value   string `json:"value"`
	Nearest string `json:"nearest,omitempty"`
}

// ExplainedPart is a condition of filter or exclude.
type ExplainedPart struct {
	Columns  []string `json:"columns"`
	Excluded bool     `json:"excluded,omitempty"`
	// By is what decided: keyword; bucket, of numbers whose edge buckets were not needed; value, of such where stored values were looked at.
	By string `json:"by"`
}

// ExplainedHit says what counted.
type ExplainedHit struct {
	ID    uint32   `json:"id"`
	Count uint32   `json:"count"`
	Items []Counts `json:"items,omitempty"`
	// Presences are those that counted, by their positions.
	Presences []int `json:"presences,omitempty"`
	// More is what all items counted that the explanation leaves out: Count is the sum of Items, Presences and More.
	More uint64 `json:"more,omitempty"`
}

// Counts is an item, by its position in Items of the explanation, how many of its keywords a hit has, and what they counted.
type Counts struct {
	Item  int    `json:"item"`
	Times uint32 `json:"times"`
	Count uint64 `json:"count"`
}

// explain makes the explanation of an answer.
func (e *Translator) explain(q *Query, engine string) json.RawMessage {
	m, a := q.More, &q.Answer
	x := Explanation{
		Unknown: m.unknown, UnknownMore: m.unknownMore, Filter: e.explainFilter(&m.query), Order: "count", Engine: engine, Postings: a.Units, Entries: a.Candidates,
		Rescoring: a.Rescoring.Microseconds(),
	}
	if a.Scored {
		x.Order = "distance"
		if m.similarity {
			x.Order = "score"
		}
	}
	if m.query.Filter != nil {
		x.FilterMore = len(m.query.Filter.Groups) - len(x.Filter)
	}
	if m.near != nil {
		x.Distance, x.Postings = m.explainDistance(a), 0
	}
	for _, p := range m.query.Presences {
		x.Presences = append(x.Presences, ExplainedPresence{clipped(e.queries.ColumnOf(int(p.Attr))), p.Weight, p.Missing})
	}
	x.HitsMore = max(0, len(a.Hits)-maxExplainedHits)
	l := e.lookUp(&m.query, a.Hits[:len(a.Hits)-x.HitsMore])
	for most := uint32(maxExplainedItems); ; most /= 2 {
		l.explain(&x, most)
		text, err := json.Marshal(&x)
		switch {
		case err == nil && len(text) <= explainedBytes:
			return text
		case most == 0:
			return json.RawMessage(`{"order":"` + x.Order + `"}`) // filters alone are too long
		}
	}
}

// explainItem explains an item.
func (e *Translator) explainItem(m *postings.MatchQuery, item postings.Item) ExplainedItem {
	attr := int(item.Attr)
	a := e.index.Attribute(attr)
	x := ExplainedItem{Column: clipped(e.queries.ColumnOf(attr)), Weight: item.Weight, Of: a.Keywords, By: e.keywordsOf(a)}
	listed := 0
	for _, s := range m.ItemSpans(item) {
		x.Keywords += uint64(s.Hi - s.Lo)
		if a.Type == schema.Number && s.Hi > s.Lo && len(x.Values) < maxExplainedValues {
			x.Values = append(x.Values, between(e.index.KeywordName(attr, s.Lo), e.index.KeywordName(attr, s.Hi-1)))
		}
		for keyword := s.Lo; keyword < s.Hi; keyword++ {
			if a.Type != schema.Number && x.By != "hash" && len(x.Values) < maxExplainedValues {
				x.Values = append(x.Values, clipped(e.index.KeywordName(attr, keyword)))
			}
			if listed == maxListed {
				x.AtLeast = true
				break
			}
			listed++
			x.Objects += uint64(e.index.Frequency(attr, keyword))
		}
	}
	return x
}

// keywordsOf says what the keywords of an attribute are that are no texts.
func (e *Translator) keywordsOf(a *postings.Attribute) string {
	switch {
	case a.Type == schema.Ordinal:
		return "hash"
	case a.Type == schema.Number && a.Exact:
		return "value"
	case a.Type == schema.Number:
		return "bucket"
	}
	s := e.index.Schema()
	if s.Kind == schema.Sequences {
		return "piece"
	}
	for i := range s.Columns { // the strings as a whole are an attribute of another name
		if c := &s.Columns[i]; c.Name == a.Name && c.Type == schema.StringColumn {
			return "piece"
		}
	}
	return ""
}

// between are the numbers or dates from one keyword to another, which are values, or buckets such as [1, 2.5).
func between(first, last string) string {
	low, _, bucket := strings.Cut(strings.TrimPrefix(first, "["), ", ")
	_, high, _ := strings.Cut(last, ", ")
	switch {
	case !bucket && first == last:
		return first
	case !bucket:
		return first + " to " + last
	case strings.HasSuffix(high, ")"):
		return shortened(low) + " to below " + shortened(strings.TrimSuffix(high, ")"))
	}
	return shortened(low) + " to " + shortened(strings.TrimSuffix(high, "]"))
}

// shortened is the end of a bucket: a number with as many digits as people read; dates are as they are.
func shortened(end string) string {
	if v, err := strconv.ParseFloat(end, 64); err == nil {
		if short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 7, 64), 64); err == nil {
			return schema.ShownNumber(short)
		}
	}
	return end
}

// explainFilter explains the filter of a query.
func (e *Translator) explainFilter(m *postings.MatchQuery) []ExplainedPart {
	if m.Filter == nil {
		return nil
	}
	var parts []ExplainedPart
	for _, g := range m.Filter.Groups[:min(len(m.Filter.Groups), maxExplainedItems)] {
		part := ExplainedPart{Excluded: g.Negated, By: "keyword"}
		clauses := m.Filter.GroupClauses(g)
		for _, c := range clauses[:min(len(clauses), maxExplainedItems)] {
			if name := clipped(e.queries.ColumnOf(int(c.Attr))); !slices.Contains(part.Columns, name) {
				part.Columns = append(part.Columns, name)
			}
			a := e.index.Attribute(int(c.Attr))
			switch {
			case c.Edges.Count > 0:
				part.By = "value"
			case a.Type == schema.Number && !a.Exact:
				part.By = "bucket"
			}
		}
		parts = append(parts, part)
	}
	return parts
}
