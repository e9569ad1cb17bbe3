package pipeline

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"testing"
	"time"

	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/wire"
)

// A message that is decoded while its index's file is cut off is told so, whichever of its decoders finds out, and the process lives.
func TestDecodeOfCutOffFile(t *testing.T) {
	for _, queries := range []int{1, 500, 3000} { // 500 as a table, which is short and yet shared
		for _, workers := range []int{1, 4} {
			t.Run(fmt.Sprintf("%d queries, %d decoders", queries, workers), func(t *testing.T) {
				p := decodingPipeline(t, workers, wire.Limits{})
				l := new(lane)
				l.set(p, wire.ClassQuery, workers-1, 1, 0, 0)
				defer l.decoders.Drain()
				asked := make([]wire.Query, queries)
				for i := range asked {
					asked[i].K = 3
					asked[i].Items = []wire.Condition{{Attr: "c", Value: wire.String(fmt.Sprint(i % 10))}}
				}
				body := wire.AppendQueries(nil, wire.JSON, asked)
				if queries == 500 {
					body, _ = wire.AppendTable(nil, wire.JSON, asked)
				}
				decode := func() (*Request, error) {
					defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
					r := message(p, wire.JSON, body, l)
					return r, p.decode(r)
				}
				if r, err := decode(); err != nil || r.queries != queries || r.epoch == 0 {
					t.Fatalf("%v, %d queries", err, r.queries)
				}
				path := p.index.Path()
				content, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Truncate(path, 0); err != nil {
					t.Fatal(err)
				}
				for range 2 { // the second time it is known before
					var changed *store.ChangedError
					if r, err := decode(); !errors.As(err, &changed) || r.queries != 0 {
						t.Errorf("%v, %d queries", err, r.queries)
					}
				}
				if err := os.WriteFile(path, content, 0); err != nil {
					t.Fatal(err)
				}
				for start := time.Now(); p.index.Reread(t.Context()) != nil; time.Sleep(10 * time.Millisecond) {
					if time.Since(start) > time.Minute {
						t.Fatal("the file is not trusted again")
					}
				}
				if r, err := decode(); err != nil || r.queries != queries {
					t.Errorf("with the old bytes: %v, %d queries", err, r.queries)
				}
			})
		}
	}
}
