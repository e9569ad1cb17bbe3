package similarity

import "github.com/geniemq/geniemq/index/metric/sums"

// Key compares the query with an object's vector of as many elements.
func Key[E Element](v *Vector, object []E) float64 {
	object = object[:len(v.query)] // a shorter one is a mistake of the caller
	switch v.metric {
	case L2:
		return sums.Squares(v.query, object)
	case L1:
		return sums.Differences(v.query, object)
	case IP:
		return 0 - sums.Dots(v.query, object) // 0-0 is 0, and -0 is not
	default:
		return v.angular(sums.Dots(v.query, object), sums.Norm(object))
	}
}

// Similarity says that a metric is reported as a score, of which more is better, and not as a distance.
func (m Metric) Similarity() bool { return m == IP }

// Total is W(Q).
func (s *Set) Total() uint64 { return s.total }
