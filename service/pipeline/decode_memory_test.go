package pipeline

import (
	"encoding/base64"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/wire"
)

// Whatever a message is composed of, decoding it takes no more than is reserved for that, and what remains of it is no more than
// is reserved for it.
func TestDecodingKeepsToItsBound(t *testing.T) {
	p := decodingPipeline(t, 8, wire.Limits{})
	l := new(lane)
	l.set(p, wire.ClassQuery, 7, 1, 0, 0) // who decode help each other
	defer l.decoders.Drain()
	const size = 1 << 20
	fill := func(open, one, end string, most int) string { // as many as fit
		n := min(most, (size-len(open)-len(end))/(len(one)+1))
		return open + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + end
	}
	var row strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&row, `,"%x":1`, i)
	}
	in := fill(`{"items":[{"attr":"n","in":[`, "1", `]}]}`, 60_000)
	bodies := map[string]string{
		"values":            fill(`{"queries":[`, in, `]}`, 1<<20),
		"values, unusual":   fill(`{"quer\u0069es":[`, in, `]}`, 1<<20),
		"conditions":        fill(`{"queries":[`, fill(`{"items":[`, `{"attr":"n","value":1}`, `]}`, 60_000), `]}`, 1<<20),
		"row":               fill(`{"queries":[`, `{"row":{`+row.String()[1:]+`}}`, `]}`, 1<<20),
		"row, unusual":      fill(`{"quer\u0069es":[`, `{"row":{`+row.String()[1:]+`}}`, `]}`, 1<<20),
		"row, one":          `{"row":{` + row.String()[1:] + `}}`,
		"queries, unusual":  fill(`{"quer\u0069es":[`, `{"row":{"n":1}}`, `]}`, 65_000),
		"small, unusual":    fill(`{"quer\u0069es":[`, `{}`, `]}`, 65_000),
		"queries":           fill(`{"queries":[`, `{"row":{"n":1}}`, `]}`, 65_000),
		"malformed queries": fill(`{"queries":[`, `{"k":0}`, `]}`, 65_000),
		"nothing":           fill(`{"queries":[`, `{}`, `]}`, 65_000),
		"many hits":         fill(`{"queries":[`, `{"k":65536,"row":{"n":{"min":0}}}`, `]}`, 16),
		"short nothing":     fill(`{"queries":[`, `{}`, `]}`, 10_000),
		"short values":      fill(`{"items":[{"attr":"n","in":[`, "1", `]}]}`, 15_000),
		"short row":         `{"row":{` + row.String()[1:30_000] + `:1}}`,
		"deep":              fill(`{"queries":[`, strings.Repeat("[", 12)+strings.Repeat("]", 12), `]}`, 65_000),
		"text":              fill(`{"queries":[`, `{"text":"`+strings.Repeat("x", 60_000)+`"}`, `]}`, 1<<20),
		"broken at the end": fill(`{"queries":[`, in, `}`, 1<<20),
	}
	var attrs strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&attrs, `,"%x"`, i)
	}
	zeros := func(n int) string { return base64.StdEncoding.EncodeToString(make([]byte, n)) }
	maps.Copy(bodies, map[string]string{ // what they become is bounded as a list of the largest size is
		"table of nothing":        `{"table":{"rows":65536}}`,
		"table of conditions":     `{"table":{"rows":40000,"query":{"items":[` + strings.Repeat(`{"attr":"n","value":1},`, 6) + `{"attr":"n","value":1}]}}}`,
		"table of rows":           `{"table":{"rows":20,"query":{"row":{` + row.String()[1:400_000] + `:1}}}}`,
		"table of attributes":     `{"table":{"rows":12,"items":[{"attrs":[` + attrs.String()[1:] + `],"value":{"u8":"` + zeros(12*60_000) + `"}}]}}`,
		"table of values":         `{"table":{"rows":1000,"items":[{"attrs":[` + attrs.String()[1:501] + `"],"value":[` + strings.Repeat("1,", 63_999) + `1]}]}}`,
		"table, unusual":          `{"t\u0061ble":{"rows":65536,"query":{"row":{"n":1}}}}`,
		"table too large":         `{"table":{"rows":65536,"query":{"items":[` + strings.Repeat(`{"attr":"n","value":1},`, 60) + `{"attr":"n","value":1}]}}}`,
		"short table":             `{"table":{"rows":2000,"query":{"row":{"n":1}}}}`,
		"short table, wide":       `{"table":{"rows":8,"items":[{"attrs":[` + attrs.String()[1:9_000] + `"],"value":{"u8":"` + zeros(8*(strings.Count(attrs.String()[:9_000], ","))) + `"}}]}}`,
		"table broken at the end": `{"table":{"rows":65536,"query":{"row":{"n":1}}}}}`,
	})
	const asBlock = ", compressed"
	for _, name := range []string{"values", "values, unusual", "short values"} {
		bodies[name+asBlock] = bodies[name]
	}
	defer debug.SetGCPercent(debug.SetGCPercent(5)) // what there is is what is alive, nearly
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			bound := int64(len(body))*wholeFactor + wholeBytes
			if len(body) < minShared {
				bound = int64(len(body)) * smallFactor
				if strings.HasPrefix(body, `{"table":`) { // if there is so much, decoders help
					bound += partsBytes
				}
			}
			compress := strings.HasSuffix(name, asBlock)
			if compress {
				bound += int64(len(body))
			}
			var took, left, need int64
			for try := range 40 { // garbage that was not collected in time counts too, and there is always some on a busy machine
				time.Sleep(time.Duration(try) * 10 * time.Millisecond)
				took, left, need = decodingTakes(t, p, l, body, compress)
				if took <= bound+need && left <= need+256<<10 {
					break
				}
			}
			t.Logf("%d bytes: decoding took %d (%.1f each) of %d, %d are left of %d", len(body), took, float64(took)/float64(len(body)), bound, left, need)
			if took > bound+need {
				t.Errorf("decoding %d bytes took %d, the bound is %d", len(body), took, bound)
			}
			if left > need+256<<10 {
				t.Errorf("%d bytes are left, the bound is %d", left, need)
			}
		})
	}
}

// decodingTakes is the most memory that there was while a body was decoded, what is left of it, and what the request says it needs.
func decodingTakes(t *testing.T, p *Pipeline, l *lane, body string, compress bool) (took, left, need int64) {
	heap := func() int64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	p.memory = pools{}
	runtime.GC()
	before := heap()
	r := message(p, wire.JSON, []byte(body), l)
	if compress {
		r = compressed(r)
	}
	most, stop := make(chan int64), make(chan struct{})
	go func() {
		peak := int64(0)
		for {
			peak = max(peak, heap())
			select {
			case <-stop:
				most <- peak
				return
			case <-time.After(200 * time.Microsecond):
			}
		}
	}()
	_ = p.decode(r) // some bodies are refused, late
	close(stop)
	took = <-most - before
	runtime.GC()
	runtime.GC()
	left = heap() - before
	need, err := p.need(r)
	if err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(r)
	return took, left, need
}
