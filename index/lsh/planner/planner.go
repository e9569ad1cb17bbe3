// Package planner says how many hash functions an estimate of similarity needs: GENIE's Theorem 4.1 and Eqn 9, and the bound of hits that were selected.
//
// An object agrees with a query on c of m functions, each with probability s. So c is binomial, c/m estimates s, and the question is how large m must be for |c/m - s| <= epsilon with
// probability 1 - delta.
//
//   - Theorem 4.1 bounds it by Hoeffding's inequality, whatever s is and with re-hashing.
//   - Eqn 9 adds up the binomial terms, for each s. As m grows, the number of counts that lie within epsilon grows in steps, so the
//     probability is a saw, and "the least m" needs a rule. Rule says which is used here; others give 202 to 258 where this one gives 258 at epsilon = delta = .06, and the
//     paper's 237 is none of them: it is a default of indexes and no result of this package.
//   - Both are about one pair that was fixed before. Hits are the best of N objects, whose counts are large by luck too: Selected.
package planner

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Rule is how Eqn9 reads the paper, for people.
const Rule = "the least m from which on every m has P(|c/m - s| <= epsilon) >= 1 - delta, both ends included"

// Least are the least epsilon and delta that are planned for, so that planning ends soon.
const Least = 0.002

// Check returns what is wrong with epsilon and delta.
func Check(epsilon, delta float64) error {
	switch {
	case !(epsilon >= Least && epsilon < 1):
		return fmt.Errorf("epsilon %g: take at least %g and less than 1", epsilon, Least)
	case !(delta > 0 && delta < 1):
		return fmt.Errorf("delta %g: take more than 0 and less than 1", delta)
	}
	return nil
}

// Theorem41 returns m = 2 ln(3/delta) / epsilon^2 of Theorem 4.1, rounded up: 2,174 at epsilon = delta = .06.
func Theorem41(epsilon, delta float64) int {
	return int(math.Ceil(2 * math.Log(3/delta) / (epsilon * epsilon)))
}

// Within returns P(|c/m - s| <= epsilon) of a binomial c of m trials of probability s: Eqn 9, both ends included. Ends that are whole numbers but for rounding are whole.
func Within(m int, s, epsilon float64) float64 {
	const rounding = 1e-9
	lo := int(math.Ceil((s-epsilon)*float64(m) - rounding))
	hi := int(math.Floor((s+epsilon)*float64(m) + rounding))
	if hi < lo {
		return 0
	}
	// What is outside is small, and added up keeps its digits.
	return 1 - below(m, s, lo) - below(m, 1-s, m-hi)
}

// below is P(c < n) of a binomial c of m trials of probability s: a regularised incomplete beta function.
func below(m int, s float64, n int) float64 {
	switch {
	case n <= 0:
		return 0
	case n > m:
		return 1
	}
	return mathext.RegIncBeta(float64(m-n+1), float64(n), 1-s)
}

// Eqn9 returns the number of functions that Eqn 9 asks for at similarity s by the Rule.
func Eqn9(s, epsilon, delta float64) int {
	// Chernoff's bound says from where on it holds for sure. From there down is the last m for which it does not.
	rate := min(divergence(min(s+epsilon, 1), s), divergence(max(s-epsilon, 0), s))
	m := int(math.Ceil(math.Log(2/delta) / rate))
	for m > 0 && Within(m, s, epsilon) >= 1-delta {
		m--
	}
	return m + 1
}

// divergence is that of Kullback and Leibler, of coins of probabilities p and q.
func divergence(p, q float64) float64 {
	sum := 0.0
	if p > 0 {
		sum += p * math.Log(p/q)
	}
	if p < 1 {
		sum += (1 - p) * math.Log((1-p)/(1-q))
	}
	return sum
}

// Point is a number of functions for a similarity.
type Point struct {
	Similarity float64 `json:"s"`
	Functions  int     `json:"m"`
}

// Curve returns Eqn9 for the similarities 1/n to (n-1)/n: Figure 8. The largest is that of the worst of them, the one nearest to 1/2 if there are several.
func Curve(epsilon, delta float64, n int) (points []Point, largest Point) {
	for i := 1; i < n; i++ {
		p := Point{float64(i) / float64(n), 0}
		// Eqn 9 is the same for s and 1 - s.
		if j := n - i; j < i {
			p.Functions = points[j-1].Functions
		} else {
			p.Functions = Eqn9(p.Similarity, epsilon, delta)
		}
		points = append(points, p)
		nearer := math.Abs(p.Similarity-.5) < math.Abs(largest.Similarity-.5)
		if p.Functions > largest.Functions || p.Functions == largest.Functions && nearer {
			largest = p
		}
	}
	return points, largest
}

// Selected returns the epsilon of hits: with probability 1 - delta the estimates of all of N objects by m functions are within it, so also those of whichever are chosen among them
// by their counts. It is Hoeffding's inequality for all of them at once, sqrt(ln(2N/delta) / (2m)).
func Selected(objects uint64, m int, delta float64) float64 {
	return math.Sqrt((math.Log(2/delta) + math.Log(float64(objects))) / (2 * float64(m)))
}
