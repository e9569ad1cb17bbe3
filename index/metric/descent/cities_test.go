package descent

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/internal/processor"
	"github.com/geniemq/geniemq/internal/testkit/real"
)

// BenchmarkCities is a search of cities15000 alone, without planning and answers, by the size of leaves.
func BenchmarkCities(b *testing.B) {
	rows := cities(b)
	const asked = 1024
	n := len(rows) - asked
	space, err := metric.NewPoints(flattened(rows[:n]))
	if err != nil {
		b.Fatal(err)
	}
	for _, shape := range [][2]int{{4, 8}, {4, 16}, {4, 32}, {8, 8}, {8, 16}, {16, 8}} {
		own := few(b, space, shape[0], shape[1])
		for _, k := range []int{1, 8, 32, 100} {
			b.Run(fmt.Sprintf("capacity=%d/leaf=%d/k=%d", shape[0], shape[1], k), func(b *testing.B) {
				meter := metric.Until(b.Context())
				distances, least := 0.0, time.Duration(math.MaxInt64)
				for b.Loop() {
					distances = 0
					least = min(least, processor.Time(func() {
						for i := range asked {
							s, err := own.Begin(rows[n+i][:], metric.Want{K: k, Most: math.Inf(1)}, false)
							if err != nil {
								b.Fatal(err)
							}
							s.Run(nil, meter)
							distances += s.End(nil).Work.Distances
						}
					}))
				}
				b.ReportMetric(distances/asked, "distances/query")
				b.ReportMetric(float64(least)/asked, "processor-ns/query") // the least of all rounds
			})
		}
	}
}

// cities are the unit vectors of cities15000, in random order.
func cities(t testing.TB) (rows [][3]float64) {
	t.Helper()
	f, err := os.Open(real.File(t, "cities15000/cities15000.txt.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		lat, err := strconv.ParseFloat(fields[4], 64)
		if err != nil {
			t.Fatal(err)
		}
		lon, err := strconv.ParseFloat(fields[5], 64)
		if err != nil {
			t.Fatal(err)
		}
		unit, err := metric.Unit(lat, lon)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, unit)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return rows
}

func flattened(rows [][3]float64) (all []float64) {
	for _, r := range rows {
		all = append(all, r[:]...)
	}
	return all
}
