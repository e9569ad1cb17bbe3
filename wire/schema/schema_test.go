package schema_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/geniemq/geniemq/wire/schema"
)

// What is committed is what go generate makes.
func TestCommitted(t *testing.T) {
	const again = "run: go generate ./wire/schema"
	files := schema.Files()
	for name, want := range files {
		if got, err := os.ReadFile("../../docs/protocol/" + name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/protocol/%s is not up to date (%v): %s", name, err, again)
		}
	}
	there, err := filepath.Glob("../../docs/protocol/*")
	if err != nil || len(there) != len(files) {
		t.Errorf("docs/protocol has %v, not %d files (%v)", there, len(files), err)
	}
	page, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	if filled, err := schema.Fill(string(page)); err != nil || filled != string(page) {
		t.Errorf("the tables of docs/protocol.md are not up to date (%v): %s", err, again)
	}
}

// The documents are what their formats say, as the makers of these check it.
func TestFormats(t *testing.T) {
	for _, c := range []struct{ name, by string }{{"asyncapi.json", "asyncapi-3.0.0"}, {"openapi.json", "openapi-3.1"}} {
		packed, err := os.Open("testdata/" + c.by + ".json.gz")
		if err != nil {
			t.Fatal(err)
		}
		defer packed.Close()
		text, err := gzip.NewReader(packed)
		if err != nil {
			t.Fatal(err)
		}
		format, err := jsonschema.UnmarshalJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource("urn:"+c.by, format); err != nil {
			t.Fatal(err)
		}
		s, err := compiler.Compile("urn:" + c.by)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema.Files()[c.name]))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(doc); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, to := range references(doc) {
			if path, inside := strings.CutPrefix(to, "#/"); inside && !leads(doc, strings.Split(path, "/")) {
				t.Errorf("%s refers to %s, which is not there", c.name, to)
			} else if file, here := strings.CutPrefix(to, "./"); here && schema.Files()[file] == nil {
				t.Errorf("%s refers to %s, which is not there", c.name, to)
			}
		}
	}
}

// references are those of a document.
func references(doc any) (to []string) {
	switch doc := doc.(type) {
	case map[string]any:
		if ref, is := doc["$ref"].(string); is {
			to = append(to, ref)
		}
		for _, inner := range doc {
			to = append(to, references(inner)...)
		}
	case []any:
		for _, inner := range doc {
			to = append(to, references(inner)...)
		}
	}
	return to
}

func leads(doc any, path []string) bool {
	for _, name := range path {
		object, _ := doc.(map[string]any)
		if doc = object[name]; doc == nil {
			return false
		}
	}
	return true
}
