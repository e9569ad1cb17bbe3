package sums

import "golang.org/x/sys/cpu"

// All returns the kernels that this machine can run, the fastest first.
func All() []Kernels {
	all := []Kernels{Plain()}
	if !cpu.X86.HasAVX2 || !cpu.X86.HasF16C {
		return all
	}
	k := Kernels{
		Name:       "avx2",
		floats:     [ops]kernel{OpSquares: squaresAVX2, OpDifferences: differencesAVX2, OpDots: dotsAVX2, OpLargest: largestAVX2, OpUnequal: unequalAVX2, OpPowers: powersAVX2, OpNorms: normsAVX2},
		manyFloats: [ops]kernel{OpSquares: squaresManyAVX2, OpDifferences: differencesManyAVX2, OpDots: dotsManyAVX2, OpLargest: largestManyAVX2},
		bytes:      [ops]kernel{OpSquares: squaresBytesAVX2, OpDifferences: differencesBytesAVX2, OpDots: dotsBytesAVX2, OpLargest: largestBytesAVX2, OpUnequal: unequalBytesAVX2},
		manyBytes:  [ops]kernel{OpSquares: squaresBytesManyAVX2, OpDifferences: differencesBytesManyAVX2, OpDots: dotsBytesManyAVX2, OpLargest: largestBytesManyAVX2, OpUnequal: unequalBytesManyAVX2},
		points:     pointsAVX2, cosines: cosinesAVX2, halves: halvesAVX2, widen: bytesAVX2, boxes: boxesAVX2,
	}
	k.columns = [...]func([]float64, []float32, *[MostColumns]float64){
		all[0].columns[0], columns1AVX2, columns2AVX2, columns3AVX2, columns4AVX2, columns5AVX2, columns6AVX2, columns7AVX2, columns8AVX2,
	}
	if cpu.X86.HasFMA {
		k.sieve = sieve{sieveAVX2, turnAVX2, lengthsAVX2, squaresRowsAVX2, anglesRowsAVX2}
	}
	all = append([]Kernels{k}, all...)
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512BW {
		k.Name = "avx512"
		k.floats = [ops]kernel{OpSquares: squaresAVX512, OpDifferences: differencesAVX512, OpDots: dotsAVX512, OpLargest: largestAVX512, OpUnequal: unequalAVX512, OpPowers: powersAVX512, OpNorms: normsAVX512}
		k.manyFloats = [ops]kernel{OpSquares: squaresManyAVX512, OpDifferences: differencesManyAVX512, OpDots: dotsManyAVX512, OpLargest: largestManyAVX512}
		if cpu.X86.HasAVX512VNNI {
			k.bytes[OpSquares], k.bytes[OpDots] = squaresBytesVNNI, dotsBytesVNNI
			k.manyBytes[OpSquares], k.manyBytes[OpDots] = squaresBytesManyVNNI, dotsBytesManyVNNI
		}
		if cpu.X86.HasFMA {
			k.sieve.drop = sieveAVX512
		}
		all = append([]Kernels{k}, all...)
	}
	return all
}
