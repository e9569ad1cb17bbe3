package wire

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/geniemq/geniemq/internal/msgpack"
	vmihailenco "github.com/vmihailenco/msgpack/v5"
)

// batch is the size that the service is built for: 1,024 queries with 100 hits each.
func benchAnswer(payload bool) *Answer {
	a := &Answer{Batch: true, Results: make([]Result, 1024)}
	for i := range a.Results {
		hits := make([]Hit, 100)
		for j := range hits {
			hits[j] = Hit{ID: uint32(i*7919+j*104729) % 1_000_000, Count: uint32(200 - j)}
			if payload {
				hits[j].Payload = []byte(`{"title":"generic inverted index","year":2018}`)
			}
		}
		a.Results[i] = Result{ID: fmt.Sprintf("q%d", i), Index: "adult", Version: "9f3c1234567890ab", Hits: hits, MCK: 101, Exact: true,
			Took: Took{Queue: 310 * time.Microsecond, Total: 1700 * time.Microsecond}}
	}
	return a
}

func benchQueries() []Query {
	queries := make([]Query, 1024)
	for i := range queries {
		q := Query{ID: fmt.Sprintf("q%d", i), K: 100}
		for j := range 14 {
			q.Row = append(q.Row, Condition{Attr: fmt.Sprintf("column-%d", j), Min: Number(float64(i + j)), Max: Number(float64(i + j + 100))})
		}
		queries[i] = q
	}
	return queries
}

func BenchmarkAppendAnswer(b *testing.B) {
	for _, payload := range []bool{false, true} {
		a := benchAnswer(payload)
		for _, ct := range []ContentType{JSON, MessagePack} {
			b.Run(fmt.Sprintf("%v/payload=%v", ct, payload), func(b *testing.B) {
				var dst []byte
				b.ReportAllocs()
				for b.Loop() {
					dst = AppendAnswer(dst[:0], ct, a)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(1024*100), "ns/hit")
				b.SetBytes(int64(len(dst)))
			})
		}
	}
}

func BenchmarkSplitAnswer(b *testing.B) {
	a := benchAnswer(false)
	for _, ct := range []ContentType{JSON, MessagePack} {
		b.Run(ct.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				splitAnswer(ct, a, 1<<20)
			}
		})
	}
}

func BenchmarkDecodeAnswer(b *testing.B) {
	a := benchAnswer(false)
	for _, ct := range []ContentType{JSON, MessagePack} {
		body := AppendAnswer(nil, ct, a)
		b.Run(ct.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, err := DecodeAnswer(ct, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// 1,024 rows of 14 ranges. The library's figure is what decoding into plain structs costs there, after a scan.
func BenchmarkDecode(b *testing.B) {
	queries := benchQueries()
	for _, ct := range []ContentType{JSON, MessagePack} {
		body := AppendQueries(nil, ct, queries)
		b.Run(ct.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, err := DecodeMessage(ct, body, Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	body := AppendQueries(nil, MessagePack, queries)
	b.Run("vmihailenco", func(b *testing.B) {
		type condition struct {
			Min float64 `msgpack:"min"`
			Max float64 `msgpack:"max"`
		}
		type query struct {
			ID  string               `msgpack:"id"`
			K   int                  `msgpack:"k"`
			Row map[string]condition `msgpack:"row"`
		}
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			var m struct {
				Queries []query `msgpack:"queries"`
			}
			if err := vmihailenco.Unmarshal(body, &m); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// The same in parts, by a decoder that is used again, as the service decodes them.
func BenchmarkDecodeParts(b *testing.B) {
	queries := benchQueries()
	for _, ct := range []ContentType{JSON, MessagePack} {
		body := AppendQueries(nil, ct, queries)
		b.Run(ct.String(), func(b *testing.B) {
			var d, part Decoder
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				batch, ok := d.Scan(ct, body, Limits{})
				if !ok {
					b.Fatal("no batch")
				}
				for first := 0; first < batch.Len(); first += 64 {
					part.Queries(batch, first, first+64, func(int, *QueryOrError) {})
				}
			}
		})
	}
}

// A message of one query, by a decoder that is used again for another one, as pipelines do it.
func BenchmarkDecodeOne(b *testing.B) {
	q := benchQueries()[0]
	for _, ct := range []ContentType{JSON, MessagePack} {
		body := AppendQuery(nil, ct, &q)
		b.Run(ct.String(), func(b *testing.B) {
			var d Decoder
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Decode(ct, body, Limits{}); err != nil {
					b.Fatal(err)
				}
				d.Forget()
			}
		})
	}
}

func BenchmarkVector(b *testing.B) {
	v := make([]float32, 128)
	for i := range v {
		v[i] = float32(i) / 3
	}
	array := msgpack.AppendArrayHead(nil, len(v))
	for _, x := range v {
		array = msgpack.AppendFloat32(array, x)
	}
	for name, body := range map[string][]byte{"bin": appendVector(nil, v), "array": array} {
		b.Run(name, func(b *testing.B) {
			r := &msgpackReader{text: string(body), maxDepth: 16}
			for b.Loop() {
				r.off = 0
				if _, err := r.floats(nil, 1000); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	text := AppendQuery(nil, JSON, &Query{Vector: v})
	b.Run("json", func(b *testing.B) {
		for b.Loop() {
			if _, err := DecodeMessage(JSON, text, Limits{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("array vmihailenco", func(b *testing.B) {
		for b.Loop() {
			var out []float32
			if err := vmihailenco.NewDecoder(bytes.NewReader(array)).Decode(&out); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// 256 signatures of 237 hash values, as a list and as a table: written, and read as the service does.
func BenchmarkSignatures(b *testing.B) {
	const functions, queries = 237, 256
	asked := make([]Query, queries)
	for i := range asked {
		asked[i].K = 100
		for j := range functions {
			asked[i].Items = append(asked[i].Items, Condition{Attr: fmt.Sprintf("h%03d", j), Value: Number(float64((i*31 + j*17) % 67))})
		}
	}
	table, ok := AppendTable(nil, MessagePack, asked)
	if !ok {
		b.Fatal("no table")
	}
	perCondition := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(queries*functions), "ns/condition")
	}
	dst := []byte{}
	b.Run("write/list", func(b *testing.B) {
		for b.Loop() {
			dst = AppendQueries(dst[:0], MessagePack, asked)
		}
		perCondition(b)
	})
	b.Run("write/table", func(b *testing.B) {
		for b.Loop() {
			dst, _ = AppendTable(dst[:0], MessagePack, asked)
		}
		perCondition(b)
	})
	for name, body := range map[string][]byte{"list": AppendQueries(nil, MessagePack, asked), "table": table} {
		b.Run("read/"+name, func(b *testing.B) {
			var d Decoder
			b.ReportAllocs()
			for b.Loop() {
				batch, ok := d.Scan(MessagePack, body, Limits{})
				if !ok {
					b.Fatal("no batch")
				}
				d.Queries(batch, 0, batch.Len(), func(int, *QueryOrError) {})
			}
			perCondition(b)
		})
	}
}
