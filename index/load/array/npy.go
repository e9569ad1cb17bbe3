package array

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
)

// maxNPYHeader bounds the description of an array, which is some hundred bytes.
const maxNPYHeader = 64 << 10

// Of the description of an array, which is a literal of Python.
var (
	npyType    = regexp.MustCompile(`'descr'\s*:\s*'([<>|=]?)([a-z][0-9]+)'`)
	npyFortran = regexp.MustCompile(`'fortran_order'\s*:\s*True`)
	npyShape   = regexp.MustCompile(`'shape'\s*:\s*\(\s*([0-9]+)\s*,\s*([0-9]+)\s*,?\s*\)`)
)

// NPY reads the description of an array by numpy.save, version 1 to 3: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
func NPY(text io.Reader) (Layout, error) {
	header, err := readNPYHeader(text)
	if err != nil {
		return Layout{}, err
	}
	kind := npyType.FindStringSubmatch(header)
	if kind == nil {
		return Layout{}, errors.New("the array has no type that a vector can have: save one of numbers")
	}
	l, err := npyElement(kind[1], kind[2])
	if err != nil {
		return Layout{}, err
	}
	if npyFortran.MatchString(header) {
		return Layout{}, errors.New("the array is stored by columns: save numpy.ascontiguousarray of it")
	}
	shape := npyShape.FindStringSubmatch(header)
	if shape == nil {
		return Layout{}, fmt.Errorf("the array is no matrix with a vector per row: %.100s", header)
	}
	rows, err1 := strconv.ParseInt(shape[1], 10, 64)
	elements, err2 := strconv.Atoi(shape[2])
	if err := errors.Join(err1, err2); err != nil || elements < 1 || elements > MaxElements {
		return Layout{}, fmt.Errorf("the array is %s x %s; a vector has 1 to %d elements", shape[1], shape[2], MaxElements)
	}
	l.Rows, l.Elements = rows, elements
	return l, nil
}

// readNPYHeader returns the description of an array.
func readNPYHeader(r io.Reader) (string, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil || string(head[:6]) != "\x93NUMPY" {
		return "", errors.Join(errors.New("is not an array of NumPy (numpy.save)"), ignoreEnd(err))
	}
	width := 4 // of the length of the description
	if head[6] == 1 {
		width = 2
	}
	var length [4]byte
	if _, err := io.ReadFull(r, length[:width]); err != nil {
		return "", fmt.Errorf("read the array's description: %w", err)
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n > maxNPYHeader || head[6] < 1 || head[6] > 3 {
		return "", fmt.Errorf("is an array of NumPy in version %d with a description of %d bytes, which is not known here", head[6], n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return "", fmt.Errorf("read the array's description: %w", err)
	}
	return string(text), nil
}

// ignoreEnd drops the errors that say that a source is short.
func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// npyElement is how an array of a type stores its elements.
func npyElement(order, kind string) (Layout, error) {
	var b binary.ByteOrder = binary.LittleEndian
	if order == ">" {
		b = binary.BigEndian
	}
	switch kind {
	case "f4":
		return Layout{Bytes: 4, Read: func(d []byte) float64 { return float64(math.Float32frombits(b.Uint32(d))) }}, nil
	case "f8":
		return Layout{Bytes: 8, Read: func(d []byte) float64 { return math.Float64frombits(b.Uint64(d)) }}, nil
	case "f2":
		return Layout{Bytes: 2, Read: func(d []byte) float64 { return half(b.Uint16(d)) }}, nil
	case "u1":
		return Layout{Bytes: 1, Read: func(d []byte) float64 { return float64(d[0]) }}, nil
	case "i1":
		return Layout{Bytes: 1, Read: func(d []byte) float64 { return float64(int8(d[0])) }}, nil
	case "u2":
		return Layout{Bytes: 2, Read: func(d []byte) float64 { return float64(b.Uint16(d)) }}, nil
	case "i2":
		return Layout{Bytes: 2, Read: func(d []byte) float64 { return float64(int16(b.Uint16(d))) }}, nil
	case "u4":
		return Layout{Bytes: 4, Read: func(d []byte) float64 { return float64(b.Uint32(d)) }}, nil
	case "i4":
		return Layout{Bytes: 4, Read: func(d []byte) float64 { return float64(int32(b.Uint32(d))) }}, nil
	case "i8":
		return Layout{Bytes: 8, Read: func(d []byte) float64 { return float64(int64(b.Uint64(d))) }}, nil
	case "u8":
		return Layout{Bytes: 8, Read: func(d []byte) float64 { return float64(b.Uint64(d)) }}, nil
	}
	return Layout{}, fmt.Errorf("the array is of type %s, which is no type of numbers that is known here: save it as float32", kind)
}

// half is a number of IEEE 754 binary16.
func half(bits uint16) float64 {
	fraction, exponent := float64(bits&0x3ff), int(bits>>10&0x1f)
	value := math.NaN()
	switch {
	case exponent == 0:
		value = math.Ldexp(fraction, -24)
	case exponent < 31:
		value = math.Ldexp(1024+fraction, exponent-25)
	case fraction == 0:
		value = math.Inf(1)
	}
	if bits>>15 == 1 {
		return -value
	}
	return value
}
