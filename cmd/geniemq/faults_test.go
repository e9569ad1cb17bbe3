package main

import (
	"net"
	"strings"
	"testing"
)

// What goes wrong is said once: no word, and no file, twice where once says it, and what to do where that is not plain.
func TestFaultsInWords(t *testing.T) {
	dir := t.TempDir()
	data := write(t, dir, "d.csv", "a,b\n1,x\n2,y\n3,z\n")
	write(t, dir, "empty.csv", "")
	write(t, dir, "short.parquet", "PAR1")
	write(t, dir, "short.csv.gz", "\x1f\x8b")
	write(t, dir, "s.yaml", "name: s\ncolumns:\n  - {name: a, type: number}\n")
	write(t, dir, "open.yaml", "name: [\n")
	write(t, dir, "other.yaml", "name: s\ncolumns:\n  - {name: nope, type: number}\n")
	write(t, dir, "none.gmq", "hello")
	built := dir + "/s.gmq"
	if got := command(t, "", nil, "build", "--schema", dir+"/s.yaml", "--output", built, data); got.code != exitDone {
		t.Fatal(got.err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct{ args, says string }{
		{"init", "accepts 1 arg(s), received 0: the command is: geniemq init FILE [flags]"},
		{"init DIR/none.csv", "open input DIR/none.csv: no such file or directory"},
		{"init DIR/none.parquet", "open input DIR/none.parquet: no such file or directory"},
		{"init DIR", "open input DIR: is a directory, not a file"},
		{"init DIR/empty.csv", "DIR/empty.csv: has no records from which a schema could be guessed"},
		{"init DIR/short.csv.gz", "DIR/short.csv.gz: read gzip header: unexpected EOF"},
		{"init DIR/short.parquet", "DIR/short.parquet: is not a Parquet file or damaged: "},
		{"init DIR/d.csv --names a", `DIR/d.csv: most records have 2 fields, as "a | b" has, but names were given for 1`},
		{"init DIR/d.csv --skip-lines x", `--skip-lines "x": must be a whole number, such as 10`},
		{"build DIR/none.csv", "open input DIR/none.csv: no such file or directory"},
		{"build --schema DIR/s.yaml --output DIR/x.gmq DIR/none.csv", "--input DIR/none.csv: no such file or directory"},
		{"build --schema DIR/s.yaml --output DIR/x.gmq --format csv DIR", "open input DIR: is a directory, not a file"},
		{"build --schema DIR/s.yaml --output DIR/x.gmq DIR/empty.csv", "DIR/empty.csv: is empty, but the schema expects a header line"},
		{"build --schema DIR/s.yaml --output DIR/x.gmq DIR/short.parquet", "DIR/short.parquet: is not a Parquet file or damaged: "},
		{"build --schema DIR/none.yaml DIR/d.csv", "read schema DIR/none.yaml: no such file or directory"},
		{"build --schema DIR DIR/d.csv", "read schema DIR: is a directory"},
		{"build --schema DIR/open.yaml DIR/d.csv", "schema DIR/open.yaml:\n  not valid YAML: line 1: did not find expected node content"},
		{"build --schema DIR/other.yaml --output DIR/x.gmq DIR/d.csv", `DIR/d.csv: line 1: column "nope" is not in the header: the file has a, b`},
		{"build --schema DIR/s.yaml --output DIR/none/x.gmq DIR/d.csv", "--output DIR/none/x.gmq: cannot write to the folder DIR/none: no such file or directory"},
		{"build --schema DIR/s.yaml --output DIR DIR/d.csv", "--output DIR: is a directory, not a file"},
		{"inspect DIR/missing.gmq", "open index DIR/missing.gmq: no such file or directory"},
		{"inspect DIR/none.gmq", "open index DIR/none.gmq: not a geniemq index: it does not begin with the magic bytes"},
		{"dedupe DIR/none.csv", "open input DIR/none.csv: no such file or directory"},
		{"dedupe DIR/d.csv --gold DIR/none.csv", "--gold: open DIR/none.csv: no such file or directory"},
		{"match --index s=DIR/s.gmq --input DIR/none.csv", "open input DIR/none.csv: no such file or directory"},
		{"top --admin ADDR:1 --once", "asking the worker at ADDR:1: connect: connection refused; is geniemq serve running there"},
		{"swap s DIR/s.gmq --admin ADDR:1", "index s: asking the worker at ADDR:1: connect: connection refused; is geniemq serve running there"},
		{"query s x --timeout long", `--timeout "long": must be a duration, such as 500ms, 30s or 2h`},
		{"serve --index DIR/s.gmq --admin off --nats-listen TAKEN --data-dir DIR/streams", "address already in use; choose another address with --nats-listen"},
	} {
		replace := strings.NewReplacer("DIR", dir, "ADDR", "127.0.0.1", "TAKEN", taken.Addr().String())
		got := command(t, "", nil, strings.Fields(replace.Replace(c.args))...)
		says := replace.Replace(c.says)
		if !strings.HasPrefix(says, "address") {
			says = "geniemq: " + says
		}
		if got.code == exitDone || !strings.Contains(got.err, says) {
			t.Errorf("geniemq %s: exit code %d, want\n%s\nit said:\n%s", c.args, got.code, says, got.err)
		}
	}
}
