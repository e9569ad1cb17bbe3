package translate

import "testing"

// TestBetween: from one keyword to another is told by the ends of both, those of buckets with as many digits as people read, values whole.
func TestBetween(t *testing.T) {
	for _, c := range []struct{ first, last, want string }{
		{"[-3, 1202.635009765625)", "[-3, 1202.635009765625)", "-3 to below 1202.635"},
		{"[1e+06, 2.5)", "[5, 1.234567891e+09]", "1000000 to 1234568000"},
		{"[2024-04-30T23:48:45Z, 2024-05-01)", "[2024-08-15, 2024-08-16T08:15:00Z)", "2024-04-30T23:48:45Z to below 2024-08-16T08:15:00Z"},
		{"30", "40", "30 to 40"},
		{"123456789.25", "123456789.25", "123456789.25"},
		{"2024-05-17", "2024-05-18", "2024-05-17 to 2024-05-18"},
	} {
		if got := between(c.first, c.last); got != c.want {
			t.Errorf("%s to %s: %q, want %q", c.first, c.last, got, c.want)
		}
	}
}
