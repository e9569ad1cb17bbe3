package wire

import (
	"strings"

	"github.com/klauspost/compress/s2"
)

// Bodies may be compressed by S2, one block per body; docs/protocol.md says when. S2 and not zstd: it costs the
// least time, and what is sent here are mostly ids, which nothing shrinks. The limits of a body are those of the plain one, which a block tells before it is decoded.

const (
	// compressedSuffix ends the media type of what is compressed, as the registered +zstd and +gzip do. A worker that knows none of it
	// refuses the type, as it should: in a header of its own it would take the body for garbage.
	compressedSuffix = "+s2"
	// MaxCompressed is the most bytes that a body has before it is compressed.
	MaxCompressed = defaultBody
	// minCompressed is the least body that it is worth for.
	minCompressed = 512
)

// ParseBodyType reads a Content-Type header, as [ParseContentType] does, of a body that may be compressed.
func ParseBodyType(header string) (ct ContentType, compressed bool, err error) {
	if strings.IndexByte(header, '+') < 0 {
		ct, err = ParseContentType(header)
		return ct, false, err
	}
	media, params, _ := strings.Cut(header, ";")
	media, compressed = strings.CutSuffix(strings.ToLower(strings.TrimSpace(media)), compressedSuffix)
	if !compressed || media == "" {
		ct, err = ParseContentType(header) // which says what is wrong
		return ct, false, err
	}
	if params != "" {
		media += ";" + params
	}
	if ct, err = ParseContentType(media); err != nil {
		return ct, false, err
	}
	return ct, true, nil
}

// Compressed is the media type of a body of this codec that is compressed.
func (c ContentType) Compressed() string { return c.String() + compressedSuffix }

// CompressRoom is how many bytes of memory Compress needs for a body, 0 where it will not be compressed.
func CompressRoom(body int) int {
	if body < minCompressed || body > MaxCompressed {
		return 0
	}
	return s2.MaxEncodedLen(body)
}

// Compress compresses a body in the memory of dst, which has CompressRoom for it. It is false where that saves less than an eighth.
func Compress(dst, body []byte) ([]byte, bool) {
	if CompressRoom(len(body)) == 0 {
		return nil, false
	}
	dst = s2.Encode(dst[:cap(dst)], body)
	return dst, len(dst) <= len(body)-len(body)/8
}

// PlainSize is how many bytes a compressed body has when it is plain, by what it says itself, held against the limit of a body and
// MaxCompressed. Nothing is allocated for it. The error is an *[Error].
func (l Limits) PlainSize(body []byte) (int, error) {
	n, err := s2.DecodedLen(body)
	if err != nil {
		return 0, badRequest("the body is no block of S2: %v", err)
	}
	if n > MaxCompressed {
		return 0, Errorf(TooLarge, "the body has %d bytes when it is decompressed, the limit is %d", n, MaxCompressed)
	}
	return n, l.CheckBody(n)
}

// Decompress decodes a compressed body in the memory of dst, which has room for its PlainSize. The error is an *[Error].
func Decompress(dst, body []byte) ([]byte, error) {
	if n, err := s2.DecodedLen(body); err != nil || n > cap(dst) {
		return nil, badRequest("the body is no block of S2 of at most %d bytes", cap(dst))
	}
	plain, err := s2.Decode(dst[:cap(dst)], body)
	if err != nil {
		return nil, badRequest("the body cannot be decompressed: %v", err)
	}
	return plain, nil
}

// DecodeBody is [DecodeAnswer] for a body as its Content-Type says it is, which may be compressed.
func DecodeBody(contentType string, body []byte) (*Answer, error) {
	ct, compressed, err := ParseBodyType(contentType)
	if err != nil {
		return nil, err
	}
	if compressed {
		size, err := Limits{}.PlainSize(body)
		if err != nil {
			return nil, err
		}
		if body, err = Decompress(make([]byte, 0, size), body); err != nil {
			return nil, err
		}
	}
	return DecodeAnswer(ct, body)
}

// Accept is what somebody can read besides what everybody can: [HeaderAccept].
type Accept struct {
	S2    bool // compressed bodies
	Parts bool // of results that are too large for a message
}

// acceptNames are the words of the header; see Accept.flags.
var acceptNames = [...]string{"s2", "parts"}

func (a *Accept) flags() [len(acceptNames)]*bool {
	return [...]*bool{&a.S2, &a.Parts}
}

// ParseAccept reads the header. What it does not know it skips.
func ParseAccept(header string) (a Accept) {
	for rest := header; rest != ""; {
		var word string
		word, rest, _ = strings.Cut(rest, ",")
		word = strings.TrimSpace(word)
		for i, flag := range a.flags() {
			*flag = *flag || strings.EqualFold(word, acceptNames[i])
		}
	}
	return a
}

// String is the form of the header.
func (a Accept) String() string {
	var words []string
	for i, flag := range a.flags() {
		if *flag {
			words = append(words, acceptNames[i])
		}
	}
	return strings.Join(words, ", ")
}

// Reads is what a worker of this version can read of queries.
func Reads() Accept { return Accept{S2: true} }

// AcceptsMetadata is under which name the metadata of a worker's search endpoint say what it [Reads].
const AcceptsMetadata = "accepts"
