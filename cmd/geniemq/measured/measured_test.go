package measured_test

import (
	"bytes"
	"testing"

	"github.com/geniemq/geniemq/cmd/geniemq/measured"
	"github.com/geniemq/geniemq/cmd/geniemq/table"
)

func TestPrint(t *testing.T) {
	var out bytes.Buffer
	err := measured.Print(&table.Page{Writer: &out}, struct {
		Workload string    `json:"workload"`
		Objects  int       `json:"objects"`
		Rate     float64   `json:"rate"`
		Small    float64   `json:"small"`
		Loss     float64   `json:"loss"`
		None     *float64  `json:"none"`
		Host     any       `json:"host"`
		Scaling  []float64 `json:"scaling"`
		Command  string    `json:"command"`
	}{"w4", 1234567, 12345.678, 0.01234567, -1234, nil, map[string]bool{"busy": true}, []float64{1, 1.95}, "geniemq bench"})
	const want = `figure         value
workload          w4
objects    1,234,567
rate          12,346
small         0.0123
loss          -1,234
host busy       true
scaling 1          1
scaling 2       1.95

`
	if err != nil || out.String() != want {
		t.Errorf("%v:\n%s\nwant:\n%s", err, out.String(), want)
	}
}
