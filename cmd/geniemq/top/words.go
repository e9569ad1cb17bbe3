package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/internal/human"
	"github.com/geniemq/geniemq/service/admin"
	"github.com/geniemq/geniemq/service/live"
)

// rate is a number per second: with a digit after the point where that says something.
func rate(v float64) string {
	if v >= 100 || v == float64(int64(v)) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

// seconds is a time with three digits or so.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	for unit := time.Microsecond; unit <= 10*time.Second; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit / 10).String()
		}
	}
	return d.Round(time.Second).String()
}

// span is the sizes of batches that are counted together: the ends double.
func span(upTo float64) string {
	if upTo <= 2 {
		return strconv.FormatFloat(upTo, 'f', 0, 64)
	}
	return fmt.Sprintf("%.0f-%.0f", upTo/2+1, upTo)
}

func list(counts []live.Count) string {
	var parts []string
	for _, c := range counts {
		parts = append(parts, c.Name+" "+rate(c.Count))
	}
	return strings.Join(parts, ", ")
}

// owners are who has how much of the engine's memory.
func owners(held []admin.EventHeld) *table.Table {
	type owner struct{ where, name string }
	sums := make(map[owner]int64)
	for _, h := range held {
		sums[owner{h.Where, h.Owner}] += h.Bytes
	}
	t := table.New(table.Text("memory of").Kept(), table.Text("on"), table.Number("bytes").Kept())
	for _, o := range slices.SortedFunc(maps.Keys(sums), func(a, b owner) int {
		return cmp.Or(strings.Compare(a.where, b.where), strings.Compare(a.name, b.name))
	}) {
		if sums[o] > 0 {
			t.Row(o.name, o.where, human.Bytes(sums[o]))
		}
	}
	return t
}
