package workload

import (
	"context"
	"fmt"
	"math"

	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/wire"
)

// W1, sift-like: signatures of points in 32 dimensions under 237 p-stable (Gaussian) hash functions with 67 buckets.
const (
	signatureFunctions = 237 // m of Eqn 9 for epsilon = delta = 0.06, s = 0.5
	signatureBuckets   = 67
	latentDims         = 32
	latentClusters     = 20_000
	clusterSpread      = 0.45 // standard deviation of a point around its cluster's centre
	queryNoise         = 0.25 // of a query around its object
	// bucketWidth is chosen so that two random points share a bucket with probability 3.2 %, which makes 1,024
	// queries over 4.5 M objects scan 34 G postings.
	bucketWidth = 0.1245
)

// hashFamily is the 237 functions floor((a.x + b) / w), clamped to the buckets.
type hashFamily struct {
	a [signatureFunctions][latentDims]float32
	b [signatureFunctions]float32
}

func newHashFamily(seed uint64) *hashFamily {
	f := new(hashFamily)
	src := newSource(seed, 'f')
	for i := range f.a {
		for d := 0; d < latentDims; d += 2 {
			x, y := src.gauss()
			f.a[i][d] = float32(x / math.Sqrt(latentDims))
			f.a[i][d+1] = float32(y / math.Sqrt(latentDims))
		}
		f.b[i] = float32(src.float() * bucketWidth)
	}
	return f
}

func (f *hashFamily) sign(dst []uint8, x *[latentDims]float32) {
	for i := range f.a {
		sum := f.b[i]
		for d, v := range x {
			sum += f.a[i][d] * v
		}
		bucket := int(math.Floor(float64(sum/bucketWidth))) + signatureBuckets/2
		dst[i] = uint8(min(max(bucket, 0), signatureBuckets-1))
	}
}

// point makes object id: the centre of one of so many clusters plus spread.
func point(x *[latentDims]float32, seed, clusters uint64, id int) {
	own := newSource(seed, 'o', uint64(id))
	centre := newSource(seed, 'c', own.next()%clusters)
	for d := 0; d < latentDims; d += 2 {
		c0, c1 := centre.gauss()
		o0, o1 := own.gauss()
		x[d] = float32(c0 + clusterSpread*o0)
		x[d+1] = float32(c1 + clusterSpread*o1)
	}
}

func signatures(ctx context.Context, opts Options) (*Workload, error) {
	family := newHashFamily(opts.Seed)
	objects := make([]uint8, opts.Objects*signatureFunctions)
	err := generate(ctx, opts.Objects, func(lo, hi int) {
		var x [latentDims]float32
		for id := lo; id < hi; id++ {
			point(&x, opts.Seed, latentClusters, id)
			family.sign(objects[id*signatureFunctions:][:signatureFunctions], &x)
		}
	})
	if err != nil {
		return nil, err
	}

	spec := &schema.Schema{Name: "signatures", Kind: schema.Rows}
	for i := range signatureFunctions {
		spec.Columns = append(spec.Columns, schema.Column{Name: fmt.Sprintf("h%03d", i), Type: schema.NumberColumn, Edges: schema.Exact})
	}
	w, err := build(ctx, spec, opts, func(b *postings.Batch, id int) error {
		for attr, v := range objects[id*signatureFunctions:][:signatureFunctions] {
			if err := b.AddNumber(attr, float64(v)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}

	queries := make([]uint8, opts.Queries*signatureFunctions)
	w.vectors = &vectors{objects: opts.Objects, object: func(dst []float32, id int) []float32 {
		var x [latentDims]float32
		point(&x, opts.Seed, latentClusters, id)
		return append(dst[:0], x[:]...)
	}}
	src := newSource(opts.Seed, 'q')
	reach := max(0, opts.Reach)
	for i := range opts.Queries {
		var x [latentDims]float32
		point(&x, opts.Seed, latentClusters, src.intn(opts.Objects))
		disturb(&x, &src)
		w.vectors.queries = append(w.vectors.queries, x[:])
		signature := queries[i*signatureFunctions:][:signatureFunctions]
		family.sign(signature, &x)
		w.Queries = append(w.Queries, wire.Query{K: opts.K, Items: askSignature(spec, signature, reach)})
	}
	w.Reference = func(i, lo, hi int, visit func(id, count uint32)) {
		query := queries[i*signatureFunctions:][:signatureFunctions]
		for id := lo; id < hi; id++ {
			var count uint32
			for attr, v := range objects[id*signatureFunctions:][:signatureFunctions] {
				if d := int(v) - int(query[attr]); -reach <= d && d <= reach {
					count++
				}
			}
			if count > 0 {
				visit(uint32(id), count)
			}
		}
	}
	return w, nil
}

// disturb makes the point of an object that of a query.
func disturb(x *[latentDims]float32, src *source) {
	for d := 0; d < latentDims; d += 2 {
		n0, n1 := src.gauss()
		x[d] += float32(queryNoise * n0)
		x[d+1] += float32(queryNoise * n1)
	}
}

// askSignature asks for a signature, each hash value by so many either way.
func askSignature(spec *schema.Schema, signature []uint8, reach int) (items []wire.Condition) {
	for i, v := range signature {
		item := wire.Condition{Attr: spec.Columns[i].Name, Value: wire.Number(float64(v))}
		if reach > 0 {
			item = wire.Condition{Attr: item.Attr, Min: wire.Number(float64(v) - float64(reach)), Max: wire.Number(float64(v) + float64(reach))}
		}
		items = append(items, item)
	}
	return items
}
