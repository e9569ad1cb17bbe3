package vector

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/wire/value"
)

// Read reads the vector of a cell as objects are read. Nothing is no vector.
func Read(cell *schema.Cell) ([]float32, error) {
	v, err := appendCell(nil, cell)
	if err == nil {
		err = check(v, len(v))
	}
	return v, err
}

// appendCell appends the numbers of a cell: binary, one text of numbers, or a list with one each. Nothing is no vector.
func appendCell(dst []float32, cell *schema.Cell) ([]float32, error) {
	if len(cell.Vector) > 0 {
		dst = append(dst, cell.Vector...)
	}
	for _, text := range cell.Values {
		var err error
		if dst, err = appendText(dst, text); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// appendText appends numbers that are separated by blanks or commas, which may stand in brackets.
func appendText(dst []float32, text string) ([]float32, error) {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(inner, "]") {
		text = inner[:len(inner)-1]
	}
	separator := func(c rune) bool { return c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r' }
	for field := range strings.FieldsFuncSeq(text, separator) {
		v, err := strconv.ParseFloat(field, 32)
		if err != nil && !math.IsInf(v, 0) {
			return dst, fmt.Errorf("element %d is %.40q, which is no number: a vector is numbers separated by blanks or commas, or a list of them",
				len(dst), field)
		}
		dst = append(dst, float32(v))
	}
	return dst, nil
}

// appendTree appends the numbers of an array, or of little-endian float32 in binary.
func appendTree(dst []float32, t value.Tree) ([]float32, error) {
	switch t.Kind() {
	case value.Bytes:
		data := t.Text()
		if len(data)%4 != 0 {
			return dst, fmt.Errorf("has %d bytes: binary vectors are little-endian float32, 4 bytes each", len(data))
		}
		for i := 0; i < len(data); i += 4 {
			dst = append(dst, math.Float32frombits(binary.LittleEndian.Uint32([]byte(data[i:i+4]))))
		}
		return dst, nil
	case value.Array:
		for element := range t.Elements() {
			v, ok := element.Float()
			if !ok || element.Kind() != value.Number {
				return dst, fmt.Errorf("element %d is %s: a vector is a list of numbers", len(dst), element.Kind())
			}
			dst = append(dst, float32(v))
		}
		return dst, nil
	}
	return dst, fmt.Errorf("takes a vector, a list of numbers, not %s", t.Kind())
}

// check says why numbers are no vector of so many dimensions.
func check(x []float32, dims int) error {
	if err := finite(x); err != nil {
		return err
	}
	if len(x) != dims {
		return fmt.Errorf("has %d elements, and vectors of the column have %d", len(x), dims)
	}
	return nil
}

// finite says which number is none.
func finite(x []float32) error {
	for i, v := range x {
		switch v := float64(v); {
		case math.IsNaN(v):
			return fmt.Errorf("element %d is not a number (NaN)", i)
		case math.IsInf(v, 0):
			return fmt.Errorf("element %d is infinite, or larger than a float32 can be", i)
		}
	}
	return nil
}
