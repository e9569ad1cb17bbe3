//go:build ignore

// Compares what two builds of geniemq cost per query, in time of cores of the serving process alone (user and system, which other
// processes on the machine disturb least):
//
//	go run docs/benchmarks/ab.go -before old/geniemq -after bin/geniemq -rounds 15 w4:32561 w3:5000
//
// Both serve the same index file, each with a broker of its own, on one index. Rounds go in turns, before first and after first
// alternating. A line of JSON per workload and number of queries per message: medians in microseconds, the median of the ratios of
// pairs, and its 95 % interval by bootstrap. With -tables the second is sent messages as tables.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/bench/workload"
	"github.com/geniemq/geniemq/wire"
)

var (
	before  = flag.String("before", "", "binary of the build before")
	after   = flag.String("after", "", "binary of the build after")
	rounds  = flag.Int("rounds", 15, "rounds of both")
	queries = flag.Int("queries", 10_000, "queries per round")
	window  = flag.Int("window", 4096, "queries sent and not answered")
	k       = flag.Int("k", 10, "hits per query")
	data    = flag.String("data", "../shared/data", "folder of the real data")
	tables  = flag.Bool("tables", false, "send the build after tables: -before and -after may be the same then")
	sizes   = flag.String("messages-of", "1,256", "queries per message, one measurement each")
)

func main() {
	flag.Parse()
	for _, arg := range flag.Args() {
		name, number, _ := strings.Cut(arg, ":")
		objects, err := strconv.Atoi(number)
		check(err)
		measure(name, objects)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A server is one build while it serves.
type server struct {
	cmd      *exec.Cmd
	pub, sub *nats.Conn
	js       jetstream.JetStream
	runs     int
}

func measure(name string, objects int) {
	ctx := context.Background()
	w, err := workload.New(ctx, name, workload.Options{Objects: objects, K: *k, Data: *data})
	check(err)
	dir, err := os.MkdirTemp("", "geniemq-ab-")
	check(err)
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "bench.gmq")
	check(os.WriteFile(file, w.File, 0o600))
	both := [2]*server{start(*before, file, filepath.Join(dir, "before")), start(*after, file, filepath.Join(dir, "after"))}
	defer both[0].stop()
	defer both[1].stop()
	for text := range strings.SplitSeq(*sizes, ",") {
		size, err := strconv.Atoi(text)
		check(err)
		bodies := [2][][]byte{bodiesOf(w.Queries, size, false), bodiesOf(w.Queries, size, *tables)}
		for which, s := range both {
			s.round(ctx, bodies[which], size)
		}
		var cpu [2][]float64
		var ratios []float64
		for i := range *rounds {
			var pair [2]float64
			for turn := range 2 {
				which := (i + turn) % 2
				pair[which] = both[which].round(ctx, bodies[which], size)
				cpu[which] = append(cpu[which], pair[which])
			}
			ratios = append(ratios, pair[1]/pair[0])
		}
		low, high := interval(ratios)
		check(json.NewEncoder(os.Stdout).Encode(map[string]any{
			"workload": name, "objects": objects, "k": *k, "queries_per_message": size, "queries": *queries, "before_us": cpu[0], "after_us": cpu[1],
			"before_median_us": median(cpu[0]), "after_median_us": median(cpu[1]), "ratio": median(ratios), "ratio_low": low, "ratio_high": high,
		}))
	}
}

func start(binary, file, streams string) *server {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	address := l.Addr().String()
	check(l.Close())
	s := &server{cmd: exec.Command(binary, "serve", "--engine", "cpu", "--index", "bench="+file, "--nats-listen", address, "--data-dir", streams, "--admin", "off", "--log-level", "error")}
	s.cmd.Stderr = os.Stderr
	check(s.cmd.Start())
	for s.pub == nil {
		time.Sleep(100 * time.Millisecond)
		s.pub, _ = nats.Connect("nats://" + address) // not up yet
	}
	s.sub, err = nats.Connect("nats://" + address)
	check(err)
	s.js, err = jetstream.New(s.pub, jetstream.WithPublishAsyncMaxPending(65536))
	check(err)
	for {
		if _, err := s.pub.Request("genie.search.bench", []byte(`{"items":[]}`), time.Second); err == nil {
			return s
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (s *server) stop() {
	s.pub.Close()
	s.sub.Close()
	check(s.cmd.Process.Signal(os.Interrupt))
	_ = s.cmd.Wait() // what is left in its streams is of no interest
}

// round sends queries through the stream, waits for all answers, and returns the server's time of cores per query, in microseconds.
func (s *server) round(ctx context.Context, bodies [][]byte, size int) float64 {
	s.runs++
	messages := max(1, *queries/size)
	prefix := fmt.Sprintf("genie.result.bench.run%d", s.runs)
	slots := make(chan struct{}, max(1, *window/size))
	done := make(chan struct{})
	answered := 0
	sub, err := s.sub.Subscribe(prefix+".*", func(m *nats.Msg) {
		if answered == 0 && strings.Contains(string(m.Data), "\xa5error") {
			log.Fatalf("an error for an answer: %q", m.Data)
		}
		<-slots
		if answered++; answered == messages {
			close(done)
		}
	})
	check(err)
	check(sub.SetPendingLimits(-1, -1))
	check(s.sub.Flush())
	begin := s.cpu()
	for i := range messages {
		slots <- struct{}{}
		m := nats.NewMsg("genie.query.bench")
		m.Header.Set(wire.HeaderReply, prefix+"."+strconv.Itoa(i))
		m.Header.Set(wire.HeaderMsgID, prefix+"."+strconv.Itoa(i))
		m.Header.Set(wire.HeaderContentType, wire.MessagePack.String())
		m.Data = bodies[i%len(bodies)]
		_, err := s.js.PublishMsgAsync(m)
		check(err)
	}
	<-done
	spent := s.cpu() - begin
	check(sub.Unsubscribe())
	results, err := s.js.Stream(ctx, "GENIE_RESULTS")
	check(err)
	check(results.Purge(ctx))
	return spent * 1e6 / float64(messages*size)
}

// cpu is the time of cores that the server has had, in seconds.
func (s *server) cpu() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	check(err)
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	user, err := strconv.Atoi(fields[11])
	check(err)
	system, err := strconv.Atoi(fields[12])
	check(err)
	return float64(user+system) / 100
}

func bodiesOf(queries []wire.Query, size int, asTables bool) (bodies [][]byte) {
	for i := range max(1, len(queries)/size) {
		if size == 1 {
			bodies = append(bodies, wire.AppendQuery(nil, wire.MessagePack, &queries[i]))
			continue
		}
		batch := make([]wire.Query, size)
		for j := range batch {
			batch[j] = queries[(i*size+j)%len(queries)]
		}
		if table, ok := wire.AppendTable(nil, wire.MessagePack, batch); asTables && ok {
			bodies = append(bodies, table)
			continue
		}
		bodies = append(bodies, wire.AppendQueries(nil, wire.MessagePack, batch))
	}
	return bodies
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// interval is where 95 % of the medians of samples drawn with replacement lie.
func interval(x []float64) (low, high float64) {
	rng := rand.New(rand.NewPCG(1, 1))
	medians := make([]float64, 10_000)
	for i := range medians {
		sample := make([]float64, len(x))
		for j := range sample {
			sample[j] = x[rng.IntN(len(x))]
		}
		medians[i] = median(sample)
	}
	slices.SortFunc(medians, cmp.Compare)
	return medians[len(medians)/40], medians[len(medians)-1-len(medians)/40]
}
