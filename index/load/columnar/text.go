package columnar

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// Text returns how values of a type are written, and whether they are numbers.
func Text(t parquet.Type) (func(parquet.Value) (string, bool), error) {
	var logical any
	if l := t.LogicalType(); l != nil {
		logical = l.Value
	}
	switch l := logical.(type) {
	case *format.DateType:
		return func(v parquet.Value) (string, bool) {
			return time.Unix(int64(v.Int32())*24*60*60, 0).UTC().Format(time.DateOnly), false
		}, nil
	case *format.TimestampType:
		return timeText(l), nil
	case *format.DecimalType:
		return func(v parquet.Value) (string, bool) { return decimal(integer(v), int(l.Scale)), true }, nil
	case *format.IntType:
		if !l.IsSigned {
			return func(v parquet.Value) (string, bool) {
				n := v.Uint64()
				if v.Kind() == parquet.Int32 {
					n = uint64(v.Uint32())
				}
				return strconv.FormatUint(n, 10), true
			}, nil
		}
	}
	switch kind := t.Kind(); kind {
	case parquet.Boolean:
		return func(v parquet.Value) (string, bool) { return strconv.FormatBool(v.Boolean()), false }, nil
	case parquet.Int32:
		return func(v parquet.Value) (string, bool) { return strconv.FormatInt(int64(v.Int32()), 10), true }, nil
	case parquet.Int64:
		return func(v parquet.Value) (string, bool) { return strconv.FormatInt(v.Int64(), 10), true }, nil
	case parquet.Float:
		return func(v parquet.Value) (string, bool) {
			return strconv.FormatFloat(float64(v.Float()), 'g', -1, 32), true
		}, nil
	case parquet.Double:
		return func(v parquet.Value) (string, bool) { return strconv.FormatFloat(v.Double(), 'g', -1, 64), true }, nil
	case parquet.ByteArray:
		return func(v parquet.Value) (string, bool) { return string(v.ByteArray()), false }, nil
	default:
		return nil, fmt.Errorf("is of type %s, which is neither text nor number, date or boolean", t)
	}
}

// integer is the unscaled value of a decimal.
func integer(v parquet.Value) *big.Int {
	switch v.Kind() {
	case parquet.Int32:
		return big.NewInt(int64(v.Int32()))
	case parquet.Int64:
		return big.NewInt(v.Int64())
	}
	data := v.ByteArray() // in two's complement, the highest byte first
	n := new(big.Int).SetBytes(data)
	if len(data) > 0 && data[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(data))))
	}
	return n
}

// decimal writes n / 10^scale.
func decimal(n *big.Int, scale int) string {
	if scale <= 0 || scale > 1000 {
		return n.String()
	}
	digits := new(big.Int).Abs(n).String()
	if short := scale + 1 - len(digits); short > 0 {
		digits = strings.Repeat("0", short) + digits
	}
	point := len(digits) - scale
	text := digits[:point] + "." + digits[point:]
	if n.Sign() < 0 {
		return "-" + text
	}
	return text
}

// timeText writes points in time in ISO 8601, with an offset if the file says that they have one.
func timeText(t *format.TimestampType) func(parquet.Value) (string, bool) {
	layout := "2006-01-02T15:04:05.999999999"
	if t.IsAdjustedToUTC {
		layout += "Z07:00"
	}
	at := time.UnixMilli
	switch t.Unit.Value.(type) {
	case *format.MicroSeconds:
		at = time.UnixMicro
	case *format.NanoSeconds:
		at = func(n int64) time.Time { return time.Unix(n/1e9, n%1e9) }
	}
	return func(v parquet.Value) (string, bool) { return at(v.Int64()).UTC().Format(layout), false }
}
