package match

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// told is a line of match's output as JSON.
type told struct {
	Row, Found int
	Key        string
	FoundKey   string `json:"found_key"`
	Other      int
	OtherKey   string `json:"other_key"`
	Score      float64
}

func lines(t *testing.T, text string) (all []told) {
	t.Helper()
	for one := range strings.Lines(text) {
		var l told
		if err := json.Unmarshal([]byte(one), &l); err != nil {
			t.Fatalf("%q: %v", one, err)
		}
		all = append(all, l)
	}
	return all
}

// TestAwkwardKeys: whatever characters keys have, both forms of output give them back.
func TestAwkwardKeys(t *testing.T) {
	r := seeded.Rand(t)
	signs := []string{",", `"`, `""`, "\n", "\r", "\t", ";", "'", "\\", "=1+1", "<b>&", "ö", "日本", "\u2028", "\u202e", "\x1b[2J", "\x7f", "#", " ", "a", "0", "\ufeff", "𝄞"}
	var keys []string
	var b strings.Builder
	for i := range 60 {
		key := fmt.Sprint(i, "-") // so that no two become equal
		for range r.IntN(6) {
			key += signs[r.IntN(len(signs))]
		}
		key += "." // blanks around keys are none of them
		text, err := json.Marshal(map[string]string{"id": key, "title": fmt.Sprintf("red shoes number n%d", i)})
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
		b.Write(append(text, '\n'))
	}
	dir := t.TempDir()
	const spec = "name: odd\nkey: id\ncolumns:\n  - {name: title, type: text, stop_words: none, idf: true, store: true}\n"
	data, described := write(t, dir, "odd.jsonl", b.String()), write(t, dir, "s.yaml", spec)
	args := []string{"match", "--index", "odd=" + build(t, dir, data, spec), "--input", data, "--schema", described, "--k", "1", "--min", "1"}
	for i, l := range lines(t, succeeds(t, append(args, "--to", "jsonl")...).out) {
		if l.Row != i || l.Found != i || l.Key != keys[i] || l.FoundKey != keys[i] {
			t.Errorf("%+v, not %q", l, keys[i])
		}
	}
	all := records(t, succeeds(t, args...).out)[1:]
	if len(all) != len(keys) {
		t.Fatalf("%d pairs", len(all))
	}
	for i, p := range all {
		if want := strings.ReplaceAll(keys[i], "\r\n", "\n"); p[1] != want || p[3] != want { // as CSV is read in Go
			t.Errorf("%q, not %q", p, want)
		}
	}
	// A NUL is in no file of text that was meant.
	nul := write(t, dir, "nul.csv", "id,title\nk\x000,red shoes\n")
	if o := command(t.Context(), "", "dedupe", nul, "--schema", described); o.err == nil || !strings.Contains(o.err.Error(), "NUL") {
		t.Errorf("a NUL: %v", o.err)
	}
}

// copies writes rows of which each title comes several times, in any order, and returns whose copy each row is.
func copies(r *rand.Rand, titles, rows int) (text string, of []int) {
	var b strings.Builder
	b.WriteString("id,title,price,none\n")
	for i := range rows {
		n := r.IntN(titles)
		of = append(of, n)
		fmt.Fprintf(&b, "k%d,word%d red shoes of w%d w%d,%d,\n", i, n, n%3, n%5, 10+n)
	}
	return b.String(), of
}

const copiesSchema = "name: copies\ncolumns:\n  - {name: id, type: skip}\n  - {name: title, type: text, stop_words: none, idf: true, store: true}\n  - {name: price, type: number, store: true}\n  - {name: none, type: category, store: true}\n"

// TestEqualRows: rows that are equal are found, all of them, by --min 1, however the columns weigh, and of pairs that are as good as others one-to-one takes the
// first row with the first object, each time. A column without values says nothing.
func TestEqualRows(t *testing.T) {
	r := seeded.Rand(t)
	dir := t.TempDir()
	const n = 70
	text, of := copies(r, 8, n)
	data, described := write(t, dir, "copies.csv", text), write(t, dir, "s.yaml", copiesSchema)
	file := build(t, dir, data, copiesSchema)
	more := []string{"--schema", described, "--k", "100", "--candidates", "100", "--min", "1", "--to", "jsonl", "--weight", fmt.Sprint("price=", r.Float64()), "--weight", fmt.Sprint("title=", 0.1+r.Float64())}
	match := append([]string{"match", "--index", "copies=" + file, "--input", data}, more...)
	var want, alone [][2]int
	taken := make(map[int]bool)
	for i := range n {
		for j := range n {
			if of[i] == of[j] {
				if want = append(want, [2]int{i, j}); j > i && !taken[i] && !taken[j] {
					alone = append(alone, [2]int{i, j})
					taken[i], taken[j] = true, true
				}
			}
		}
	}
	var got [][2]int
	for _, l := range lines(t, succeeds(t, match...).out) {
		got = append(got, [2]int{l.Row, l.Found})
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
	got = nil
	for i, l := range lines(t, succeeds(t, append(match, "--one-to-one")...).out) {
		if got = append(got, [2]int{l.Row, l.Found}); l.Row != i || l.Found != i {
			t.Errorf("one-to-one: %+v", l)
		}
	}
	if len(got) != n {
		t.Errorf("one-to-one: %v", got)
	}
	got = nil
	for _, l := range lines(t, succeeds(t, append([]string{"dedupe", data, "--one-to-one"}, more...)...).out) {
		got = append(got, [2]int{l.Row, l.Other})
	}
	if !slices.Equal(got, alone) {
		t.Errorf("dedupe one-to-one: %v, not %v", got, alone)
	}
}

// TestFewRows: inputs of no row and of one, more pairs wanted than there are rows, and rows that say nothing.
func TestFewRows(t *testing.T) {
	dir := t.TempDir()
	spec := write(t, dir, "s.yaml", titlesSchema)
	const head = "id,title,price\n"
	index := "titles=" + build(t, dir, write(t, dir, "titles.csv", head+"k0,red shoes,1\nk0b,red shoes,1\n"), titlesSchema)
	const match, within = "row,key,found,found_key,rank,score\n", "row,key,other,other_key,score\n"
	for _, c := range []struct{ name, rows, pairs, dupes, clusters string }{
		{"one", "a,red shoes,1\n", "0,a,0,k0,1,1.000000\n0,a,1,k0b,2,1.000000\n", "", "0,a,0,a,1\n"},
		{"equal keys", "a,red shoes,1\na,red shoes,1\n", "0,a,0,k0,1,1.000000\n0,a,1,k0b,2,1.000000\n1,a,0,k0,1,1.000000\n1,a,1,k0b,2,1.000000\n", "0,a,1,a,1.000000\n", "0,a,0,a,2\n1,a,0,a,2\n"},
		{"nothing", "a,,\nb,,\n", "", "", "0,a,0,a,1\n1,b,1,b,1\n"},
		{"no row", "", "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := write(t, t.TempDir(), "few.csv", head+c.rows)
			more := []string{"--schema", spec, "--k", "1000", "--min", "0"}
			if o := succeeds(t, append([]string{"match", "--index", index, "--input", data}, more...)...); o.out != match+c.pairs {
				t.Errorf("match: %q\n%s", o.out, o.said)
			}
			if o := succeeds(t, append([]string{"dedupe", data}, more...)...); o.out != within+c.dupes {
				t.Errorf("dedupe: %q\n%s", o.out, o.said)
			}
			if o := succeeds(t, append([]string{"dedupe", data, "--clusters"}, more...)...); o.out != "row,key,cluster,cluster_key,size\n"+c.clusters {
				t.Errorf("clusters: %q\n%s", o.out, o.said)
			}
			gold := write(t, t.TempDir(), "gold.csv", "a,b\na,k0\n")
			args := append([]string{"match", "--index", index, "--input", data, "--gold", gold, "--output", filepath.Join(dir, "o.csv"), "--report", "json"}, more...)
			o := command(t.Context(), "", args...)
			if c.rows == "" {
				if o.err == nil || !strings.Contains(o.err.Error(), "no row of the input has a key that stands there") {
					t.Errorf("gold of no row: %v", o.err)
				}
			} else if o.err != nil || !json.Valid([]byte(o.out)) {
				t.Errorf("gold: %v %s", o.err, o.out)
			}
		})
	}
}
