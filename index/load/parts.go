package load

import (
	"context"
	"errors"
	"io"
	"math"

	"github.com/geniemq/geniemq/index/load/columnar"
	"github.com/geniemq/geniemq/index/load/cut"
	"github.com/geniemq/geniemq/index/load/source"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/inorder"
)

// parts decodes a source on several cores: one goroutine cuts its text into parts of whole records, others decode parts, and the reader gives
// their records in order. Each part is read by a Reader of its own, so that what comes out is what one Reader of all would give: records, errors and
// line numbers.
//
// The first part, which may have a header, is decoded by the reader's caller. Goroutines begin when the second is asked for, and end with the
// source, an error that stays, or close. Memory: two parts for each worker and some, text and records.
type parts struct {
	divide  func(*part) // fills a part with what comes next; not called after the last one
	header  decoder     // it has read the header, and says how others are decoded
	current *part       // whose records are given
	next    int         // of them

	ready    chan *part    // decoded, in order; closed when all goroutines have ended. nil: they have not begun
	consumed chan struct{} // the part that was ready last may be used again
	stop     context.CancelFunc
}

// part is some text of a source and what it was decoded to.
type part struct {
	cut.Part
	read int           // of its text
	rows columnar.Rows // of Parquet, in place of text

	reader  *Reader // of the text; it stays with the memory of the part
	records []schema.Record
	faults  []error // by record: a *BadRecord or nil
	n       int     // records
	err     error   // after the records
}

// Read gives the text of the part, and then its end.
func (p *part) Read(to []byte) (int, error) {
	if p.read == len(p.Text) {
		return 0, p.End
	}
	n := copy(to, p.Text[p.read:])
	p.read += n
	return n, nil
}

// repeated is a decoder that says how other parts of the source are decoded: what a header says is known.
type repeated interface{ again(*Reader) decoder }

// newParts begins to cut the source of a reader, and looks at a header. Of what cannot be cut it returns nil, and the reader has a decoder.
func newParts(r *Reader, entry *formatEntry) (s *parts, err error) {
	s = &parts{current: &part{}}
	if entry.cut != byRecords {
		cutter := cut.New(r.source.Text, cut.Options{
			Limit: r.opts.MaxRecord, Quoted: entry.cut == byQuotes, Comma: r.opts.Comma, Bytes: r.opts.partBytes, Before: r.before,
		})
		s.divide = func(p *part) { cutter.Cut(&p.Part) }
		s.divide(s.current)
		own := s.current.open(r)
		s.header, err = entry.open(own)
		own.decoder = s.header
		return s, err
	}
	if s.header, err = entry.open(r); err != nil {
		return nil, err
	}
	switch d := s.header.(type) {
	case *parquetRows:
		s.divide = d.divide
	case *vectorLines:
		size := d.layout.Stride()
		if size == 0 { // what is wrong is told where it is read
			r.decoder = d
			return nil, nil
		}
		text := r.source.Text
		if n := d.layout.Rows; n >= 0 && n < math.MaxInt64/int64(size) {
			text = io.LimitReader(text, n*int64(size)) // what comes after them is nobody's
		}
		records := cut.NewRecords(text, size, r.opts.partBytes)
		s.divide = func(p *part) { records.Cut(&p.Part) }
	}
	s.divide(s.current)
	own := s.current.open(r)
	own.decoder = s.header.(repeated).again(own)
	return s, nil
}

// open returns a reader of the part, which was cut of a source. It lacks a decoder.
func (p *part) open(of *Reader) *Reader {
	if p.reader == nil {
		p.reader = &Reader{name: of.name, schema: of.schema, opts: of.opts, source: &source.Source{Text: p}, shape: of.shape}
	}
	r := p.reader
	p.read, r.err, r.before, r.opts.Columns = 0, nil, p.Before, of.opts.Columns.fork()
	return r
}

// decode decodes all of the part.
func (p *part) decode() {
	for p.n = 0; ; p.n++ {
		if p.n == len(p.records) {
			p.records, p.faults = append(p.records, schema.Record{}), append(p.faults, nil)
		}
		err := p.reader.Next(&p.records[p.n])
		if p.faults[p.n] = err; err == nil {
			continue
		}
		if !errors.As(err, new(*BadRecord)) {
			p.err = err
			return
		}
		p.records[p.n] = schema.Record{} // whose memory may be large, and does not go to the reader's caller
	}
}

// record gives the next record of the parts of a source, as Reader.Next does.
func (s *parts) record(of *Reader, rec *schema.Record) error {
	for {
		p := s.current
		if s.next < p.n {
			i := s.next
			s.next++
			if p.faults[i] != nil {
				of.shape.reset(rec)
				return p.faults[i]
			}
			*rec, p.records[i] = p.records[i], *rec
			return nil
		}
		switch {
		case p.err == nil: // the first one
			p.decode()
			continue
		case p.Last, !errors.Is(p.err, io.EOF):
			of.opts.Columns.join(p.reader.opts.Columns)
			s.close()
			return p.err
		}
		of.opts.Columns.join(p.reader.opts.Columns)
		if s.ready == nil {
			s.start(of)
		} else {
			s.consumed <- struct{}{}
		}
		s.current, s.next = <-s.ready, 0
	}
}

// start starts the goroutines.
func (s *parts) start(of *Reader) {
	ctx, stop := context.WithCancel(context.Background())
	s.stop, s.ready, s.consumed = stop, make(chan *part), make(chan struct{})
	entry, workers := &formatTable[of.opts.entry()], of.opts.Workers
	go func() {
		defer close(s.ready)
		// No stage fails, but for being stopped.
		_ = inorder.Run(ctx, workers, 2*workers+2, func() *part { return new(part) }, func(p *part) (last bool, err error) {
			s.divide(p)
			return p.Last, nil
		}, func(p *part) (err error) {
			own := p.open(of)
			if header, ok := s.header.(repeated); ok {
				own.decoder = header.again(own)
			} else if own.decoder, err = entry.open(own); err != nil {
				return err
			}
			p.decode()
			return nil
		}, func(p *part) error {
			select {
			case s.ready <- p:
			case <-ctx.Done():
				return ctx.Err()
			}
			select {
			case <-s.consumed:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
}

// close ends the goroutines.
func (s *parts) close() {
	if s.ready == nil {
		return
	}
	s.stop()
	for range s.ready { //nolint:revive // until all have ended
	}
}
