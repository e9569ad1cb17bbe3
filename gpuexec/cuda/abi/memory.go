package abi

import "unsafe"

// Array is n elements of memory from an offset on. T is a struct of this package or a number.
func Array[T any](memory []byte, offset int64, n int) []T {
	if n == 0 {
		return nil
	}
	var t T
	part := memory[offset : offset+int64(n)*int64(unsafe.Sizeof(t))]
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(part))), n)
}

// Bytes is the memory of an array of such elements.
func Bytes[T any](array []T) []byte {
	var t T
	if len(array) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(array))), len(array)*int(unsafe.Sizeof(t)))
}

// Align rounds a number of bytes up to where an array may begin.
func Align(n int64) int64 { return (n + 255) &^ 255 }

// Units is how many units so many bytes take.
func Units(bytes int) int64 { return (int64(bytes) + UnitBytes - 1) / UnitBytes }

// AlignRow rounds units up so that planes after them are aligned.
func AlignRow(units int64) int64 { return (units + RowUnits - 1) &^ (RowUnits - 1) }
