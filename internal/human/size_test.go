package human

import "testing"

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "1000": 1000, "7B": 7, "64KiB": 64 << 10, "512 MiB": 512 << 20, "16GiB": 16 << 30,
	} {
		var b Size
		if err := b.Set(text); err != nil || b != want {
			t.Errorf("%q: %d %v, want %d", text, b, err, want)
		}
		var again Size
		if err := again.Set(b.String()); b != 0 && (err != nil || again != b) {
			t.Errorf("%d prints as %q: %d %v", b, b.String(), again, err)
		}
	}
	for _, text := range []string{"", "GiB", "-1", "1.5GiB", "16GB", "9999999999GiB", "x"} {
		if err := new(Size).Set(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
