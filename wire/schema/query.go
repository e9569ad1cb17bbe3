package schema

import (
	"maps"

	"github.com/geniemq/geniemq/wire/fields"
)

// queryDefinitions are the definitions that a message of queries refers to.
func queryDefinitions(ref refs) object {
	return object{
		"query": query(ref),
		"queries": object{"type": "object", "description": fields.Query.Find("queries").Means, "additionalProperties": false, "required": []string{"queries"},
			"properties": object{"queries": object{"type": "array", "minItems": 1, "maxItems": fields.MaxQueries, "items": ref("query")}}},
		"tables": object{"type": "object", "description": fields.Query.Find("table").Means, "additionalProperties": false, "required": []string{"table"},
			"properties": object{"table": ref("table")}},
		"table":   described(ref, &fields.Table, false),
		"group":   described(ref, &fields.Group, false),
		"common":  common(ref),
		"array":   array(),
		"scalar":  object{"type": []string{"number", "string", "boolean"}, "description": "What conditions compare with. Numbers are 64-bit floats."},
		"row":     byAttribute(object{"description": "Conditions by attribute.", "minProperties": 1, "additionalProperties": ref("condition")}),
		"filter":  byAttribute(object{"description": "Conditions by attribute, without weights.", "additionalProperties": object{"allOf": list{ref("condition")}, "not": weighted()}}),
		"place":   described(ref, &fields.Place, false),
		"rescore": described(ref, &fields.Rescore, false),
		"condition": object{"description": fields.Condition.Means + " A value alone stands for {\"value\":…}.",
			"if": object{"type": "object"}, "then": condition(ref, false), "else": object{"type": []string{"number", "string", "boolean", "null", "array"}}},
		"item": condition(ref, true),
	}
}

func byAttribute(of object) object {
	of["type"], of["propertyNames"], of["maxProperties"] = "object", object{"minLength": 1}, fields.MaxItems
	return of
}

func weighted() object { return object{"type": "object", "required": []string{"weight"}} }

// query is a query. What its fields say together comes after what each of them holds.
func query(ref refs) object {
	def := described(ref, &fields.Query, false)
	forms := make(list, 0, len(fields.Forms)+1)
	for _, form := range fields.Forms {
		forms = append(forms, required(form))
	}
	alone := object{
		"description": "A filter alone.",
		"not":         object{"anyOf": append(append(list{}, forms...), required("rescore"))},
		"anyOf":       list{required(fields.FilterForms[0]), required(fields.FilterForms[1]), is(fields.FilterForms[2], true)},
		"properties":  object{"min_count": object{"const": 0}, "certify": object{"const": false}},
	}
	def["oneOf"] = append(forms, alone)
	def["dependentRequired"] = object{"keys": []string{"form"}}
	def["allOf"] = list{
		object{"if": is("k", 0), "then": required("radius")},
		object{"if": anyRequired(fields.Near), "then": anyRequired([]string{"text", "vector", "point"})},
		object{"not": required("fraction", "recall")},
		object{"if": anyRequired([]string{"radius", "point"}), "then": object{"properties": object{"min_count": object{"const": 0}, "certify": object{"const": false}}}},
	}
	return def
}

// common is what all queries of a table have. What it lacks to be a query, the table has.
func common(ref refs) object {
	def := described(ref, &fields.Query, false)
	def["dependentRequired"] = object{"keys": []string{"form"}}
	return def
}

// array is elements of a table: a list, or packed. Whether there are as many as it takes, no schema can say.
func array() object {
	packed := object{}
	for _, f := range fields.Elements.Fields {
		packed[f.Name] = object{"type": "string", "contentEncoding": "base64", "description": f.Means}
	}
	return object{"description": "Elements for each query: a list in which null is none, or packed ones.", "if": object{"type": "array"},
		"then": object{"type": "array", "items": object{"type": []string{"number", "string", "boolean", "null"}}, "maxItems": fields.MaxItems},
		"else": object{"type": "object", "properties": packed, "additionalProperties": false, "minProperties": 1, "maxProperties": 1}}
}

// condition is a condition that is an object. What has only fields that are known here, with what they hold, has to make sense; everything else is of
// another shape, which only the type of its column knows.
func condition(ref refs, item bool) object {
	shape := object{}
	own := object{}
	var needed []string
	for i := range fields.Condition.Fields {
		f := &fields.Condition.Fields[i]
		switch {
		case f.Name == "attr" && !item:
		case f.Holds == fields.Integer || f.Holds == fields.Text:
			shape[f.Name] = true
			own[f.Name] = object{"description": f.Means}
			maps.Copy(own[f.Name].(object), holds(ref, f))
			if f.Required {
				needed = append(needed, f.Name)
			}
		case f.Holds == fields.Scalars:
			shape[f.Name] = object{"type": "array", "items": ref("scalar")}
			own[f.Name] = object{"description": f.Means}
		default:
			shape[f.Name] = holds(ref, f)
			own[f.Name] = object{"description": f.Means}
		}
	}
	end := object{"type": []string{"number", "string"}}
	bucket := object{"type": "integer", "minimum": 0, "maximum": fields.MaxBucket}
	def := object{"type": "object", "properties": own,
		"if": object{"properties": shape, "additionalProperties": false},
		"then": object{
			"oneOf":      list{required("value"), anyRequired([]string{"min", "max"}), required("in")},
			"properties": object{"min": end, "max": end, "in": object{"type": "array", "minItems": 1, "maxItems": fields.MaxItems}},
			"if":         required("unit"),
			"then": object{"properties": object{"value": bucket, "min": object{"type": "integer"}, "max": object{"type": "integer"},
				"in": object{"type": "array", "items": bucket}}},
		},
		"description": fields.Condition.Means,
	}
	if needed != nil {
		def["required"] = needed
	}
	return def
}

// answerDefinitions are those that an answer refers to.
func answerDefinitions(ref refs) object {
	result := described(ref, &fields.Result, true)
	result["anyOf"] = list{required("hits"), required("error")}
	codes := make([]string, len(fields.Codes))
	for i, c := range fields.Codes {
		codes[i] = c.Name
	}
	fault := described(ref, &fields.Error, true)
	fault["properties"].(object)["code"].(object)["examples"] = codes
	return object{
		"result": result, "error": fault,
		"took":     described(ref, &fields.Took, true),
		"hit":      described(ref, &fields.Hit, true),
		"estimate": described(ref, &fields.Estimate, true),
		"columns":  described(ref, &fields.Columns, true),
		"answer":   described(ref, &fields.Answer, true),
	}
}
