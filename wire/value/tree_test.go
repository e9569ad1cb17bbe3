package value_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/wire/value"
)

func tree(t *testing.T, add func(b *value.Builder)) value.Tree {
	t.Helper()
	var b value.Builder
	add(&b)
	got, err := b.Tree()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// What was built is found again, by every way there is to look.
func TestTree(t *testing.T) {
	v := tree(t, func(b *value.Builder) {
		b.Map()
		b.Name("near").Array().Float(52.5).Int(-13).End()
		b.Name("name").String(`a"b`)
		b.Name("none").Null()
		b.Name("raw").Bytes("\x00\xff")
		b.Name("open").Bool(true)
		b.Name("list").Array()
		for i := range 20 {
			b.Map().Name("i").Int(int64(i)).End()
		}
		b.End()
		b.End()
	})
	if v.Kind() != value.Map || v.Len() != 6 || v.IsZero() {
		t.Errorf("got %v of %d", v.Kind(), v.Len())
	}
	if got, want := string(v.AppendJSON(nil)), `{"near":[52.5,-13],"name":"a\"b","none":null,"raw":"AP8=","open":true,"list":[`; !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s...", got, want)
	}
	var names []string
	for name := range v.Members() {
		names = append(names, name)
	}
	if !slices.Equal(names, []string{"near", "name", "none", "raw", "open", "list"}) {
		t.Errorf("members %v", names)
	}
	near := slices.Collect(v.Member("near").Elements())
	if lat, ok := near[0].Float(); len(near) != 2 || !ok || lat != 52.5 {
		t.Errorf("near is %v", near)
	}
	if lon, ok := near[1].Int(); !ok || lon != -13 {
		t.Errorf("near is %v", near)
	}
	if v.Member("name").Text() != `a"b` || v.Member("raw").Text() != "\x00\xff" || !v.Member("open").Bool() || v.Member("none").Kind() != value.Null {
		t.Error("a scalar is not what it was")
	}
	last := slices.Collect(v.Member("list").Elements())[19]
	if i, ok := last.Member("i").Int(); !ok || i != 19 {
		t.Errorf("the last element is %s", last.AppendJSON(nil))
	}
	if missing := v.Member("missing"); !missing.IsZero() || missing.Kind() != value.None || string(missing.AppendJSON(nil)) != "null" {
		t.Error("what is not there is something")
	}
	if got, want := v.Extent(), (value.Extent{Nodes: 1 + 6 + 2 + 20*2, Depth: 3, Text: 4, Binary: 2}); got != want {
		t.Errorf("extent %+v, want %+v", got, want)
	}
	for range v.Member("near").Elements() {
		break // which a reader may do
	}
}

// A number is the same however it is spelled, and none is changed.
func TestNumbers(t *testing.T) {
	tests := []struct {
		texts   []string
		shown   string
		integer bool
		float   float64
	}{
		{[]string{"0", "0.0", "0e7", "0E-7"}, "0", true, 0},
		{[]string{"-0", "-0.0", "-0e9999999999999999999"}, "-0", false, math.Copysign(0, -1)},
		{[]string{"5", "5.0", "5e0", "0.5e1", "50e-1"}, "5", true, 5},
		{[]string{"0.1", "0.10", "1e-1", "0.01e1"}, "0.1", false, 0.1},
		{[]string{"9007199254740992", "9007199254740992.0", "9.007199254740992e15"}, "9007199254740992", true, 1 << 53},
		{[]string{"9007199254740993"}, "9007199254740993", true, 1 << 53},
		{[]string{"9.007199254740993e15"}, "9.007199254740993e15", false, 1 << 53},
		{[]string{"-9223372036854775808"}, "-9223372036854775808", true, -1 << 63},
		{[]string{"18446744073709551615"}, "18446744073709551615", false, 1 << 64},
		{[]string{"18446744073709551616"}, "18446744073709551616", false, 1 << 64},
		{[]string{"1e20", "100000000000000000000", "1.00e+20"}, "1e+20", false, 1e20},
		{[]string{"1e300", "0.001e303"}, "1e+300", false, 1e300},
		{[]string{"3.14159265358979323846"}, "3.14159265358979323846", false, math.Pi},
		{[]string{"0.30000000000000004"}, "0.30000000000000004", false, 0.30000000000000004},
		{[]string{"5e-324"}, "5e-324", false, 5e-324},
		{[]string{"1e-400"}, "1e-400", false, 0},
		{[]string{"123456789012345678901234567890"}, "123456789012345678901234567890", false, 123456789012345678901234567890},
	}
	for _, tt := range tests {
		var first value.Tree
		for i, text := range tt.texts {
			v := tree(t, func(b *value.Builder) { b.Number(text) })
			if first = cmpFirst(first, v); v != first {
				t.Errorf("%s is %s, and %s is %s", tt.texts[0], first.Number(), text, v.Number())
			}
			if i == 0 {
				again := tree(t, func(b *value.Builder) { b.Number(v.Number()) })
				if again != v {
					t.Errorf("%s is shown as %s, which is %s", text, v.Number(), again.Number())
				}
			}
			_, integer := v.Int()
			float, ok := v.Float()
			if v.Kind() != value.Number || v.Number() != tt.shown || integer != tt.integer || !ok || math.Float64bits(float) != math.Float64bits(tt.float) {
				t.Errorf("%s: %s %v %v %v, want %s %v %v", text, v.Number(), integer, float, ok, tt.shown, tt.integer, tt.float)
			}
		}
	}
	for _, v := range []float64{5, 0.1, 1e20, math.MaxFloat64, 1 << 53, 1<<53 + 2, -1 << 60, 5e-324, math.Copysign(0, -1)} {
		a := tree(t, func(b *value.Builder) { b.Float(v) })
		if b := tree(t, func(b *value.Builder) { b.Number(a.Number()) }); a != b {
			t.Errorf("%v is shown as %s, which is %s", v, a.Number(), b.Number())
		}
	}
	if v := tree(t, func(b *value.Builder) { b.Number("1e400") }); v.Number() != "1e400" {
		t.Errorf("1e400 is %s", v.Number())
	} else if _, ok := v.Float(); ok {
		t.Error("1e400 is a float64")
	}
}

func cmpFirst(first, v value.Tree) value.Tree {
	if first.IsZero() {
		return v
	}
	return first
}

// What is no value is refused, and does not spoil the next one.
func TestBuilderRefuses(t *testing.T) {
	var b value.Builder
	for name, add := range map[string]func(){
		"nothing":              func() {},
		"two values":           func() { b.Int(1).Int(2) },
		"an open array":        func() { b.Array().Int(1) },
		"an end of nothing":    func() { b.Int(1).End() },
		"a name alone":         func() { b.Map().Name("a").End() },
		"a value without name": func() { b.Map().Int(1).End() },
		"a name in an array":   func() { b.Array().Name("a").Int(1).End() },
		"a name at the top":    func() { b.Name("a") },
		"two names":            func() { b.Map().Name("a").Name("b").Int(1).End() },
		"NaN":                  func() { b.Float(math.NaN()) },
		"infinity":             func() { b.Array().Float(math.Inf(-1)).End() },
		"bad UTF-8":            func() { b.String("\xff") },
		"a bad name":           func() { b.Map().Name("\xff").Int(1).End() },
		"no number":            func() { b.Number("0x1") }, "a plus": func() { b.Number("+1") }, "a zero": func() { b.Number("01") },
		"a point": func() { b.Number("1.") }, "an exponent": func() { b.Number("1e") }, "infinite": func() { b.Number("Inf") }, "empty": func() { b.Number("") },
	} {
		add()
		if v, err := b.Tree(); err == nil || !v.IsZero() {
			t.Errorf("%s: got %s, %v", name, v.AppendJSON(nil), err)
		}
		if v, err := b.Int(7).Tree(); err != nil || v.Number() != "7" {
			t.Errorf("after %s: got %v %v", name, v, err)
		}
	}
	b.Array().Map().Name("x").Map().Name("a").Int(1).Name("b").Int(2).Name("a").Int(3).End().End().End()
	var repeated *value.RepeatedError
	if _, err := b.Tree(); !errors.As(err, &repeated) || repeated.Name != "a" {
		t.Errorf("got %v", err)
	}
}
