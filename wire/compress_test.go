package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

func TestParseBodyType(t *testing.T) {
	for header, want := range map[string]struct {
		ct         ContentType
		compressed bool
	}{
		"": {JSON, false}, "application/json": {JSON, false}, "application/msgpack": {MessagePack, false},
		"application/json+s2": {JSON, true}, "application/msgpack+s2": {MessagePack, true}, "Application/JSON+S2; charset=utf-8": {JSON, true},
		"application/x-msgpack+s2": {MessagePack, true}, "application/json; a=b": {JSON, false},
	} {
		ct, compressed, err := ParseBodyType(header)
		if err != nil || ct != want.ct || compressed != want.compressed {
			t.Errorf("%q: %v %v %v", header, ct, compressed, err)
		}
	}
	for _, header := range []string{"+s2", "application/json+zstd", "application/json+s2+s2", "text/plain+s2", "application/json; x=+s2/"} {
		if _, compressed, err := ParseBodyType(header); compressed && err == nil || strings.HasPrefix(header, "text") && !errors.Is(err, Unsupported) {
			t.Errorf("%q: %v %v", header, compressed, err)
		}
	}
	// What a worker says that knows nothing of compression.
	for _, ct := range []ContentType{JSON, MessagePack} {
		if _, err := ParseContentType(ct.Compressed()); !errors.Is(err, Unsupported) {
			t.Errorf("%s: %v", ct.Compressed(), err)
		}
	}
}

func TestAcceptHeader(t *testing.T) {
	for header, want := range map[string]Accept{
		"": {}, "s2": {S2: true}, "parts": {Parts: true}, " S2 ,zstd,, parts": {true, true}, "s2parts": {},
	} {
		got := ParseAccept(header)
		if got != want || ParseAccept(got.String()) != got {
			t.Errorf("%q: %+v", header, got)
		}
	}
}

// What is compressed is read as what it was, in both codecs and all forms; what does not shrink goes plain.
func TestCompressedAnswers(t *testing.T) {
	r := newRandom(t)
	shrunk := 0
	for range 100 {
		a := Answer{Batch: true, Results: make([]Result, 1+r.IntN(20))}
		for i := range a.Results {
			a.Results[i] = r.result()
			a.Results[i].HitsForm = HitsForm(r.IntN(3))
		}
		ct := ContentType(r.IntN(2))
		body := AppendAnswer(nil, ct, &a)
		want, err := DecodeBody(ct.String(), body)
		if err != nil {
			t.Fatal(err)
		}
		packed, ok := Compress(make([]byte, 0, CompressRoom(len(body))), body)
		if !ok {
			continue
		}
		shrunk++
		if len(packed) > len(body)*7/8+1 {
			t.Fatalf("%d bytes of %d are sent", len(packed), len(body))
		}
		got, err := DecodeBody(ct.Compressed(), packed)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v: got %+v, want %+v", err, got, want)
		}
		if size, err := (Limits{}).PlainSize(packed); err != nil || size != len(body) {
			t.Fatalf("%d bytes are said to be %d: %v", len(body), size, err)
		}
	}
	if shrunk == 0 {
		t.Error("no answer was compressed")
	}
	noise := make([]byte, 4096)
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	if _, ok := Compress(make([]byte, 0, CompressRoom(len(noise))), noise); ok {
		t.Error("noise was compressed")
	}
	if CompressRoom(minCompressed-1) != 0 || CompressRoom(MaxCompressed+1) != 0 {
		t.Error("what is too small or too large has room")
	}
}

// A few bytes that say they are gigabytes, or are none of what they say, are refused before memory is taken for them.
func TestBombs(t *testing.T) {
	claim := func(n uint64, rest ...byte) []byte { return append(binary.AppendUvarint(nil, n), rest...) }
	bomb, ok := Compress(make([]byte, 0, CompressRoom(MaxCompressed)), bytes.Repeat([]byte{' '}, MaxCompressed))
	if !ok || len(bomb) > 1000 {
		t.Fatalf("8 MiB of blanks take %d bytes", len(bomb))
	}
	for name, test := range map[string]struct {
		limits Limits
		body   []byte
		want   Code
	}{
		"claims 4 GiB":        {body: claim(1<<32 - 1), want: TooLarge},
		"claims 2^60":         {body: claim(1 << 60), want: BadRequest},
		"one byte too many":   {body: claim(MaxCompressed + 1), want: TooLarge},
		"beyond the limit":    {limits: Limits{Body: 1 << 20}, body: bomb, want: TooLarge},
		"empty":               {body: nil, want: BadRequest},
		"an endless length":   {body: bytes.Repeat([]byte{0xff}, 20), want: BadRequest},
		"a body that is none": {body: []byte(`{"text":"x"}`), want: ""},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		n, err := test.limits.PlainSize(test.body)
		runtime.ReadMemStats(&after)
		if test.want != "" && !errors.Is(err, test.want) || after.TotalAlloc-before.TotalAlloc > 1<<20 {
			t.Errorf("%s: %d %v, in %d bytes", name, n, err, after.TotalAlloc-before.TotalAlloc)
		}
	}
	if plain, err := Decompress(make([]byte, 0, 100), bomb); err == nil {
		t.Errorf("%d bytes in room for 100", len(plain))
	}
	if _, err := DecodeBody(JSON.Compressed(), bomb[:len(bomb)-1]); !errors.Is(err, BadRequest) {
		t.Errorf("a block that was cut off: %v", err)
	}
}

// Nothing that calls itself compressed takes more than it says or than is allowed, and what is read is what was written.
func FuzzDecompress(f *testing.F) {
	packed, _ := Compress(make([]byte, 0, CompressRoom(1<<12)), bytes.Repeat([]byte(`{"id":1,"key":"1"},`), 1<<8))
	f.Add(packed)
	f.Add([]byte("\x0c\x2c{\"text\":\"x\"}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		limits := Limits{Body: 1 << 16}
		n, err := limits.PlainSize(body)
		if err == nil {
			if n > 1<<16 {
				t.Fatalf("%d bytes are within the limit", n)
			}
			plain, err := Decompress(make([]byte, 0, n), body)
			if err == nil && len(plain) != n || cap(plain) > n {
				t.Fatalf("%d bytes in %d, said to be %d", len(plain), cap(plain), n)
			}
		}
		if packed, ok := Compress(make([]byte, 0, CompressRoom(len(body))), body); ok {
			plain, err := Decompress(make([]byte, 0, len(body)), packed)
			if err != nil || !bytes.Equal(plain, body) {
				t.Fatalf("%v: %q came back as %q", err, body, plain)
			}
		}
		_, _ = DecodeBody(JSON.Compressed(), body) // no panic
	})
}
