package jsonpath

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

func found(t testing.TB, path string, object string) (values []string) {
	t.Helper()
	p, ok := Parse(path)
	if !ok {
		t.Fatalf("%q is no path", path)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(object), &fields); err != nil {
		t.Fatal(err)
	}
	if head, ok := fields[p.Head]; ok {
		p.Find(head, func(value []byte) { values = append(values, string(value)) })
	}
	return values
}

func TestFind(t *testing.T) {
	const object = `{"a": {"b" : [ {"c":1}, {"c" : "x,]}\"y" , "d":2}, 3, {"c":null}], "e\u0062":true, "f":{} }, "g":[[1,2],[3]]}`
	for path, want := range map[string][]string{
		"a.b.c": {"1", `"x,]}\"y"`, "null"}, "a.b[].c": {"1", `"x,]}\"y"`, "null"}, "a.b[1].c": {`"x,]}\"y"`}, "a.b[2]": {"3"}, "a.b[2].c": nil, "a.b[9]": nil,
		"a.eb": {"true"}, "a.f": {"{}"}, "a.f.x": nil, "a.b.c.d": nil, "g[0]": {"[1,2]"}, "g[][0]": {"1", "3"}, "g[][]": {"1", "2", "3"}, "h.x": nil, "a[0]": nil, "g[0].x": nil,
	} {
		if got := found(t, path, object); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, not %q", path, got, want)
		}
	}
	for _, text := range []string{"", "a", ".a", "a.", "a..b", "a[", "a[x]", "a[-1]", "a[01]", "a]b", "a[0]b", "[0]", "a.[0]", "a[0", "a.b]"} {
		if _, ok := Parse(text); ok || Plain(text) && text != "a" {
			t.Errorf("%q is a path or a step", text)
		}
	}
}

// draw makes a value of some depth.
func draw(r *rand.Rand, depth int) any {
	switch n := r.IntN(8); {
	case depth > 0 && n < 4:
		object := make(map[string]any)
		for range r.IntN(4) {
			object[string("abcé\n\""[r.IntN(4)])] = draw(r, depth-1)
		}
		return object
	case depth > 0 && n < 6:
		list := []any{}
		for range r.IntN(4) {
			list = append(list, draw(r, depth-1))
		}
		return list
	}
	return []any{nil, true, 1.5, "x", "]}{[,:\"\\", "é\n", -2e9}[r.IntN(7)]
}

// plainly is what a path leads to, by its definition.
func plainly(value any, steps []step) (all []any) {
	if len(steps) == 0 {
		return []any{value}
	}
	switch v := value.(type) {
	case map[string]any:
		if inner, ok := v[steps[0].name]; ok && steps[0].name != "" {
			return plainly(inner, steps[1:])
		}
	case []any:
		for i, element := range v {
			switch {
			case steps[0].name != "":
				all = append(all, plainly(element, steps)...)
			case steps[0].element < 0 || steps[0].element == i:
				all = append(all, plainly(element, steps[1:])...)
			}
		}
	}
	return all
}

// TestAgainstDefinition: of any value, however it is written, paths lead to what they mean.
func TestAgainstDefinition(t *testing.T) {
	r := seeded.Rand(t)
	for range 5000 {
		value := draw(r, 4)
		text, err := json.Marshal(value)
		if r.IntN(2) == 0 {
			text, err = json.MarshalIndent(value, " \t", "\r\n ")
		}
		if err != nil {
			t.Fatal(err)
		}
		path := "h"
		for range 1 + r.IntN(4) {
			switch r.IntN(3) {
			case 0:
				path += fmt.Sprintf("[%d]", r.IntN(3))
			case 1:
				path += "[]"
			default:
				path += "." + string("abc"[r.IntN(3)])
			}
		}
		p, ok := Parse(path)
		if !ok || p.Head != "h" {
			t.Fatalf("%q is no path", path)
		}
		var got []any
		p.Find(text, func(value []byte) {
			var v any
			if err := json.Unmarshal(value, &v); err != nil {
				t.Fatalf("%s of %s: %q: %v", path, text, value, err)
			}
			got = append(got, v)
		})
		if want := plainly(value, p.steps); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s of %s: %v, not %v", path, text, got, want)
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add("a.b[0].c", `{"b":[{"c":1}]}`)
	f.Fuzz(func(t *testing.T, path, text string) {
		p, ok := Parse(path)
		if !ok || !json.Valid([]byte(text)) {
			return
		}
		p.Find([]byte(text), func(value []byte) {
			if !json.Valid(value) || !strings.Contains(text, string(value)) {
				t.Errorf("%q of %q: %q", path, text, value)
			}
		})
	})
}
