package admin

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/geniemq/geniemq/internal/human"
)

// Host is the Device of memory that is no device's but this host's.
const Host = -1

// Holding is memory that an engine has taken: who has it, and what is in it.
type Holding struct {
	Device int    // its number, or Host
	Owner  string // an index with its version, or the engine
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
		"geniemq_device_memory_bytes", "Memory that the engine has taken, by device, owner and form.", []string{"device", "owner", "form"}, nil)}
}

type memoryCollector struct {
	holdings func() []Holding
	desc     *prometheus.Desc
}

func (c *memoryCollector) Describe(to chan<- *prometheus.Desc) { to <- c.desc }

// Collect sends the sums of the holdings that have the same labels, of which a metric may have one only.
func (c *memoryCollector) Collect(to chan<- prometheus.Metric) {
	type labels struct{ device, owner, form string }
	sums := make(map[labels]int64)
	for _, h := range c.holdings() {
		sums[labels{h.Where(), h.Owner, h.Form}] += h.Bytes
	}
	for l, bytes := range sums {
		to <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(bytes), l.device, l.owner, l.form)
	}
}
