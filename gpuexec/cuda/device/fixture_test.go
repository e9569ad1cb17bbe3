//go:build cuda

package device

import (
	"math"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/verify"
)

// loadHost makes an index resident on a CPU engine, to compare with.
func loadHost(t testing.TB, x *index.Index, opts gpuexec.CPUOptions) gpuexec.Searcher {
	t.Helper()
	return enginetest.LoadOn(t, cpu.New(opts), x)
}

// loadedIndex is an index on one device, and what of it the tests look at.
type loadedIndex struct {
	gpuexec.Searcher
	matcher  *cudaSearcher
	resident *resident
}

// onDevice looks into a searcher of one device.
func onDevice(s gpuexec.Searcher) loadedIndex {
	m := matcherOf(s)
	return loadedIndex{s, m, m.resident}
}

// matcherOf is nil for a group of devices.
func matcherOf(s gpuexec.Searcher) *cudaSearcher {
	if l, ok := s.(loadedIndex); ok {
		return l.matcher
	}
	if s, ok := s.(*run.Searcher); ok {
		return s.Matcher(postings.FamilyName).(*cudaSearcher)
	}
	return nil
}

// scanFor asks for a scan, for objects at a distance of at most within.
func scanFor(texts verify.Texts, ngram int, text []rune, k, within int, minCount uint32) *run.ScanJob {
	r := (&verify.Nearest{Texts: texts, NGram: ngram, Text: text, K: k}).New(nil)
	if within < math.MaxInt32-1 { // so many have been found that are one farther away
		candidates, known := make([]verify.Candidate, k), make([]float64, k)
		for i := range known {
			candidates[i], known[i] = verify.Candidate{ID: math.MaxUint32 - uint32(i), Count: math.MaxUint32}, float64(within+1)
		}
		if err := r.Offer(candidates, known, nil, 0); err != nil {
			panic(err)
		}
	}
	return &run.ScanJob{Rescorer: r, MinCount: minCount}
}
