package metrics

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Served is an index as it is served.
type Served struct {
	Name, Version, Kind string
	Bytes               int64  // of the file
	Engine, Device      string // on which it is searched
	Recalls             []Recall
}

// Recall is what was measured of a method that may miss hits.
type Recall struct {
	Column, Method string
	K              uint32
	Effort, Share  float64
}

// mostRecalls is how many of them are shown of an index: the first.
const mostRecalls = 400

// Serving shows an index in the place of the one that had its name before.
func (m *Metrics) Serving(x Served) { m.serving.show(x) }

// serving says what is served. Whoever collects finds one version of an index, also while another takes its place.
type serving struct {
	mu     sync.Mutex           // an index is changed as a whole
	info   *prometheus.GaugeVec // index, version, kind, engine, device
	bytes  *prometheus.GaugeVec // index
	recall *prometheus.GaugeVec // index, column, method, k, effort
}

func newServing() *serving {
	return &serving{
		info:  gauge("index_info", "1 for each index that is served, with what it is in the labels.", "index", "version", "kind", "engine", "device"),
		bytes: gauge("index_bytes", "Size of the index file.", "index"),
		recall: gauge("index_recall_ratio", "Share of the k nearest that a method finds which may miss some, measured when the index was built, by cells visited or by the share of objects compared.",
			"index", "column", "method", "k", "effort"),
	}
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "geniemq", Name: name, Help: help}, labels)
}

func (s *serving) all() []*prometheus.GaugeVec {
	return []*prometheus.GaugeVec{s.info, s.bytes, s.recall}
}

func (s *serving) Describe(to chan<- *prometheus.Desc) {
	for _, v := range s.all() {
		v.Describe(to)
	}
}

func (s *serving) Collect(to chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.all() {
		v.Collect(to)
	}
}

func (s *serving) show(x Served) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(prometheus.Labels{"index": x.Name})
	s.info.WithLabelValues(x.Name, x.Version, x.Kind, x.Engine, x.Device).Set(1)
	s.bytes.WithLabelValues(x.Name).Set(float64(x.Bytes))
	for _, r := range x.Recalls[:min(len(x.Recalls), mostRecalls)] {
		s.recall.WithLabelValues(x.Name, r.Column, r.Method, strconv.FormatUint(uint64(r.K), 10), strconv.FormatFloat(r.Effort, 'g', -1, 64)).Set(r.Share)
	}
}

func (s *serving) forget(label prometheus.Labels) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(label)
}

func (s *serving) drop(label prometheus.Labels) {
	for _, v := range s.all() {
		v.DeletePartialMatch(label)
	}
}
