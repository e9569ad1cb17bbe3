package pipeline

import (
	"sync"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
)

// workEstimates say in advance how long comparing texts will take for a query, in time of one core. A formula, which knows of the
// query and the index how many candidates there are and how long a comparison may take, is corrected by what queries really
// took: bounds and certificates save most of it, usually, and a scan of all texts adds to it, sometimes. Certified queries have
// a correction of their own.
type workEstimates struct {
	mu     sync.Mutex
	factor [2]float64 // with certify; without
}

func newWorkEstimates() *workEstimates { return &workEstimates{factor: [2]float64{1, 1}} }

// formula is the estimate without correction; 0 without rescoring.
func (e *workEstimates) formula(p *gpuexec.Plan) time.Duration {
	if p.Rescore == nil {
		return 0
	}
	return p.Rescore.Work(p.Candidates())
}

func class(p *gpuexec.Plan) int {
	if p.Certify {
		return 0
	}
	return 1
}

// of estimates what is left to do for tasks.
func (e *workEstimates) of(tasks []*task) (work time.Duration) {
	var formulas [2]time.Duration
	for _, t := range tasks {
		if t.formula == 0 {
			continue
		}
		if u := t.plan.Unfinished; u != nil && u.Left() > 0 {
			work += u.Left()
		} else {
			formulas[class(&t.plan)] += t.formula
		}
	}
	if formulas == [2]time.Duration{} {
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
	tasks          [2]int
	formula, spent [2]time.Duration
}

// add takes notice of a task that is done, or has taken longer than was expected.
func (s *seen) add(t *task) {
	if t.formula > 0 && t.spent > 0 {
		i := class(&t.plan)
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
