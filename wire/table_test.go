package wire

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// asTable is the message of a batch as it is decoded from a table, and whether there is one.
func asTable(ct ContentType, queries []Query, limits Limits) (m *Message, body []byte, ok bool, err error) {
	body, ok = AppendTable(nil, ct, queries)
	if ok {
		m, err = DecodeMessage(ct, body, limits)
	}
	return m, body, ok, err
}

// checkTable checks that queries decode from a table to what they decode to from a list, if they have one shape, as a whole and in parts.
func checkTable(t testing.TB, ct ContentType, queries []Query) (ok bool) {
	t.Helper()
	limits := Limits{}
	got, body, ok, err := asTable(ct, queries, limits)
	if !ok {
		return false
	}
	list := AppendQueries(nil, ct, queries)
	want, wantErr := DecodeMessage(ct, list, limits)
	if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(err, wantErr) {
		t.Fatalf("%v: as a table\n%q\nthey are\n%+v %v, as a list\n%q\n%+v %v", ct, body, got, err, list, want, wantErr)
	}
	return true
}

// alike makes queries of one shape, nearly always.
func (r random) alike(n int) []Query {
	like := r.query()
	for l := range conditionLists {
		for i := range *like.conditions(l) {
			if c := &(*like.conditions(l))[i]; c.Other != nil || c.In != nil && r.IntN(3) > 0 {
				*c = Condition{Attr: c.Attr, Weight: c.Weight, Value: r.value(3)}
			}
		}
	}
	queries := make([]Query, n)
	constant, lacking := r.maybe(), r.maybe()
	for at := range queries {
		q := like
		if r.maybe() {
			q.ID = r.str()
		}
		if q.K > 0 && r.IntN(3) == 0 {
			q.K = 1 + r.IntN(q.Candidates)
		}
		for l := range conditionLists {
			list := q.conditions(l)
			*list = slices.Clone(*list)
			for i := range *list {
				c := &(*list)[i]
				if constant && i < len(*list)/2 {
					continue
				}
				if lacking && len(*list) > 1 && r.IntN(4) == 0 {
					*list = slices.Delete(*list, i, i+1)
					break // so that the others stay as they are
				}
				for field := valueField; field <= maxField; field++ {
					switch v := c.scalar(field); {
					case v.Kind == NumberValue && !c.Bucket && c.Max.IsZero():
						v.Number = r.float()
					case v.Kind == StringValue:
						v.String = r.str()
					}
				}
			}
		}
		if q.Text != "" {
			q.Text = "y" + r.str()[:0] + fmt.Sprint(r.IntN(9))
		}
		if q.Vector = slices.Clone(q.Vector); q.Vector != nil {
			q.Vector[0] = float32(r.IntN(300))
		}
		if q.Point != nil {
			q.Point = &Point{Lat: r.Float64(), Lon: float64(r.IntN(180))}
		}
		if q.HasRadius && r.maybe() {
			q.Radius = float64(r.IntN(1000)) / 4
		}
		queries[at] = q
	}
	return queries
}

// Queries of one shape are the same from a table as from a list, in either codec.
func TestTablesAreLists(t *testing.T) {
	r := newRandom(t)
	tables, rounds := 0, 2000
	if testing.Short() {
		rounds = 200
	}
	for range rounds {
		queries := r.alike(1 + r.IntN(6))
		for _, ct := range []ContentType{JSON, MessagePack} {
			if checkTable(t, ct, queries) {
				tables++
			}
			body, ok := AppendTable(nil, ct, queries)
			if !ok {
				continue
			}
			var d Decoder
			m, err := DecodeMessage(ct, body, Limits{})
			for range 2 { // the second time in memory that is used again
				if !checkBatch(t, &d, ct, body, Limits{}, m, err) {
					t.Fatalf("%q is no batch", body)
				}
				if again, fault := decodedWhole(&d, ct, body, Limits{}); !reflect.DeepEqual(again, m) || !reflect.DeepEqual(fault, err) {
					t.Fatalf("%q is %+v %v, not %+v %v", body, again, fault, m, err)
				}
			}
		}
	}
	if tables < rounds {
		t.Errorf("of %d batches %d are tables", 2*rounds, tables)
	}
}

// A table, byte by byte, and the queries that it is.
func TestGoldenTable(t *testing.T) {
	const list = `{"queries":[{"id":"a","k":5,"row":{"sex":"f","age":30,"size":32,"at":{"min":-1,"max":0.5}}},` +
		`{"id":"b","k":5,"row":{"sex":"f","age":35,"size":37,"at":{"min":7,"max":2000000}}},` +
		`{"id":"c","k":5,"row":{"sex":"f","age":0,"size":255,"at":{"min":300,"max":300}}}]}`
	const table = `{"table":{"rows":3,"query":{"k":5,"row":{"sex":"f"}},"id":["a","b","c"],"row":[{"attrs":["age","size"],"value":{"u8":"HiAjJQD/"}},` +
		`{"attrs":["at"],"min":{"i32":"/////wcAAAAsAQAA"},"max":{"f32":"AAAAPwAk9EkAAJZD"}}]}}`
	const packed = "\x81\xa5table\x84\xa4rows\x03\xa5query\x82\xa1k\x05\xa3row\x81\xa3sex\xa1f\xa2id\x93\xa1a\xa1b\xa1c\xa3row\x92" +
		"\x82\xa5attrs\x92\xa3age\xa4size\xa5value\x81\xa2u8\xc4\x06\x1e\x20\x23\x25\x00\xff" +
		"\x83\xa5attrs\x91\xa2at\xa3min\x81\xa3i32\xc4\x0c\xff\xff\xff\xff\x07\x00\x00\x00\x2c\x01\x00\x00" +
		"\xa3max\x81\xa3f32\xc4\x0c\x00\x00\x00\x3f\x00\x24\xf4\x49\x00\x00\x96\x43"
	want, err := DecodeMessage(JSON, []byte(list), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	queries := make([]Query, len(want.Queries))
	for i := range queries {
		queries[i] = want.Queries[i].Query
		queries[i].Candidates = 0 // the default
	}
	for ct, golden := range map[ContentType]string{JSON: table, MessagePack: packed} {
		if got, ok := AppendTable(nil, ct, queries); !ok || string(got) != golden {
			t.Errorf("written as\n%q\nnot\n%q", got, golden)
		}
		if got, err := DecodeMessage(ct, []byte(golden), Limits{}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v: read as %+v %v, not %+v", ct, got, err, want)
		}
	}
}

// What a table says otherwise than AppendTable would, as the list that means the same.
func TestTablesSaidOtherwise(t *testing.T) {
	tests := map[string]struct{ table, list string }{
		"none in lists": {`{"table":{"rows":3,"id":["a",null,7],"k":[3,null,1],"row":[{"attrs":["x","y"],"value":[1,"u",null,true,null,null]},{"attrs":["z"],"min":[1,null,null],"max":[2,5,null]}]}}`,
			`{"queries":[{"id":"a","k":3,"row":{"x":1,"y":"u","z":{"min":1,"max":2}}},{"row":{"y":true,"z":{"max":5}}},{"id":7,"k":1,"row":{}}]}`},
		"NaN is none": {`{"table":{"rows":2,"items":[{"attrs":["x"],"value":{"f32":"AADAfwAAgD8="}},{"attrs":["x"],"value":{"f64":"AAAAAAAAAEAAAAAAAAD4fw=="},"weight":2}]}}`,
			`{"queries":[{"items":[{"attr":"x","value":2,"weight":2}]},{"items":[{"attr":"x","value":1}]}]}`},
		"packed ids, buckets": {`{"table":{"rows":2,"id":{"u16":"LAEHAA=="},"row":[{"attrs":["x"],"min":{"u8":"AQI="},"unit":"bucket"}]}}`,
			`{"queries":[{"id":300,"row":{"x":{"min":1,"unit":"bucket"}}},{"id":7,"row":{"x":{"min":2,"unit":"bucket"}}}]}`},
		"all the same": {`{"table":{"rows":2,"query":{"text":"x","form":"columns","keys":true}}}`,
			`{"queries":[{"text":"x","form":"columns","keys":true},{"text":"x","form":"columns","keys":true}]}`},
		"some are wrong": {`{"table":{"rows":4,"id":[1,2,3,4],"k":[1,1.5,-2,65537],"text":["x","y","z","u"]}}`,
			`{"queries":[{"id":1,"k":1,"text":"x"},{"id":2,"k":1.5,"text":"y"},{"id":3,"k":-2,"text":"z"},{"id":4,"k":65537,"text":"u"}]}`},
		"nothing asked, and too much": {`{"table":{"rows":2,"query":{"row":{"a":1}},"text":[null,"x"]}}`, `{"queries":[{"row":{"a":1}},{"row":{"a":1},"text":"x"}]}`},
		"an empty text":               {`{"table":{"rows":2,"text":["","x"]}}`, `{"queries":[{"text":""},{"text":"x"}]}`},
		"vectors":                     {`{"table":{"rows":2,"vector":{"u8":"AQIDBAUG"},"radius":[1,null]}}`, `{"queries":[{"vector":[1,2,3],"radius":1},{"vector":[4,5,6]}]}`},
		"points":                      {`{"table":{"rows":2,"point":[1,2,95,4]}}`, `{"queries":[{"point":[1,2]},{"point":[95,4]}]}`},
		"filters": {`{"table":{"rows":2,"text":["x","y"],"query":{"filter":{"a":1},"exclude":[{"b":1},{"b":2}]},"filter":[{"attrs":["a"],"max":[3,4]}],"exclude":[{"attrs":["c"],"value":[null,0]}]}}`,
			`{"queries":[{"text":"x","filter":[{"a":1},{"a":{"max":3}}],"exclude":[{"b":1},{"b":2}]},{"text":"y","filter":[{"a":1},{"a":{"max":4}}],"exclude":[{"b":1},{"b":2},{"c":0}]}]}`},
		"named twice": {`{"table":{"rows":1,"query":{"row":{"a":1}},"row":[{"attrs":["a"],"value":[2]}]}}`, `{"queries":[{"row":{"a":1,"a":2}}]}`},
		"upside down": {`{"table":{"rows":2,"row":[{"attrs":["a"],"min":[2,2],"max":[1,3]}]}}`, `{"queries":[{"row":{"a":{"min":2,"max":1}}},{"row":{"a":{"min":2,"max":3}}}]}`},
		"hits":        {`{"table":{"rows":2,"point":[1,2,3,4],"query":{"radius":5},"k":[0,2]}}`, `{"queries":[{"point":[1,2],"radius":5,"k":0},{"point":[3,4],"radius":5,"k":2}]}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			want, err := DecodeMessage(JSON, []byte(tt.list), Limits{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := DecodeMessage(JSON, []byte(tt.table), Limits{})
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("as a table\n%+v %v, as a list\n%+v", got, err, want)
			}
		})
	}
}

// A table that does not hold together is refused as a whole, with a reason that says where and what.
func TestTablesRefused(t *testing.T) {
	tests := map[string]string{
		`{"table":7}`:                                                            `table: must be an object`,
		`{"table":{}}`:                                                           `table.rows is missing`,
		`{"table":{"rows":0}}`:                                                   `table.rows: must be an integer between 1 and 65536`,
		`{"table":{"rows":1,"queries":[]}}`:                                      `unknown field "queries"`,
		`{"table":{"rows":1,"rows":1}}`:                                          `field "rows" is there twice`,
		`{"table":{"rows":1},"k":3}`:                                             `table must be the only field of its message`,
		`{"k":3,"table":{"rows":1}}`:                                             `table must be the only field of its message`,
		`{"queries":[],"table":{"rows":1}}`:                                      `queries is empty`,
		`{"table":{"rows":1,"query":{"kk":1}}}`:                                  `table.query: unknown field "kk"`,
		`{"table":{"rows":1,"query":{"table":1}}}`:                               `a batch cannot hold a batch`,
		`{"table":{"rows":1,"query":{"keys":true}}}`:                             `keys goes with form`,
		`{"table":{"rows":1,"query":{"row":{}},"text":["x"]}}`:                   `table.query.row is empty`,
		`{"table":{"rows":2,"text":["x"]}}`:                                      `table.text: 1 elements for 2 queries: each has 1`,
		`{"table":{"rows":2,"text":{"u8":"AQI="}}}`:                              `table.text: must be a list of strings`,
		`{"table":{"rows":2,"text":["x",1]}}`:                                    `table.text[1]: must be a string, not a number`,
		`{"table":{"rows":2,"id":{"f32":"AACAPwAAgD8="}}}`:                       `table.id: must be integers`,
		`{"table":{"rows":2,"id":["a","b"],"query":{"id":"c"}}}`:                 `table.id: all queries have one by table.query`,
		`{"table":{"rows":2,"k":["x",1]}}`:                                       `table.k[0]: must be a number, not a string`,
		`{"table":{"rows":2,"vector":{"f32":"AACAPwAAgD8AAIA/"}}}`:               `table.vector: 3 elements for 2 queries`,
		`{"table":{"rows":2,"vector":{"f32":"AACA"}}}`:                           `table.vector.f32: has 3 bytes: its elements have 4 each`,
		`{"table":{"rows":2,"vector":{"u9":"AACA"}}}`:                            `table.vector: unknown field "u9"`,
		`{"table":{"rows":2,"vector":{"u8":"AACA","u16":"AA=="}}}`:               `table.vector: has a second field`,
		`{"table":{"rows":2,"vector":{}}}`:                                       `table.vector: is empty`,
		`{"table":{"rows":2,"vector":{"u8":"?"}}}`:                               `table.vector.u8: is not base64`,
		`{"table":{"rows":2,"vector":[]}}`:                                       `table.vector: 0 elements for 2 queries`,
		`{"table":{"rows":2,"row":{"a":1}}}`:                                     `table.row: must be a list of groups`,
		`{"table":{"rows":2,"row":[{"value":[1,2]}]}}`:                           `table.row[0].attrs: is missing or empty`,
		`{"table":{"rows":2,"row":[{"attrs":["a"]}]}}`:                           `table.row: the conditions on "a" have no value, min or max`,
		`{"table":{"rows":2,"row":[{"attrs":["a","b"],"value":{"u8":"AQID"}}]}}`: `table.row: the conditions on "a", value: 3 elements for 2 queries: each has 2`,
		`{"table":{"rows":2,"row":[{"attrs":["a"],"value":[[1],2]}]}}`:           `table.row[0].value[0]: must be a number, a string or a bool`,
		`{"table":{"rows":2,"row":[{"attrs":["a"],"value":[1,2],"weight":0}]}}`:  `table.row[0].weight: must be an integer between 1 and 65535`,
		`{"table":{"rows":2,"text":["x","y"]}} {}`:                               `the body goes on after the JSON message`,
		`{"table":{"rows":65536,"query":{"row":{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":10,"k":11,"l":12,"m":13,"n":14}}}}`: `bytes together, the limit is 8388608: send fewer queries`,
	}
	for body, want := range tests {
		for range 2 {
			_, err := DecodeMessage(JSON, []byte(body), Limits{})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, not %q", body, err, want)
			}
			var d Decoder
			if _, ok := d.Scan(JSON, []byte(body), Limits{}); ok {
				t.Errorf("%s is a batch", body)
			}
			if _, again := d.Decode(JSON, []byte(body), Limits{}); !reflect.DeepEqual(again, err) {
				t.Errorf("%s: a decoder says %v", body, again)
			}
		}
	}
}

// Queries that differ in anything that a table says once are no table, whatever a query may have.
func TestTablesSayEverything(t *testing.T) {
	base := Query{Row: []Condition{{Attr: "a", Value: Number(1)}, {Attr: "b", Value: Number(1)}}}
	arrays := []string{"ID", "K", "CountOnly", "Text", "Vector", "Point", "Radius", "HasRadius", "Row", "Items", "Filter", "Exclude"}
	typ := reflect.TypeFor[Query]()
	for _, f := range reflect.VisibleFields(typ) {
		if f.Anonymous {
			continue
		}
		other := base
		v := reflect.ValueOf(&other).Elem().FieldByIndex(f.Index)
		switch v.Kind() {
		case reflect.String:
			v.SetString("x")
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Int:
			v.SetInt(1)
		case reflect.Uint8, reflect.Uint32:
			v.SetUint(1)
		case reflect.Float64:
			v.SetFloat(0.5)
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		default:
			t.Fatalf("%s is a %v, which this test does not set", f.Name, v.Kind())
		}
		if _, ok := AppendTable(nil, MessagePack, []Query{base, other}); ok && !slices.Contains(arrays, f.Name) {
			t.Errorf("queries that differ in %s are written as a table, which has no array of it", f.Name)
		}
		checkTable(t, MessagePack, []Query{base, other})
	}
}

// A decoder may help with one table and then with another, and back.
func TestTablesInTurns(t *testing.T) {
	const first = `{"table":{"rows":2,"query":{"row":{"a":1}},"row":[{"attrs":["b","c"],"value":{"u8":"AQIDBA=="}}]}}`
	const second = `{"table":{"rows":2,"k":[4,5],"items":[{"attrs":["d"],"min":[6,7]}]}}`
	var own [2]Decoder
	var batches [2]*Batch
	var want [2]*Message
	for i, body := range []string{first, second} {
		var ok bool
		var err error
		if batches[i], ok = own[i].Scan(JSON, []byte(body), Limits{}); !ok {
			t.Fatal(body)
		}
		if want[i], err = DecodeMessage(JSON, []byte(body), Limits{}); err != nil {
			t.Fatal(err)
		}
	}
	var helper Decoder
	for at := range 8 {
		i, row := at%2, at/2%2
		helper.Queries(batches[i], row, row+1, func(_ int, q *QueryOrError) {
			if !reflect.DeepEqual(*q, want[i].Queries[row]) {
				t.Errorf("query %d of table %d is %+v, not %+v", row, i, *q, want[i].Queries[row])
			}
		})
	}
}

// Queries may lack conditions that others have, in any place.
func TestTablesOfQueriesThatLackConditions(t *testing.T) {
	conds := func(text string) (conds []Condition) {
		for _, c := range text {
			switch {
			case c >= 'a' && c <= 'm':
				conds = append(conds, Condition{Attr: string(c), Value: Number(float64(len(conds)))})
			case c >= 'n':
				conds = append(conds, Condition{Attr: string(c), Value: String(fmt.Sprint(len(conds)))})
			default:
				conds = append(conds, Condition{Attr: string(c), Min: Number(1), Max: Number(1e9 + float64(len(conds))), Bucket: true, Weight: 3})
			}
		}
		return conds
	}
	for _, lists := range [][]string{{"abcAn", "bcn", "An", "abcAn", "a"}, {"a", "ab", "xab", "xaby", "Axaby"}, {"aab", "aba", "baa", "aaa"}, {"nA", "An", "nAn", "AnA"}} {
		var queries []Query
		for _, list := range lists {
			queries = append(queries, Query{Items: conds(list), Filter: []Condition{{Attr: "f", Value: Bool(true)}}})
		}
		for _, ct := range []ContentType{JSON, MessagePack} {
			if !checkTable(t, ct, queries) {
				t.Errorf("%v are no table", lists)
			}
		}
	}
	var unlike []Query
	for i := range 20 {
		unlike = append(unlike, Query{Row: []Condition{{Attr: fmt.Sprint(i), Value: Number(1)}}})
	}
	if checkTable(t, JSON, unlike) {
		t.Error("queries that have nothing in common are a table")
	}
}

// TestTableConditions: a table says for how much its queries have room, the words of texts too, be they each query's own or one for all.
func TestTableConditions(t *testing.T) {
	for body, want := range map[string]int{
		`{"table":{"rows":2,"query":{"row":{"a":1}},"items":[{"attrs":["b","c"],"value":{"u8":"AQIDBA=="}}]}}`: 3,
		`{"table":{"rows":2,"text":["one two three four","one"]}}`:                                             2, // of 10 bytes each
		`{"table":{"rows":2,"query":{"text":"one two three four"},"k":[1,2]}}`:                                 4,
		`{"table":{"rows":2,"query":{"total":true},"k":[1,2]}}`:                                                0,
	} {
		m, err := new(Decoder).Decode(JSON, []byte(body), Limits{})
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if got := m.Table.Conditions(2); got != 2*want {
			t.Errorf("%s: %d conditions of both, not %d each", body, got, want)
		}
	}
}
