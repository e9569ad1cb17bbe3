package bench

import (
	"testing"
	"time"

	"github.com/geniemq/geniemq/wire"
)

// The time of the last query is read from the end of an answer as decoding all of it would.
func TestLastTook(t *testing.T) {
	answer := &wire.Answer{Batch: true}
	for i := range 5 {
		us := time.Duration(1+i) * 1234567 * time.Microsecond
		answer.Results = append(answer.Results, wire.Result{
			ID: "took_us", Hits: []wire.Hit{{ID: 7, Count: 3}}, Took: wire.Took{Queue: us, Batch: 2 * us, Engine: us / 7, Verify: 0, Total: 5 * us},
		})
	}
	body := wire.AppendAnswer(nil, wire.MessagePack, answer)
	whole, err := wire.DecodeAnswer(wire.MessagePack, body)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := lastTook(body), whole.Results[4].Took; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := lastTook([]byte("none")); got != (wire.Took{}) {
		t.Errorf("of something else: %+v", got)
	}
}
