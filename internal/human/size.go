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
