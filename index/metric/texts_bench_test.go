//go:build unix

package metric

import (
	"compress/gzip"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// spent are the seconds that cores have worked for this process, which a busy machine does not change much.
func spent(b *testing.B) float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

// BenchmarkScanOfTexts: 64 queries, the 10 nearest of real texts, on one core: each by itself, and in lanes.
func BenchmarkScanOfTexts(b *testing.B) {
	const queries, k = 64, 10
	for name, texts := range map[string][]string{"words": realTexts(b, "words", "american-english-insane.gz", 1, 0), "dna": realTexts(b, "dna", "ERR127302_1_subset.fastq.gz", 4, 1)} {
		n := uint32(min(len(texts), 1<<16))
		s, err := NewTexts(n, func(i uint32) string { return texts[i*7%n] }, nil)
		if err != nil {
			b.Fatal(err)
		}
		for _, way := range []string{"alone", "lanes"} {
			b.Run(name+"/"+way, func(b *testing.B) {
				start := spent(b)
				for b.Loop() {
					var askers []Asker
					best, limits := make([]Best, queries), make([]float64, queries)
					for i := range best {
						askers = append(askers, s.Of(uint32(i)*911%n))
						best[i].Reset(Want{k, math.Inf(1)})
						limits[i] = best[i].Bound()
					}
					found := func(q int, object uint32, v float64) {
						best[q].Add(Hit{v, object})
						limits[q] = best[q].Bound()
					}
					for lo := uint32(0); lo < n; lo += min(4096, n-lo) {
						hi := min(n, lo+4096)
						if way == "lanes" {
							Scan(askers, lo, hi, limits, found)
							continue
						}
						for i := range askers {
							Scan(askers[i:i+1], lo, hi, limits[i:i+1], func(_ int, object uint32, v float64) { found(i, object, v) })
						}
					}
				}
				b.ReportMetric((spent(b)-start)*1e9/(float64(b.N)*float64(n)*queries), "core-ns/pair")
			})
		}
	}
}

// realTexts are every so many lines of a file of the real data, from one on.
func realTexts(b *testing.B, folder, file string, every, from int) (texts []string) {
	at := os.Getenv("GENIEMQ_DATA")
	if at == "" {
		at = filepath.Join("..", "..", "..", "shared", "data")
	}
	f, err := os.Open(filepath.Join(at, folder, file))
	if err != nil {
		b.Skipf("no real data: %v; set GENIEMQ_DATA to its folder", err)
	}
	defer func() { _ = f.Close() }()
	r, err := gzip.NewReader(f)
	if err != nil {
		b.Fatal(err)
	}
	all, err := io.ReadAll(r)
	if err != nil {
		b.Fatal(err)
	}
	for i, line := range strings.Split(string(all), "\n") {
		if i%every == from && line != "" {
			texts = append(texts, line[:min(64, len(line))])
		}
	}
	return texts
}
