// Package human writes figures for people.
package human

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes that people write as 16GiB, 512MiB, 64KiB or 1000, as a flag and elsewhere.
type Size int64

var byteUnits = [...]struct {
	suffix string
	bytes  int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}, {"", 1}}

// Set implements pflag.Value.
func (s *Size) Set(text string) error {
	for _, unit := range byteUnits {
		digits, ok := strings.CutSuffix(text, unit.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/unit.bytes {
			break
		}
		*s = Size(n * unit.bytes)
		return nil
	}
	return fmt.Errorf("%q is no size: write bytes, or like 16GiB, 512MiB, 64KiB", text)
}

// String is the shortest text that Set understands; 0, which stands for a default, is empty.
func (s Size) String() string {
	if s == 0 {
		return ""
	}
	for _, unit := range byteUnits {
		if int64(s)%unit.bytes == 0 {
			return strconv.FormatInt(int64(s)/unit.bytes, 10) + unit.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// Type implements pflag.Value.
func (s *Size) Type() string { return "memory" }

// Bytes writes a size of n bytes, rounded: 1.4 MiB. Size writes it exactly.
func Bytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	size, unit := float64(n)/1024, 0
	for size >= 1023.95 && unit < len(units)-1 { // which would be written as 1024.0
		size /= 1024
		unit++
	}
	return fmt.Sprintf("%.1f %s", size, units[unit])
}

// Count is a number of things, in words that fit it.
func Count[N int | int64 | uint32 | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
