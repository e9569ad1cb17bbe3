package wire

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/wire/fields"
	"github.com/geniemq/geniemq/wire/schema"
)

// compiled is one of the schemas as a library reads it. A closed one lets nothing pass that it does not name.
func compiled(t testing.TB, name string, closed bool) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema.Files()[name+".schema.json"]))
	if err != nil {
		t.Fatal(err)
	}
	if closed {
		closeObjects(doc)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("urn:geniemq:protocol:1:"+name, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("urn:geniemq:protocol:1:" + name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeObjects(doc any) {
	switch doc := doc.(type) {
	case map[string]any:
		if _, has := doc["properties"]; has && doc["additionalProperties"] == nil && doc["description"] != nil {
			doc["additionalProperties"] = false
		}
		for _, inner := range doc {
			closeObjects(inner)
		}
	case []any:
		for _, inner := range doc {
			closeObjects(inner)
		}
	}
}

// instance is a body as the protocol reads numbers, as float64s. ok is false where one is too large for that.
func instance(t testing.TB, body []byte) (doc any, ok bool) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&doc); err != nil {
		t.Fatalf("%v: %q", err, body)
	}
	ok = true
	var floats func(any) any
	floats = func(v any) any {
		switch v := v.(type) {
		case json.Number:
			f, err := strconv.ParseFloat(string(v), 64)
			ok = ok && err == nil
			return f
		case []any:
			for i := range v {
				v[i] = floats(v[i])
			}
		case map[string]any:
			for name := range v {
				if name == "id" { // which may be an integer of any size, and is none with a point
					if digits, is := v[name].(json.Number); is && strings.ContainsAny(string(digits), ".eE") {
						ok = false
						v[name] = 0.0
						continue
					}
				}
				v[name] = floats(v[name])
			}
		}
		return v
	}
	return floats(doc), ok
}

// unsaid is what about a message that the schema accepts it cannot say: whether it holds together.
func unsaid(doc any) bool {
	message := doc.(map[string]any)
	if message["table"] != nil {
		return true // what its arrays hold
	}
	queries, batch := message["queries"].([]any)
	if !batch {
		queries = []any{message}
	}
	sum := 0.0
	for _, q := range queries {
		q := q.(map[string]any)
		k, given := q["k"].(float64)
		if !given {
			k = DefaultK
			if _, has := q["radius"]; has {
				k = DefaultWithin
			}
		}
		sum += k
		if candidates, has := q["candidates"].(float64); has && candidates < k {
			return true
		}
		for _, form := range []string{"row", "items", "filter", "exclude"} {
			if upsideDown(q[form]) {
				return true
			}
		}
	}
	return sum > fields.MaxSumK || nesting(doc) > fields.MaxDepth-aroundTree-1 || longest(doc) > fields.MaxString
}

// upsideDown says that a condition within has a min above its max.
func upsideDown(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, upsideDown)
	case map[string]any:
		low, isLow := v["min"].(float64)
		high, isHigh := v["max"].(float64)
		if isLow && isHigh && low > high {
			return true
		}
		for _, inner := range v {
			if upsideDown(inner) {
				return true
			}
		}
	}
	return false
}

func nesting(v any) (deepest int) {
	switch v := v.(type) {
	case []any:
		for _, inner := range v {
			deepest = max(deepest, nesting(inner))
		}
		return deepest + 1
	case map[string]any:
		for _, inner := range v {
			deepest = max(deepest, nesting(inner))
		}
		return deepest + 1
	}
	return 0
}

func longest(v any) (most int) {
	switch v := v.(type) {
	case string:
		return len(v)
	case []any:
		for _, inner := range v {
			most = max(most, longest(inner))
		}
	case map[string]any:
		for name, inner := range v {
			most = max(most, len(name), longest(inner))
		}
	}
	return most
}

// agree checks that schema and decoder both accept a message or both refuse it, but for what a schema cannot say.
func agree(t testing.TB, s *jsonschema.Schema, body []byte) (accepted bool) {
	t.Helper()
	accepted, _ = judged(t, s, body)
	return accepted
}

// judged is what the decoder says of a message, and whether it is more than a schema can say. It fails where the schema says otherwise.
func judged(t testing.TB, s *jsonschema.Schema, body []byte) (accepted, beyond bool) {
	t.Helper()
	m, err := DecodeMessage(JSON, body, Limits{})
	for i := 0; err == nil && i < len(m.Queries); i++ {
		err = m.Queries[i].Err.orNil()
	}
	if !jsontext.Value(body).IsValid() { // or has a name twice, or is not UTF-8
		if err == nil {
			t.Fatalf("the decoder accepts what is no JSON: %q", body)
		}
		return false, true
	}
	doc, ok := instance(t, body)
	refused := s.Validate(doc)
	switch {
	case err == nil && refused != nil:
		t.Fatalf("the decoder accepts what the schema refuses: %s\n%v", body, refused)
	case err != nil && refused == nil && ok && !unsaid(doc):
		t.Fatalf("the schema accepts what the decoder refuses: %s\n%v", body, err)
	}
	return err == nil, err != nil && (refused == nil || !ok)
}

// spoilt are messages made of sound ones, by putting a value, or a field, where another one was.
func spoilt(r random, body []byte, others [][]byte) []byte {
	var doc any
	if json.Unmarshal(body, &doc) != nil {
		return body
	}
	var other any
	if json.Unmarshal(others[r.IntN(len(others))], &other) != nil {
		return body
	}
	var parts []any
	names := []string{"must", "attr", "unit", "near"}
	var collect func(any)
	collect = func(v any) {
		parts = append(parts, v)
		switch v := v.(type) {
		case []any:
			for _, inner := range v {
				collect(inner)
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				names = append(names, name)
				collect(v[name])
			}
		}
	}
	collect(other)
	parts = append(parts, nil, true, false, 0.0, -1.0, 1.5, 1e9, "", "x", "bucket", "columns", []any{}, map[string]any{})
	slices.Sort(names)
	targets := 0
	var count func(any)
	count = func(v any) {
		targets++
		switch v := v.(type) {
		case []any:
			for _, inner := range v {
				count(inner)
			}
		case map[string]any:
			for _, inner := range v {
				count(inner)
			}
		}
	}
	count(doc)
	at := r.IntN(targets)
	var change func(any) any
	change = func(v any) any {
		at--
		if at == -1 {
			if object, is := v.(map[string]any); is && r.maybe() {
				object[names[r.IntN(len(names))]] = parts[r.IntN(len(parts))]
				return object
			}
			return parts[r.IntN(len(parts))]
		}
		switch v := v.(type) {
		case []any:
			for i := range v {
				v[i] = change(v[i])
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				if r.IntN(40) == 0 {
					delete(v, name)
					continue
				}
				v[name] = change(v[name])
			}
		}
		return v
	}
	text, err := json.Marshal(change(doc))
	if err != nil {
		return body
	}
	return text
}

// soundMessages are messages that use all fields, with the tests' seeds among them.
func soundMessages(r random, n int) (bodies [][]byte) {
	for _, seed := range slices.Concat(fuzzSeeds, tableSeeds) {
		bodies = append(bodies, []byte(seed))
	}
	for range n {
		q := r.query()
		bodies = append(bodies, AppendQuery(nil, JSON, &q))
		if body, ok := AppendTable(nil, JSON, r.alike(2)); ok {
			bodies = append(bodies, body)
		}
	}
	return bodies
}

func TestSchemaAndDecoderAgree(t *testing.T) {
	r, s := random{seeded.Rand(t)}, compiled(t, "query", false)
	bodies := soundMessages(r, 100)
	accepted, refused := 0, 0
	for _, body := range bodies {
		if len(body) > 1<<15 {
			continue
		}
		agree(t, s, body)
		for range 8 {
			if agree(t, s, spoilt(r, body, bodies)) {
				accepted++
			} else {
				refused++
			}
		}
	}
	t.Logf("%d accepted, %d refused", accepted, refused)
	if accepted == 0 || refused == 0 {
		t.Errorf("%d are accepted, %d refused: that says nothing", accepted, refused)
	}
}

// TestCorpus writes messages and what the decoder says of each, and answers, one in a line, for clients/check: there the validators of other languages judge them.
func TestCorpus(t *testing.T) {
	to := os.Getenv("GENIEMQ_CORPUS")
	if to == "" {
		t.Skip("GENIEMQ_CORPUS names no file to write to")
	}
	f, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := json.NewEncoder(f)
	write := func(schema string, body []byte, accepted, beyond bool) {
		if !jsontext.Value(body).IsValid() {
			return // a name that is there twice, or no UTF-8: a parser's matter
		}
		line := struct {
			Schema   string `json:"schema"`
			Accepted bool   `json:"accepted"`
			Beyond   bool   `json:"beyond,omitempty"` // it is refused for what no schema can say
			Body     string `json:"body"`
		}{schema, accepted, beyond, string(body)}
		if err := lines.Encode(line); err != nil {
			t.Fatal(err)
		}
	}
	r, s := random{seeded.Rand(t)}, compiled(t, "query", false)
	bodies := soundMessages(r, 300)
	for _, body := range bodies {
		if len(body) > 1<<14 {
			continue
		}
		for i := range 10 {
			said := body
			if i > 0 {
				said = spoilt(r, body, bodies)
			}
			accepted, beyond := judged(t, s, said)
			write("query", said, accepted, beyond)
		}
	}
	for range 300 {
		result := r.result()
		result.HitsForm = HitsForm(r.IntN(3))
		result.Hits = result.Hits[:min(len(result.Hits), 50)]
		write("answer", AppendAnswer(nil, JSON, &Answer{Results: []Result{result}}), true, false)
	}
}

func FuzzSchema(f *testing.F) {
	r, s := newRandom(f), compiled(f, "query", false)
	for _, body := range soundMessages(r, 50) {
		if len(body) < 1<<12 {
			f.Add(body)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) < 1<<15 {
			agree(t, s, body)
		}
	})
}

// Whatever is written as an answer is as the schema says, and has no field that the table lacks.
func TestAnswersFollowTheSchema(t *testing.T) {
	r, open, closed := random{seeded.Rand(t)}, compiled(t, "answer", false), compiled(t, "answer", true)
	for range 100 {
		var a Answer
		for range 1 + r.IntN(3) {
			result := r.result()
			result.HitsForm = HitsForm(r.IntN(3))
			if len(result.Hits) > 50 {
				result.Hits = result.Hits[:50]
			}
			a.Results = append(a.Results, result)
		}
		a.Batch = len(a.Results) > 1
		body := AppendAnswer(nil, JSON, &a)
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
		if err != nil {
			continue // a payload that is no JSON, which is stored all the same
		}
		for _, s := range []*jsonschema.Schema{open, closed} {
			if err := s.Validate(doc); err != nil {
				t.Fatalf("%v\n%.3000s", err, body)
			}
		}
	}
}

// What the schema accepts as an answer is one to the decoder.
func TestAnswersOfSchema(t *testing.T) {
	s := compiled(t, "answer", false)
	for _, seed := range fuzzSeeds {
		if !jsontext.Value(seed).IsValid() {
			continue
		}
		doc, ok := instance(t, []byte(seed))
		if _, err := DecodeAnswer(JSON, []byte(seed)); ok && s.Validate(doc) == nil && err != nil && !strings.Contains(err.Error(), "ids has") &&
			!strings.Contains(err.Error(), "for 1 hits") && !strings.Contains(err.Error(), "no part of a result") {
			t.Errorf("%s: %v", seed, err)
		}
	}
}

// The table has the codes, and bounds that are those of the types that hold them.
func TestTable(t *testing.T) {
	var names []string
	for _, c := range fields.Codes {
		names = append(names, c.Name)
	}
	codes := []Code{BadRequest, UnknownIndex, TooLarge, DeadlineExceeded, Overloaded, Unsupported, ObjectMissing, Internal}
	for i, c := range codes {
		if len(names) != len(codes) || names[i] != string(c) {
			t.Fatalf("the table has the codes %v, not %v", names, codes)
		}
	}
	for _, f := range fields.Near {
		if fields.Query.Find(f) == nil {
			t.Errorf("no field %s", f)
		}
	}
	for _, f := range append(slices.Clone(fields.Forms), fields.FilterForms...) {
		if fields.Query.Find(f) == nil {
			t.Errorf("no field %s", f)
		}
	}
	beyond := fields.BeyondFloat32
	if v := math.Nextafter(beyond, 0); math.IsInf(float64(float32(v)), 0) || !math.IsInf(float64(float32(beyond)), 0) {
		t.Error("the bound of float32s is another one")
	}
}
