package guess

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gogs/chardet"

	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/index/load/source"
	"github.com/geniemq/geniemq/index/schema"
)

// sample is the beginning of a file.
type sample struct {
	name string
	opts load.Options // what is known of the file so far
	// columns are names of the fields of a file without a header, by the user.
	columns []string
	// text is UTF-8, of whole lines unless there is but one. all says that it is the whole file.
	text []byte
	all  bool

	notes, doubts []string
}

// take reads the beginning of a file and finds its encoding.
func take(path string, opts Options) (*sample, error) {
	s := &sample{name: path, opts: opts.Options}
	file, _, err := source.File(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	raw, err := source.Open(file, path, source.Options{Binary: true})
	if err != nil {
		return nil, err
	}
	defer raw.Close()
	head, err := io.ReadAll(io.LimitReader(raw.Text, int64(opts.Sample)))
	if err != nil {
		return nil, fmt.Errorf("%s: read: %w", path, err)
	}
	s.all = len(head) < opts.Sample
	if s.opts.Format == load.Auto {
		if s.opts.Format, err = load.FormatOf(path); err != nil {
			s.opts.Format = formatOfBytes(head)
		}
	}
	if binary(s.opts.Format) {
		return s, nil
	}
	if s.opts.Encoding == "" {
		s.findEncoding(head)
	}
	text, err := source.Decoded(bytes.NewReader(head), path, source.Options{Encoding: s.opts.Encoding, SkipLines: s.opts.SkipLines})
	if err != nil {
		return nil, err
	}
	s.text, err = io.ReadAll(text)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) { // a character may be cut
		return nil, fmt.Errorf("%s: decode as %s: %w", path, s.opts.Encoding, err)
	}
	if end := bytes.LastIndexByte(s.text, '\n'); !s.all && end > 0 {
		s.text = s.text[:end+1]
	}
	return s, nil
}

// reader reads the records of the sample.
func (s *sample) reader(described *schema.Schema) (*load.Reader, error) {
	if binary(s.opts.Format) {
		return load.Open(s.name, described, load.Options{Format: s.opts.Format})
	}
	input := *described.Input // of which the text has been decoded, and what is known to be skipped was
	input.Encoding, input.SkipLines = "", input.SkipLines-s.opts.SkipLines
	copied := *described
	copied.Input = &input
	return load.NewReader(bytes.NewReader(s.text), s.name, &copied, load.Options{Format: s.opts.Format})
}

func binary(f load.Format) bool {
	return f == load.NPY || f == load.FVecs || f == load.BVecs || f == load.Parquet
}

// formatOfBytes tells formats whose first bytes no other has; Auto: another.
func formatOfBytes(head []byte) load.Format {
	switch {
	case bytes.HasPrefix(head, []byte("PAR1")):
		return load.Parquet
	case bytes.HasPrefix(head, []byte("\x93NUMPY")):
		return load.NPY
	}
	return load.Auto
}

// findEncoding finds the encoding of text by its bytes.
func (s *sample) findEncoding(head []byte) {
	if bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff}) {
		return // load reads the mark
	}
	if zeros := bytes.Count(head, []byte{0}); zeros > len(head)/8 {
		s.opts.Encoding = "utf-16le"
		if bytes.IndexByte(head, 0)%2 == 0 {
			s.opts.Encoding = "utf-16be"
		}
		s.notes = append(s.notes, "the text is "+s.opts.Encoding+", by its NUL bytes")
		return
	}
	if validText(head) {
		return
	}
	name, confidence := detected(unlike(head))
	s.opts.Encoding = name
	const sure = 60
	if confidence < sure {
		s.doubts = append(s.doubts, fmt.Sprintf("the text is not UTF-8; %s is a guess by the frequency of its letters: look at names with accents in an answer", s.opts.Encoding))
	} else {
		s.notes = append(s.notes, "the text is not UTF-8 but "+s.opts.Encoding+", by the frequency of its letters")
	}
}

// preferred are encodings in the order in which they are taken where text is as likely to be of one as of another.
var preferred = []string{"ISO-8859-1", "windows-1251", "Shift_JIS", "EUC-JP", "GB-18030", "EUC-KR", "Big5"}

// detected is the encoding that text is most likely of, by the frequency of its letters, of those that have characters for all of its bytes.
func detected(text []byte) (name string, confidence int) {
	const fallback = "windows-1252"
	all, err := chardet.NewTextDetector().DetectAll(text)
	if err != nil {
		return fallback, 0
	}
	rank := func(charset string) int {
		if at := slices.Index(preferred, charset); at >= 0 {
			return at
		}
		return len(preferred)
	}
	slices.SortFunc(all, func(a, b chardet.Result) int {
		return cmp.Or(cmp.Compare(b.Confidence, a.Confidence), cmp.Compare(rank(a.Charset), rank(b.Charset)), strings.Compare(a.Charset, b.Charset))
	})
	for _, r := range all {
		name := strings.ToLower(r.Charset)
		switch r.Charset {
		case "UTF-8":
			continue // which it is not
		case "ISO-8859-1":
			name = fallback // which has all its letters, and those that people had at their keyboards
		case "GB-18030":
			name = "gb18030"
		}
		decoded, err := source.Decoded(bytes.NewReader(text), "", source.Options{Encoding: name})
		if err != nil {
			continue
		}
		if utf8, err := io.ReadAll(decoded); err == nil && !bytes.ContainsRune(utf8, '\ufffd') {
			return name, r.Confidence
		}
	}
	return fallback, 0
}

// validText says that text is UTF-8, but for a character that the end of a sample cuts.
func validText(text []byte) bool {
	for cut := range min(utf8.UTFMax, len(text)+1) {
		if utf8.Valid(text[:len(text)-cut]) {
			return true
		}
	}
	return false
}

// unlike returns lines that are not plain ASCII, which say the most about an encoding.
func unlike(text []byte) []byte {
	const enough = 64 << 10
	var lines []byte
	if end := bytes.LastIndexByte(text, '\n'); end >= 0 {
		text = text[:end+1] // what comes after may end within a character
	}
	for line := range bytes.Lines(text) {
		if bytes.ContainsFunc(line, func(c rune) bool { return c >= utf8.RuneSelf }) {
			if lines = append(lines, line...); len(lines) > enough {
				break
			}
		}
	}
	return lines
}
