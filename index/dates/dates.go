// Package dates reads and writes dates and times as numbers: microseconds since 1970 in UTC.
package dates

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Span is the times that a text stands for, from the least to the greatest: a moment, or all of a day, a month or a year.
type Span struct{ Low, High float64 }

// Parse reads a date or a time.
//
// What is written is ISO 8601 in its extended form, a blank being as good as the T:
//
//	2024                        a year
//	2024-05                     a month
//	2024-05-17                  a day
//	2024-05-17T10:30            a time, in UTC
//	2024-05-17T10:30:15.25Z
//	2024-05-17T10:30:15+02:00   also +0200 and +02
//
// A date without a time is all of its day, month or year in a query, and the beginning of it in an object. Times are kept to the microsecond; finer
// digits are cut. A float64 holds microseconds from 1684 to 2255, milliseconds from -310 to 4250 and whole seconds of all years that can be
// written; a time that it does not hold is the nearest that it does, for objects and queries alike. The last microseconds of the year 9999 are the
// greatest below the year 10000, which is no time that can be written, and neither is one that an offset puts outside of the years 0 to 9999 of UTC.
func Parse(text string) (s Span, ok bool) {
	text = strings.TrimSpace(text)
	day, rest := text, ""
	if i := strings.IndexAny(text, "Tt "); i >= 0 {
		day, rest = text[:i], text[i+1:]
	}
	layout, years, months, days := "", 0, 0, 0
	switch len(day) {
	case len("2006"):
		layout, years = "2006", 1
	case len("2006-01"):
		layout, months = "2006-01", 1
	case len("2006-01-02"):
		layout, days = time.DateOnly, 1
	default:
		return Span{}, false
	}
	from, err := time.Parse(layout, day)
	if err != nil {
		return Span{}, false
	}
	if len(day) == len(text) {
		// Midnight is of the next day, and the greatest number below it stands for all times before.
		return Span{microseconds(from), math.Nextafter(microseconds(from.AddDate(years, months, days)), math.Inf(-1))}, true
	}
	if days == 0 {
		return Span{}, false
	}
	clock, ok := parseClock(rest)
	moment := from.Add(clock)
	if year := moment.Year(); !ok || year < 0 || year > 9999 {
		return Span{}, false
	}
	at := min(microseconds(moment), last)
	return Span{at, at}, true
}

// last is the greatest number below the year 10000, around which numbers are 32 microseconds apart: what the last day, month and year end with.
const last = 253_402_300_800e6 - 32

// parseClock reads a time of day, as what has passed since midnight in UTC.
func parseClock(text string) (time.Duration, bool) {
	offset := time.Duration(0)
	if i := strings.IndexAny(text, "Zz+-"); i >= 0 {
		zone := text[i:]
		text = text[:i]
		if zone != "Z" && zone != "z" {
			digits := zone[1:]
			switch {
			case len(zone) == len("+02:00") && zone[3] == ':':
				digits = zone[1:3] + zone[4:]
			case len(zone) == len("+02"):
				digits += "00"
			}
			n, err := strconv.ParseUint(digits, 10, 16)
			if err != nil || len(digits) != 4 || n/100 > 23 || n%100 > 59 {
				return 0, false
			}
			offset = time.Duration(n/100)*time.Hour + time.Duration(n%100)*time.Minute
			if zone[0] == '-' {
				offset = -offset
			}
		}
	}
	whole, fraction, found := strings.Cut(strings.Replace(text, ",", ".", 1), ".")
	layout := "15:04:05"
	if len(whole) == len("15:04") {
		layout = "15:04"
	}
	t, err := time.Parse(layout, whole)
	if err != nil || len(whole) != len(layout) || found && (fraction == "" || len(whole) != len("15:04:05")) {
		return 0, false
	}
	parts := time.Duration(0)
	for i, unit := 0, 100*time.Millisecond; i < len(fraction); i++ {
		if fraction[i] < '0' || fraction[i] > '9' {
			return 0, false
		}
		parts += time.Duration(fraction[i]-'0') * unit
		unit /= 10
	}
	clock := time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute + time.Duration(t.Second())*time.Second
	return clock + parts - offset, true
}

// microseconds is a time as a number; what is finer is cut.
func microseconds(t time.Time) float64 {
	return float64(t.UnixMicro())
}

// Format writes a number as a date, or as a time in UTC where it is no midnight.
func Format(v float64) string {
	t := time.UnixMicro(int64(v)).UTC()
	if t.Truncate(24*time.Hour).Equal(t) && t.Hour() == 0 {
		return t.Format(time.DateOnly)
	}
	return t.Format("2006-01-02T15:04:05.999999Z")
}
