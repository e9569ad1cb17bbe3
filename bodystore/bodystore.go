// Package bodystore keeps bodies of queries that are too large for a message in the server's object store.
package bodystore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/geniemq/geniemq/wire"
)

var (
	// ErrNoBucket says that there is no bucket, so that queries must fit a message: no worker has made one, or not for this user (object-users).
	ErrNoBucket = errors.New("there is no bucket for queries that are too large for a message")
	// ErrFull says that a bucket has no room. Wait until workers have answered what is in it, or give it more room.
	ErrFull = errors.New("the bucket for queries that are too large for a message is full")
	// ErrMissing says that an object is not there, or not whole: it was removed, it was never stored, or it cannot be seen yet.
	ErrMissing = errors.New("the object is not in the bucket")
	// ErrWrong says that an object is not what its query says: its size or its digest differ.
	ErrWrong = errors.New("the object is not what the query says")
)

// Store is the buckets of a deployment: one for all who are no users, and one for each user who has one.
//
// # The life of an object
//
// Who asks stores the object under a name of its own, and then publishes the query that names it ([wire.HeaderQueryObject]). A worker fetches it before it decodes
// the query, and removes it when the server has confirmed that the query is gone, never before: until then another worker may need it. An object that
// a dead letter names stays for as long as the letter does. Nothing expires. What is left when a process dies at the wrong moment is an orphan, which [Store.Sweep]
// removes a day later.
//
// # What is trusted
//
// Whoever may publish to a bucket's subjects can write anything there. So nothing of an object is believed: of what its description says, only the token of
// its chunks is used, and checked, as it becomes part of a subject. A body has the size and the digest that the query says, or it is refused.
//
// # Why it reads by itself
//
// The library's Get has the server push an object, as fast as it can, into a buffer that nothing bounds by what was asked for. Here chunks are asked for one by one,
// from the leader of the stream: a body takes its size and one chunk of memory. Removing takes the chunks and then the description, which the library does
// in the other order, leaving a marker for each object there ever was.
//
// It is safe for concurrent use and has no state.
type Store struct {
	js       jetstream.JetStream
	subjects wire.Subjects
}

// Of is the store of a deployment.
func Of(js jetstream.JetStream, subjects wire.Subjects) *Store { return &Store{js, subjects} }

// chunkBytes is the size of chunks, as the library has it.
const chunkBytes = 128 << 10

// StreamOf is the stream that a bucket is.
func StreamOf(bucket string) string { return "OBJ_" + bucket }

func chunksOf(bucket, nuid string) string { return "$O." + bucket + ".C." + nuid }

func metaOf(bucket, name string) string {
	return "$O." + bucket + ".M." + base64.URLEncoding.EncodeToString([]byte(name))
}

// SubjectsOf are those of a bucket's stream.
func SubjectsOf(bucket string) []string {
	return []string{chunksOf(bucket, ">"), "$O." + bucket + ".M.>"}
}

// bucket finds the bucket of a user, "" for all who are none.
func (s *Store) bucket(ctx context.Context, user string) (string, jetstream.Stream, error) {
	bucket, err := s.subjects.ObjectBucket(user)
	if err != nil {
		return "", nil, err
	}
	stream, err := s.js.Stream(ctx, StreamOf(bucket))
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return "", nil, fmt.Errorf("%w: %s", ErrNoBucket, bucket)
	} else if err != nil {
		return "", nil, fmt.Errorf("look at bucket %s: %w", bucket, err)
	}
	return bucket, stream, nil
}

// Put stores a body under a new name. The error is an ErrNoBucket or ErrFull where that is what is wrong; what was stored of it is removed then.
func (s *Store) Put(ctx context.Context, user string, body []byte) (wire.StoredBody, error) {
	bucket, err := s.subjects.ObjectBucket(user)
	if err != nil {
		return wire.StoredBody{}, err
	}
	objects, err := s.js.ObjectStore(ctx, bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return wire.StoredBody{}, fmt.Errorf("%w: %s", ErrNoBucket, bucket)
	} else if err != nil {
		return wire.StoredBody{}, fmt.Errorf("look at bucket %s: %w", bucket, err)
	}
	b := wire.StoredBodyOf(nuid.Next(), body)
	meta := jetstream.ObjectMeta{Name: b.Name, Opts: &jetstream.ObjectMetaOptions{ChunkSize: s.chunk()}}
	if _, err := objects.Put(ctx, meta, bytes.NewReader(body)); err != nil {
		_ = s.Remove(ctx, user, b.Name) // of what is left the sweep is
		if full(err) {
			return wire.StoredBody{}, fmt.Errorf("%w: %s (%d bytes are to be stored): wait until workers have answered what is in it, or give it more room: %w", ErrFull, bucket, len(body), err)
		}
		return wire.StoredBody{}, fmt.Errorf("store %d bytes in bucket %s: %w", len(body), bucket, err)
	}
	return b, nil
}

// chunk is the size of chunks that fit a message of the server.
func (s *Store) chunk() uint32 {
	if most := s.js.Conn().MaxPayload(); most > 0 {
		return uint32(min(chunkBytes, max(most/2, 1)))
	}
	return chunkBytes
}

// Error codes of nats-server for which the library has no name.
const (
	codeServerRoom  jetstream.ErrorCode = 10023 // insufficient resources
	codeNoStorage   jetstream.ErrorCode = 10047 // insufficient storage resources available
	codeStoreFailed jetstream.ErrorCode = 10077 // of a stream: maximum bytes exceeded
)

// full says that an error is one of no room.
func full(err error) bool {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false
	}
	return api.ErrorCode == codeServerRoom || api.ErrorCode == codeNoStorage || api.ErrorCode == codeStoreFailed && strings.Contains(api.Description, "maximum")
}

// description finds what an object says of itself. The error is an ErrMissing or ErrWrong where that is what is wrong with it.
func description(ctx context.Context, stream jetstream.Stream, bucket, name string) (*jetstream.ObjectInfo, *jetstream.RawStreamMsg, error) {
	if err := wire.CheckStoredName(name); err != nil {
		return nil, nil, err
	}
	m, err := stream.GetLastMsgForSubject(ctx, metaOf(bucket, name))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil, fmt.Errorf("%w: %s/%s", ErrMissing, bucket, name)
	} else if err != nil {
		return nil, nil, fmt.Errorf("look at object %s/%s: %w", bucket, name, err)
	}
	info, _ := described(m)
	if info == nil {
		return nil, m, fmt.Errorf("%w: the description of %s/%s cannot be read", ErrWrong, bucket, name)
	}
	if info.Deleted {
		return info, m, fmt.Errorf("%w: %s/%s was deleted", ErrMissing, bucket, name)
	}
	return info, m, nil
}

// described reads a description, and the name that its subject has; nil where its chunks cannot be named.
func described(m *jetstream.RawStreamMsg) (*jetstream.ObjectInfo, string) {
	name, _ := base64.URLEncoding.DecodeString(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
	var info jetstream.ObjectInfo
	if err := json.Unmarshal(m.Data, &info); err != nil || wire.CheckStoredName(info.NUID) != nil {
		return nil, string(name)
	}
	return &info, string(name)
}

// Fetch reads a body into memory of its size. At most one chunk beside it, as large as a message of the server can be, is held at any time. The error
// is an ErrNoBucket, ErrMissing or ErrWrong where that is what is wrong; others may pass.
func (s *Store) Fetch(ctx context.Context, user string, b wire.StoredBody, memory []byte) ([]byte, error) {
	bucket, stream, err := s.bucket(ctx, user)
	if err != nil {
		return nil, err
	}
	info, _, err := description(ctx, stream, bucket, b.Name)
	if err != nil {
		return nil, err
	}
	if info.Size != uint64(b.Size) {
		return nil, fmt.Errorf("%w: %s/%s has %d bytes instead of %d", ErrWrong, bucket, b.Name, info.Size, b.Size)
	}
	body, sum, chunks := memory[:0], sha256.New(), chunksOf(bucket, info.NUID)
	for next := uint64(1); int64(len(body)) < b.Size; {
		m, err := stream.GetMsg(ctx, next, jetstream.WithGetMsgSubject(chunks))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil, fmt.Errorf("%w: of %s/%s there are %d bytes of %d", ErrMissing, bucket, b.Name, len(body), b.Size)
		} else if err != nil {
			return nil, fmt.Errorf("read object %s/%s: %w", bucket, b.Name, err)
		}
		if int64(len(body)+len(m.Data)) > b.Size {
			return nil, fmt.Errorf("%w: %s/%s has more than %d bytes", ErrWrong, bucket, b.Name, b.Size)
		}
		body = append(body, m.Data...)
		sum.Write(m.Data)
		next = m.Sequence + 1
	}
	if [sha256.Size]byte(sum.Sum(nil)) != b.Digest {
		return nil, fmt.Errorf("%w: %s/%s has another digest", ErrWrong, bucket, b.Name)
	}
	return body, nil
}

// Remove removes an object: its chunks, and then its description, so that what is left by whoever dies in between can be found. One that is not there is
// removed.
func (s *Store) Remove(ctx context.Context, user, name string) error {
	bucket, stream, err := s.bucket(ctx, user)
	if err != nil {
		return err
	}
	info, m, err := description(ctx, stream, bucket, name)
	switch {
	case m == nil && errors.Is(err, ErrMissing):
		return nil
	case m == nil:
		return err
	}
	return remove(ctx, stream, info, m)
}

// remove removes what was found of an object. One that was described anew meanwhile keeps its new description.
func remove(ctx context.Context, stream jetstream.Stream, info *jetstream.ObjectInfo, m *jetstream.RawStreamMsg) error {
	if info != nil {
		bucket, _, _ := strings.Cut(strings.TrimPrefix(m.Subject, "$O."), ".")
		if err := stream.Purge(ctx, jetstream.WithPurgeSubject(chunksOf(bucket, info.NUID))); err != nil {
			return fmt.Errorf("remove the chunks of %s: %w", m.Subject, err)
		}
	}
	if err := stream.Purge(ctx, jetstream.WithPurgeSubject(m.Subject), jetstream.WithPurgeSequence(m.Sequence+1)); err != nil {
		return fmt.Errorf("remove %s: %w", m.Subject, err)
	}
	return nil
}

// Touch makes an object young again, as the sweep counts: for a query that is published anew. The error is an ErrNoBucket or ErrMissing where that is
// what is wrong.
func (s *Store) Touch(ctx context.Context, user, name string) error {
	bucket, stream, err := s.bucket(ctx, user)
	if err != nil {
		return err
	}
	_, m, err := description(ctx, stream, bucket, name)
	if err != nil {
		return err
	}
	again := &nats.Msg{Subject: m.Subject, Header: nats.Header{jetstream.MsgRollup: {jetstream.MsgRollupSubject}}, Data: m.Data}
	if _, err := s.js.PublishMsg(ctx, again); err != nil {
		return fmt.Errorf("keep object %s/%s: %w", bucket, name, err)
	}
	return nil
}
