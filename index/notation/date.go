package notation

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The words of patterns of dates, the longer ones first, and what Go's layouts call them. Numbers of one or two digits are both taken where either is
// asked for.
var dateWords = []struct{ word, layout string }{
	{"YYYY", "2006"}, {"YY", "06"},
	{"MMMM", "January"}, {"MMM", "Jan"}, {"MM", "1"}, {"M", "1"},
	{"DD", "2"}, {"D", "2"},
	{"hh", "15"}, {"h", "3"}, {"mm", "04"}, {"ss", "05"},
	{"AM", "PM"}, {"ZZZ", "-07:00"}, {"ZZ", "-0700"},
}

const (
	// UnixSeconds and UnixMilliseconds are patterns of times that are counted since 1970.
	UnixSeconds      = "unix"
	UnixMilliseconds = "unix-ms"
)

// Date returns what reads dates or times of a pattern, such as DD.MM.YYYY or MM/DD/YYYY h:mm AM: YYYY or YY is the year, MM, MMM (Jan) or MMMM (January)
// the month, DD the day, hh the hour of 24, h that of 12 with AM, mm and ss minutes and seconds, ZZ the offset (+0200) or ZZZ (+02:00); letters stand for
// nothing else. A pattern of YYYY and MM alone is of months. unix and unix-ms are times that are counted.
func Date(pattern string) (Reader, error) {
	if pattern == UnixSeconds || pattern == UnixMilliseconds {
		return counted(pattern == UnixMilliseconds), nil
	}
	layout, has, err := layoutOf(pattern)
	if err != nil {
		return nil, fmt.Errorf("parse %q: %w", pattern, err)
	}
	iso := time.DateOnly
	switch {
	case has["15"], has["3"]:
		iso = "2006-01-02T15:04:05.999999Z07:00"
	case !has["2"]:
		iso = "2006-01"
	}
	return func(text string) (string, bool) {
		t, err := time.Parse(layout, strings.Join(strings.Fields(text), " "))
		if utc := t.UTC().Year(); err != nil || min(utc, t.Year()) < 0 || max(utc, t.Year()) > 9999 {
			return "", false
		}
		return t.Format(iso), true
	}, nil
}

// layoutOf turns a pattern into a layout of package time, and says which of its words there are.
func layoutOf(pattern string) (layout string, has map[string]bool, err error) {
	has = map[string]bool{}
	var b strings.Builder
scan:
	for rest := pattern; rest != ""; {
		for _, w := range dateWords {
			if after, found := strings.CutPrefix(rest, w.word); found {
				if has[w.layout] {
					return "", nil, fmt.Errorf("says %s twice", w.word)
				}
				has[w.layout] = true
				b.WriteString(w.layout)
				rest = after
				continue scan
			}
		}
		if c := rest[0]; c >= 'a' && c <= 'z' || c >= 'A' && c <= 'S' || c >= 'U' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' {
			return "", nil, fmt.Errorf("%.1q means nothing in a pattern of dates; write one such as DD.MM.YYYY, MM/DD/YYYY hh:mm or unix", rest)
		}
		b.WriteByte(rest[0])
		rest = rest[1:]
	}
	year, month := has["2006"] || has["06"], has["1"] || has["Jan"] || has["January"]
	switch {
	case !year || !month:
		return "", nil, errors.New("a pattern of dates needs the year (YYYY) and the month (MM, MMM or MMMM), as DD.MM.YYYY does")
	case has["3"] != has["PM"]:
		return "", nil, errors.New("h, the hour of 12, goes with AM; hh is the hour of 24")
	case (has["15"] || has["3"]) && !has["2"], has["04"] && !has["15"] && !has["3"], has["05"] && !has["04"]:
		return "", nil, errors.New("has seconds, minutes or hours without what is larger")
	}
	return b.String(), has, nil
}

// counted reads seconds or milliseconds since 1970, the former with decimals.
func counted(milliseconds bool) Reader {
	unit := float64(time.Second / time.Microsecond)
	if milliseconds {
		unit = float64(time.Millisecond / time.Microsecond)
	}
	const most = 253_402_300_800 // seconds: the year 10000
	return func(text string) (string, bool) {
		v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if micro := v * unit; err == nil && micro > -62_135_596_800*1e6 && micro < most*1e6 {
			return time.UnixMicro(int64(micro)).UTC().Format("2006-01-02T15:04:05.999999Z"), true
		}
		return "", false
	}
}
