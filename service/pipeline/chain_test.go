package pipeline

import (
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/internal/crew"
)

// Answers of a lane go out together as long as they are short, each once and in order; a message of several queries goes alone.
func TestChain(t *testing.T) {
	var handed [][]int
	number := make(map[*Request]int)
	lanes := make([]lane, 2)
	for i := range lanes {
		lanes[i].responders = crew.New(16, 1, func(r *Request) {
			var links []int
			for ; r != nil; r = r.after {
				links = append(links, number[r])
			}
			handed = append(handed, links)
		})
	}
	request := func(lane, queries, hits int) *Request {
		r := &Request{lane: &lanes[lane], tasks: make([]task, queries)}
		r.tasks[0].Answer.Hits = make([]gpuexec.Hit, hits)
		number[r] = len(number)
		return r
	}
	var c chain
	c.hand() // nothing
	for _, r := range []*Request{
		request(0, 1, 10), nil, request(0, 1, 10), request(0, 1, 10), request(0, 1, 10), // as many as there may be
		request(0, 1, 10), // begins anew
		request(0, 2, 1),
		request(0, 1, 1000),
		request(0, 1, 0), request(0, 1, 0),
		request(1, 1, 0),                      // of another lane
		request(1, 1, chainHits-2*answerHits), // exactly as many
		request(1, 1, 0),
	} {
		c.add(r)
		if r != nil && number[r] == 9 { // the first lane has all of its own
			lanes[0].responders.Drain()
		}
	}
	c.hand()
	lanes[1].responders.Drain()
	want := [][]int{{0, 1, 2, 3}, {4}, {5}, {6}, {7, 8}, {9, 10}, {11}}
	if !slices.EqualFunc(handed, want, slices.Equal[[]int]) {
		t.Errorf("handed on %v, want %v", handed, want)
	}
}
