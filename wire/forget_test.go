package wire

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// Whatever a decoder was used for, nothing of it is held on to when it has forgotten it, not even where it keeps memory. Package jsontext's own memory, which may
// have a name of an object that did not end, is not looked at.
func TestForget(t *testing.T) {
	const secret = "of somebody else"
	queries := make([]Query, 5)
	for i := range queries {
		queries[i] = Query{ID: secret, K: 1, Row: []Condition{{Attr: secret, Value: String(secret)}, {Attr: "n", In: []Value{Number(7), String(secret)}}}}
	}
	bodies := map[string][]byte{}
	for _, codec := range []ContentType{JSON, MessagePack} {
		bodies["list"] = AppendQueries(nil, codec, queries)
		bodies["table"], _ = AppendTable(nil, codec, queries)
		bodies["one"] = AppendQuery(nil, codec, &queries[0])
		bodies["broken"] = bodies["list"][:len(bodies["list"])-1]
		if codec == JSON {
			for i, body := range []string{
				`{"row":{"a":{"near":{"x":"S"},"within":20}}}`, `{"row":{"a":{"near":{"x":"S"},"within":{"S":`, `{"row":{"a":{"in":[1,2],"b":{"min":"S"},"near":[{"S":[1,{"c":"S"}]}]}}}`,
				`{"id":"a\u0062 S","row":{"S":3},"filter":{"S":{"in":["S"]}},"exclude":["S"]}`, `{"queries":[{"set":["S",4]},{"row":{"S":{"S":1}}}]}`,
			} {
				bodies[fmt.Sprint("text ", i)] = []byte(strings.ReplaceAll(body, "S", secret))
			}
		}
		for shape, body := range bodies {
			if strings.HasPrefix(shape, "text") && codec != JSON {
				continue
			}
			for name, use := range map[string]func(d *Decoder){
				"decode": func(d *Decoder) { _, _ = d.Decode(codec, body, Limits{}) },
				"scan":   func(d *Decoder) { _, _ = d.Scan(codec, body, Limits{}) },
				"queries": func(d *Decoder) {
					if b, ok := new(Decoder).Scan(codec, body, Limits{}); ok {
						d.Queries(b, 1, b.Len(), func(int, *QueryOrError) {})
					}
				},
				"group": func(d *Decoder) {
					if b, ok := new(Decoder).Scan(codec, body, Limits{}); ok {
						d.Group(b, 1, b.Len())
					}
				},
			} {
				var d Decoder
				use(&d)
				d.Forget()
				if at := found(reflect.ValueOf(&d), secret, map[uintptr]bool{}); at != "" {
					t.Errorf("%s of a message that is a %s of %s: %s is held on to", name, shape, codec, at)
				}
				use(&d)
				if m, err := d.Decode(codec, bodies["one"], Limits{}); err != nil || m.Queries[0].Query.ID != secret {
					t.Errorf("%s of a message that is a %s of %s, and then another: %v", name, shape, codec, err)
				}
			}
		}
	}
}

// found is where a value reaches a string, or the memory of one; "" where it does not.
func found(v reflect.Value, secret string, seen map[uintptr]bool) string {
	switch v.Kind() {
	case reflect.String:
		if strings.Contains(v.String(), secret) {
			return "a string"
		}
	case reflect.Pointer:
		if v.IsNil() || seen[v.Pointer()] || v.Type() == reflect.TypeFor[*jsontext.Decoder]() {
			return ""
		}
		seen[v.Pointer()] = true
		return found(v.Elem(), secret, seen)
	case reflect.Interface:
		if !v.IsNil() {
			return found(v.Elem(), secret, seen)
		}
	case reflect.Slice:
		all := v.Slice(0, v.Cap())
		if v.Type().Elem().Kind() == reflect.Uint8 {
			if strings.Contains(string(all.Bytes()), secret) {
				return "bytes"
			}
			return ""
		}
		for i := range all.Len() {
			if at := found(all.Index(i), secret, seen); at != "" {
				return v.Type().String() + " " + at
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			if at := found(v.Index(i), secret, seen); at != "" {
				return at
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if at := found(key, secret, seen) + found(v.MapIndex(key), secret, seen); at != "" {
				return v.Type().String() + " " + at
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if at := found(v.Field(i), secret, seen); at != "" {
				return v.Type().Field(i).Name + " " + at
			}
		}
	}
	return ""
}
