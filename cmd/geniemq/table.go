package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/geniemq/geniemq/wire"
)

// printResult writes a result for people.
func printResult(out io.Writer, r *wire.Result) {
	title := r.Index
	if r.ID != "" {
		title = r.ID + " on " + r.Index
	}
	if r.Err != nil {
		fmt.Fprintf(out, "%s: %s: %s\n\n", title, r.Err.Code, r.Err.Message)
		return
	}
	exact := ""
	if r.Exact {
		exact = ", exact"
	}
	fmt.Fprintf(out, "%s: %s%s, %v\n", title, count(len(r.Hits), "hit"), exact, r.Took.Total.Round(10*time.Microsecond))
	if len(r.Hits) > 0 {
		printHits(out, r.Hits)
	}
	fmt.Fprintln(out)
}

// count is a number of things, in words that fit it.
func count[N int | int64 | uint32 | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func printHits(out io.Writer, hits []wire.Hit) {
	// A column is there when a hit has something for it.
	var keys, distances, similarities, payloads bool
	for i := range hits {
		h := &hits[i]
		keys = keys || h.Key != "" && h.Key != strconv.FormatUint(uint64(h.ID), 10)
		distances = distances || h.HasDistance
		similarities = similarities || h.HasSimilarity
		payloads = payloads || h.Payload != nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(count, distance, similarity, id, key, payload string) {
		cells := []string{"", count}
		add := func(shown bool, cell string) {
			if shown {
				cells = append(cells, cell)
			}
		}
		add(distances, distance)
		add(similarities, similarity)
		cells = append(cells, id)
		add(keys, key)
		add(payloads, payload)
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	row("count", "distance", "similarity", "id", "key", "payload")
	for i := range hits {
		h := &hits[i]
		row(strconv.FormatUint(uint64(h.Count), 10), strconv.FormatFloat(h.Distance, 'g', 6, 64),
			strconv.FormatFloat(float64(h.Similarity), 'g', 4, 32), strconv.FormatUint(uint64(h.ID), 10), h.Key, string(h.Payload))
	}
	w.Flush()
}

// payloadField is the text of a field of a hit's payload, "" when it has none.
func payloadField(payload json.RawMessage, name string) (string, error) {
	var fields map[string]any
	if len(payload) == 0 {
		return "", nil
	}
	if err := json.Unmarshal(payload, &fields); err != nil {
		return "", fmt.Errorf("reading a payload: %w", err)
	}
	text, _ := fields[name].(string)
	return text, nil
}
