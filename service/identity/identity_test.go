package identity_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/service/identity"
	"github.com/geniemq/geniemq/wire"
)

// A query that lies in the object store is the same under whatever name it was stored, and another with another size or digest.
func TestObjectsAreTheirContent(t *testing.T) {
	hash := func(object string) string {
		m := &consumer.Stored{Index: "people", Timestamp: time.Now(), Header: nats.Header{wire.HeaderMsgID: {"a"}}}
		if object != "" {
			m.Header.Set(wire.HeaderQueryObject, object)
		}
		asked := identity.Ask("GENIE_QUERIES", m)
		return asked.Hash
	}
	b := wire.StoredBodyOf("one", []byte("abc"))
	again, longer := wire.StoredBodyOf("two", []byte("abc")), b
	longer.Size++
	if hash(b.String()) != hash(again.String()) {
		t.Error("stored again, it is another query")
	}
	for _, other := range []string{"", longer.String(), wire.StoredBodyOf("one", []byte("abd")).String(), "garbage"} {
		if hash(other) == hash(b.String()) {
			t.Errorf("%q is the same query as %q", other, b)
		}
	}
}
