// Package crowd is what a run of tests/faults asks: a table of random data, questions about it and their answers by brute force. All of it follows from a seed.
package crowd

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/wire"
)

// IndexName is the index that is asked.
const IndexName = "crowd"

const tableSchema = `
name: crowd
kind: rows
columns:
  - {name: age, type: number, edges: exact}
  - {name: city, type: category}
  - {name: tags, type: category, split: "|"}
`

// Table is random data, all of which follows from a seed, so that the judge needs no more than that.
type Table []row

type row struct {
	age  int
	city string
	tags []string
}

// New makes the table of a seed.
func New(seed uint64) Table {
	rng := rand.New(rand.NewPCG(seed, 1))
	t := make(Table, 2000)
	for i := range t {
		r := &t[i]
		r.age, r.city = rng.IntN(100), fmt.Sprintf("city%d", rng.IntN(40))
		for range rng.IntN(4) {
			r.tags = append(r.tags, fmt.Sprintf("tag%d", rng.IntN(20)))
		}
	}
	return t
}

// Build writes the table's index into dir and returns its path and version.
func (t Table) Build(dir, name string) (path, version string, err error) {
	var csv strings.Builder
	csv.WriteString("age,city,tags\n")
	for _, r := range t {
		fmt.Fprintf(&csv, "%d,%s,%s\n", r.age, r.city, strings.Join(r.tags, "|"))
	}
	spec, err := index.Builtin().ParseSchema([]byte(tableSchema))
	if err != nil {
		return "", "", err
	}
	reader, err := load.NewReader(strings.NewReader(csv.String()), "crowd.csv", spec, load.Options{})
	if err != nil {
		return "", "", err
	}
	next, err := index.Builtin().Learn(spec, reader.Next, nil)
	if err != nil {
		return "", "", err
	}
	objects, err := index.NewObjects(spec, index.BuilderOptions{})
	if err != nil {
		return "", "", err
	}
	if err := objects.AddAll(context.Background(), index.Source{Next: next}); err != nil {
		return "", "", err
	}
	path = filepath.Join(dir, name)
	if err := objects.WriteFile(context.Background(), path, nil); err != nil {
		return "", "", err
	}
	x, err := index.Open(path)
	if err != nil {
		return "", "", err
	}
	defer x.Close()
	return path, x.Version(), nil
}

// WrongEvery: one query in so many is no legal one, and must be answered with an error.
const WrongEvery = 100

// TimedEvery: one query in so many must be answered within a time that is beyond all patience: only a clock that is set can use it up.
const (
	TimedEvery = 7
	Timeout    = 30 * time.Minute
)

// Question n of a seed.
func Question(seed uint64, n int) (q wire.Query, asked Asked) {
	rng := rand.New(rand.NewPCG(seed, 1000+uint64(n)))
	a := askedOf(rng)
	q = wire.Query{ID: QuestionID(seed, n), K: a.k, Row: client.Conditions(client.Between("age", a.low, a.high),
		client.Weighted(uint32(a.weight), client.Equal("city", a.city)), client.Equal("tags", a.tag))}
	if n%TimedEvery == TimedEvery-1 {
		q.TimeoutMS, a.timeout = uint32(Timeout.Milliseconds()), Timeout
	}
	if n%WrongEvery == WrongEvery-1 {
		q.Row = append(q.Row, client.Equal("no such column", 1))
		a.wrong = true
	}
	return q, a
}

// QuestionID is the id of question n.
func QuestionID(seed uint64, n int) string { return fmt.Sprintf("%x-%d", seed&0xffffff, n) }

// Asked is what a question says.
type Asked struct {
	k, low, high, weight int
	city, tag            string
	wrong                bool
	timeout              time.Duration
}

// Timeout is within what it must be answered, 0 for ever.
func (a Asked) Timeout() time.Duration { return a.timeout }

func askedOf(rng *rand.Rand) Asked {
	low := rng.IntN(100)
	return Asked{1 + rng.IntN(10), low, low + rng.IntN(20), 1 + rng.IntN(3), fmt.Sprintf("city%d", rng.IntN(40)), fmt.Sprintf("tag%d", rng.IntN(20)), false, 0}
}

// wrongAnswer is what a result with an error is written as, with its code. wrongQuery is that of a query for a column that is not there,
// TooLate that of one whose timeout was over.
const (
	wrongAnswer = "error"
	wrongQuery  = wrongAnswer + " " + string(wire.BadRequest)
	TooLate     = wrongAnswer + " " + string(wire.DeadlineExceeded)
)

// Answer by brute force, as "id:count id:count".
func (t Table) Answer(a Asked) string {
	if a.wrong {
		return wrongQuery
	}
	type hit struct{ id, count int }
	var hits []hit
	for i, r := range t {
		count := 0
		if a.low <= r.age && r.age <= a.high {
			count++
		}
		if r.city == a.city {
			count += a.weight
		}
		for _, tag := range r.tags { // repeats count each
			if tag == a.tag {
				count++
			}
		}
		if count > 0 {
			hits = append(hits, hit{i, count})
		}
	}
	slices.SortStableFunc(hits, func(x, y hit) int { return y.count - x.count })
	text := make([]string, 0, a.k)
	for _, h := range hits[:min(a.k, len(hits))] {
		text = append(text, fmt.Sprintf("%d:%d", h.id, h.count))
	}
	return strings.Join(text, " ")
}

// AnswerText is a result in the same form.
func AnswerText(r *wire.Result) string {
	if r.Err != nil {
		return wrongAnswer + " " + string(r.Err.Code)
	}
	text := make([]string, len(r.Hits))
	for i, h := range r.Hits {
		text[i] = fmt.Sprintf("%s:%d", h.Key, h.Count)
	}
	return strings.Join(text, " ")
}
