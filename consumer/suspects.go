package consumer

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/consumer/streams"
	"github.com/geniemq/geniemq/wire"
)

// Suspects keeps on record, in a key-value bucket, which messages workers run alone at the moment. A record that stays
// although its worker is gone is the only sign of what brought a worker down: the broker's delivery count rises with every
// pull, whether the message was run or not, and starts anew with the durable.
//
// A record is a key for each message, made of the durable, the stream's creation time and the sequence, so that neither a
// durable nor a stream that is made anew makes it speak of another message. Its value is how many lone runs were begun and
// did not end. A run is on record from Begin, which returns when the server has confirmed it, to Pause or End; End takes the
// record away.
//
// Every write names the revision that it replaces, so that two workers that have the same message, one of them too slow for
// AckWait, do not write over each other: the later one counts the earlier one's run, which has not ended as far as anyone can
// know, and the earlier one finds [ErrRecordChanged] and leaves the record alone. What this process wrote and had no
// answer to, or could not take back, it recognises: that run has not brought it down.
//
// Records that nobody takes away, of messages that were answered by a worker killed at that moment, go after a day.
//
// Errors are an [UnrecordedError] when nothing will be recorded until someone changes something, ErrRecordChanged, or
// anything else, which may pass.
type Suspects struct {
	js     jetstream.JetStream
	bucket string
	// replicas are those that the bucket is made with
	replicas int
	worker   string // this process

	mu      sync.Mutex
	kv      jetstream.KeyValue // nil until it is found or made
	refusal *UnrecordedError   // of the last attempt
	retry   time.Time          // when to make the next
}

const (
	// maxSuspectAge is how long a record is kept that nobody takes away.
	maxSuspectAge = 24 * time.Hour
	// maxSuspectBytes bounds the bucket: some 300,000 records, or traces of records that were taken away. Where there is less
	// room it is smaller, down to minSuspectBytes.
	maxSuspectBytes = 64 << 20
	minSuspectBytes = 1 << 20
	// recordTimeout bounds one request, if its context does not.
	recordTimeout = 2 * time.Second
	// denialPoll is after how long without an answer a request may have been denied, of which only the connection tells.
	denialPoll = 20 * time.Millisecond
	// refusalPause is how long nothing is asked for after the server refused.
	refusalPause = 30 * time.Second
)

// ErrRecordChanged says that another worker has written the record: read it again.
var ErrRecordChanged = errors.New("another worker has changed the record")

// Kinds of an UnrecordedError.
const (
	DeniedRecord  = "denied"  // the user may not
	RefusedRecord = "refused" // the server does not want to, for lack of room above all
)

// UnrecordedError says that no record can be kept until someone changes something.
type UnrecordedError struct {
	Kind   string
	Advice string // what to change
	Err    error
}

func (e *UnrecordedError) Error() string { return e.Err.Error() + "; " + e.Advice }
func (e *UnrecordedError) Unwrap() error { return e.Err }

// NewSuspects makes the records of the deployment that subjects name, whose bucket so many servers of a cluster keep, as the
// streams. Nothing happens before the first use, which makes the bucket if it is not there.
func NewSuspects(js jetstream.JetStream, subjects wire.Subjects, replicas int) *Suspects {
	return &Suspects{js: js, bucket: subjects.SuspectBucket(), replicas: replicas, worker: rand.Text()}
}

// Ensure makes the bucket if it does not exist, and sees whether it can be written to.
func (s *Suspects) Ensure(ctx context.Context) error {
	return s.do(ctx, "make", func(ctx context.Context, kv jetstream.KeyValue) error {
		return kv.Delete(ctx, "none") // there never is one
	})
}

// Record is what is known of one message. It is not safe for concurrent use.
type Record struct {
	s        *Suspects
	key      string
	revision uint64 // of the record as far as it is known; 0: there is none
	lost     int    // lone runs that did not end, without the one that this Record has begun
}

// recordValue is what the bucket keeps.
type recordValue struct {
	Runs   int    `json:"runs"`             // begun and not ended
	Worker string `json:"worker,omitempty"` // who is at the last of them, if that may still be
}

// Of is the record of a message, as if there were none; the first Begin finds out.
func (s *Suspects) Of(m *Message) *Record {
	durable := m.c.opts.Subjects.Durable(m.c.opts.Index)
	if m.Class != wire.ClassQuery { // durables of one index have one name in all streams
		durable = m.c.stream() + "." + durable
	}
	return &Record{s: s, key: fmt.Sprintf("%s.%d.%d", durable, m.StreamCreated.UnixNano(), m.Sequence)}
}

// Lost is how many lone runs of the message were begun and did not end, when it was last read.
func (r *Record) Lost() int { return r.lost }

// Read reads what workers have written.
func (r *Record) Read(ctx context.Context) error {
	return r.s.do(ctx, "read", func(ctx context.Context, kv jetstream.KeyValue) error {
		entry, err := kv.Get(ctx, r.key)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			r.revision, r.lost = 0, 0
			return nil
		} else if err != nil {
			return err
		}
		var value recordValue
		if json.Unmarshal(entry.Value(), &value) != nil {
			value = recordValue{} // nobody's: written over
		}
		if value.Worker == r.s.worker { // which is alive
			value.Runs--
		}
		r.revision, r.lost = entry.Revision(), max(0, value.Runs)
		return nil
	})
}

// Begin writes that a lone run begins.
func (r *Record) Begin(ctx context.Context) error {
	return r.write(ctx, "begin", recordValue{Runs: r.lost + 1, Worker: r.s.worker})
}

// Pause writes that the run has come to no end and does nothing at present.
func (r *Record) Pause(ctx context.Context) error {
	return r.write(ctx, "pause", recordValue{Runs: r.lost})
}

// Confirm makes sure that what was read is how it is: a server of a cluster may have answered that is late.
func (r *Record) Confirm(ctx context.Context) error {
	return r.write(ctx, "confirm", recordValue{Runs: r.lost})
}

func (r *Record) write(ctx context.Context, what string, value recordValue) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("%s the record %s: %w", what, r.key, err)
	}
	return r.s.do(ctx, what, func(ctx context.Context, kv jetstream.KeyValue) error {
		var revision uint64
		var err error
		if r.revision == 0 {
			revision, err = kv.Create(ctx, r.key, body)
		} else {
			revision, err = kv.Update(ctx, r.key, body, r.revision)
		}
		if err == nil {
			r.revision = revision
		}
		return err
	})
}

// End takes the record away: the message's runs did no harm, or it is given up. It is no error when another worker has
// written it since.
func (r *Record) End(ctx context.Context) error {
	if r.revision == 0 {
		return nil
	}
	err := r.s.do(ctx, "end", func(ctx context.Context, kv jetstream.KeyValue) error {
		return kv.Delete(ctx, r.key, jetstream.LastRevision(r.revision))
	})
	if err == nil || errors.Is(err, ErrRecordChanged) {
		r.revision, r.lost = 0, 0
		return nil
	}
	return err
}

// do makes a request of the bucket, which is made first where it is missing.
func (s *Suspects) do(ctx context.Context, what string, request func(context.Context, jetstream.KeyValue) error) error {
	s.mu.Lock()
	kv, refusal := s.kv, s.refusal
	if !time.Now().Before(s.retry) {
		refusal = nil
	}
	s.mu.Unlock()
	if refusal != nil {
		return refusal
	}
	err := s.ask(ctx, func(ctx context.Context) error {
		if kv != nil {
			if err := request(ctx, kv); !missing(err) {
				return err
			}
		}
		var err error
		if kv, err = s.open(ctx); err != nil {
			return err
		}
		return request(ctx, kv)
	})
	var unrecorded *UnrecordedError
	switch {
	case err == nil:
	case changed(err):
		err = ErrRecordChanged
	default:
		err = fmt.Errorf("%s records in the bucket %s: %w", what, s.bucket, err)
		if unrecorded = s.judge(err); unrecorded != nil {
			err = unrecorded
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kv, s.refusal = kv, unrecorded
	if unrecorded != nil {
		s.retry = time.Now().Add(refusalPause)
	}
	return err
}

// errDenied says that the user may not do what was asked for.
var errDenied = errors.New("not permitted")

// ask makes a request that ends in time. One that is denied has no answer: the connection tells of it, some time later.
func (s *Suspects) ask(ctx context.Context, request func(context.Context) error) error {
	nc := s.js.Conn()
	if !nc.IsConnected() {
		return errDisconnected
	}
	before := nc.LastError()
	denial := func() error {
		if err := nc.LastError(); err != before && //nolint:errorlint // another occurrence is meant
			errors.Is(err, nats.ErrPermissionViolation) && s.concerns(err.Error()) {
			return fmt.Errorf("%w: %w", errDenied, err)
		}
		return nil
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, recordTimeout, errors.New("the server does not answer"))
		defer cancel()
	}
	ctx, deny := context.WithCancelCause(ctx)
	defer deny(nil)
	watch := time.AfterFunc(denialPoll, func() {
		for ctx.Err() == nil {
			if err := denial(); err != nil {
				deny(err)
			}
			time.Sleep(denialPoll)
		}
	})
	defer watch.Stop()
	err := request(ctx)
	if err != nil && ctx.Err() != nil {
		if cause := context.Cause(ctx); !errors.Is(err, cause) {
			err = fmt.Errorf("%w (%w)", cause, err)
		}
	}
	return err
}

// concerns says whether an error about permissions is about the bucket.
func (s *Suspects) concerns(text string) bool {
	return strings.Contains(text, "KV_"+s.bucket) || strings.Contains(text, "$KV."+s.bucket+".") || strings.Contains(text, `API.INFO"`)
}

// open finds the bucket or makes it.
func (s *Suspects) open(ctx context.Context) (jetstream.KeyValue, error) {
	kv, err := s.js.KeyValue(ctx, s.bucket)
	for size := int64(maxSuspectBytes); errors.Is(err, jetstream.ErrBucketNotFound) || streams.NoRoom(err) && size >= minSuspectBytes; size /= 4 {
		kv, err = s.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket:      s.bucket,
			Description: "geniemq: messages that are run alone, since workers were lost that had them",
			TTL:         maxSuspectAge,
			MaxBytes:    size,
			Storage:     jetstream.FileStorage,
			Replicas:    s.replicas,
		})
		if errors.Is(err, jetstream.ErrBucketExists) { // another worker was faster
			return s.js.KeyValue(ctx, s.bucket)
		}
	}
	return kv, err
}

// missing says whether an error may mean that the bucket is gone.
func missing(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) ||
		errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrBucketNotFound)
}

func changed(err error) bool {
	return errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch)
}

// Error codes of nats-server for which the library has no name.
const (
	codeStoreFailed jetstream.ErrorCode = 10077 // a message is not stored: the stream is full, or the disk fails
)

// judge says whether an error will not pass by itself.
func (s *Suspects) judge(err error) *UnrecordedError {
	var apiErr *jetstream.APIError
	switch {
	case errors.Is(err, errDenied):
		return &UnrecordedError{Kind: DeniedRecord, Err: err, Advice: fmt.Sprintf("allow the worker to publish to $KV.%[1]s.>, "+
			"$JS.API.STREAM.INFO.KV_%[1]s and $JS.API.DIRECT.GET.KV_%[1]s.>, and to $JS.API.INFO and $JS.API.STREAM.CREATE.KV_%[1]s "+
			"unless the bucket is there", s.bucket)}
	case errors.Is(err, jetstream.ErrBadBucket):
	case !errors.As(err, &apiErr):
		return nil
	case streams.NoRoom(err), apiErr.Code < 500, apiErr.ErrorCode == codeStoreFailed && strings.Contains(apiErr.Description, "maximum"):
	default:
		return nil
	}
	return &UnrecordedError{Kind: RefusedRecord, Err: err, Advice: fmt.Sprintf("give JetStream room for the bucket %s, or delete "+
		"the stream KV_%[1]s if it is not one that geniemq made", s.bucket)}
}
