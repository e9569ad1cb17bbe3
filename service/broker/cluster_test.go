package broker_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/cluster"
	"github.com/geniemq/geniemq/service/broker"
)

// Three embedded servers are a cluster: what a stream with three replicas has acknowledged is there when one of them is gone, whichever leads.
func TestCluster(t *testing.T) {
	c := cluster.Start(t, func(o *broker.Options) { o.SyncAlways = true })
	js := testkit.JetStream(t, c.URL())
	testkit.Eventually(t, func() error { // the leader may not have heard of all the others yet
		_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Replicas: 3})
		return err
	})
	const n = 20
	for i := range n {
		if _, err := js.Publish(t.Context(), "s", fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	stream, err := js.Stream(t.Context(), "S")
	if err != nil {
		t.Fatal(err)
	}
	leader := stream.CachedInfo().Cluster.Leader
	var gone int
	if _, err := fmt.Sscanf(leader, "s%d", &gone); err != nil {
		t.Fatalf("the leader is %q", leader)
	}
	c.Stop(gone - 1)
	js = testkit.JetStream(t, c.URL())
	testkit.Eventually(t, func() error {
		stream, err := js.Stream(t.Context(), "S")
		if err != nil {
			return err
		}
		info := stream.CachedInfo()
		if info.Cluster.Leader == leader || info.State.Msgs != n {
			return fmt.Errorf("%s leads, %d messages", info.Cluster.Leader, info.State.Msgs)
		}
		return nil
	})
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "T", Subjects: []string{"t"}, Replicas: 5}); err == nil {
		t.Error("a stream has five replicas on two servers")
	} else if errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Error(err)
	}
}
