// Package schema makes what describes the protocol to other programs, from the tables of package fields: JSON Schemas of queries and answers, an
// AsyncAPI document, an OpenAPI document, and the tables of docs/protocol.md. The schemas are as strict as the decoder of queries, but for what
// no schema can say: lengths in bytes, sums over a message, names that come twice, one number compared with another. Of answers they demand what
// readers need, and let pass what a later version may add.
package schema

//go:generate go run ./generate ../../docs

import (
	"encoding/json"
	"maps"
	"math"
	"strconv"

	"github.com/geniemq/geniemq/wire/fields"
)

// object is an object of JSON; its members are written by name.
type object = map[string]any

type list = []any

// Files returns the documents by their names. Those whose names end in .md are tables for docs/protocol.md.
func Files() map[string][]byte {
	files := map[string][]byte{
		"query.schema.json":  encoded(document("query", "A message of one query or of many, in JSON.", message(), queryDefinitions(local))),
		"answer.schema.json": encoded(document("answer", "The answer to a message, or one part of it, in JSON.", answer(), answerDefinitions(local))),
		"asyncapi.json":      encoded(asyncAPI()),
		"openapi.json":       OpenAPI(),
	}
	return files
}

func encoded(doc any) []byte {
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		panic(err) // programmer error: a document is made of what JSON has
	}
	return append(text, '\n')
}

// refs makes the reference to a definition, which lie elsewhere in each kind of document.
type refs func(name string) object

func local(name string) object      { return object{"$ref": "#/$defs/" + name} }
func components(name string) object { return object{"$ref": "#/components/schemas/" + name} }

func document(name, title string, root func(refs) object, definitions object) object {
	doc := object{"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:geniemq:protocol:1:" + name, "title": title, "$defs": definitions}
	maps.Copy(doc, root(local))
	return doc
}

// message is a message of queries.
func message() func(refs) object {
	return func(ref refs) object {
		return object{"type": "object", "if": required("queries"), "then": ref("queries"),
			"else": object{"if": required("table"), "then": ref("tables"), "else": ref("query")}}
	}
}

// answer is an answer, whole or in part.
func answer() func(refs) object {
	return func(ref refs) object {
		return object{"type": "object", "if": object{"anyOf": list{required("first"), required("results")}}, "then": ref("answer"), "else": ref("result")}
	}
}

func required(names ...string) object { return object{"required": names} }

func anyRequired(names []string) object {
	each := make(list, len(names))
	for i, name := range names {
		each[i] = required(name)
	}
	return object{"anyOf": each}
}

// is says that a field is there and has a value.
func is(name string, value any) object {
	return object{"properties": object{name: object{"const": value}}, "required": []string{name}}
}

// properties describes the fields of an object.
func properties(ref refs, o *fields.Object) (props object, needed []string) {
	props = object{}
	for i := range o.Fields {
		f := &o.Fields[i]
		if f.Holds == fields.Reserved || f.Holds == fields.Queries || f.Holds == fields.Rows {
			continue
		}
		p := holds(ref, f)
		p["description"] = f.Means
		if f.Default != "" {
			p["description"] = f.Means + " Default: " + f.Default + "."
		}
		props[f.Name] = p
		if f.Required {
			needed = append(needed, f.Name)
		}
	}
	return props, needed
}

// described is an object as the table has it. Readers skip what they do not know, where it is open.
func described(ref refs, o *fields.Object, open bool) object {
	props, needed := properties(ref, o)
	def := object{"type": "object", "description": o.Means, "properties": props}
	if needed != nil {
		def["required"] = needed
	}
	if !open {
		def["additionalProperties"] = false
		for i := range o.Fields {
			if o.Fields[i].Holds == fields.Text {
				props[o.Fields[i].Name].(object)["maxLength"] = fields.MaxString
			}
		}
	}
	return def
}

// holds describes what a field holds.
func holds(ref refs, f *fields.Field) object {
	switch f.Holds {
	case fields.Bool:
		return object{"type": "boolean"}
	case fields.Integer:
		return bounded("integer", f)
	case fields.Hits:
		return object{"type": "integer", "minimum": 0, "maximum": number(f.Most)}
	case fields.Number:
		return bounded("number", f)
	case fields.Text:
		text := object{"type": "string"}
		if f.Least > 0 {
			text["minLength"] = f.Least
		}
		return text
	case fields.ID:
		return object{"type": []string{"string", "integer"}}
	case fields.Unit:
		return object{"const": "bucket"}
	case fields.Form:
		return object{"const": "columns"}
	case fields.Texts:
		return object{"type": "array", "items": object{"type": "string"}}
	case fields.Packed:
		return object{"type": "string", "contentEncoding": "base64", "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"}
	case fields.JSON:
		return object{"type": []string{"object", "null"}}
	case fields.Estimates:
		return object{"type": "object", "additionalProperties": ref(f.Of.Name)}
	case fields.List:
		return object{"type": "array", "items": ref(f.Of.Name)}
	case fields.Nullables:
		return nullables(ref, f)
	case fields.HitList:
		return object{"if": object{"type": "object"}, "then": ref("columns"), "else": object{"type": "array", "items": ref("hit"), "maxItems": fields.MaxK}}
	case fields.Nested:
		return ref(f.Of.Name)
	}
	return asked(ref, f)
}

// asked describes what only queries hold.
func asked(ref refs, f *fields.Field) object {
	elements := func(of object) object {
		return object{"type": "array", "minItems": 1, "maxItems": fields.MaxItems, "items": of}
	}
	switch f.Holds {
	case fields.Scalar:
		return ref("scalar")
	case fields.Scalars:
		return elements(ref("scalar"))
	case fields.Set:
		return elements(object{"type": []string{"number", "string"}})
	case fields.Vector:
		return elements(object{"type": "number", "exclusiveMinimum": number(-fields.BeyondFloat32), "exclusiveMaximum": number(fields.BeyondFloat32)})
	case fields.Point:
		lat := bounded("number", fields.Place.Find("lat"))
		return object{"if": object{"type": "object"}, "then": ref(fields.Place.Name),
			"else": object{"type": "array", "prefixItems": list{lat, object{"type": "number"}}, "minItems": 2, "items": false}}
	case fields.Row:
		return ref("row")
	case fields.Conditions:
		return elements(ref("item"))
	case fields.Filter:
		return object{"if": object{"type": "array"}, "then": object{"type": "array", "items": ref("filter"), "contains": object{"type": "object", "minProperties": 1}},
			"else": object{"type": "object", "allOf": list{ref("filter")}, "minProperties": 1}}
	case fields.Weights:
		return object{"type": "object", "propertyNames": object{"minLength": 1}, "additionalProperties": bounded("integer", f)}
	}
	return inTable(ref, f)
}

// inTable describes what only tables hold.
func inTable(ref refs, f *fields.Field) object {
	switch f.Holds {
	case fields.Common:
		return ref("common")
	case fields.Array:
		return ref("array")
	case fields.Groups:
		return object{"type": "array", "items": ref(f.Of.Name)}
	}
	panic("the schema does not know what " + f.Name + " holds")
}

func nullables(ref refs, f *fields.Field) object {
	of := object{"type": "array", "items": object{"type": "string"}}
	switch f.Of {
	case &fields.Payload:
		of = object{"type": "object"}
	case nil:
	default:
		of = object{"type": "object", "additionalProperties": ref(f.Of.Name)}
	}
	return object{"type": "array", "items": object{"anyOf": list{of, object{"type": "null"}}}}
}

// bounded is a number with the bounds of its field, but for those that all numbers have.
func bounded(kind string, f *fields.Field) object {
	n := object{"type": kind}
	if f.Least > -math.MaxFloat64 {
		n[map[bool]string{false: "minimum", true: "exclusiveMinimum"}[f.AboveLeast]] = number(f.Least)
	}
	if f.Most < math.MaxFloat64 {
		n[map[bool]string{false: "maximum", true: "exclusiveMaximum"}[f.BelowMost]] = number(f.Most)
	}
	if f.Most == math.MaxFloat32 { // whose shortest digits are a little more
		n["minimum"], n["maximum"] = number(-fields.BeyondFloat32), number(fields.BeyondFloat32)
	}
	return n
}

// number is a number with all its digits.
func number(v float64) json.Number {
	if v == math.Trunc(v) {
		return json.Number(strconv.FormatFloat(v, 'f', 0, 64))
	}
	return json.Number(strconv.FormatFloat(v, 'g', -1, 64))
}
