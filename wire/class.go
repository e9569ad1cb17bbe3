package wire

import (
	"slices"
	"strings"
)

// Class is a kind of queries that is kept apart from the others on its way through the server and through workers. Each class of stored queries has a
// stream of its own, because a consumer delivers in the order of its stream: whoever is behind ten million others in one stream waits for them.
type Class string

const (
	// ClassDirect is direct search: genie.search.<index> and genie.search.<index>.<user>. It has no stream.
	ClassDirect Class = "direct"
	// ClassQuery are the queries of those who trust each other: genie.query.<index>, in GENIE_QUERIES.
	ClassQuery Class = "query"
	// ClassUsers are the queries of users: genie.query.<index>.<user>, in GENIE_USERS.
	ClassUsers Class = "users"
	// ClassBulk is work that nobody waits for: genie.bulk.<index> and genie.bulk.<index>.<user>, in GENIE_BULK.
	ClassBulk Class = "bulk"
)

// Classes are all there are.
func Classes() []Class { return []Class{ClassDirect, ClassQuery, ClassUsers, ClassBulk} }

// StoredClasses are those with a stream.
func StoredClasses() []Class { return []Class{ClassQuery, ClassUsers, ClassBulk} }

// MaxUserName is the most bytes a user's token has that clients of ours send.
const MaxUserName = 64

// CheckUser reports whether a name can be a user's token of a subject: 1 to 64 of A-Z, a-z, 0-9, _ and -. The error is an *[Error].
func CheckUser(name string) error {
	if name == "" || len(name) > MaxUserName || !isToken(name) {
		return badRequest("%q cannot be a user's token: use 1 to %d of A-Z a-z 0-9 _ -", clip(name), MaxUserName)
	}
	return nil
}

// UserQuery is the subject of a user's queries: genie.query.<index>.<user>.
func (s Subjects) UserQuery(index, user string) string { return s.Query(index) + "." + user }

// Bulk is the subject of bulk queries, of a user or, with "", of nobody in particular: genie.bulk.<index>, genie.bulk.<index>.<user>.
func (s Subjects) Bulk(index, user string) string {
	return withUser(s.Prefix()+".bulk."+index, user)
}

// UserSearch is the subject of a user's direct search: genie.search.<index>.<user>.
func (s Subjects) UserSearch(index, user string) string { return s.Search(index) + "." + user }

// UserResults begins the subjects that a user's answers may go to: genie.result.<index>.<user>. followed by more tokens.
func (s Subjects) UserResults(index, user string) string { return s.Result(index) + "." + user + "." }

// UserResult is where answers to a user's queries go that name no reply subject: genie.result.<index>.<user>.answers. It is among
// the subjects that the user alone may read.
func (s Subjects) UserResult(index, user string) string {
	return s.UserResults(index, user) + "answers"
}

// Stored is the subject of a stored query of a class, of a user or, with "", of none: the class of users has one for users only, that of queries for none.
func (s Subjects) Stored(class Class, index, user string) string {
	if class == ClassBulk {
		return s.Bulk(index, user)
	}
	return withUser(s.Query(index), user)
}

// Stream is the name of the stream of a class: GENIE_QUERIES, GENIE_USERS, GENIE_BULK.
func (s Subjects) Stream(class Class) string {
	if class == ClassQuery {
		return s.QueryStream()
	}
	return strings.ToUpper(s.Prefix() + "_" + string(class))
}

// StreamSubjects are what the stream of a class takes.
func (s Subjects) StreamSubjects(class Class) []string {
	switch class {
	case ClassUsers:
		return []string{s.Prefix() + ".query.*.*"}
	case ClassBulk:
		return []string{s.Prefix() + ".bulk.*", s.Prefix() + ".bulk.*.*"}
	}
	return []string{s.Queries()}
}

// Filters are the subjects of an index in the stream of a class, which its durable takes.
func (s Subjects) Filters(class Class, index string) []string {
	switch class {
	case ClassUsers:
		return []string{s.UserQuery(index, "*")}
	case ClassBulk:
		return []string{s.Bulk(index, ""), s.Bulk(index, "*")}
	}
	return []string{s.Query(index)}
}

// ParseStored takes the subject of a stored query apart. user is "" where the subject has none.
func (s Subjects) ParseStored(subject string) (class Class, index, user string, ok bool) {
	tokens := strings.Split(subject, ".")
	if len(tokens) < 3 || len(tokens) > 4 || tokens[0] != s.Prefix() || slices.Contains(tokens, "") {
		return "", "", "", false
	}
	index = tokens[2]
	if len(tokens) == 4 {
		user = tokens[3]
	}
	switch {
	case tokens[1] == "bulk":
		class = ClassBulk
	case tokens[1] != "query":
		return "", "", "", false
	case user != "":
		class = ClassUsers
	default:
		class = ClassQuery
	}
	return class, index, user, true
}

func withUser(subject, user string) string {
	if user == "" {
		return subject
	}
	return subject + "." + user
}
