package streams

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/internal/human"
)

// Difference is a setting of something that existed already, or that got less than it should have.
type Difference struct {
	Of      string // such as "stream GENIE_RESULTS"
	Setting string // its name in JetStream's configuration
	Have    string
	Want    string
}

func (d Difference) String() string {
	return fmt.Sprintf("%s: %s is %s instead of %s", d.Of, d.Setting, d.Have, d.Want)
}

// Differences are the settings of a stream that are not as they would have been made.
func Differences(want, have jetstream.StreamConfig) []Difference {
	d := Differ{Of: "stream " + want.Name}
	d.Check("subjects", strings.Join(have.Subjects, " "), strings.Join(want.Subjects, " "))
	d.Check("retention", have.Retention, want.Retention)
	d.Check("storage", have.Storage, want.Storage)
	d.Check("max_age", have.MaxAge, want.MaxAge)
	d.Check("max_bytes", formatBytes(have.MaxBytes), formatBytes(want.MaxBytes))
	d.Check("max_msgs", formatCount(have.MaxMsgs), formatCount(want.MaxMsgs))
	d.Check("max_msgs_per_subject", formatCount(have.MaxMsgsPerSubject), formatCount(want.MaxMsgsPerSubject))
	d.Check("max_msg_size", formatBytes(int64(have.MaxMsgSize)), formatBytes(int64(want.MaxMsgSize)))
	d.Check("discard", have.Discard, want.Discard)
	d.Check("discard_new_per_subject", have.DiscardNewPerSubject, want.DiscardNewPerSubject)
	d.Check("duplicate_window", have.Duplicates, want.Duplicates)
	d.Check("num_replicas", have.Replicas, want.Replicas)
	d.Check("placement", formatPlacement(have.Placement), formatPlacement(want.Placement))
	d.Check("sealed", have.Sealed, want.Sealed)
	return d.Found
}

// Differ collects the differences of one thing.
type Differ struct {
	Of    string
	Found []Difference
}

// Check adds a difference if there is one.
func (d *Differ) Check(setting string, have, want any) {
	if have != want {
		d.Found = append(d.Found, Difference{d.Of, setting, fmt.Sprint(have), fmt.Sprint(want)})
	}
}

func formatCount(n int64) string {
	if n <= 0 {
		return "unlimited"
	}
	return strconv.FormatInt(n, 10)
}

func formatBytes(n int64) string {
	if n <= 0 {
		return "unlimited"
	}
	return human.Size(n).String()
}

func formatPlacement(p *jetstream.Placement) string {
	if p == nil || p.Cluster == "" && len(p.Tags) == 0 {
		return "anywhere"
	}
	return strings.TrimSpace(p.Cluster + " " + strings.Join(p.Tags, " "))
}
