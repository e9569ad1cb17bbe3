// Package progress shows on a terminal how far a command is: what share is done, how many rows, how many a second, and how long it will take.
package progress

import (
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Line is one line of a terminal that is written again and again. It is safe for concurrent use.
type Line struct {
	mutex sync.Mutex
	bar   *progressbar.ProgressBar
	what  string
	start time.Time
	told  time.Time
	first int64 // rows when it began
	total int64 // not positive: unknown
	begun int64 // what was done when it began to count
}

// Options say what is shown. The zero value shows shares of what is counted.
type Options struct {
	// Total is how much there is to do; not positive: nobody knows.
	Total int64
	// Bytes: what is counted are bytes.
	Bytes bool
	// First is how many rows were done before.
	First int64
}

// every is how long a line stands at least.
const every = 100 * time.Millisecond

// New begins a line, which goes to out where that is a terminal, and nowhere else.
func New(out io.Writer, terminal bool, what string, o Options) *Line {
	if !terminal {
		out = io.Discard
	}
	if o.Total <= 0 {
		o.Total = -1
	}
	now := time.Now() // of which the first moments have no rate yet
	return &Line{what: what, start: now, told: now, first: o.First, total: o.Total, begun: -1, bar: progressbar.NewOptions64(o.Total,
		progressbar.OptionSetWriter(out),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowBytes(o.Bytes),
		progressbar.OptionSetWidth(12),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetSpinnerChangeInterval(0), // or a goroutine of the library's reads, beside Set, what Set writes
	)}
}

// Set says how much is done, and of how many rows, where these are known.
func (l *Line) Set(done, rows int64) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	now := time.Now()
	if l.begun < 0 {
		l.begun = done // of a run that goes on
	}
	if now.Sub(l.told) < every {
		return
	}
	l.told = now
	_ = l.bar.Set64(done)
	text, took := l.what, now.Sub(l.start)
	if rows > l.first {
		text += ": " + rate(rows, rows-l.first, took)
	}
	l.bar.Describe(text + left(took, done-l.begun, l.total-l.begun)) // which draws the line
}

// Total says how much there is to do.
func (l *Line) Total(total int64) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.total = max(total, 1)
	l.bar.ChangeMax64(l.total)
}

// left is how long it will take, if it goes on as it did; "" where nobody can tell.
func left(took time.Duration, done, total int64) string {
	const soon = 2 * time.Second // before that nothing can be told
	if took < soon || done <= 0 || total < done {
		return ""
	}
	rest := time.Duration(float64(took) * float64(total-done) / float64(done)).Round(time.Second)
	return ", " + rest.String() + " left"
}

// rate is how many rows there are, and how many of them, the new ones, took how long.
func rate(rows, fresh int64, took time.Duration) string {
	return fmt.Sprintf("%s rows, %s rows/s", grouped(rows), grouped(int64(float64(fresh)/max(took.Seconds(), 1e-3))))
}

// grouped writes a number as people read it.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Clear makes room for another line.
func (l *Line) Clear() { _ = l.bar.Clear() }

// Finish takes the line away.
func (l *Line) Finish() { _ = l.bar.Finish() }
