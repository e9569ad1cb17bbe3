package index

import (
	"context"
	"errors"
	"strconv"
	"testing"
)

// TestOutputErrors fails each single write in turn.
func TestOutputErrors(t *testing.T) {
	b, err := NewBuilder(&Schema{Name: "t", Kind: Rows, Columns: []Column{{Name: "c", Type: CategoryColumn}}},
		[]AttributeSpec{{Name: "c", Type: Text}}, BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		b.AddString(0, strconv.Itoa(i%7))
		if err := b.EndObject("key "+strconv.Itoa(i), []byte(`{"a":1}`), "text"); err != nil {
			t.Fatal(err)
		}
	}
	broken := errors.New("no space left")
	for n := 0; ; n++ {
		out := &failingOutput{left: n, err: broken}
		err := b.write(context.Background(), out, nil)
		if err == nil {
			if n < 3 {
				t.Errorf("only %d writes", n)
			}
			return
		}
		if !errors.Is(err, broken) {
			t.Fatalf("write %d: %v", n, err)
		}
	}
}

type failingOutput struct {
	memory
	left int
	err  error
}

func (f *failingOutput) Write(data []byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, f.err
	}
	return f.memory.Write(data)
}

func (f *failingOutput) WriteAt(data []byte, at int64) (int, error) {
	if f.left--; f.left < 0 {
		return 0, f.err
	}
	return f.memory.WriteAt(data, at)
}
