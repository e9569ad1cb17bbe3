package streams

import (
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// API is what the subjects of requests to JetStream's API begin with: that of the connection's server and account, of a domain, or of another account,
// which is imported under a prefix.
func API(o jetstream.JetStreamOptions) string {
	switch {
	case o.Domain != "":
		return "$JS." + o.Domain + ".API."
	case o.APIPrefix != "":
		return strings.TrimSuffix(o.APIPrefix, ".") + "."
	}
	return jetstream.DefaultAPIPrefix
}
