// Package human writes figures for people.
package human

import "fmt"

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
