package lsh

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// table is one that was measured.
func table(rng *rand.Rand) Table {
	t := Table{Objects: 1 + rng.Uint64N(1e9), Queries: 1 + rng.Uint32N(1000)}
	for reach := range uint32(1 + rng.IntN(5)) {
		for k := uint32(1); k <= 100; k *= 10 {
			for _, candidates := range []uint32{k, 2 * k, 8 * k} {
				t.Rows = append(t.Rows, Row{k, candidates, reach, rng.Uint64N(uint64(t.Queries)*uint64(k) + 1)})
			}
		}
	}
	return t
}

func TestEncoding(t *testing.T) {
	rng := seeded.Rand(t)
	for range 500 {
		p := some(rng, Families()[rng.IntN(4)])
		if rng.IntN(2) == 0 {
			p.Recall = table(rng)
		}
		data, err := p.AppendBinary([]byte("before"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(data[len("before"):])
		if err != nil || !reflect.DeepEqual(got, p) {
			t.Fatalf("%+v\nbecame %+v, %v", p, got, err)
		}
		// No byte may be missing or too much, and of those there none may be without meaning.
		data = data[len("before"):]
		cut := data[:rng.IntN(len(data))]
		if _, err := Decode(cut); err == nil {
			t.Fatalf("%d of %d bytes are taken", len(cut), len(data))
		}
		if _, err := Decode(append(bytes.Clone(data), 0)); err == nil {
			t.Fatal("a byte too much is taken")
		}
	}
}

func TestFaults(t *testing.T) {
	good := func() Parameters { return Parameters{Family: L2, Dim: 4, Functions: 10, Buckets: 67, Width: 1} }
	for want, change := range map[string]func(*Parameters){
		"no family 9":               func(p *Parameters) { p.Family = 9 },
		"0 dimensions":              func(p *Parameters) { p.Dim = 0 },
		"0 functions":               func(p *Parameters) { p.Functions = 0 },
		"more than 67108864":        func(p *Parameters) { p.Dim, p.Functions = MaxDim, MaxFunctions },
		"1 buckets":                 func(p *Parameters) { p.Buckets = 1 },
		"cosine has 2 buckets":      func(p *Parameters) { p.Family = Cosine },
		"cosine has no width":       func(p *Parameters) { p.Family = Cosine },
		"width NaN":                 func(p *Parameters) { p.Width = math.NaN() },
		"width 0":                   func(p *Parameters) { p.Width = 0 },
		"width +Inf":                func(p *Parameters) { p.Width = math.Inf(1) },
		"reach -1":                  func(p *Parameters) { p.Reach = -1 },
		"no neighbouring buckets":   func(p *Parameters) { p.Family, p.Rehash, p.Reach = Laplacian, true, 1 },
		"cosine is not re-hashed":   func(p *Parameters) { p.Family, p.Rehash = Cosine, true },
		"l1 is always re-hashed":    func(p *Parameters) { p.Family = L1 },
		"clamped have a centre":     func(p *Parameters) { p.Rehash, p.Centre = true, make([]float32, 4) },
		"centre has 3 elements":     func(p *Parameters) { p.Centre = make([]float32, 3) },
		"element 2 of the centre":   func(p *Parameters) { p.Centre = []float32{0, 0, float32(math.NaN()), 0} },
		"measured with nothing":     func(p *Parameters) { p.Recall.Rows = []Row{{1, 1, 0, 0}} },
		"without rows":              func(p *Parameters) { p.Recall.Objects = 1 },
		"row 0 of the recall table": func(p *Parameters) { p.Recall = Table{1, 1, []Row{{1, 1, 0, 2}}} },
		"do not ascend":             func(p *Parameters) { p.Recall = Table{1, 1, []Row{{1, 1, 0, 1}, {1, 1, 0, 1}}} },
	} {
		p := good()
		change(&p)
		_, err := New(p)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
		if _, err := p.AppendBinary(nil); err == nil {
			t.Errorf("%q: is encoded", want)
		}
	}
	p := good()
	p.Centre = []float32{math.MaxFloat32, 0, 0, 0}
	if _, err := New(p); err == nil || !strings.Contains(err.Error(), "overflow") {
		t.Errorf("a centre out of reach: %v", err)
	}
}

// What the decoder takes encodes to the same bytes, and functions of modest size can be made of it.
func FuzzDecode(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, family := range Families() {
		p := some(rng, family)
		p.Dim, p.Centre = 5, nil
		p.Recall = table(rng)
		data, err := p.AppendBinary(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Decode(data)
		if err != nil {
			return
		}
		again, err := p.AppendBinary(nil)
		if err != nil || !bytes.Equal(again, data) {
			t.Fatalf("%x\nbecame %x, %v", data, again, err)
		}
		if p.Dim*p.Functions > 1<<12 {
			return
		}
		functions, err := New(p)
		if err != nil {
			return // the centre overflows
		}
		for _, k := range hash(t, functions, make([]float32, p.Dim)) {
			if lo, hi := p.Span(k); k >= uint32(p.Buckets) || lo > k || hi <= k || hi > uint32(p.Buckets) {
				t.Fatalf("%+v: keyword %d, span [%d, %d)", p, k, lo, hi)
			}
		}
		p.Recall.Lookup(10, 80, 0)
		p.Distance(p.Similarity(uint32(p.Functions / 2)))
	})
}
