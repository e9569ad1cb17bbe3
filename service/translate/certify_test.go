package translate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/internal/testkit/jsonlines"
	"github.com/geniemq/geniemq/wire"
)

// TestCertifyLimitOfMeasures: a query whose proof may take more than certify-limit is refused before it runs, by each measure that can prove anything: to the
// tick. Without certify, and without a limit, it is not.
func TestCertifyLimitOfMeasures(t *testing.T) {
	var lines strings.Builder
	for i := range 300 {
		fmt.Fprintf(&lines, `{"t":"red shoes %d","e":["x","%d"],"s":"ab%d","v":[%d,2,3],"tree":"{a{b}{c%d}}","graph":{"labels":["a","b"],"edges":[[0,1]]}}`+"\n", i%7, i%5, i, i, i%3)
	}
	x, err := index.OpenBytes(jsonlines.Build(t, "name: n\ncolumns: [{name: t, type: text}, {name: e, type: set}, {name: s, type: string}, {name: v, type: vector, functions: 6}, "+
		"{name: tree, type: tree}, {name: graph, type: graph}]", lines.String()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	plan := func(limit int64, text string) *Query {
		e, err := New("n", x, limit)
		if err != nil {
			t.Fatal(err)
		}
		m, err := wire.DecodeMessage(wire.JSON, []byte(text), wire.Limits{})
		if err != nil || m.Queries[0].Err != nil {
			t.Fatalf("%s: %v %v", text, err, m)
		}
		q := new(Query)
		e.Plan(q, &m.Queries[0].Query)
		return q
	}
	for by, row := range map[string]string{
		"jaccard": `"t":"red shoes"`, "dice": `"e":["x","1"]`, "cosine": `"t":"red shoes 3"`, "containment": `"e":["x"]`, "bm25": `"t":"shoes"`, "edit": `"s":"ab17"`,
		"l2": `"v":[5,2,3]`, "l1": `"v":[5,2,3]`, "ip": `"v":[5,2,3]`, "angular": `"v":[5,2,3]`, "tree": `"tree":"{a{b}{c1}}"`,
		"graph": `"graph":{"labels":["a","b"],"edges":[[0,1]]}`,
	} {
		certified := fmt.Sprintf(`{"row":{%s},"rescore":{"by":%q},"certify":true,"k":3}`, row, by)
		free := plan(0, certified)
		if free.Err != nil || !free.Plan.Certify || free.Plan.Rescore == nil {
			t.Errorf("%s without a limit: %v", by, free.Err)
			continue
		}
		work := int64(free.Plan.Rescore.Work(int(x.Objects())))
		if work < 100 {
			t.Errorf("%s: comparing with %d objects is %d ns of work", by, x.Objects(), work)
		}
		if q := plan(symbolsPerTick*work, certified); q.Err != nil {
			t.Errorf("%s with the limit that it needs: %v", by, q.Err)
		}
		q := plan(symbolsPerTick*(work-1), certified)
		if q.Err == nil || q.Err.Code != wire.TooLarge || !strings.Contains(q.Err.Message, "by "+by+" with all 300 objects") || !strings.Contains(q.Err.Message, "certify-limit") {
			t.Errorf("%s with a limit of a tick less: %v", by, q.Err)
		}
		if q := plan(1, strings.Replace(certified, `"certify":true,`, "", 1)); q.Err != nil {
			t.Errorf("%s without certify: %v", by, q.Err)
		}
	}
}
