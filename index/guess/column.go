package guess

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/geniemq/geniemq/index/dates"
	"github.com/geniemq/geniemq/index/notation"
	"github.com/geniemq/geniemq/index/schema"
)

const (
	// most is the share of a column's values that have to be of a type: the others may be mistakes.
	most = 0.95
	// fewRecords is how many values a column has to have for shares of them to mean something.
	fewRecords = 20
	// fewValues is how many distinct numbers get a bucket each.
	fewValues = 256
	// sampleValues bounds the values of a column that are kept.
	sampleValues = 20_000
)

// values are those of a column in the sample.
type values struct {
	n       int      // cells
	texts   []string // cells with one value, which is not blank
	lists   [][]string
	vectors []int // by cell that is one: how many numbers
	nested  int   // cells that are JSON objects, or arrays of more than scalars
	empty   int
}

// add adds a cell, which was read as a payload.
func (v *values) add(cell *schema.Cell) {
	v.n++
	if v.n > sampleValues {
		return
	}
	switch {
	case len(cell.JSON) > 0:
		v.addJSON(cell.JSON)
	case len(cell.Values) > 1:
		v.lists = append(v.lists, slices.Clone(cell.Values))
	case len(cell.Values) == 1 && cell.Values[0] != "":
		v.texts = append(v.texts, cell.Values[0])
	default:
		v.empty++
	}
}

func (v *values) addJSON(raw []byte) {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		v.nested++
		return
	}
	switch x := value.(type) {
	case nil:
		v.empty++
	case string:
		if x = strings.TrimSpace(x); x == "" {
			v.empty++
			return
		}
		v.texts = append(v.texts, x)
	case float64, bool:
		v.texts = append(v.texts, string(raw))
	case []any:
		list, numbers := []string{}, 0
		for _, element := range x {
			switch e := element.(type) {
			case string:
				list = append(list, e)
			case float64:
				list = append(list, schema.NumberText(e))
				numbers++
			case bool:
				list = append(list, strconv.FormatBool(e))
			default:
				v.nested++
				return
			}
		}
		if numbers == len(x) && numbers > 2 {
			v.vectors = append(v.vectors, numbers)
		}
		v.lists = append(v.lists, list)
	default:
		v.nested++
	}
}

// markers are texts by which tables say that there is no value. Those that are words or signs elsewhere too count only in columns of numbers and dates.
var markers = []struct {
	text  string
	plain bool // means nothing else anywhere
}{
	{"?", true}, {`\N`, true}, {"NULL", true}, {"null", true}, {"N/A", true}, {"n/a", true}, {"#N/A", true}, {"NaN", true}, {"nan", true},
	{"NA", false}, {"-", false}, {"--", false}, {".", false}, {"None", false}, {"none", false}, {"unknown", false}, {"*", false},
}

// findMissing finds which texts mean that there is no value.
func (g *Guess) findMissing() {
	for _, m := range markers {
		in := ""
		for i := range g.Columns {
			v := g.Columns[i].values
			n := 0
			for _, text := range v.texts {
				if text == m.text {
					n++
				}
			}
			if n == 0 || !m.plain && !numeric(v.texts, m.text) {
				continue
			}
			in = g.Columns[i].Name
			break
		}
		if in != "" {
			g.Missing = append(g.Missing, m.text)
			g.note("%q is taken for no value, as in column %q", m.text, in)
		}
	}
}

// numeric says that texts are numbers or dates but for a marker.
func numeric(texts []string, but string) bool {
	typed, n := 0, 0
	for _, text := range texts {
		if text == but || isMarker(text) {
			continue
		}
		n++
		if looksTyped(text) {
			typed++
		}
	}
	return n > 0 && nearlyAll(float64(typed)/float64(n), n)
}

func isMarker(text string) bool {
	for _, m := range markers {
		if m.text == text {
			return true
		}
	}
	return false
}

// looksTyped says that a text is a number or a date, in some notation.
func looksTyped(text string) bool {
	text = strings.TrimSpace(text)
	if _, err := strconv.ParseFloat(text, 64); err == nil && !strings.ContainsAny(text, "nNxXpP_") {
		return true
	}
	for _, read := range readers {
		if _, ok := read(text); ok {
			return true
		}
	}
	_, ok := dates.Parse(text)
	return ok
}

// patterns are dates as people write them, those first that are taken where two fit.
var patterns = []string{
	"YYYY/MM/DD", "DD.MM.YYYY", "DD/MM/YYYY", "MM/DD/YYYY", "DD-MM-YYYY", "DD.MM.YY", "MM/DD/YY", "DD/MM/YY",
	"DD.MM.YYYY hh:mm", "DD.MM.YYYY hh:mm:ss", "DD/MM/YYYY hh:mm", "DD/MM/YYYY hh:mm:ss", "MM/DD/YYYY hh:mm", "MM/DD/YYYY hh:mm:ss",
	"MM/DD/YYYY h:mm AM", "MM/DD/YYYY h:mm:ss AM", "DD MMM YYYY", "DD-MMM-YYYY", "DD-MMM-YY", "MMM DD, YYYY", "MMMM DD, YYYY", "DD MMMM YYYY", "YYYY/MM/DD hh:mm:ss",
}

// readers read what is not read as it stands: all notations of numbers, and of dates.
var readers = func() (all []notation.Reader) {
	for _, name := range notation.Numbers() {
		read, _ := notation.Number(name)
		all = append(all, read)
	}
	for _, pattern := range patterns {
		read, _ := notation.Date(pattern)
		all = append(all, read)
	}
	return all
}()

// guess finds the type of a column by its values.
func (c *Column) guess(missing []string) {
	v := c.values
	v.texts = slices.DeleteFunc(v.texts, func(text string) bool {
		if slices.Contains(missing, text) {
			v.empty++
			return true
		}
		return false
	})
	filled := len(v.texts) + len(v.lists) + v.nested
	switch {
	case filled == 0:
		c.Type, c.Why = schema.SkipColumn, "no value in the sample"
		return
	case !nearlyAll(float64(filled-v.nested)/float64(filled), filled):
		c.Type, c.Why = schema.PayloadColumn, "objects, which are kept as they are"
		if v.nested < filled {
			c.Unsure = "some are none; kept as they are, they are not searched either"
		}
		return
	case v.nested > 0:
		defer func() { c.Unsure = strings.TrimPrefix(c.Unsure+"; some are objects, which count as no value", "; ") }()
	}
	if len(v.lists) > 0 {
		c.guessList()
		return
	}
	for _, try := range []func() bool{c.guessBool, c.guessNumber, c.guessDate, c.guessPoint, c.guessVector, c.guessArrays, c.guessSet} {
		if try() {
			return
		}
	}
	c.guessWords()
}

// guessList tells vectors from sets.
func (c *Column) guessList() {
	v := c.values
	if n := len(v.vectors); n > 0 && n == len(v.lists) && slices.Min(v.vectors) == slices.Max(v.vectors) {
		c.Type, c.Why = schema.VectorColumn, fmt.Sprintf("lists of %d numbers", v.vectors[0])
		return
	}
	c.Type, c.Why = schema.SetColumn, "lists"
	c.Store = true
}

// boolWords are those that columns of true and false are made of.
var boolWords = [][2]string{{"true", "false"}, {"yes", "no"}, {"t", "f"}, {"y", "n"}}

// boolWord says that a text is true or false and hardly anything else.
func boolWord(text string) bool {
	text = strings.ToLower(strings.TrimSpace(text))
	return slices.ContainsFunc(boolWords[:2], func(pair [2]string) bool { return text == pair[0] || text == pair[1] })
}

func (c *Column) guessBool() bool {
	distinct := make(map[string]bool)
	for _, text := range c.values.texts {
		if distinct[strings.ToLower(text)] = true; len(distinct) > 2 {
			return false
		}
	}
	for _, pair := range boolWords {
		rest := len(distinct)
		for _, word := range pair {
			if distinct[word] {
				rest--
			}
		}
		if rest == 0 {
			c.Type, c.Why = schema.BoolColumn, pair[0]+" or "+pair[1]
			return true
		}
	}
	return false
}

// share is the share of texts that a reader takes, and the first that it does not.
func share(texts []string, read func(string) bool) (share float64, other string) {
	n := 0
	for _, text := range texts {
		if read(text) {
			n++
		} else if other == "" {
			other = text
		}
	}
	return float64(n) / float64(len(texts)), other
}

// nearlyAll says that a share of n values is enough for a type. Of a few, one may be a mistake beside three: then one cell is lost, and reported when the index is
// built; as texts all others would be out of order, and nobody would notice.
func nearlyAll(share float64, n int) bool {
	if n < fewRecords {
		return share == 1 || n > 3 && share*float64(n) > float64(n)-1.5
	}
	return share >= most
}

func plainNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil && !strings.ContainsAny(text, "nNxXpP_")
}

// notationsTried are all, those first that are taken where two fit: with groups, since the sample may have no large number.
var notationsTried = func() []string {
	names := notation.Numbers()
	slices.SortStableFunc(names, func(a, b string) int { return len(b) - len(a) })
	return names
}()

// guessNumber tells numbers, as they are written, from codes that are made of digits.
func (c *Column) guessNumber() bool {
	texts := c.values.texts
	best, other := share(texts, plainNumber)
	pattern, ambiguous := "", ""
	if best < 1 {
		for _, name := range notationsTried {
			read, _ := notation.Number(name)
			s, o := share(texts, func(text string) bool { _, ok := read(text); return ok })
			switch {
			case s > best+1e-9:
				best, other, pattern, ambiguous = s, o, name, ""
			case s == best && pattern != "" && reads(texts, pattern, name):
				ambiguous = name
			}
		}
	}
	if !nearlyAll(best, len(texts)) || other != "" && keyNames.MatchString(c.Name) {
		return false
	}
	if pattern == "" && leadingZeros(texts) {
		c.Type, c.Store, c.Why = schema.CategoryColumn, true, fmt.Sprintf("digits with zeros before them, such as %s: codes", example(texts, func(t string) bool { return leadingZero(t) }))
		return true
	}
	distinct, integers := count(texts)
	if pattern == "" && integers && keyNames.MatchString(c.Name) {
		c.Type, c.Store, c.Why = schema.CategoryColumn, true, fmt.Sprintf("numbers that name something, such as %s", example(texts, func(string) bool { return true }))
		return true
	}
	c.Type, c.Parse, c.Store = schema.NumberColumn, pattern, true
	c.Why = "numbers, such as " + strconv.Quote(example(texts, func(t string) bool { return t != other }))
	switch {
	case integers && distinct <= fewValues:
		c.Edges = schema.Exact
		c.Why += fmt.Sprintf(", %d distinct", distinct)
	default:
		c.Edges = schema.EquiDepth
	}
	c.exception(other)
	if ambiguous != "" {
		c.Unsure = strings.TrimPrefix(c.Unsure+"; "+fmt.Sprintf("it may be written as %s", ambiguous), "; ")
	}
	return true
}

// exception says what becomes of a value that is not of the column's type; "" is none.
func (c *Column) exception(other string) {
	switch {
	case other == "":
	case len(c.values.texts) < fewRecords:
		c.Unsure = fmt.Sprintf("%.60q is none, and counts as no value; if it means something, make the column a category", other)
	default:
		c.Unsure = fmt.Sprintf("%.60q is none, and counts as no value", other)
	}
}

// reads says whether two notations read some text as two numbers.
func reads(texts []string, a, b string) bool {
	x, _ := notation.Number(a)
	y, _ := notation.Number(b)
	return slices.ContainsFunc(texts, func(text string) bool {
		p, _ := x(text)
		q, _ := y(text)
		return p != q
	})
}

func leadingZero(text string) bool {
	return len(text) > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9'
}

// leadingZeros says that some whole numbers begin with zeros.
func leadingZeros(texts []string) bool { return slices.ContainsFunc(texts, leadingZero) }

// count counts distinct texts, and says whether all are whole numbers.
func count(texts []string) (distinct int, integers bool) {
	seen := make(map[string]bool)
	integers = true
	for _, text := range texts {
		seen[text] = true
		if strings.ContainsAny(text, ".eE") {
			integers = false
		}
	}
	return len(seen), integers
}

func example(texts []string, of func(string) bool) string {
	if i := slices.IndexFunc(texts, of); i >= 0 {
		return shorten(texts[i])
	}
	return ""
}

// shorten cuts a text for a comment.
func shorten(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	const long = 40
	if r := []rune(text); len(r) > long {
		return string(r[:long-1]) + "…"
	}
	return text
}

// guessDate finds dates as ISO 8601 has them, or in a pattern.
func (c *Column) guessDate() bool {
	texts := c.values.texts
	best, other := share(texts, func(text string) bool { _, ok := dates.Parse(text); return ok })
	pattern, also := "", ""
	if !nearlyAll(best, len(texts)) {
		for _, p := range patterns {
			read, _ := notation.Date(p)
			s, o := share(texts, func(text string) bool { _, ok := read(text); return ok })
			switch {
			case s > best+1e-9:
				best, other, pattern, also = s, o, p, ""
			case s == best && nearlyAll(s, len(texts)):
				also = p
			}
		}
	}
	if !nearlyAll(best, len(texts)) {
		return false
	}
	c.Type, c.Parse, c.Store = schema.DateColumn, pattern, true
	c.Why = "dates, such as " + strconv.Quote(example(texts, func(t string) bool { return t != other }))
	c.exception(other)
	if also != "" {
		c.Unsure = strings.TrimPrefix(c.Unsure+"; "+fmt.Sprintf("all values fit %s as well, which means other days", also), "; ")
	}
	return true
}

var (
	// places are names of columns that hold places, latitudeFirst those that say how, and longitudeFirst those that no point is read from.
	places         = regexp.MustCompile(`(?i)point|place|coord|location|position|geo|gps|where`)
	latitudeFirst  = regexp.MustCompile(`(?i)lat.*(lon|lng)`)
	longitudeFirst = regexp.MustCompile(`(?i)(lon|lng).*lat`)
	// fine are numbers with as many digits behind the point as it takes to tell places of a town.
	fine = regexp.MustCompile(`^-?\d+\.\d{3,}$`)
)

// guessPoint finds cells of a latitude and a longitude, in degrees and parts of one.
func (c *Column) guessPoint() bool {
	if longitudeFirst.MatchString(c.Name) {
		return false
	}
	named, parts := places.MatchString(c.Name) || latitudeFirst.MatchString(c.Name), false
	points, other := share(c.values.texts, func(text string) bool {
		fields := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == ',' })
		if len(fields) != 2 || !plainNumber(fields[0]) || !plainNumber(fields[1]) || !named && !(fine.MatchString(fields[0]) && fine.MatchString(fields[1])) {
			return false
		}
		parts = parts || strings.Contains(text, ".")
		latitude, _ := strconv.ParseFloat(fields[0], 64)
		longitude, _ := strconv.ParseFloat(fields[1], 64)
		return math.Abs(latitude) <= 90 && math.Abs(longitude) <= 180
	})
	if !nearlyAll(points, len(c.values.texts)) || !parts {
		return false
	}
	c.Type, c.Store = schema.PointColumn, true
	c.Why = fmt.Sprintf("latitude and longitude, such as %q: found by distance", example(c.values.texts, func(t string) bool { return t != other }))
	c.exception(other)
	doubt := ""
	switch {
	case !named:
		doubt = "two numbers may mean something else"
	case !latitudeFirst.MatchString(c.Name):
		doubt = "the longitude may come first, which no point is read from"
	}
	c.Unsure = strings.Trim(c.Unsure+"; "+doubt, "; ")
	return true
}

// guessVector finds cells of many numbers, as many in each.
func (c *Column) guessVector() bool {
	width, rising := 0, true
	for _, text := range c.values.texts {
		fields := strings.FieldsFunc(strings.Trim(text, "[]()"), func(r rune) bool { return unicode.IsSpace(r) || r == ',' || r == ';' })
		if len(fields) < 3 || width != 0 && len(fields) != width {
			return false
		}
		width = len(fields)
		if slices.ContainsFunc(fields, func(f string) bool { return !plainNumber(f) }) {
			return false
		}
		rising = rising && slices.IsSortedFunc(fields, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
	}
	if rising {
		return false // the elements of a set, in their order
	}
	c.Type, c.Why = schema.VectorColumn, fmt.Sprintf("%d numbers in each cell", width)
	if width < 8 {
		c.Unsure = "it may be a set of numbers"
	}
	return true
}

// guessArrays finds cells that are JSON arrays of texts and numbers, which columns of sets read as lists. Cells of one element may stand by themselves.
func (c *Column) guessArrays() bool {
	texts, arrays := c.values.texts, 0
	for _, text := range texts {
		var list []any
		if !strings.HasPrefix(text, "[") || json.Unmarshal([]byte(text), &list) != nil {
			continue
		}
		if slices.ContainsFunc(list, func(e any) bool {
			switch e.(type) {
			case map[string]any, []any:
				return true
			}
			return false
		}) {
			return false
		}
		arrays++
	}
	if !nearlyAll(float64(arrays)/float64(len(texts)), len(texts)) {
		return false
	}
	c.Type, c.Store = schema.SetColumn, true
	c.Why = fmt.Sprintf("JSON arrays, such as %q", example(texts, func(t string) bool { return strings.HasPrefix(t, "[") }))
	return true
}

// guessSet finds cells that are lists: short parts that come again and again.
func (c *Column) guessSet() bool {
	texts := c.values.texts
	for _, separator := range []string{"|", ";", ",", " "} {
		if separator == " " && !allNumbers(texts) {
			continue
		}
		split, parts, words, numbers := 0, 0, 0, 0
		distinct := make(map[string]bool)
		for _, text := range texts {
			if strings.Contains(text, separator) {
				split++
			}
			for part := range strings.SplitSeq(text, separator) {
				part = strings.TrimSpace(part)
				distinct[part] = true
				parts++
				words += len(strings.Fields(part))
				if plainNumber(part) {
					numbers++
				}
			}
		}
		often := float64(split) >= 0.3*float64(len(texts))
		// Parts of a list come again in other lists, and are a few words long; parts of a sentence are not. Lists of numbers are nothing else.
		if often && (len(distinct)*2 <= parts || numbers == parts) && float64(words) <= 2.5*float64(parts) && len(texts) >= 10 {
			c.Type, c.Split, c.Store = schema.SetColumn, separator, true
			c.Why = fmt.Sprintf("lists, such as %q", example(texts, func(t string) bool { return strings.Contains(t, separator) }))
			if separator == "," {
				c.Unsure = "commas stand in texts too: then it is a category or a text"
			}
			return true
		}
	}
	return false
}

func allNumbers(texts []string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool {
		return slices.ContainsFunc(strings.Fields(text), func(f string) bool { return !plainNumber(f) })
	})
}
