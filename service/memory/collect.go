package memory

import "github.com/prometheus/client_golang/prometheus"

// Describe and Collect make a Budget a Prometheus collector.

var (
	memoryLimitDesc = prometheus.NewDesc("geniemq_memory_limit_bytes", "Most memory that may be reserved for what is in flight, by account.", []string{"account"}, nil)
	memoryUsedDesc  = prometheus.NewDesc("geniemq_memory_used_bytes", "Memory that is reserved for what is in flight, by account.", []string{"account"}, nil)
	memoryWaitDesc  = prometheus.NewDesc("geniemq_memory_waiting", "Messages, or batches, that wait for memory, by account: decoding, requests or batches.", []string{"account"}, nil)
)

func (b *Budget) accounts() map[string]*account {
	return map[string]*account{"decoding": &b.Decoding, "requests": &b.Requests, "batches": &b.Batches}
}

func (b *Budget) Describe(to chan<- *prometheus.Desc) {
	to <- memoryLimitDesc
	to <- memoryUsedDesc
	to <- memoryWaitDesc
}

func (b *Budget) Collect(to chan<- prometheus.Metric) {
	pulled := int64(0)
	if b.Pulled != nil {
		pulled = b.Pulled()
	}
	to <- prometheus.MustNewConstMetric(memoryLimitDesc, prometheus.GaugeValue, float64(b.bodies), "bodies")
	to <- prometheus.MustNewConstMetric(memoryUsedDesc, prometheus.GaugeValue, float64(pulled), "bodies")
	for name, a := range b.accounts() {
		used, waiting := a.state()
		to <- prometheus.MustNewConstMetric(memoryLimitDesc, prometheus.GaugeValue, float64(a.limit), name)
		to <- prometheus.MustNewConstMetric(memoryUsedDesc, prometheus.GaugeValue, float64(used), name)
		to <- prometheus.MustNewConstMetric(memoryWaitDesc, prometheus.GaugeValue, float64(waiting), name)
	}
}
