package testkit

import "go.uber.org/goleak"

// StoredObject excuses a goroutine of nats.go where objects are stored. Put of its object store starts one that reads the channel of the
// connection's states from the publisher, and takes that channel away when it returns (nats.go 1.55.0, jetstream/publish.go). A goroutine
// that first runs after that, on a busy machine, waits on no channel, for ever. It holds nothing but the context of that one Put.
func StoredObject() goleak.Option {
	return goleak.IgnoreTopFunction("github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect")
}
