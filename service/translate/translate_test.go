package translate

import (
	"reflect"
	"testing"

	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/wire"
)

// One converter, used again and again for lists of all lengths and forms, gives what the conditions say: nothing of
// an earlier list, and no pointer to memory that moved.
func TestConverterIsUsedAgain(t *testing.T) {
	random := seeded.Rand(t)
	value := func() (wire.Value, column.Value) {
		switch random.IntN(3) {
		case 0:
			v := random.Float64()
			return wire.Number(v), column.NumberValue(v)
		case 1:
			return wire.String("s"), column.StringValue("s")
		}
		v := random.IntN(2) == 0
		return wire.Bool(v), column.BoolValue(v)
	}
	var c converter
	for round := range 200 {
		from := make([]wire.Condition, random.IntN(40))
		want := make([]column.Condition, len(from))
		for i := range from {
			f, w := &from[i], &want[i]
			f.Attr, f.Bucket, f.Weight = "a", random.IntN(2) == 0, random.Uint32N(9)
			w.Attr, w.Bucket, w.Weight = f.Attr, f.Bucket, f.Weight
			pointer := func(v *wire.Value) *column.Value {
				var p column.Value
				*v, p = value()
				return &p
			}
			switch random.IntN(4) {
			case 0:
				w.Value = pointer(&f.Value)
			case 1:
				w.Min, w.Max = pointer(&f.Min), pointer(&f.Max)
			case 2:
				w.Max = pointer(&f.Max)
			default:
				f.In, w.In = make([]wire.Value, random.IntN(20)), []column.Value{}
				for j := range f.In {
					var v column.Value
					f.In[j], v = value()
					w.In = append(w.In, v)
				}
			}
		}
		if got := c.request(&wire.Query{Items: from}).Conditions; len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d:\n got %+v\nwant %+v", round, got, want)
		}
	}
}
