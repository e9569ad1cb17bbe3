package schema

import "github.com/geniemq/geniemq/wire/fields"

// channel is a subject, or several that differ in a part.
type channel struct {
	name, address, means string
	messages             []string
}

var channels = []channel{
	{"query", "genie.query.{index}", "Queries that must not be lost. The stream GENIE_QUERIES stores them: publish through JetStream and wait for its acknowledgement.", []string{"query"}},
	{"userQuery", "genie.query.{index}.{user}", "The same of a user, in the stream GENIE_USERS. Answers go to subjects of this user and to inboxes alone.", []string{"query"}},
	{"bulk", "genie.bulk.{index}", "The same, in the stream GENIE_BULK, of which nobody waits for the answers: all others go before it.", []string{"query"}},
	{"userBulk", "genie.bulk.{index}.{user}", "The same of a user.", []string{"query"}},
	{"result", "genie.result.{index}", "Answers to queries that name no subject of their own. The stream GENIE_RESULTS keeps them for an hour.", []string{"result"}},
	{"reply", "genie.result.{index}.{asker}", "Answers to queries whose header Genie-Reply names this subject. The part for the asker may have several tokens.", []string{"result"}},
	{"dead", "genie.dead.{index}", "Messages that were given up, with the reason. The stream GENIE_DEAD keeps them for 7 days.", []string{"dead"}},
	{"search", "genie.search.{index}", "Direct search: a request of NATS. Nothing is stored. Parts do not go with it.", []string{"search"}},
	{"userSearch", "genie.search.{index}.{user}", "Direct search of a user.", []string{"search"}},
	{"inbox", "", "The reply subject of a request: an inbox that the NATS library makes.", []string{"reply"}},
	{"info", "$SRV.INFO.geniemq", "Discovery: a request that every worker answers by what it serves.", []string{"infoRequest", "info"}},
}

// operation is what a worker does: it receives or sends.
type operation struct {
	name, action, channel, message string
	replyTo, reply                 string // channel and message
	means                          string
}

var operations = []operation{
	{"takeQuery", "receive", "query", "query", "", "", "A worker takes a query, and acknowledges it when its answer is confirmed."},
	{"takeUserQuery", "receive", "userQuery", "query", "", "", "A worker takes a user's query, within the user's quota."},
	{"takeBulk", "receive", "bulk", "query", "", "", "A worker takes a query that nobody waits for, when others leave it time."},
	{"takeUserBulk", "receive", "userBulk", "query", "", "", "The same of a user."},
	{"answerQuery", "send", "result", "result", "", "", "A worker answers. Long answers are several messages: of a batch each with some of the results, and for those who accept parts one result may be several."},
	{"answerAsker", "send", "reply", "result", "", "", "A worker answers on the subject that the query named."},
	{"giveUp", "send", "dead", "dead", "", "", "A worker gives a message up that it cannot answer where it was asked to, or that workers died of."},
	{"search", "receive", "search", "search", "inbox", "reply", "A worker answers a request."},
	{"searchOfUser", "receive", "userSearch", "search", "inbox", "reply", "A worker answers a user's request, within the user's quota."},
	{"discover", "receive", "info", "infoRequest", "inbox", "info", "A worker says what it serves, and which fields of queries it understands."},
}

func ref(to string) object { return object{"$ref": "#/" + to} }

// asyncAPI is the AsyncAPI document: what workers receive and send.
func asyncAPI() object {
	subjects, does := object{}, object{}
	for _, c := range channels {
		messages := object{}
		for _, m := range c.messages {
			messages[m] = ref("components/messages/" + m)
		}
		parameters := object{}
		switch c.name {
		case "userQuery", "userBulk", "userSearch":
			parameters["user"] = object{"description": "The user: one token, which a server can permit to its owner alone."}
			parameters["index"] = object{"description": "The name of the index: 1 to 64 of A-Z a-z 0-9 _ -."}
		case "reply":
			parameters["asker"] = object{"description": "One or more tokens that the asker chose."}
			fallthrough
		case "query", "bulk", "result", "dead", "search":
			parameters["index"] = object{"description": "The name of the index: 1 to 64 of A-Z a-z 0-9 _ -."}
		}
		subject := object{"address": nil, "description": c.means, "messages": messages}
		if c.address != "" {
			subject["address"] = c.address
		}
		if len(parameters) > 0 {
			subject["parameters"] = parameters
		}
		subjects[c.name] = subject
	}
	subjects["inbox"].(object)["messages"] = object{"reply": ref("components/messages/reply"), "info": ref("components/messages/info")}
	for _, o := range operations {
		op := object{"action": o.action, "summary": o.means, "channel": ref("channels/" + o.channel), "messages": list{ref("channels/" + o.channel + "/messages/" + o.message)}}
		if o.replyTo != "" {
			op["reply"] = object{"channel": ref("channels/" + o.replyTo), "messages": list{ref("channels/" + o.replyTo + "/messages/" + o.reply)},
				"address": object{"location": "$message.header#/reply", "description": "The reply subject of NATS."}}
		}
		does[o.name] = op
	}
	return object{
		"asyncapi": "3.0.0",
		"info": object{"title": "geniemq", "version": "1.0.0", "license": object{"name": "Apache-2.0"},
			"description": "Top-k similarity queries over NATS JetStream, protocol version 1, as a worker sees it. The first token of subjects, genie, and the names of streams follow the prefix of the deployment. Bodies are JSON as described, or MessagePack with the same names; docs/protocol.md says all else."},
		"defaultContentType": "application/json",
		"servers":            object{"nats": object{"host": "127.0.0.1:4222", "protocol": "nats", "description": "A NATS server with JetStream; the embedded one by default."}},
		"channels":           subjects,
		"operations":         does,
		"components":         object{"messages": messages()},
	}
}

func messages() object {
	body := func(name string) object {
		return object{"schemaFormat": "application/schema+json;version=2020-12", "schema": object{"$ref": "./" + name + ".schema.json"}}
	}
	return object{
		"query":       object{"summary": "One query or many.", "headers": Headers(fields.QueryMessage), "payload": body("query")},
		"search":      object{"summary": "One query or many, asked directly.", "headers": Headers(fields.SearchMessage), "payload": body("query")},
		"result":      object{"summary": "An answer, or one part of it.", "headers": Headers(fields.ResultMessage), "payload": body("answer")},
		"reply":       object{"summary": "The answer to a request, in one message.", "headers": Headers(fields.ReplyMessage), "payload": body("answer")},
		"dead":        object{"summary": "A message that was given up: its body as it was, or the beginning of it, and its headers but for those of NATS.", "headers": Headers(fields.DeadMessage)},
		"infoRequest": object{"summary": "An empty request."},
		"info":        object{"summary": "What a worker serves, as NATS services say it.", "payload": info()},
	}
}

// Headers describes the headers of a kind of message, as an object with a string for each. There may be others.
func Headers(on fields.Message) map[string]any {
	props := object{}
	needed := []string{}
	for _, h := range fields.Headers {
		if h.On&on == 0 {
			continue
		}
		p := object{"type": "string", "description": h.Means}
		if h.Pattern != "" {
			p["pattern"] = h.Pattern
		}
		props[h.Name] = p
		if h.Always {
			needed = append(needed, h.Name)
		}
	}
	return object{"type": "object", "properties": props, "required": needed}
}

// info is the part of a NATS service's INFO that is geniemq's.
func info() object {
	text := object{"type": "string"}
	metadata := object{"type": "object", "required": []string{"index", "kind", "query_fields", "accepts"}, "properties": object{
		"index": text, "kind": text,
		"query_fields": object{"type": "string", "description": "The fields of a query that it understands, with blanks between."},
		"accepts":      object{"type": "string", "description": "What it can read of queries beside what everybody can, as in Genie-Accept."},
	}}
	endpoint := object{"type": "object", "required": []string{"name", "subject", "metadata"}, "properties": object{"name": text, "subject": text, "metadata": metadata}}
	return object{"type": "object", "required": []string{"type", "name", "id", "version", "metadata", "endpoints"}, "properties": object{
		"type": object{"const": "io.nats.micro.v1.info_response"}, "name": object{"const": "geniemq"}, "id": text, "version": text,
		"metadata": object{"type": "object", "required": []string{"engine", "protocol"}, "properties": object{
			"engine": text, "protocol": object{"type": "string", "description": "The highest version of the protocol that it speaks."}}},
		"endpoints": object{"type": "array", "items": endpoint},
	}}
}
