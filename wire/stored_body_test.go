package wire_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/wire"
)

// digest is that of the three bytes "abc", as the object store writes it.
const digest = "SHA-256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0="

func TestStoredBody(t *testing.T) {
	b := wire.StoredBodyOf("q1", []byte("abc"))
	if got, want := b.String(), "q1 3 "+digest; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	back, err := wire.ParseStoredBody(b.String())
	if err != nil || back != b {
		t.Fatalf("%q is read as %+v, %v", b, back, err)
	}
	for _, other := range []string{"abd", "abcd"} {
		if wire.StoredBodyOf("q1", []byte(other)) == b {
			t.Errorf("%q is not told from another body", other)
		}
	}
	if other := wire.StoredBodyOf("another", []byte("abc")); other.Identity() != b.Identity() {
		t.Error("the same body under another name has another identity")
	}
}

// There is one way to write each, and nothing in a name leads out of its bucket.
func TestStoredBodyIsStrict(t *testing.T) {
	for _, header := range []string{
		"", " ", "q1", "q1 3", "q1 3 ", " 3 " + digest, "q1  3 " + digest, "q1 3 " + digest + " ", "q1 3 " + digest + " x", "q1\t3\t" + digest,
		"q1 -1 " + digest, "q1 0 " + digest, "q1 03 " + digest, "q1 +3 " + digest, "q1 3.0 " + digest, "q1 1e3 " + digest, "q1 9223372036854775808 " + digest,
		"q1 9007199254740992 " + digest, "q1 3 sha-256=" + digest[8:], "q1 3 " + digest[8:], "q1 3 " + digest[:len(digest)-1], "q1 3 SHA-256=", "q1 3 SHA-256=" + strings.Repeat("A", 44),
		"q1 3 " + strings.Replace(digest, "-", "+", 1), "q1 3 " + strings.Replace(digest, "0=", "1=", 1), "q1 3 " + digest[:20] + "\n" + digest[21:],
		"a.b 3 " + digest, "GENIE_OBJECTS_alice/q1 3 " + digest, "../q1 3 " + digest, "> 3 " + digest, "* 3 " + digest, strings.Repeat("a", 65) + " 3 " + digest, "é 3 " + digest,
	} {
		if b, err := wire.ParseStoredBody(header); !errors.Is(err, wire.BadRequest) || b != (wire.StoredBody{}) {
			t.Errorf("%q is read as %+v, %v", header, b, err)
		}
	}
	if _, err := wire.ParseStoredBody(strings.Repeat("a", 64) + " 9007199254740991 " + digest); err != nil {
		t.Errorf("the longest name and the largest size: %v", err)
	}
}

func TestObjectBucket(t *testing.T) {
	s := wire.Subjects{}
	for user, want := range map[string]string{"": "GENIE_OBJECTS", "bob": "GENIE_OBJECTS_bob", "Bob": "GENIE_OBJECTS_Bob"} {
		if got, err := s.ObjectBucket(user); err != nil || got != want {
			t.Errorf("of %q it is %q, %v, want %q", user, got, err, want)
		}
	}
	for _, user := range []string{"*", ">", "a b", "$bob", "b/ob", strings.Repeat("b", 65)} {
		if got, err := s.ObjectBucket(user); !errors.Is(err, wire.BadRequest) || got != "" {
			t.Errorf("of %q it is %q, %v", user, got, err)
		}
	}
}

// What is read is written as it was.
func FuzzStoredBody(f *testing.F) {
	f.Add("q1 3 " + digest)
	f.Add("a.b 03 SHA-256=")
	f.Add("  ")
	f.Fuzz(func(t *testing.T, header string) {
		b, err := wire.ParseStoredBody(header)
		if err != nil {
			if !errors.Is(err, wire.BadRequest) {
				t.Fatalf("%q: %v", header, err)
			}
			return
		}
		if b.String() != header || strings.ContainsAny(b.Name, ". */>\\") || b.Size < 1 {
			t.Fatalf("%q is read as %+v, which is %q", header, b, b)
		}
	})
}
