package schema_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/geniemq/geniemq/index/schema"
)

// A number is shown in few letters, whatever its size, and as the number that it is.
func TestShownNumber(t *testing.T) {
	for v, want := range map[float64]string{
		1e308: "1e+308", -1e308: "-1e+308", 1e-300: "1e-300", 5e-324: "5e-324", 0: "0", math.Copysign(0, -1): "0", 1e6: "1000000", 1234.5: "1234.5",
		1e-6: "0.000001", 1e20: "100000000000000000000", 1e21: "1e+21", 9e-7: "9e-07", math.MaxFloat64: "1.7976931348623157e+308",
	} {
		got := schema.ShownNumber(v)
		if back, err := strconv.ParseFloat(got, 64); got != want || err != nil || back != v {
			t.Errorf("%g is shown as %s, want %s", v, got, want)
		}
	}
}
