package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/geniemq/geniemq/service/admission"
	"github.com/geniemq/geniemq/wire"
)

// Fairness says which classes of queries a worker serves, what shares they get, and what a user may have.
type Fairness struct {
	// Classes are the classes beside direct search and the queries of genie.query.<index>: users and bulk, or none. Default both.
	Classes []string
	// Weights are the classes' shares where there is more work than time: direct, query, users and bulk, for all indexes or, as
	// people/bulk, for one. Default 8, 8, 8 and 1.
	Weights map[string]float64
	// Limits are the most queries of a class and index that this worker has decoded and not answered. Beyond, stored ones wait in the stream and direct ones are
	// answered `overloaded`. Default: what keeps the engine busy; of direct search DirectQueue.
	Limits map[string]int
	// BulkSlice is about how long a batch of bulk may take while others ask. Default 2ms.
	BulkSlice time.Duration
	// UserRate is how many queries a user may ask per second in the long run, UserBurst how many at once after a pause. Default: no bound; those of a second.
	UserRate, UserBurst float64
	// UserInFlight is how many queries of a user this worker has at a time. Default: no bound.
	UserInFlight int
	// TrustUserHeader has the header Genie-User name the user where the subject names none. Default false: anybody can write a header.
	TrustUserHeader bool
	// UserReplyAllow are patterns of the subjects to which users' queries may ask their answers to be sent; {index} and {user} in them are the query's.
	// Default _INBOX.> and <prefix>.result.{index}.{user}.>.
	UserReplyAllow []string
}

// NoClasses is the value of Classes for none.
const NoClasses = "none"

func (f *Fairness) ensureDefaults() {
	if len(f.Classes) == 0 {
		f.Classes = []string{string(wire.ClassUsers), string(wire.ClassBulk)}
	}
	if f.BulkSlice == 0 {
		f.BulkSlice = 2 * time.Millisecond
	}
}

func (f *Fairness) flags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&f.Classes, "classes", f.Classes, "classes of stored queries beside genie.query.<index>: users, bulk, or none")
	fs.Var(&numbers[float64]{to: &f.Weights, parse: parseFloat}, "class-weights", "shares of direct, query, users and bulk where there is more work than time, like bulk=2 or people/bulk=2 (default: 8, 8, 8 and 1)")
	fs.Var(&numbers[int]{to: &f.Limits, parse: strconv.Atoi}, "class-limits", "most queries of a class per index that are decoded and not answered, like bulk=2048 or people/bulk=512 (default: what keeps the engine busy)")
	fs.DurationVar(&f.BulkSlice, "bulk-slice", f.BulkSlice, "about how long a batch of bulk queries may take while others ask")
	fs.Float64Var(&f.UserRate, "user-rate", f.UserRate, "most queries per second of a user, in the long run (default: no bound)")
	fs.Float64Var(&f.UserBurst, "user-burst", f.UserBurst, "most queries of a user at once, after a pause (default: those of a second)")
	fs.IntVar(&f.UserInFlight, "user-in-flight", f.UserInFlight, "most queries of a user that the worker has at a time (default: no bound)")
	fs.BoolVar(&f.TrustUserHeader, "trust-user-header", f.TrustUserHeader, "the header Genie-User names the user where the subject names none; for clients that are trusted")
	fs.StringSliceVar(&f.UserReplyAllow, "user-reply-allow", f.UserReplyAllow, "subject `patterns` to which answers to users' queries may go; {index} and {user} stand for the query's (default: _INBOX.> and <prefix>.result.{index}.{user}.>)")
}

func (f *Fairness) faults(fault report) {
	for _, name := range f.Classes {
		if name != NoClasses && name != string(wire.ClassUsers) && name != string(wire.ClassBulk) {
			fault("classes", "%q is none of users, bulk, none", name)
		}
		if name == NoClasses && len(f.Classes) > 1 {
			fault("classes", "none goes with no other")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Weights)) {
		faultOfClass(fault, "class-weights", name)
		if w := f.Weights[name]; !(w > 0 && w <= 1e6) {
			fault("class-weights", "the weight of %s is %v, it must be more than 0 and at most 1000000", name, w)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Limits)) {
		faultOfClass(fault, "class-limits", name)
		if f.Limits[name] < 1 {
			fault("class-limits", "the limit of %s is %d, it must be at least 1", name, f.Limits[name])
		}
	}
	if f.BulkSlice < 0 {
		fault("bulk-slice", "%v must be at least 0", f.BulkSlice)
	}
	for name, value := range map[string]float64{"user-rate": f.UserRate, "user-burst": f.UserBurst, "user-in-flight": float64(f.UserInFlight)} {
		if !(value >= 0 && value <= 1e12) {
			fault(name, "%v must be at least 0", value)
		}
	}
	if f.UserBurst > 0 && f.UserRate == 0 {
		fault("user-burst", "is of no use without user-rate")
	}
	for _, pattern := range f.UserReplyAllow {
		if err := wire.CheckSubjectPattern(expand(pattern, "index", "user")); err != nil {
			fault("user-reply-allow", "%v", err)
		}
	}
}

func faultOfClass(fault report, setting, name string) {
	index, class, ok := strings.Cut(name, "/")
	if !ok {
		class = name
	} else if err := wire.CheckIndexName(index); err != nil {
		fault(setting, "%s", wire.AsError(err).Message)
	}
	if !slices.Contains(wire.Classes(), wire.Class(class)) {
		fault(setting, "%q is no class: direct, query, users or bulk", class)
	}
}

// Stored are the classes of stored queries that are served.
func (f *Fairness) Stored() []wire.Class {
	classes := []wire.Class{wire.ClassQuery}
	for _, class := range []wire.Class{wire.ClassUsers, wire.ClassBulk} {
		if slices.Contains(f.Classes, string(class)) {
			classes = append(classes, class)
		}
	}
	return classes
}

// Serves says whether a class of stored queries is served.
func (f *Fairness) Serves(class wire.Class) bool { return slices.Contains(f.Stored(), class) }

// WeightsOf are the weights of an index.
func (f *Fairness) WeightsOf(index string) admission.Weights {
	weights := admission.DefaultWeights()
	for class, otherwise := range weights {
		weights[class] = ofIndex(f.Weights, index, class, otherwise)
	}
	return weights
}

// LimitsOf are the limits of an index.
func (f *Fairness) LimitsOf(index string) map[wire.Class]int {
	limits := make(map[wire.Class]int)
	for _, class := range wire.Classes() {
		if most := ofIndex(f.Limits, index, class, 0); most > 0 {
			limits[class] = most
		}
	}
	return limits
}

func ofIndex[T any](settings map[string]T, index string, class wire.Class, otherwise T) T {
	if v, ok := settings[index+"/"+string(class)]; ok {
		return v
	}
	if v, ok := settings[string(class)]; ok {
		return v
	}
	return otherwise
}

// Quota is that of users.
func (f *Fairness) Quota() admission.Quota {
	return admission.Quota{Rate: f.UserRate, Burst: f.UserBurst, InFlight: f.UserInFlight}
}

// userInPattern stands for the user in a pattern of UserReplyAllow.
const userInPattern = "{user}"

// expand fills a pattern in. An index's name has no braces; what a user is called is not looked at for more.
func expand(pattern, index, user string) string {
	return strings.ReplaceAll(strings.ReplaceAll(pattern, indexInPattern, index), userInPattern, user)
}

// UserReplies are the patterns of which the reply subject of a user's stored query must match one.
func (c *Config) UserReplies(index, user string) []string {
	if user == "*" || user == ">" { // which a server lets through, and which would stand for others
		return nil
	}
	patterns := c.Fairness.UserReplyAllow
	if len(patterns) == 0 {
		patterns = []string{"_INBOX.>", c.Prefix + ".result." + indexInPattern + "." + userInPattern + ".>"}
	}
	allow := make([]string, len(patterns))
	for i, pattern := range patterns {
		allow[i] = expand(pattern, index, user)
	}
	return allow
}

// DirectUserReplies are the patterns of which the reply subject of a user's direct request must match one: inboxes, as servers write them, and the user's own
// subjects of results.
func (c *Config) DirectUserReplies(index, user string) []string {
	allow := c.UserReplies(index, user)
	switch {
	case len(allow) == 0:
		return nil
	case len(c.Fairness.UserReplyAllow) > 0:
		return append(allow, "_R_.>", "_GR_.*.*._INBOX.>")
	}
	return append(allow, c.DirectReplies()...)
}

// numbers makes a mapping of names to numbers a flag: name=number, with commas between several.
type numbers[T any] struct {
	to      *map[string]T
	parse   func(string) (T, error)
	changed bool
}

func (v *numbers[T]) Set(s string) error {
	set := make(map[string]T)
	for _, part := range splitList(s) {
		name, text, ok := strings.Cut(part, "=")
		number, err := v.parse(strings.TrimSpace(text))
		if !ok || err != nil {
			return fmt.Errorf("%q: write name=number, like bulk=2", part)
		}
		set[strings.TrimSpace(name)] = number
	}
	if !v.changed {
		*v.to, v.changed = nil, true
	}
	if *v.to == nil {
		*v.to = make(map[string]T)
	}
	maps.Copy(*v.to, set)
	return nil
}

func (v *numbers[T]) Type() string { return "name=number" }

func (v *numbers[T]) String() string {
	if v.to == nil {
		return ""
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(*v.to)) {
		parts = append(parts, fmt.Sprintf("%s=%v", name, (*v.to)[name]))
	}
	return strings.Join(parts, ",")
}

func parseFloat(s string) (float64, error) { return strconv.ParseFloat(s, 64) }
