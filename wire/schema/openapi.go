package schema

import (
	"fmt"
	"maps"
	"strconv"

	"github.com/geniemq/geniemq/wire/fields"
)

// OpenAPI is the OpenAPI document of the HTTP door, which serves it too.
func OpenAPI() []byte {
	schemas := queryDefinitions(components)
	maps.Copy(schemas, answerDefinitions(components))
	schemas["message"] = message()(components)
	schemas["answers"] = answer()(components)
	schemas["stored"] = object{"type": "object", "description": "A query that is stored and not answered yet.", "required": []string{"id", "sequence", "duplicate", "reply"}, "properties": object{
		"id":        object{"type": "string", "description": "The Idempotency-Key. Post the same with it again for the answer."},
		"sequence":  object{"type": "integer", "description": "Its sequence in the stream."},
		"duplicate": object{"type": "boolean", "description": "The stream had it already."},
		"reply":     object{"type": "string", "description": "The subject that the answer goes to."},
	}}
	schemas["indexes"] = object{"type": "object", "required": []string{"indexes"}, "properties": object{"indexes": object{"type": "array", "items": components("index")}}}
	schemas["index"] = object{"type": "object", "required": []string{"name", "kind", "version", "objects"}, "properties": object{
		"name": object{"type": "string"}, "kind": object{"type": "string"}, "version": object{"type": "string"}, "objects": object{"type": "integer", "minimum": 0},
	}}
	index := object{"name": "index", "in": "path", "required": true, "schema": object{"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}, "description": "The name of the index."}
	key := object{"name": "Idempotency-Key", "in": "header", "schema": object{"type": "string", "maxLength": 255},
		"description": "Tells a repetition from another query: with the same one the query is stored once, and its answer is found again for an hour. Without one the door makes one."}
	wait := object{"name": "Prefer", "in": "header", "schema": object{"type": "string"}, "example": "wait=5",
		"description": "wait=N: how many seconds to wait for the answer, 0 to 60. Default 30."}
	ask := func(summary string, parameters list) object {
		answers := object{"200": response("The answer: a result, or for many queries their results. Those of a batch each have hits or an error.", "answers")}
		for _, c := range fields.Codes {
			answers[strconv.Itoa(c.HTTP)] = response(fmt.Sprintf("%s: %s %s", c.Name, c.Means, c.Do), "answers")
		}
		answers["401"] = response("The token is missing or wrong.", "answers")
		return object{"summary": summary, "parameters": parameters, "responses": answers,
			"requestBody": object{"required": true, "content": content("message")}}
	}
	stored := ask("Stores a query, which is then answered whatever crashes, and waits for its answer.", list{index, key, wait})
	stored["responses"].(object)["202"] = response("Stored, and not answered yet.", "stored")
	return encoded(object{
		"openapi": "3.1.0",
		"info": object{"title": "geniemq", "version": "1.0.0", "license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "Top-k similarity queries over HTTP, for tools that do not speak NATS. The same JSON as on the wire."},
		"security": list{object{"token": list{}}},
		"paths": object{
			"/v1/indexes": object{"get": object{"summary": "The indexes that this worker serves.", "responses": object{
				"200": response("The indexes.", "indexes"), "401": response("The token is missing or wrong.", "answers")}}},
			"/v1/indexes/{index}/search":  object{"post": ask("Asks directly. Nothing is stored.", list{index})},
			"/v1/indexes/{index}/queries": object{"post": stored},
		},
		"components": object{"schemas": schemas, "securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}}},
	})
}

func content(name string) object {
	return object{"application/json": object{"schema": components(name)}}
}

func response(means, name string) object {
	return object{"description": means, "content": content(name)}
}
