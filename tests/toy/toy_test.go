package toy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/internal/msgpack"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

const paints = `
name: paints
kind: rows
columns:
  - {name: shade, type: color}
  - {name: maker, type: category}
`

// build writes an index of colours: a comma-separated file, by the loader that all files take.
func build(t *testing.T, path string, all []color) {
	t.Helper()
	s, err := kinds().ParseSchema([]byte(paints))
	if err != nil {
		t.Fatal(err)
	}
	var file strings.Builder
	file.WriteString("shade,maker\n")
	for i, c := range all {
		fmt.Fprintf(&file, "#%02x%02x%02x,maker%d\n", c[0], c[1], c[2], i%3)
	}
	reader, err := load.NewReader(strings.NewReader(file.String()), "paints.csv", s, load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := kinds().NewObjects(s, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := objects.AddAll(t.Context(), index.Source{Next: reader.Next}); err != nil {
		t.Fatal(err)
	}
	if err := objects.WriteFile(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
}

func randomColors(rng *rand.Rand, n int) []color {
	all := make([]color, n)
	for i := range all {
		all[i] = color{uint8(rng.Uint32()), uint8(rng.Uint32()), uint8(rng.Uint32())}
	}
	return all
}

// Colours are built, served, asked for and swapped. Nothing of them stands outside this folder.
func TestColors(t *testing.T) {
	defer goleak.VerifyNone(t)
	rng := seeded.Rand(t)
	all := randomColors(rng, 70_000) // two tiles
	dir := t.TempDir()
	path := filepath.Join(dir, "paints.gmq")
	build(t, path, all)

	srv, err := service.Start(t.Context(), config.Config{
		Indexes: []config.IndexSource{{Path: path}}, NATSListen: "127.0.0.1:0", DataDir: t.TempDir(), Admin: config.Off,
	}, service.Options{Kinds: kinds(), OpenEngine: openEngine})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := srv.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	nc, err := nats.Connect(srv.NATSURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()

	ask := func(body []byte, codec wire.ContentType) wire.Result {
		t.Helper()
		m, err := nc.RequestMsg(&nats.Msg{Subject: "genie.search.paints", Data: body, Header: nats.Header{wire.HeaderContentType: {codec.String()}}}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := wire.DecodeAnswer(codec, m.Data)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Results[0]
	}
	check := func() {
		t.Helper()
		for n := range 40 {
			to, k := randomColors(rng, 1)[0], 1+rng.IntN(20)
			body, codec := fmt.Appendf(nil, `{"k":%d,"row":{"shade":{"near":[%d,%d,%d]}}}`, k, to[0], to[1], to[2]), wire.JSON
			if n%2 == 1 {
				body, codec = packed(to, k), wire.MessagePack
			}
			got, want := ask(body, codec), nearest(all, to, k)
			if got.Err != nil || len(got.Hits) != len(want) {
				t.Fatalf("%s: %d hits, %v", body, len(got.Hits), got.Err)
			}
			for i, h := range got.Hits {
				if h.ID != want[i].ID || !h.HasDistance || h.Distance != want[i].Score {
					t.Fatalf("near %v: hit %d is %+v, want %+v", to, i, h, want[i])
				}
			}
		}
	}
	check()
	// What geniemq's own columns are asked, beside it.
	if r := ask([]byte(`{"k":1,"row":{"maker":"maker2"}}`), wire.JSON); r.Err != nil || len(r.Hits) != 1 || r.Hits[0].ID != 2 || r.Hits[0].HasDistance {
		t.Errorf("a category: %+v", r)
	}
	for _, c := range []struct{ query, want string }{
		{`{"row":{"shade":"red"}}`, `column "shade": write {"near":[red, green, blue]}`},
		{`{"row":{"shade":{"near":[1,2]}}}`, `column "shade": write {"near":[red, green, blue]}`},
		{`{"row":{"shade":{"near":[1,2,256]}}}`, `column "shade": write {"near":[red, green, blue]}`},
		{`{"row":{"maker":{"near":[1,2,3]}}}`, `unknown field "near"`},
		{`{"row":{"shade":{"near":[1,2,3]},"maker":"maker1"}}`, "must be the only one"},
	} {
		if r := ask([]byte(c.query), wire.JSON); r.Err == nil || r.Err.Code != wire.BadRequest || !strings.Contains(r.Err.Message, c.want) {
			t.Errorf("%s: %+v, want %q", c.query, r.Err, c.want)
		}
	}

	all = randomColors(rng, 1000)
	newer := filepath.Join(dir, "newer.gmq")
	build(t, newer, all)
	if _, _, err := srv.Swap(t.Context(), "paints", newer); err != nil {
		t.Fatal(err)
	}
	check()
}

// packed is the query in MessagePack.
func packed(to color, k int) []byte {
	b := msgpack.AppendMapHead(nil, 2)
	b = msgpack.AppendInt(msgpack.AppendString(b, "k"), int64(k))
	b = msgpack.AppendMapHead(msgpack.AppendString(b, "row"), 1)
	b = msgpack.AppendMapHead(msgpack.AppendString(b, "shade"), 1)
	b = msgpack.AppendArrayHead(msgpack.AppendString(b, "near"), len(to))
	for _, part := range to {
		b = msgpack.AppendInt(b, int64(part))
	}
	return b
}
