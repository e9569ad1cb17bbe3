package admin

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/geniemq/geniemq/internal/human"
)

// Status is what a service can say about itself: whether it answers queries, and figures for people.
type Status struct {
	Version string
	// Ready is true only while queries are answered: the connection is up, the consumers make progress, and every
	// index answered a probe query. NotReady says what is missing.
	Ready    bool
	NotReady []string
	// Fault is why the service cannot go on, "" while it can.
	Fault string

	Uptime      time.Duration
	NATS        string
	Embedded    bool
	Engine      string
	EngineNote  string // why it is not the one that auto prefers
	BusyPercent float64
	EngineBusy  time.Duration // for how long it had at least one batch to run, since the start
	Memory      []Holding     // of the engine
	Indexes     []IndexStatus
}

// IndexStatus is the part of a Status that concerns one index.
type IndexStatus struct {
	Name, Kind, Version string
	Retiring            string // the version before, while it still has queries
	Objects             uint32
	Size                string // of the file, for people
	Pending             int64  // messages in the stream that are not answered
	Queries, Errors     int64  // answered since the start, by hits and by errors
	Batches             int64
	PerBatch            float64 // queries per batch
	Example             string  // a query, JSON
	QuerySubject        string
	SearchSubject       string
}

// Host is the Device of memory that is no device's but this host's.
const Host = -1

// Holding is memory that an engine has taken: who has it, and what is in it.
type Holding struct {
	Device int    // its number, or Host
	Owner  string // an index with its version, or the engine
	Index  string // the index's name, "" of what is no index's
	Form   string // like "postings" or "planes"
	Bytes  int64
	Needed bool // the owner cannot do without it; else it is there to be faster
}

// Where says where a holding is.
func (h Holding) Where() string {
	if h.Device == Host {
		return "host"
	}
	return strconv.Itoa(h.Device)
}

// Size is Bytes for people.
func (h Holding) Size() string { return human.Bytes(h.Bytes) }

// MemoryCollector is the metric geniemq_device_memory_bytes. It asks for the holdings whenever it is collected, from any goroutine.
func MemoryCollector(holdings func() []Holding) prometheus.Collector {
	return &memoryCollector{holdings, prometheus.NewDesc(
		"geniemq_device_memory_bytes", "Memory that the engine has taken, by device, index, owner (a version of it, or the engine) and form.",
		[]string{"device", "index", "owner", "form"}, nil)}
}

type memoryCollector struct {
	holdings func() []Holding
	desc     *prometheus.Desc
}

func (c *memoryCollector) Describe(to chan<- *prometheus.Desc) { to <- c.desc }

// Collect sends the sums of the holdings that have the same labels, of which a metric may have one only.
func (c *memoryCollector) Collect(to chan<- prometheus.Metric) {
	type labels struct{ device, index, owner, form string }
	sums := make(map[labels]int64)
	for _, h := range c.holdings() {
		sums[labels{h.Where(), h.Index, h.Owner, h.Form}] += h.Bytes
	}
	for l, bytes := range sums {
		to <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(bytes), l.device, l.index, l.owner, l.form)
	}
}
