//go:build ignore

// generate writes idf.bin, the thresholds of package similarity.
package main

import (
	"log"
	"math/big"
	"os"
)

const (
	scales    = 64
	weights   = 255
	bytes     = 12
	precision = 1024
)

func main() {
	most := new(big.Int).Lsh(big.NewInt(1), 8*bytes)
	most.Sub(most, big.NewInt(1))
	var table []byte
	for s := int64(1); s <= scales; s++ {
		// e^(1/2s), and its odd powers one after the other.
		root := exp(big.NewRat(1, 2*s))
		step := number().Mul(root, root)
		value := number().SetMantExp(root, 32)
		for range weights {
			t := ceil(value)
			if t.Cmp(most) > 0 {
				t = most
			}
			table = append(table, reversed(t)...)
			value.Mul(value, step)
		}
	}
	if err := os.WriteFile("idf.bin", table, 0o644); err != nil {
		log.Fatal(err)
	}
}

func number() *big.Float { return new(big.Float).SetPrec(precision) }

// exp is e^x for 0 < x < 1, by its series.
func exp(x *big.Rat) *big.Float {
	by := number().SetRat(x)
	sum, term := number().SetInt64(1), number().SetInt64(1)
	for n := int64(1); ; n++ {
		term.Mul(term, by)
		term.Quo(term, number().SetInt64(n))
		if term.MantExp(nil) < -precision {
			return sum
		}
		sum.Add(sum, term)
	}
}

// ceil rounds up. Powers of e are never whole; how near one may come is checked, with all that was lost on the way in doubt.
func ceil(v *big.Float) *big.Int {
	doubt := number().SetMantExp(number().SetInt64(1), v.MantExp(nil)-precision/2)
	low, _ := number().Sub(v, doubt).Int(nil)
	high, _ := number().Add(v, doubt).Int(nil)
	if low.Cmp(high) != 0 {
		log.Fatalf("%v is too near to an integer for %d bits", v, precision)
	}
	return low.Add(low, big.NewInt(1))
}

// reversed is an integer's bytes, the least significant first.
func reversed(t *big.Int) []byte {
	b := t.FillBytes(make([]byte, bytes))
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return b
}
