package index

import (
	"context"
	"testing"
)

func TestSmoke(t *testing.T) {
	s, err := ParseSchema([]byte("name: a\nkind: rows\ncolumns:\n- {name: n, type: number}\n- {name: c, type: category}\n"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewBuilder(s, []AttributeSpec{{Name: "n", Type: Number}, {Name: "c", Type: Text}}, BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200000 {
		b.AddNumber(0, float64(i%1000))
		b.AddString(1, string(rune('a'+i%26)))
		if err := b.EndObject("", nil, ""); err != nil {
			t.Fatal(err)
		}
	}
	data, err := b.Bytes(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	x, err := OpenBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(len(data), x.Version(), x.Tiles(), x.Attributes()[1], x.Postings(3, 1).Len())
	kw, ok := x.Lookup(1, "c")
	t.Log(kw, ok, x.Postings(0, 1).Run(kw, kw+1)[:5])
}
