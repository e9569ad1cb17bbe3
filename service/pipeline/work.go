package pipeline

import (
	"sync"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/distance"
)

// workEstimates say in advance how long comparing texts will take for a query, in time of one core. A formula, which knows of the query and the index how many
// candidates there are and how long a comparison may take, is corrected by what queries really took: bounds and certificates save most of it, usually, and a
// scan of all texts adds to it, sometimes. Certified queries have a correction of their own.
type workEstimates struct {
	mu     sync.Mutex
	factor [classes]float64
}

func newWorkEstimates() *workEstimates { return &workEstimates{factor: [classes]float64{1, 1, 1}} }

// formula is the estimate without correction; 0 where only matches are counted.
func (e *workEstimates) formula(p *gpuexec.Plan) time.Duration {
	if near, ok := p.Query.(*distance.Query); ok {
		return near.Work()
	}
	if p.Rescore == nil {
		return 0
	}
	return p.Rescore.Work(p.Candidates())
}

// classes of queries have a correction each: with certify, without, and searches by distance.
const classes = 3

func class(p *gpuexec.Plan) int {
	switch {
	case p.Certify:
		return 0
	case p.Rescore == nil:
		return 2
	}
	return 1
}

// of estimates what is left to do for tasks.
func (e *workEstimates) of(tasks []*task) (work time.Duration) {
	var formulas [classes]time.Duration
	for _, t := range tasks {
		if t.formula == 0 {
			continue
		}
		if u := t.Plan.Unfinished; u != nil && u.Left() > 0 {
			work += u.Left()
		} else {
			formulas[class(&t.Plan)] += t.formula
		}
	}
	if formulas == [classes]time.Duration{} {
		return work
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, sum := range formulas {
		work += time.Duration(float64(sum) * e.factor[i])
	}
	return work
}

// seen is what some tasks took.
type seen struct {
	tasks          [classes]int
	formula, spent [classes]time.Duration
}

// add takes notice of a task that is done, or has taken longer than was expected.
func (s *seen) add(t *task) {
	if t.formula > 0 && t.spent > 0 {
		i := class(&t.Plan)
		s.tasks[i]++
		s.formula[i] += t.formula
		s.spent[i] += t.spent
	}
}

// learn corrects the estimates: hundreds of queries replace what was known before.
func (e *workEstimates) learn(s *seen) {
	for i, n := range s.tasks {
		if n == 0 {
			continue
		}
		e.mu.Lock()
		e.factor[i] += (float64(s.spent[i])/float64(s.formula[i]) - e.factor[i]) * min(1, float64(n)/100)
		e.mu.Unlock()
	}
}
