package index_test

import (
	"context"
	"fmt"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
)

// Two objects with a number and a category each; then the postings of a range and of a value.
func Example() {
	s, err := index.Builtin().ParseSchema([]byte(`
name: people
kind: rows
columns:
- {name: age, type: number, buckets: 4}
- {name: sex, type: category}
`))
	if err != nil {
		panic(err)
	}
	b, err := onebyone.NewBuilder(s, []schema.AttributeSpec{
		{Name: "age", Type: schema.Number, Buckets: 4},
		{Name: "sex", Type: schema.Text},
	}, index.BuilderOptions{})
	if err != nil {
		panic(err)
	}
	for _, person := range []struct {
		age float64
		sex string
	}{{20, "Male"}, {60, "Female"}, {47, "Male"}} {
		if err := b.AddNumber(0, person.age); err != nil {
			panic(err)
		}
		b.AddString(1, person.sex)
		if err := b.EndObject("", nil, ""); err != nil {
			panic(err)
		}
	}
	data, err := b.Bytes(context.Background())
	if err != nil {
		panic(err)
	}

	x, err := index.OpenBytes(data)
	if err != nil {
		panic(err)
	}
	age := &x.Attributes()[0]
	from, _ := age.Bucket(45)
	to, _ := age.Bucket(99)
	fmt.Println("edges", age.Edges)
	var decoder postings.Decoder // whatever the layout
	fmt.Println("45 to 99:", decoder.Postings(x.Lists, 0, 0).Run(from, to+1))
	male, _ := x.Lookup(1, "Male")
	fmt.Println("Male:", decoder.Postings(x.Lists, 0, 1).Run(male, male+1))
	// Output:
	// edges [30 40 50]
	// 45 to 99: [2 1]
	// Male: [0 2]
}
