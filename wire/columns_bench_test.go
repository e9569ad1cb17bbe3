//go:build unix

package wire

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// What a hit takes on the wire and how long that is written and read, of 256 queries with 100 hits each as of workload w1: ids are random, counts fall.
func BenchmarkHitsForms(b *testing.B) {
	a := benchAnswer(false)
	a.Results = a.Results[:256]
	hits := 0
	for i := range a.Results {
		r := &a.Results[i]
		hits += len(r.Hits)
		for j := range r.Hits {
			r.Hits[j].ID = uint32(i*7919+j*104729) * 2654435761 % 4_500_000
		}
	}
	for _, ct := range []ContentType{JSON, MessagePack} {
		for form, name := range []string{"list", "columns", "columns+keys"} {
			for i := range a.Results {
				a.Results[i].HitsForm = HitsForm(form)
			}
			body := AppendAnswer(nil, ct, a)
			packed, _ := Compress(make([]byte, 0, CompressRoom(len(body))), body)
			measure := func(b *testing.B, bytes int, work func()) {
				b.ReportAllocs()
				before, n := userTime(b), 0
				for b.Loop() {
					work()
					n++
				}
				b.ReportMetric(float64((userTime(b)-before).Nanoseconds())/float64(n)/float64(len(a.Results)), "user-ns/query")
				b.ReportMetric(float64(bytes)/float64(hits), "bytes/hit")
			}
			dst, room := make([]byte, 0, 2*len(body)), make([]byte, 0, CompressRoom(len(body)))
			b.Run(fmt.Sprintf("write/%v/%s", ct, name), func(b *testing.B) {
				measure(b, len(body), func() { dst = AppendAnswer(dst[:0], ct, a) })
			})
			b.Run(fmt.Sprintf("write/%v/%s/s2", ct, name), func(b *testing.B) {
				measure(b, len(packed), func() {
					dst = AppendAnswer(dst[:0], ct, a)
					Compress(room, dst)
				})
			})
			b.Run(fmt.Sprintf("read/%v/%s", ct, name), func(b *testing.B) {
				measure(b, len(body), func() { mustDecode(b, ct.String(), body) })
			})
			b.Run(fmt.Sprintf("read/%v/%s/s2", ct, name), func(b *testing.B) {
				measure(b, len(packed), func() { mustDecode(b, ct.Compressed(), packed) })
			})
		}
	}
}

func mustDecode(b *testing.B, contentType string, body []byte) {
	if _, err := DecodeBody(contentType, body); err != nil {
		b.Fatal(err)
	}
}

// userTime is what the process has computed: on a busy machine the time on the wall says little.
func userTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano())
}
