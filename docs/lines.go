//go:build ignore

// Counts lines of code by area, at a commit and now, and tells what is a feature that the commit does not have:
//
//	go run docs/lines.go 34c2172
//
// A line of code has something of the program on it: no comment, no import, no package clause. Tests are not counted, nor what is for
// tests alone, the C headers of others, or what writes assembly. A file is a feature as a whole or not at all, by the list below, so what features took in files
// that were there counts as existing.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
)

// stood is the commit at which what 34c2172 does was done in the new rooms, and no feature had begun but swaps.
const stood = "4730f46"

// features are files, or folders, whose names begin so.
var features = map[string][]string{
	"swaps": {"service/generation/", "service/changes.go"},
	"records, filters, scores": {
		"index/forward/", "index/filter/", "index/fold/", "index/dates/", "index/stopwords/", "index/similarity/", "index/postings/single/",
		"index/column/boolean.go", "index/column/clauses.go", "index/column/date.go", "index/column/set.go", "index/column/shape.go",
		"index/column/str.go", "index/column/text.go", "index/column/asked.go", "index/column/minhash/", "index/postings/presence.go", "index/schema/kept.go", "index/verify/lookup.go", "index/verify/measure",
		"index/verify/ranking.go", "index/verify/known.go", "index/postings/frequency.go", "index/verify/scores.go", "index/explain.go", "index/rescore.go", "index/measure.go", "index/shown/shown.go",
		"gpuexec/passing/", "gpuexec/cpu/filter.go", "gpuexec/cpu/picked.go", "gpuexec/run/divided.go", "gpuexec/cuda/filters/", "gpuexec/cuda/rescoring/",
		"gpuexec/cuda/abi/filter.go", "gpuexec/cuda/abi/terms.go", "gpuexec/cuda/plan/filter.go", "kernels/filter", "kernels/listed.cuh", "kernels/bound_filtered.cu", "kernels/terms.cu",
		"service/translate/explain.go", "wire/refine.go", "wire/other.go", "wire/value/", "client/understood.go",
		"cmd/geniemq/answers/explain.go", "cmd/geniemq/answers/asked.go", "bench/workload/baskets.go", "bench/workload/mixed.go", "bench/workload/scores.go", "internal/varint/",
	},
	"trees and graphs": {"index/tree/", "index/graph/", "index/column/structure/"},
	"vectors by hash functions": {
		"index/lsh/", "index/column/vector/", "index/hashing.go", "index/learn.go", "index/estimate.go", "gpuexec/cuda/abi/hash.go", "gpuexec/cuda/device/hash.go", "kernels/hash.cu",
		"cmd/geniemq/plan.go", "cmd/geniemq/planned/", "cmd/geniemq/inspect/hashes.go", "bench/workload/neighbours.go", "bench/workload/pictures.go",
	},
	"distances": {
		"index/metric/", "index/distance/", "index/nearest/", "index/column/point/", "index/schema/paths.go", "gpuexec/cpu/nearest/", "gpuexec/cuda/nearest/", "gpuexec/cuda/neighbours/", "gpuexec/cuda/turns/", "gpuexec/cuda/texts/", "kernels/near", "kernels/descent", "kernels/text_scan.cu", "kernels/mma.cuh",
		"gpuexec/cuda/device/family.go", "gpuexec/cuda/abi/near.go", "gpuexec/cuda/abi/descent.go", "bench/near/", "bench/sets/", "cmd/geniemq/bench_near.go", "bench/workload/points.go", "service/translate/distance.go", "wire/near.go", "cmd/geniemq/inspect/distance.go", "internal/spread/", "internal/spill/", "internal/processor/", "index/levenshtein/lanes", "index/levenshtein/stubs_amd64.go",
	},
	"columns of answers, compression": {"wire/columns.go", "wire/decode_columns.go", "wire/encode_columns.go", "wire/compress.go", "client/compress.go", "service/pipeline/body.go"},
	"more inputs, read on all cores": {
		"cmd/geniemq/filled/", "cmd/geniemq/init.go", "cmd/geniemq/measured/", "index/load/elements/", "index/load/jsonpath/",
		"index/load/array/", "index/load/columnar/", "index/load/parquet", "index/load/vectors.go", "index/load/parts.go", "index/load/from.go", "index/load/cut/", "internal/inorder/", "cmd/geniemq/inputs", "index/guess/", "index/filling/", "index/notation/", "index/load/source/",
	},
	"matching, deduplication":         {"cmd/geniemq/match/"},
	"queries too large for a message": {"bodystore/", "client/large.go", "service/fetch/", "service/intake/objects.go", "service/large.go", "wire/stored_body.go"},
	"classes, users, quotas":          {"client/class.go", "service/admission/", "service/config/classes.go", "service/intake/fairness.go", "wire/class.go"},
	"indexes and streams changed from outside": {
		"cmd/geniemq/depots/", "cmd/geniemq/operate/", "consumer/streams/settings.go", "service/admin/changes.go", "service/config/streams.go",
		"service/depot/", "service/pushed.go", "service/served/changes.go", "service/served/follow.go",
	},
	"a server of its own that asks who is there":   {"service/config/embedded.go"},
	"dead letters by hand":                         {"cmd/geniemq/dead/", "consumer/letters/", "service/admin/dead.go"},
	"HTTP":                                         {"service/door/"},
	"the protocol as tables":                       {"wire/fields/", "wire/schema/"},
	"looking on":                                   {"cmd/geniemq/figure/", "cmd/geniemq/progress/", "cmd/geniemq/top", "service/admin/events.go", "service/live/", "service/observe/"},
	"answers as CSV and by stored columns":         {"cmd/geniemq/answers/csv.go", "cmd/geniemq/answers/stored.go"},
	"users beside, direct and for hours, measured": {"bench/beside.go", "bench/direct.go", "bench/soak.go", "cmd/geniemq/bench_users.go"},
	"releases":                                     {"internal/release/"},
	"examples":                                     {"examples/"},
}

// uncounted are folders of tests, of what others wrote, and of what is no part of the program.
var uncounted = []string{"tests/", "internal/testkit/", "gpuexec/enginetest/", "gpuexec/flatscan/", "docs/", "build/", "kernels/emulator/", "shared/"}

func featureOf(name string) string {
	for feature, beginnings := range features {
		if slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(name, b) }) {
			return feature
		}
	}
	return ""
}

// areas in the order of the table, by beginnings of names.
var areas = []string{"wire", "client", "batcher", "consumer", "producer", "service", "index", "gpuexec", "kernels", "cmd", "bench", "internal", "examples"}

// A count is lines of code by area, of what is no feature; and by feature.
type count struct{ existing, since, feature map[string]int }

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: go run docs/lines.go COMMIT")
	}
	before := counted(exec.Command("git", "archive", os.Args[1]), true)
	files, err := exec.Command("git", "ls-files", "-z").Output()
	check(err)
	list := exec.Command("tar", "--null", "-cf", "-", "-T", "-")
	list.Stdin = bytes.NewReader(files)
	now := counted(list, false)
	fmt.Printf("| | %s | of now, there when the house stood | of now, written since |\n| --- | --- | --- | --- |\n", os.Args[1])
	sum := [3]int{}
	row := func(name string, n ...int) { fmt.Printf("| %s | %d | %d | %d |\n", name, n[0], n[1], n[2]) }
	for _, area := range areas {
		n := []int{before.existing[area], now.existing[area], now.since[area]}
		if n[0]+n[1]+n[2] == 0 {
			continue
		}
		row(area, n...)
		for i := range sum {
			sum[i] += n[i]
		}
	}
	row("**files that are no feature**", sum[:]...)
	for _, name := range slices.Sorted(maps.Keys(features)) {
		row("new: "+name, 0, 0, now.feature[name])
		sum[2] += now.feature[name]
	}
	row("**all**", sum[:]...)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// counted counts the files of an archive that a command writes: then all of it was there.
func counted(command *exec.Cmd, then bool) count {
	data, err := command.Output()
	check(err)
	c := count{map[string]int{}, map[string]int{}, map[string]int{}}
	for archive := tar.NewReader(bytes.NewReader(data)); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return c
		}
		check(err)
		name := header.Name
		lines := goLines
		switch path.Ext(name) {
		case ".go":
		case ".cu", ".cuh", ".c", ".h":
			lines = cLines
		default:
			continue
		}
		if strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata/") || strings.Contains(name, "/asm/") ||
			slices.ContainsFunc(uncounted, func(folder string) bool { return strings.HasPrefix(name, folder) }) {
			continue
		}
		text, err := io.ReadAll(archive)
		check(err)
		area, _, _ := strings.Cut(name, "/")
		switch feature := featureOf(name); {
		case then:
			c.existing[area] += len(lines(text))
		case feature != "":
			c.feature[feature] += len(lines(text))
		default:
			old := linesOf(name)
			for line := range lines(text) {
				if old[line] {
					c.existing[area]++
				} else {
					c.since[area]++
				}
			}
		}
	}
}

// linesOf are the lines of a file that were there when the house stood, wherever they were.
func linesOf(name string) map[int]bool {
	text, err := exec.Command("git", "blame", "-s", "-w", "-M", "-C", "--porcelain", stood+"..HEAD", "--", name).Output()
	check(err)
	old, boundary := make(map[int]bool), make(map[string]bool)
	commit, line := "", 0
	for row := range strings.Lines(string(text)) {
		if strings.HasPrefix(row, "\t") {
			old[line] = boundary[commit]
			continue
		}
		if strings.TrimSpace(row) == "boundary" {
			boundary[commit] = true
		}
		if fields := strings.Fields(row); len(fields) >= 3 && len(fields[0]) == 40 {
			commit = fields[0]
			line, err = strconv.Atoi(fields[2])
			check(err)
		}
	}
	return old
}

func goLines(text []byte) map[int]bool {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, "", text, parser.ImportsOnly)
	check(err)
	skip := map[int]bool{files.Position(parsed.Package).Line: true}
	for _, d := range parsed.Decls {
		if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.IMPORT {
			for i := files.Position(d.Pos()).Line; i <= files.Position(d.End()).Line; i++ {
				skip[i] = true
			}
		}
	}
	var s scanner.Scanner
	file := files.AddFile("", -1, len(text))
	s.Init(file, text, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return lines
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue
		}
		first := file.Line(pos)
		for i := first; i <= first+strings.Count(literal, "\n"); i++ {
			if !skip[i] {
				lines[i] = true
			}
		}
	}
}

func cLines(text []byte) map[int]bool {
	lines := make(map[int]bool)
	comment, number := false, 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		switch {
		case comment:
			comment = !strings.Contains(line, "*/")
		case line == "" || strings.HasPrefix(line, "//"):
		case strings.HasPrefix(line, "/*"):
			comment = !strings.Contains(line, "*/")
		default:
			lines[number] = true
		}
	}
	return lines
}
