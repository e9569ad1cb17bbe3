package tests

import (
	"encoding/csv"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/unicode/norm"

	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
)

// Entity resolution: one catalogue is indexed as documents, the records of the other are the queries, and the record
// that people found to be the same should come first, or among the first ten. Files in Latin-1 are built by the
// command; queries go through the stream in batch messages; keys are the catalogue's own.
func TestEntityResolution(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                  string
		indexed, asked, gold  string
		column                string // of the text, in both catalogues
		goldIndexed, goldAsks int    // columns of the gold file
		stored                string // another column, for the payload, which is in Latin-1
		hit1, hit10           float64
	}{
		{"dblp_acm", "ACM.csv.gz", "DBLP2.csv.gz", "DBLP-ACM_perfectMapping.csv.gz", "title", 1, 0, "", 0.96, 0.997},
		{"abt_buy", "Abt.csv.gz", "Buy.csv.gz", "abt_buy_perfectMapping.csv", "name", 0, 1, "description", 0.66, 0.935},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := func(name string) string { return data(t, "er_"+c.name, name) }
			schema := "name: er_" + c.name + "\nkind: documents\nkey: id\ncolumns:\n  - {name: " + c.column + ", type: text}\n"
			if c.stored != "" {
				schema += "  - {name: " + c.stored + ", type: payload}\n"
				dir := t.TempDir()
				_, stderr, code := command(t, "build", "--schema", writeFile(t, dir, "s.yaml", []byte(schema)), "--input", file(c.indexed),
					"--output", dir+"/refused.gmq")
				if code != 1 {
					t.Errorf("Latin-1 taken for UTF-8: exit code %d", code)
				}
				mustMatch(t, "Latin-1 taken for UTF-8", string(stderr), `line \d+: .*not valid UTF-8.*--encoding latin1`)
			}
			path, _ := buildCommand(t, schema, "--input", file(c.indexed), "--encoding", "latin1")
			r := start(t, config.Config{Indexes: []config.IndexSource{{Path: path}}}, service.Options{})

			indexed := readCatalogue(t, file(c.indexed), c.column)
			asked := readCatalogue(t, file(c.asked), c.column)
			library := newLibrary(t, path, indexed)
			asker, err := client.New(r.nc, client.Options{Timeout: patience})
			if err != nil {
				t.Fatal(err)
			}
			defer asker.Close()

			ranked := make(map[string][]string) // the keys found for each record
			ties := 0
			for batch := range slices.Chunk(asked, 500) {
				queries := make([]client.Query, len(batch))
				for i, record := range batch {
					queries[i] = client.Query{ID: record.key, K: 10, Text: record.text}
				}
				results, err := asker.RequestBatch(t.Context(), "er_"+c.name, queries)
				if err != nil {
					t.Fatal(err)
				}
				for i, record := range batch {
					want, mcK := topK(library.counts(record.text), 10, 0)
					if n := len(want); n > 1 && want[n-1].count == want[n-2].count {
						ties++
					}
					got := printedResult(&results[i])
					if got.Error != nil || got.ID != record.key || got.MCK != mcK || !got.Exact || len(got.Hits) != len(want) {
						t.Fatalf("%s: %+v, want mc_k %d and %d hits", record.key, got, mcK, len(want))
					}
					for rank, h := range got.Hits {
						if (hit{h.ID, h.Count}) != want[rank] || h.Key != indexed[h.ID].key {
							t.Fatalf("%s %q: hit %d is %+v, want id %d (key %s) with count %d",
								record.key, record.text, rank, h, want[rank].id, indexed[want[rank].id].key, want[rank].count)
						}
						ranked[record.key] = append(ranked[record.key], h.Key)
					}
				}
			}
			if ties == 0 {
				t.Error("no answer has ties at its end")
			}

			first, ten := 0, 0
			pairs := readCSV(t, file(c.gold))[1:]
			for _, pair := range pairs {
				switch rank := slices.Index(ranked[pair[c.goldAsks]], pair[c.goldIndexed]); {
				case rank == 0:
					first++
					fallthrough
				case rank > 0:
					ten++
				}
			}
			hit1, hit10 := float64(first)/float64(len(pairs)), float64(ten)/float64(len(pairs))
			t.Logf("%d pairs: hit@1 %.4f, hit@10 %.4f; %d answers, %d with ties at the end", len(pairs), hit1, hit10, len(asked), ties)
			if hit1 < c.hit1 || hit10 < c.hit10 {
				t.Errorf("hit@1 %.4f and hit@10 %.4f, want at least %v and %v", hit1, hit10, c.hit1, c.hit10)
			}
		})
	}
}

// catalogueRecord is a record of a catalogue; its position in the file is its object id.
type catalogueRecord struct{ key, text string }

func readCatalogue(t testing.TB, path, column string) []catalogueRecord {
	t.Helper()
	rows := readCSV(t, path)
	key, text := slices.Index(rows[0], "id"), slices.Index(rows[0], column)
	var records []catalogueRecord
	for _, row := range rows[1:] {
		records = append(records, catalogueRecord{row[key], row[text]})
	}
	return records
}

// readCSV reads a file in Latin-1.
func readCSV(t testing.TB, path string) [][]string {
	t.Helper()
	text := strings.Join(lines(t, path), "\n")
	reader := csv.NewReader(charmap.ISO8859_1.NewDecoder().Reader(strings.NewReader(text)))
	var rows [][]string
	for {
		row, err := reader.Read()
		if err == io.EOF {
			return rows
		} else if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
}

// library counts common words by itself, with the stop words that the index says it left out.
type library struct {
	stop    map[string]bool
	holders map[string][]int // by word, the documents that have it
	objects int
}

func newLibrary(t testing.TB, path string, records []catalogueRecord) *library {
	t.Helper()
	x, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	l := &library{stop: make(map[string]bool), holders: make(map[string][]int), objects: len(records)}
	for _, word := range x.Schema().StopWords {
		l.stop[word] = true
	}
	if len(l.stop) != 33 || !l.stop["the"] || int(x.Objects()) != len(records) {
		t.Fatalf("%d stop words, %d objects, %d records", len(l.stop), x.Objects(), len(records))
	}
	for id, record := range records {
		for word := range l.words(record.text) {
			l.holders[word] = append(l.holders[word], id)
		}
	}
	return l
}

func (l *library) counts(text string) []int {
	counts := make([]int, l.objects)
	for word := range l.words(text) {
		for _, id := range l.holders[word] {
			counts[id]++
		}
	}
	return counts
}

// words are the different words of a text by the rules of UAX #29, as far as Latin-1 goes: letters and digits hang
// together; a point, a colon or an apostrophe joins letters, a point, a comma, a semicolon or an apostrophe digits.
func (l *library) words(text string) map[string]bool {
	const letters, digits = ".:·'", ".,;'"
	words := make(map[string]bool)
	runes := []rune(text)
	isDigit := func(i int) bool { return i < len(runes) && unicode.IsDigit(runes[i]) }
	isLetter := func(i int) bool { return i < len(runes) && unicode.IsLetter(runes[i]) }
	for i := 0; i < len(runes); {
		end := i
		for wordRune := true; wordRune; {
			switch {
			case isLetter(end) || isDigit(end) || end < len(runes) && runes[end] == '_':
				end++
			case end > i && end < len(runes) && (isLetter(end-1) && strings.ContainsRune(letters, runes[end]) && isLetter(end+1) ||
				isDigit(end-1) && strings.ContainsRune(digits, runes[end]) && isDigit(end+1)):
				end += 2
			default:
				wordRune = false
			}
		}
		if end == i { // alone: a half is a number and a word of its own, a dash is neither
			end++
		}
		word := string(runes[i:end])
		i = end
		if !strings.ContainsFunc(word, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }) {
			continue
		}
		if word = strings.ToLower(norm.NFKC.String(word)); !l.stop[word] {
			words[word] = true
		}
	}
	return words
}
