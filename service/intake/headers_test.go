package intake

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/service/identity"
	"github.com/geniemq/geniemq/wire"
)

// Ids of answers have the form that they always had, or workers of two versions, side by side, would answer twice; but for users'
// ids that look like those of messages without one.
func TestResultIDsKeepTheirForm(t *testing.T) {
	created := time.Unix(0, 1763780000123456789)
	long := strings.Repeat("x", identity.MaxMsgID+1)
	seen := make(map[string]string)
	for id, want := range map[string]string{
		"":                        "people.1763780000123456789.42.1",
		"order-17":                "people.order-17.1",
		"a.2":                     "people.a.2.1",
		"1.2.3":                   "people.1.2.3.1",
		"17":                      "people.17.1",
		"1763780000123456789.42":  "people.~1763780000123456789.42.1",
		"~1763780000123456789.42": "people.~~1763780000123456789.42.1",
		"~a":                      "people.~a.1",
		long:                      "", // a hash
		strings.Repeat("0f", 32):  "people.~" + strings.Repeat("0f", 32) + ".1",
	} {
		got := identity.Part(identity.Result("GENIE_QUERIES", &consumer.Stored{Index: "people", Class: wire.ClassQuery, Header: nats.Header{"Nats-Msg-Id": {id}}, StreamCreated: created, Sequence: 42}), wire.Position{})
		if other, taken := seen[got]; taken {
			t.Errorf("%.40q and %.40q have the same id %s", id, other, got)
		}
		seen[got] = id
		if id == long {
			if hash := strings.TrimSuffix(strings.TrimPrefix(got, "people."), ".1"); len(hash) != 64 || strings.Trim(hash, "0123456789abcdef") != "" {
				t.Errorf("a long id becomes %s", got)
			}
			continue
		}
		if got != want {
			t.Errorf("%.40q becomes %s, want %s", id, got, want)
		}
	}
	ask := func(body, contentType string, sequence uint64) identity.Asked {
		return askedOf(nats.Header{"Nats-Msg-Id": {"a"}, "Content-Type": {contentType}}, []byte(body), sequence, created)
	}
	salted := identity.Salted("people.a", "genie.result.people.bob", ask("x", "", 42), 1)
	if again := identity.Salted("people.a", "genie.result.people.bob", ask("x", "", 43), 1); again != salted {
		t.Errorf("a message that was published twice has the ids %s and %s", salted, again)
	}
	unnamed := func(sequence uint64) identity.Asked { return askedOf(nats.Header{}, []byte("x"), sequence, created) }
	for _, other := range []string{
		identity.Salted("people.a", "genie.result.people.eve", ask("x", "", 42), 1), identity.Salted("people.a", "genie.result.people.bob", ask("y", "", 42), 1),
		identity.Salted("people.a", "genie.result.people.bob", ask("x", "application/msgpack", 42), 1), identity.Salted("people.a", "genie.result.people.bob", ask("x", "", 42), 2),
		identity.Salted("people.a", "genie.result.people.bob", unnamed(42), 1),
	} {
		if other == salted {
			t.Errorf("two messages have the id %s", salted)
		}
	}
	if a, b := identity.Salted("people.1.42", "r", unnamed(42), 1), identity.Salted("people.1.42", "r", unnamed(43), 1); a == b {
		t.Errorf("two messages without ids have the id %s", a)
	}
}

// The same message, asked again in time, has its answer; another one, one without an id, and one that is asked later have not.
func TestAnsweredBy(t *testing.T) {
	stored := time.Unix(1_800_000_000, 0)
	header := nats.Header{"Nats-Msg-Id": {"a"}}
	first := askedOf(header, []byte("x"), 7, stored.Add(-time.Second))
	var h headers
	h.beginResult(header, first, wire.JSON, "")
	answer := h.Header
	for _, c := range []struct {
		name string
		of   identity.Asked
		want bool
	}{
		{"the message", askedOf(header, []byte("x"), 7, stored.Add(time.Hour)), true},
		{"its double", askedOf(header, []byte("x"), 9, stored.Add(time.Minute)), true},
		{"the same later", askedOf(header, []byte("x"), 9, stored.Add(identity.DoubleWindow)), false},
		{"another message", askedOf(header, []byte("y"), 9, stored.Add(time.Second)), false},
		{"one without an id", askedOf(nats.Header{}, []byte("x"), 9, stored.Add(time.Second)), false},
	} {
		if got := c.of.AnsweredBy(answer, stored); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// Headers that are used again have nothing of the answer before, whatever that had.
func TestHeadersAgain(t *testing.T) {
	const secret = "of somebody else"
	query := nats.Header{wire.HeaderTraceParent: {secret}, wire.HeaderAccept: {"parts"}}
	asked := identity.Asked{Sequence: 7, Hash: secret, Stream: secret}
	var used, fresh headers
	used.beginResult(query, asked, wire.MessagePack, secret)
	for _, name := range []string{wire.HeaderQueries, wire.HeaderHits, wire.HeaderVersion} { // more than there is room for
		used.set(name, secret)
	}
	setServiceError(used.Header, wire.Errorf(wire.Internal, secret))
	used.forget()
	if all := fmt.Sprint(used.Header, used.values[:cap(used.values)]); strings.Contains(all, secret) {
		t.Errorf("%s is held on to", all)
	}
	for _, h := range []*headers{&used, &fresh} {
		h.beginResult(nats.Header{}, identity.Asked{Sequence: 8}, wire.JSON, "a")
	}
	if !maps.EqualFunc(used.Header, fresh.Header, slices.Equal) || len(used.values) != len(fresh.values) {
		t.Errorf("%v of %d values, want %v of %d", used.Header, len(used.values), fresh.Header, len(fresh.values))
	}
}

// What is left of a message for its body is known before the id of a part is made, to the byte. No two positions have one id, nor the parts of two answers.
func TestPartIDs(t *testing.T) {
	seen := map[string]string{}
	for _, result := range []string{"people.a", "people.a.1", "people.a.1h2", "people.a.1h2.3"} {
		for _, query := range []int{0, 1, 8, 9, 99, 65_535} {
			for _, hit := range []int{0, 1, 2, 9, 10, wire.MaxK} {
				at := wire.Position{Query: query, Hit: hit}
				id := identity.Part(result, at)
				header := nats.Header{wire.HeaderMsgID: {id}}
				if got, want := identity.PartSize(result, at), wire.HeaderSize(header)-wire.HeaderSize(nats.Header{"": {""}})+len(": \r\n"); got != want {
					t.Errorf("%s takes %d bytes, not %d", id, want, got)
				}
				name := fmt.Sprint(result, at)
				if other, twice := seen[id]; twice {
					t.Errorf("%s is of %s and of %s", id, other, name)
				}
				seen[id] = name
			}
		}
	}
}

func askedOf(header nats.Header, body []byte, sequence uint64, at time.Time) identity.Asked {
	return identity.Ask("GENIE_QUERIES", &consumer.Stored{Class: wire.ClassQuery, Header: header, Body: body, Sequence: sequence, Timestamp: at})
}

// Answers to queries of other streams have other ids, whatever their users choose, and say which stream counts.
func TestResultIDsOfOtherStreams(t *testing.T) {
	created := time.Unix(1, 0)
	seen := make(map[string]string)
	for _, class := range wire.StoredClasses() {
		for _, user := range []string{"", "bob", "eve"} {
			for _, id := range []string{"", "a", "bob.a", ".a", "GENIE_USERS/people.bob.a", "GENIE_BULK/people..a"} {
				if class == wire.ClassQuery && user != "" || class == wire.ClassUsers && user == "" {
					continue
				}
				m := &consumer.Stored{Index: "people", Class: class, User: user, StreamCreated: created, Sequence: 7, Header: nats.Header{}}
				if id != "" {
					m.Header.Set("Nats-Msg-Id", id)
				}
				stream := wire.Subjects{}.Stream(class)
				got, of := identity.Part(identity.Result(stream, m), wire.Position{}), string(class)+" "+user+" "+id
				if other, taken := seen[got]; taken && (id != "" || user == "") {
					t.Errorf("%s and %s have the same id %s", of, other, got)
				}
				seen[got] = of
				if asked := identity.Ask(stream, m); (asked.Stream == "") != (class == wire.ClassQuery) {
					t.Errorf("%s is asked in stream %q", of, asked.Stream)
				}
			}
		}
	}
	if got := identity.Result("GENIE_USERS", &consumer.Stored{Index: "people", User: "bob", Class: wire.ClassUsers, Header: nats.Header{"Nats-Msg-Id": {"a"}}}); got != "GENIE_USERS/people.bob.a" {
		t.Error(got)
	}
}
