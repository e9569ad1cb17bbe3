package tests

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
)

// The sample files of GENIE and the answers that are known of them, asked through the service as JSON. Where GENIE's
// own tests assert 16, their 4-bit counters have wrapped; 17 and 18 are right.
func TestGenieStatic(t *testing.T) {
	t.Parallel()
	sift := func(name string, dimensions int) string {
		columns := ""
		for i := range dimensions {
			columns += fmt.Sprintf("  - {name: d%d, type: number, edges: exact}\n", i)
		}
		// Lines end with a comma.
		return "name: " + name + "\nkind: rows\nheader: false\ncolumns:\n" + columns + "  - {name: end, type: skip}\n"
	}
	bag := func(name string) string {
		return "name: " + name + "\nkind: rows\ncolumns: [{name: d0, type: number, edges: exact, split: ','}]\n"
	}
	samples := []struct {
		name, file, schema, format string
		bag                        bool
		objects                    int
	}{
		{"sift_20", "sift_20.csv", sift("sift_20", 5), "csv", false, 20},
		{"sift_1k", "sift_1k.csv.gz", sift("sift_1k", 128), "csv", false, 1000},
		{"tweets_20", "tweets_20.csv", bag("tweets_20"), "text", true, 20},
		{"tweets_4k", "tweets_4k.csv.gz", bag("tweets_4k"), "text", true, 4096},
	}
	var sources []config.IndexSource
	rows := make(map[string][][]int)
	for _, s := range samples {
		path, said := buildCommand(t, s.schema, "--input", data(t, "genie_static", s.file), "--format", s.format)
		mustMatch(t, s.name, said, fmt.Sprintf(`: %d objects, `, s.objects))
		sources = append(sources, config.IndexSource{Path: path})
		for _, line := range lines(t, data(t, "genie_static", s.file)) {
			var row []int
			for _, field := range strings.Split(strings.TrimRight(strings.TrimSpace(line), ","), ",") {
				v, err := strconv.Atoi(field)
				if err != nil {
					t.Fatal(err)
				}
				row = append(row, v)
			}
			rows[s.name] = append(rows[s.name], row)
		}
	}
	r := start(t, config.Config{Indexes: sources}, service.Options{})

	for _, c := range []struct {
		name        string
		row, radius int
		known       []hit // the first hits
		next        int   // the count of the one after them, if that is known too
	}{
		{"sift_20", 0, 0, []hit{{0, 5}, {4, 2}}, 0},
		{"sift_20", 1, 0, []hit{{1, 5}}, 0},
		{"sift_20", 2, 0, []hit{{2, 5}}, 0},
		{"sift_20", 0, 1, []hit{{0, 5}, {4, 2}, {11, 2}}, 0},
		{"sift_1k", 0, 0, []hit{{0, 128}, {4, 35}, {11, 24}, {30, 23}, {506, 21}}, 0},
		{"sift_1k", 1, 0, []hit{{1, 128}, {5, 30}, {294, 18}, {348, 18}, {210, 17}}, 0},
		{"sift_1k", 2, 0, []hit{{2, 128}, {28, 15}, {505, 15}, {590, 15}}, 0},
		{"tweets_20", 0, 0, []hit{{0, 17}, {11, 17}}, 0},
		{"tweets_20", 1, 0, []hit{{1, 14}}, 0},
		{"tweets_20", 2, 0, []hit{{2, 18}}, 0},
		{"tweets_4k", 0, 0, []hit{{0, 17}, {11, 17}, {21, 17}, {31, 17}, {41, 17}}, 0},
		{"tweets_4k", 1, 0, []hit{{1, 14}}, 5},
		{"tweets_4k", 2, 0, []hit{{2, 18}}, 7},
	} {
		t.Run(fmt.Sprintf("%s, row %d, radius %d", c.name, c.row, c.radius), func(t *testing.T) {
			objects := rows[c.name]
			isBag := strings.HasPrefix(c.name, "tweets")
			var items []map[string]any
			counts := make([]int, len(objects))
			for i, v := range objects[c.row] {
				item := map[string]any{"attr": fmt.Sprintf("d%d", i), "min": v - c.radius, "max": v + c.radius}
				if isBag {
					item["attr"] = "d0"
				}
				items = append(items, item)
				for id, object := range objects {
					for j, other := range object {
						if (isBag || i == j) && v-c.radius <= other && other <= v+c.radius {
							counts[id]++
						}
					}
				}
			}
			body, err := json.Marshal(map[string]any{"k": 10, "items": items})
			if err != nil {
				t.Fatal(err)
			}
			reply := "genie.result." + c.name + fmt.Sprintf(".%d.%d", c.row, c.radius)
			r.publish(c.name, string(body), "Genie-Reply", reply)
			res := result(t, r.stored(reply, 1).Data)
			if res.Err != nil {
				t.Fatal(res.Err)
			}
			var got []hit
			for _, h := range res.Hits {
				got = append(got, hit{int(h.ID), int(h.Count)})
			}
			want, mcK := topK(counts, 10, 0)
			if !slices.Equal(got, want) || int(res.MCK) != mcK || !res.Exact {
				t.Errorf("got %v, mc_k %d, exact %v; brute force %v, mc_k %d", got, res.MCK, res.Exact, want, mcK)
			}
			if len(got) <= len(c.known) || !slices.Equal(got[:len(c.known)], c.known) {
				t.Fatalf("got %v, known is %v", got, c.known)
			}
			if c.next > 0 && got[len(c.known)].count != c.next {
				t.Errorf("after the known hits comes %v, known is the count %d", got[len(c.known)], c.next)
			}
		})
	}
}
