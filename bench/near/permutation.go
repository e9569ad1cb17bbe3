package near

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/geniemq/geniemq/bench/sets"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/distance"
)

// PermutationResult is the share of the neighbours that rank vectors find.
type PermutationResult struct {
	Head
	Question          // Recall: what was asked for, and Fraction what it came to
	Permutants int    `json:"permutants"`
	Similarity string `json:"similarity"`
	Members    bool   `json:"members"` // queries are objects; else they are none
	Queries    int    `json:"queries"`

	Found float64 `json:"found"`
	// Expected is what the index says, and Low the bound of its interval; 0: nothing is said.
	Expected float64 `json:"expected,omitempty"`
	Low      float64 `json:"expected_low,omitempty"`
	Took     float64 `json:"took_us"`
	Scan     float64 `json:"scan_us"` // what comparing all takes
}

func permutation() Measurement {
	return Measurement{
		Name: "permutation", Short: "Measure the recall of rank vectors, and what they save",
		Long: `Permutation builds permutation indexes of 64 and 128 permutants, by rho and by the footrule, and asks for the nearest and for what is within a
radius with 0.1 to 30 % of the objects compared, by queries that are objects and by others, and with a recall of 0.95. It tells the share that is found, the one that the index
expects, and what that takes beside a scan.`,
		Sets: []string{"letters", "sift", "atmosphere", "dna64", "color"},
		Run: func(ctx context.Context, o *Options, set string, tell func(Result) error) error {
			s, err := sets.Open(set, o.Options)
			if err != nil {
				return err
			}
			for _, permutants := range []int{64, 128} {
				for _, similarity := range []string{"rho", "footrule"} {
					paths := fmt.Sprintf("index: [permutation], permutation: {permutants: %d, similarity: %s}", permutants, similarity)
					l, err := o.load(ctx, s, paths)
					if err != nil {
						return err
					}
					about := PermutationResult{Permutants: permutants, Similarity: similarity}
					if err := l.recall(ctx, about, tell); err != nil {
						return err
					}
					if err := l.Close(); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}
}

// recall asks for all that is measured of one index.
func (l *loaded) recall(ctx context.Context, about PermutationResult, tell func(Result) error) error {
	about.Head = l.head("permutation")
	radii := l.set.Radii
	if !l.set.Texts() {
		radii = nil
	}
	for _, about.Members = range []bool{false, true} {
		requests := l.set.Asked
		if about.Members {
			requests = l.set.Members(len(requests))
		}
		about.Queries = len(requests)
		if err := l.each([]int{1, 2, 10, 100}, radii, func(q Question) error {
			if q.Radius > 0 {
				q.K = gpuexec.MaxK
			}
			q.Method = distance.Scan
			all, err := l.ask(ctx, requests, q)
			if err != nil {
				return err
			}
			about.Scan = all.Took
			q.Method = "permutation"
			for _, q.Fraction = range []float64{.001, .003, .01, .03, .05, .1, .2, .3} {
				if err := l.permuted(ctx, about, requests, q, all, tell); err != nil {
					return err
				}
			}
			if q.Radius > 0 {
				return nil // of which the index says nothing
			}
			q.Fraction, q.Recall = 0, 0.95
			return l.permuted(ctx, about, requests, q, all, tell)
		}); err != nil {
			return err
		}
	}
	return nil
}

// permuted asks for one fraction, or one recall.
func (l *loaded) permuted(ctx context.Context, r PermutationResult, requests []index.Request, q Question, all *asked, tell func(Result) error) error {
	if q.Radius > 0 {
		q.K = max(1, int(math.Ceil(q.Fraction*float64(len(l.set.Objects))))) // since as many as hits are compared at least
	}
	a, err := l.ask(ctx, requests, q)
	if err != nil {
		return err
	}
	r.Question, r.Took = q, a.Took
	found, any := a.found(all)
	if !any {
		return nil
	}
	r.Found = round(found, 4)
	if q.Radius > 0 {
		r.Question.K = 0
	}
	first := a.answers[0].Value.(*distance.Answer)
	r.Question.Fraction, r.Expected = first.Fraction, round(first.Recall, 4)
	rows := l.column.Recalls()
	if at := slices.IndexFunc(rows, func(x distance.Recalled) bool { return int(x.K) == q.K && x.Effort == first.Fraction }); at >= 0 {
		r.Low = round(rows[at].Low, 4)
	}
	return tell(&r)
}

// found is the share of what there is to find in all answers, if there is anything: an object is found if one that is as near is answered.
func (a *asked) found(all *asked) (share float64, any bool) {
	sum, n := 0.0, 0.0
	for i := range a.answers {
		want := all.answers[i].Hits
		if len(want) == 0 {
			continue
		}
		n++
		most, got := want[len(want)-1].Score, 0
		for _, h := range a.answers[i].Hits {
			if h.Score <= most {
				got++
			}
		}
		sum += float64(got) / float64(len(want))
	}
	return sum / max(1, n), n > 0
}

// Line implements Result.
func (r *PermutationResult) Line() string {
	who := "held out"
	if r.Members {
		who = "members"
	}
	return fmt.Sprintf("%s, %v, %d permutants, %s, %s, fraction %g: %.1f %% found (%.1f expected), %.1f us, scan %.1f", r.Set, &r.Question, r.Permutants, r.Similarity, who,
		r.Fraction, 100*r.Found, 100*r.Expected, r.Took, r.Scan)
}
