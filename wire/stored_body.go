package wire

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
)

// HeaderQueryObject is on queries that are too large for a message: their body is an object of the server's object store, and this says which. See
// [StoredBody]. The body of such a message is not read.
const HeaderQueryObject = "Genie-Query-Object"

// StoredBody is the body of a query that lies in the server's object store. The bucket is not named: it follows from the subject that the query is published
// to, see [Subjects.ObjectBucket], so that nobody can name what is another user's.
//
// Its form is "<name> <size> SHA-256=<digest>", with one blank between, the size in bytes, and the digest in the base64 of URLs with its padding, as the
// object store itself writes digests. There is one way to write each.
type StoredBody struct {
	Name   string            // 1 to 64 of A-Z a-z 0-9 _ -, and of no other query
	Size   int64             // bytes, at least 1
	Digest [sha256.Size]byte // SHA-256 of the bytes
}

const (
	// MaxStoredName is the most bytes of the name of a StoredBody.
	MaxStoredName = 64
	digestPrefix  = "SHA-256="
	// maxStoredSize keeps sizes within what every reader can hold; what a worker takes is far less, see [Limits].
	maxStoredSize = 1<<53 - 1
)

// digestEncoding refuses what encodes the same bytes in another way.
var digestEncoding = base64.URLEncoding.Strict()

// StoredBodyOf describes a body that will be an object of that name.
func StoredBodyOf(name string, body []byte) StoredBody {
	return StoredBody{Name: name, Size: int64(len(body)), Digest: sha256.Sum256(body)}
}

// CheckStoredName reports whether a name can be that of a StoredBody. The error is an *[Error].
func CheckStoredName(name string) error {
	if name == "" || len(name) > MaxStoredName || !isToken(name) {
		return badRequest("%s: %q cannot be the name of an object: use 1 to %d of A-Z a-z 0-9 _ -", HeaderQueryObject, clip(name), MaxStoredName)
	}
	return nil
}

// ParseStoredBody reads a Genie-Query-Object header. Whether the size is too large is for [Limits.CheckBody]. The error is an *[Error].
func ParseStoredBody(header string) (b StoredBody, err error) {
	name, rest, _ := strings.Cut(header, " ")
	size, digest, ok := strings.Cut(rest, " ")
	if !ok {
		return b, badRequest("%s: %q is not <name> <size> SHA-256=<digest>", HeaderQueryObject, clip(header))
	}
	if err := CheckStoredName(name); err != nil {
		return b, err
	}
	n, err := strconv.ParseInt(size, 10, 64)
	if err != nil || n < 1 || n > maxStoredSize || strconv.FormatInt(n, 10) != size {
		return b, badRequest("%s: %q is no size in bytes", HeaderQueryObject, clip(size))
	}
	b = StoredBody{Name: name, Size: n}
	text, ok := strings.CutPrefix(digest, digestPrefix)
	sum, err := digestEncoding.DecodeString(text)
	if !ok || err != nil || len(sum) != len(b.Digest) || strings.ContainsAny(text, "\r\n") { // which base64 skips
		return StoredBody{}, badRequest("%s: %q is no digest: write %s and the base64 of URLs, with its padding", HeaderQueryObject, clip(digest), digestPrefix)
	}
	copy(b.Digest[:], sum)
	return b, nil
}

// String is the form of the header.
func (b StoredBody) String() string {
	return b.Name + " " + b.Identity()
}

// Identity is what does not change when the same body is stored again under another name: its size and its digest.
func (b StoredBody) Identity() string {
	return strconv.FormatInt(b.Size, 10) + " " + digestPrefix + digestEncoding.EncodeToString(b.Digest[:])
}

// ObjectBucket is the bucket of the object store with the bodies of queries that are too large for a message: of a user GENIE_OBJECTS_<user>, of all who are
// no users GENIE_OBJECTS. A server can permit a bucket to one user and to nobody else. The error is an *[Error]: not every token of a subject can be
// part of a bucket's name.
func (s Subjects) ObjectBucket(user string) (string, error) {
	bucket := strings.ToUpper(s.Prefix()) + "_OBJECTS"
	if user == "" {
		return bucket, nil
	}
	if err := CheckUser(user); err != nil {
		return "", err
	}
	return bucket + "_" + user, nil
}
