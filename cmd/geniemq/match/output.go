package match

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
)

// apartness is a distance, of any size.
type apartness float64

func (d apartness) String() string {
	return strconv.FormatFloat(float64(d), 'g', 9, 64)
}

// writer writes lines of fields, as CSV with a header, which is there without a line too, or as JSON Lines. A field is an integer, a string, a score, a distance or nil.
type writer struct {
	out   *bufio.Writer
	csv   *csv.Writer // nil: JSON Lines
	names []string
	clean bool // a person looks: nothing may command the terminal
	begun bool
}

func newWriter(out io.Writer, format string, names []string) *writer {
	w := &writer{out: bufio.NewWriter(out), names: names, clean: table.On(out).Terminal()}
	if format == "csv" {
		w.csv = csv.NewWriter(w.out)
	}
	return w
}

// begin writes the header.
func (w *writer) begin() error {
	if w.begun || w.csv == nil {
		return nil
	}
	w.begun = true
	return w.csv.Write(w.names)
}

// line writes a line of the values that have names: the distance is the last, and not always told.
func (w *writer) line(values ...any) error {
	values = values[:len(w.names)]
	if w.csv == nil {
		return w.json(values)
	}
	if err := w.begin(); err != nil {
		return err
	}
	texts := make([]string, len(values))
	for i, v := range values {
		if texts[i] = textOfField(v); w.clean {
			texts[i] = table.Clean(texts[i])
		}
	}
	return w.csv.Write(texts)
}

func textOfField(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'f', 6, 64)
	case string:
		return v
	}
	return fmt.Sprint(v)
}

// json writes a line as an object, its fields in their order.
func (w *writer) json(values []any) error {
	for i, value := range values {
		_ = w.out.WriteByte(map[bool]byte{true: '{', false: ','}[i == 0]) // errors stay until Flush
		if score, ok := value.(float64); ok {
			value = json.RawMessage(strconv.FormatFloat(score, 'f', 6, 64))
		} else if d, ok := value.(apartness); ok {
			value = json.RawMessage(d.String())
		}
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if w.clean {
			text = table.EscapeJSON(text)
		}
		fmt.Fprintf(w.out, "%q:%s", w.names[i], text)
	}
	_, err := w.out.WriteString("}\n")
	return err
}

func (w *writer) flush() error {
	if err := w.begin(); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	if w.csv != nil {
		w.csv.Flush()
		if err := w.csv.Error(); err != nil {
			return fmt.Errorf("writing the output: %w", err)
		}
	}
	if err := w.out.Flush(); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

// newTail is what the name of an output has after it while it is written.
const newTail = ".new"

// whole writes a file that is there when it is complete, or not at all, compressed if its name says so. Nobody else writes it: the journal beside it is locked. What
// was left of it by a run that was killed is written over.
func whole(path string, write func(io.Writer) error) (err error) {
	file, err := os.Create(path + newTail)
	if err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	out, err := compressed(path, file)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	err = write(out)
	for _, finish := range []func() error{out.Close, file.Sync, file.Close} {
		if e := finish(); err == nil && e != nil {
			err = fmt.Errorf("writing the output: %w", e)
		}
	}
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// compressions are the extensions of outputs that are compressed.
var compressions = []string{".gz", ".zst"}

// plainName is the name of an output without that of its compression.
func plainName(path string) string {
	for _, extension := range compressions {
		path = strings.TrimSuffix(path, extension)
	}
	return path
}

// compressed writes to out as the name of the file says. The same text gives the same bytes.
func compressed(path string, out io.Writer) (io.WriteCloser, error) {
	switch filepath.Ext(path) {
	case ".gz":
		return gzip.NewWriter(out), nil
	case ".zst":
		return zstd.NewWriter(out, zstd.WithEncoderConcurrency(1))
	}
	return plain{out}, nil
}

// plain is a writer with nothing to end.
type plain struct{ io.Writer }

func (plain) Close() error { return nil }
