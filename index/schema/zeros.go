package schema

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// zeros are the faults of numbers that are written as 0 and must be more. Where a number is left out a default stands for it, and decoding leaves the same of both: who wrote
// buckets: 0 or minhash: 0 would get what was not asked for, without a word. A stored schema leaves out what is 0.
func zeros(data []byte) []error {
	var document yaml.Node
	if yaml.Unmarshal(data, &document) != nil || len(document.Content) == 0 {
		return nil // decoding says why
	}
	return zerosIn(document.Content[0], reflect.TypeFor[Schema](), "")
}

// zerosIn are those of a value of a type; where it stands are words for people.
func zerosIn(node *yaml.Node, t reflect.Type, where string) (faults []error) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch {
	case t.Kind() == reflect.Slice && node.Kind == yaml.SequenceNode:
		for _, element := range node.Content {
			faults = append(faults, zerosIn(element, t.Elem(), where)...)
		}
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct:
		return zerosIn(node, t.Elem(), where)
	case t == reflect.TypeFor[Input](): // no line is skipped
	case t.Kind() == reflect.Struct && node.Kind == yaml.MappingNode:
		if t == reflect.TypeFor[Column]() {
			where = fmt.Sprintf("column %q: ", named(node))
		}
		for i := 0; i+1 < len(node.Content); i += 2 {
			name, value := node.Content[i], node.Content[i+1]
			if field := fieldNamed(t, name.Value); field != nil {
				faults = append(faults, zerosIn(value, field.Type, where+name.Value+".")...)
			}
		}
	case t == reflect.TypeFor[int](), t == reflect.TypeFor[float64]():
		var v float64
		if tag := node.ShortTag(); (tag == "!!int" || tag == "!!float") && node.Decode(&v) == nil && v == 0 {
			faults = append(faults, fmt.Errorf("line %d: %s is 0, and must be more: leave it out for the default", node.Line, strings.TrimSuffix(where, ".")))
		}
	}
	return faults
}

// fieldNamed is the field of a struct that YAML has by a name, nil where there is none.
func fieldNamed(t reflect.Type, name string) *reflect.StructField {
	for i := range t.NumField() {
		field := t.Field(i)
		if tag, _, _ := strings.Cut(field.Tag.Get("yaml"), ","); tag == name {
			return &field
		}
	}
	return nil
}

// named is the name of a column.
func named(node *yaml.Node) string {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == "name" {
			return node.Content[i+1].Value
		}
	}
	return ""
}
