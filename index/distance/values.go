package distance

import (
	"fmt"

	"github.com/geniemq/geniemq/index/metric/sums"
)

// Point is a place on earth, in degrees.
type Point struct{ Lat, Lon float64 }

// CheckPoint says why a point is none.
func CheckPoint(p Point) error {
	switch {
	case !(p.Lat >= -90 && p.Lat <= 90): // NaN too
		return fmt.Errorf("the latitude is %v, and latitudes are -90 to 90 degrees; it comes first, the longitude second", p.Lat)
	case p.Lon-p.Lon != 0:
		return fmt.Errorf("the longitude is %v, which is no number of degrees", p.Lon)
	}
	return nil
}

// Loses is the first element that a storage cannot keep as it is, -1 where it keeps all.
func Loses(storage string, x []float32) int {
	for i, v := range x {
		if storage == StorageU8 && v != float32(byte(v)) || storage == StorageF16 && !half(v) {
			return i
		}
	}
	return -1
}

// half says that a number is a 16-bit float.
func half(v float32) bool {
	_, ok := sums.ToHalf(v)
	return ok
}
