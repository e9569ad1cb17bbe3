package store_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestFindAll: many strings are found together as each is found for itself, in tables of all sizes, also in damaged ones: with numbers that no
// string has, with strings in the slots of others, and without an empty slot.
func TestFindAll(t *testing.T) {
	random := seeded.Rand(t)
	for round := range 400 {
		n := random.IntN(1 << random.IntN(10))
		table := store.NewStringTable(n, 0)
		for i := range n {
			table.Add(strconv.Itoa(i * i)[i%2:]) // some are empty, some are there twice
		}
		h := store.NewHashTable(&table, store.HashSlots(n))
		tag := func(value string) uint64 { return xxhash.Sum64String(value) >> 32 << 32 }
		for i := range h {
			switch damage := random.IntN(40); {
			case round%4 == 1 && damage == 0:
				h[i] |= uint64(random.Uint32())
			case round%4 == 2 && h[i] == 0, round%4 == 3 && damage == 1:
				h[i] = tag(strconv.Itoa(random.IntN(n*n+1))) | uint64(random.IntN(n+2))
			case round%4 == 3 && damage == 2:
				h[i] = 0
			}
		}
		values := make([]string, random.IntN(70))
		for i := range values {
			if values[i] = strconv.Itoa(random.IntN(n*n + 2)); random.IntN(2) == 0 && n > 0 {
				values[i] = table.At(uint32(random.IntN(n)))
			}
		}
		want := []uint32{7}
		for _, value := range values {
			id, ok := h.Find(&table, value)
			if !ok {
				id = store.NoString
			}
			want = append(want, id)
		}
		if got := h.FindAll([]uint32{7}, &table, values); !slices.Equal(got, want) {
			t.Fatalf("round %d: of %d strings %q are found at %d, one by one at %d", round, n, values, got, want)
		}
	}
	if got := store.HashTable(nil).FindAll(nil, new(store.StringTable), []string{"", "a"}); !slices.Equal(got, []uint32{store.NoString, store.NoString}) {
		t.Errorf("in an empty table: %d", got)
	}
}
