package workload

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/levenshtein"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/wire"
)

// W2, title-like: real headlines grown to millions. A copy has 10 to 30 % of its characters changed and now and then two
// words swapped. A query is a copy of an object of about 40 characters, changed once more, searched with K candidates.
const (
	titleQueryLength = 40
	titleHits        = 1 // the paper's k for sequences
)

const titleSchema = `
name: titles
kind: sequences
ngram: 3
`

func headlines(folder string) ([]string, error) {
	var lines []string
	for _, name := range []string{"clickbait_data.txt.gz", "non_clickbait_data.txt.gz"} {
		path := filepath.Join(folder, "headlines", name)
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		unzipped, err := gzip.NewReader(f)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		scanner := bufio.NewScanner(unzipped)
		for scanner.Scan() {
			if line := strings.TrimSpace(scanner.Text()); line != "" {
				lines = append(lines, line)
			}
		}
		if err := scanner.Err(); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
	}
	return lines, nil
}

// grow makes a changed copy of a title.
func grow(title string, src *source) string {
	if src.intn(2) == 0 {
		words := strings.Fields(title)
		if i := src.intn(len(words)); i > 0 {
			words[i-1], words[i] = words[i], words[i-1]
		}
		title = strings.Join(words, " ")
	}
	return change(title, 0.1+0.2*src.float(), src)
}

// change replaces, deletes or inserts a lower-case letter at that share of the characters.
func change(text string, share float64, src *source) string {
	var out []rune
	for _, r := range text {
		letter := rune('a' + src.intn(26))
		if src.float() >= share {
			out = append(out, r)
			continue
		}
		switch src.intn(3) {
		case 0:
			out = append(out, letter)
		case 1:
			out = append(out, r, letter)
		}
	}
	return string(out)
}

func titles(ctx context.Context, opts Options) (*Workload, error) {
	base, err := headlines(opts.Data)
	if err != nil {
		return nil, err
	}
	texts := make([]string, opts.Objects)
	err = generate(ctx, opts.Objects, func(lo, hi int) {
		for id := lo; id < hi; id++ {
			src := newSource(opts.Seed, 't', uint64(id))
			texts[id] = grow(base[src.intn(len(base))], &src)
		}
	})
	if err != nil {
		return nil, err
	}

	spec, err := index.Builtin().ParseSchema([]byte(titleSchema))
	if err != nil {
		return nil, err
	}
	w, err := buildRecords(ctx, spec, opts, func(rec *schema.Record, id int) {
		rec.Line, rec.Cells = int64(id+1), append(rec.Cells[:0], schema.Cell{Values: texts[id : id+1]})
	})
	if err != nil {
		return nil, err
	}
	src := newSource(opts.Seed, 'q')
	asked := make([][]rune, opts.Queries)
	for i := range asked {
		id := src.intn(len(texts))
		for tries := 0; tries < len(texts) && (len(texts[id]) < titleQueryLength-2 || len(texts[id]) > titleQueryLength+2); tries++ {
			id = (id + 1) % len(texts)
		}
		text := change(texts[id], 0.1, &src)
		asked[i] = []rune(text)
		w.Queries = append(w.Queries, wire.Query{K: titleHits, Candidates: opts.K, Text: text})
	}
	w.distances = func(i, lo, hi int, visit func(id uint32, distance int32)) {
		for id := lo; id < hi; id++ {
			visit(uint32(id), int32(levenshtein.Distance(asked[i], []rune(texts[id]))))
		}
	}
	return w, nil
}
