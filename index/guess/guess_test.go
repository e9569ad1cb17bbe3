package guess

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/internal/testkit/real"
)

// described guesses, and checks that what is proposed is a schema.
func described(t *testing.T, path string, opts Options) (g *Guess, text string) {
	t.Helper()
	g, err := File(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	proposed, err := g.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := index.Builtin().ParseSchema(proposed); err != nil {
		t.Fatalf("%s:\n%v\n%s", path, err, proposed)
	}
	return g, string(proposed)
}

// summary is the columns and their types, the key, and how the file is written.
func summary(g *Guess) string {
	var b strings.Builder
	if g.Kind != "" {
		fmt.Fprintf(&b, "kind=%s ", g.Kind)
	}
	if g.Key != "" {
		fmt.Fprintf(&b, "key=%s ", g.Key)
	}
	if g.Rescore != nil {
		fmt.Fprintf(&b, "%s=%s ", g.Rescore.By, g.Rescore.Column)
	}
	if g.Input.Format != "" {
		fmt.Fprintf(&b, "format=%s ", g.Input.Format)
	}
	if g.Input.Encoding != "" {
		fmt.Fprintf(&b, "encoding=%s ", g.Input.Encoding)
	}
	if g.Input.Separator != "" {
		fmt.Fprintf(&b, "separator=%s ", g.Input.Separator)
	}
	if g.Input.SkipLines != 0 {
		fmt.Fprintf(&b, "skip=%d ", g.Input.SkipLines)
	}
	if g.Header != nil && !*g.Header {
		b.WriteString("headless ")
	}
	for _, m := range g.Missing[1:] {
		fmt.Fprintf(&b, "missing=%s ", m)
	}
	for _, c := range g.Columns {
		if !c.Known || g.Text {
			continue
		}
		fmt.Fprintf(&b, "%s:%s", c.Name, c.Type)
		if c.Parse != "" {
			fmt.Fprintf(&b, "(%s)", c.Parse)
		}
		if c.Split != "" {
			fmt.Fprintf(&b, "/%s", c.Split)
		}
		if c.Unsure != "" {
			b.WriteByte('?')
		}
		b.WriteByte(' ')
	}
	return strings.TrimSpace(b.String())
}

// repeated makes a table of n rows, %d being the number of the row.
func repeated(head, row string, n int) string {
	var b strings.Builder
	b.WriteString(head)
	for i := range n {
		b.WriteString(strings.ReplaceAll(row, "%d", fmt.Sprint(i+1)))
	}
	return b.String()
}

// TestMade guesses files that were made for it: what is right, and what has to be called unsure.
func TestMade(t *testing.T) {
	latin, _ := charmap.Windows1252.NewEncoder().String(repeated("name;ort;preis\n", "Müller %d;Köln am Rhein;1.234,50 €\nSchäfer %d;Düsseldorf;9,99 €\n", 40))
	sjis, _ := japanese.ShiftJIS.NewEncoder().String(repeated("名前,都市\n", "山田太郎%d,東京都千代田区\n佐藤花子%d,大阪市北区\n", 60))
	utf16, _ := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(repeated("id\tname\n", "%d\tÉmile %d\n", 30))
	for _, c := range []struct{ name, file, text, want, doubt string }{
		{"semicolons, decimal comma, Latin", "a.csv", latin, "encoding=windows-1252 separator=; name:string? ort:category preis:number(1.234,5)", ""},
		{"Shift JIS", "a.csv", sjis, "encoding=shift_jis 名前:category? 都市:category", "taken for a header"},
		{"UTF-16 with a mark", "a.tsv", utf16, "key=id name:string?", ""},
		{"BOM and Windows line ends", "a.csv", "\ufeff" + strings.ReplaceAll(repeated("id,price\n", "x%d,%d.5\n", 30), "\n", "\r\n"), "key=id price:number", ""},
		{"title and unit lines above", "a.csv", "Sales of 2024\n(thousands of euro)\n\n" + repeated("region,amount\n", "north,%d\nsouth,%d\n", 20), "skip=3 region:category amount:number", ""},
		{"a line of units between title and header", "a.csv", "Station 12;exported\n;degC;mm\n" + repeated("day;temperature;rain\n", "2024-02-01;%d,5;0,0\n2024-02-02;-%d,5;1,5\n", 20), "separator=; skip=2 day:date temperature:number(1.234,5) rain:number(1.234,5)", ""},
		{"a full line of units above the header", "a.csv", "degC,mm\n" + repeated("temperature,rain\n", "%d.5,0.5\n", 20), "degC:number? mm:number?", "give --skip-lines 1;"},
		{"units below the header", "a.csv", "day,rain\n,mm\n" + repeated("", "2024-02-01,%d.5\n", 20), "day:date rain:number?", "if it has the units"},
		{"nothing above the names of rows", "a.csv", repeated(",amount\n", "north%d,%d\nsouth%d,%d\n", 20), "amount:number", "has no name"},
		{"no header", "a.csv", repeated("", "%d,red,2.5\n", 30), "headless c1:number c2:category c3:number", "if it is what you call the objects by"},
		{"texts alone, with a header", "a.csv", repeated("first,second\n", "a%d,b\na,c\n", 30), "first:category second:category", "taken for a header"},
		{"zip codes", "a.csv", repeated("town,zip\n", "here,0123%d\n", 30), "town:category zip:category", ""},
		{"numbers that are keys", "a.csv", repeated("id,parent_id\n", "%d,7\n", 30), "key=id parent_id:category", ""},
		{"a key that is none", "a.csv", repeated("id,v\n", "1,%d\n", 30), "id:category v:number", ""},
		{"booleans", "a.csv", repeated("a,b\n", "yes,True\nno,FALSE\n", 10), "a:bool b:bool", ""},
		{"lists", "a.csv", repeated("n,tags\n", "%d,red|blue\n%d,blue|green\n%d,red\n", 10), "n:number tags:set/|", ""},
		{"lists in JSON", "a.csv", repeated("n,tags\n", "%d,\"[\"\"red\"\",\"\"blue\"\"]\"\n%d,\"[\"\"blue\"\"]\"\n%d,[]\n", 10), "n:number tags:set", ""},
		{"lists within lists in JSON", "a.csv", repeated("n,tags\n", "%d,\"[[\"\"red\"\"],[\"\"blue\"\"]]\"\n", 10), "n:number tags:set/,?", ""},
		{"dates that may be two things", "a.csv", repeated("n,day\n", "%d,03/04/2024\n", 20), "n:number day:date(DD/MM/YYYY)?", ""},
		{"dates that may not", "a.csv", repeated("n,day\n", "%d,03/24/2024\n", 20), "n:number day:date(MM/DD/YYYY)", ""},
		{"thousands or decimals", "a.csv", repeated("n,v\n", "%d,\"1,234\"\n", 20), "n:number v:number(1,234.5)?", ""},
		{"missing in numbers only", "a.csv", repeated("country,v\n", "NA,%d\nDE,%d\nFR,%d\nUS,-\n", 20), "missing=- country:category v:number", "taken for a header"},
		{"one bad number in many", "a.csv", "v,w\ncall,1\n" + repeated("", "%d.5,2\n", 99), "v:number? w:number", ""},
		{"few records, a word in numbers", "a.csv", "n,v\n1.5,1\n2.5,2\n3.5,call\n4.5,4\n", "n:number v:number?", ""},
		{"few records, prices and a word", "a.csv", "n,v\n1.5,$1.50\n2.5,ask\n3.5,$20\n4.5,\"$1,200\"\n", "n:number v:number(1,234.5)?", ""},
		{"few records, a word in dates", "a.csv", "n,day\n1.5,2024-01-02\n2.5,2024-01-03\n3.5,soon\n4.5,2024-02-01\n", "n:number day:date?", ""},
		{"few records, too few for a mistake", "a.csv", "n,v\n1.5,1\n2.5,call\n3.5,3\n", "n:number v:category?", ""},
		{"few records, numbers and words", "a.csv", "n,v\n1.5,1\n2.5,2\n3.5,call\n4.5,ask\n5.5,9\n", "n:number v:category?", ""},
		{"few records, a marker", "a.csv", "n,v\n1.5,1\n2.5,NA\n3.5,3\n4.5,4\n", "missing=NA n:number v:number", ""},
		{"few records, names", "a.csv", "n,who\n1.5,Ann\n2.5,Bo\n3.5,Caro\n4.5,Ann\n5.5,Dan\n", "n:number who:category?", ""},
		{"few records, a category", "a.csv", "n,size\n1.5,big\n2.5,small\n3.5,big\n4.5,small\n", "n:number size:category", ""},
		{"codes, one with a letter", "a.csv", "n,part_id\n1.5,1\n2.5,2\n3.5,2\n4.5,E4\n", "n:number part_id:category?", ""},
		{"numbers and words in halves", "a.csv", repeated("n,room\n", "%d.5,%d\n%d.5,hall\n", 40), "n:number room:category?", ""},
		{"words", "a.csv", "n,word\n" + words(40, 1), "edit=word n:number word:string?", ""},
		{"names of two words", "a.csv", "n,who\n" + words(40, 2), "n:number who:string?", ""},
		{"lists of names", "a.csv", "n,who\n" + strings.ReplaceAll(words(40, 3), " ", ";"), "n:number who:text?", ""},
		{"pipes", "a.txt", repeated("a|b|c\n", "x|%d|2.5\n", 20), "format=csv separator=| a:category b:number c:number", ""},
		{"prose", "a.txt", repeated("", "Well, this is the %d. line, or so.\nIt has commas, now and then, or none.\nAs prose does.\n", 20), "kind=documents text:text", ""},
		{"words", "a.txt", "apple\nbanana\ncherry\n", "kind=sequences", ""},
		{"JSON Lines", "a.jsonl", repeated("", `{"sku":"s%d","price":%d.5,"tags":["a","b"],"look":[0.1,0.2,0.3],"ok":true,"more":{"x":1}}`+"\n", 20),
			"key=sku price:number tags:set look:vector ok:bool more.x:number", ""},
		{"nested JSON", "a.jsonl", repeated("", `{"meta":{"id":"s%d"},"place":{"city":"Bonn","geo":{"lat":1.5}},"authors":[{"name":"Ann Lee %d"},{"name":"Bo"}],`+
			`"odd":{"a.b":1},"mixed":[{"x":1},2],"none":null}`+"\n", 20),
			"key=meta.id place.city:category place.geo.lat:number authors.name:set odd:payload mixed:payload none:skip", ""},
		{"few records, one with an object", "a.jsonl", `{"a":1,"b":"x y z"}` + "\n" + `{"a":2,"b":"x y"}` + "\n" + `{"a":{"x":1},"b":"x"}` + "\n" + `{"a":4}` + "\n", "a:number? b:category?", ""},
		{"objects in most records, a number in one", "a.jsonl", `{"n":1,"b":{"x":1}}` + "\n" + `{"n":2,"b":5}` + "\n" + `{"n":3,"b":{"x":2}}` + "\n" + `{"n":4,"b":[]}` + "\n", "n:number b:payload?", ""},
		{"keys that are values", "a.jsonl", repeated("", `{"key":"a%d","n":1,"by":{"u%d":1}}`+"\n", 100), "key=key n:number by:payload", ""},
		{"a JSON array", "a.json", "[" + strings.TrimSuffix(repeated("", "\n{\"sku\":\"s%d\",\n\"price\":%d.5},", 20), ",") + "]", "key=sku price:number", ""},
		{"a JSON array called otherwise", "a.dat", "[" + strings.TrimSuffix(repeated("", `{"sku":"s%d","price":%d.5},`, 20), ",") + "]", "key=sku format=jsonl price:number", ""},
		{"elements of vectors", "a.csv", repeated("label"+numberedNames("x", 20)+"\n", "%d"+strings.Repeat(",0.5", 20)+"\n", 20), "label:number x:vector", ""},
		{"places", "a.csv", repeated("name,Latitude,Longitude\n", "Berlin,52.5%d,13.4\n", 30), "name:category Latitude:number Longitude:number where:point", ""},
		{"places of two names, and one that has no longitude", "a.csv", repeated("start_lat,start_lng,end lat,end lon,c_lat\n", "52.5%d,13.4,1.5,2.5,3.5\n", 30),
			"start_lat:number start_lng:number end lat:number end lon:number c_lat:number start:point end:point", ""},
		{"places in a cell", "a.tsv", repeated("name\tlat lon\tsize\tc\n", "Bonn\t50.7%d 7.1\t1.5 7\t50.123, -7.1234\n", 30), "name:category lat lon:point size:set/  c:point?", ""},
		{"places and no degrees, none in parts, the longitude first", "a.csv", repeated("place,b,position,lonlat,a,geo\n", "91.%d 7.1,50 7,5 7,13.405 52.520,x,52.1 13\n", 30),
			"place:set/  b:set/  position:set/  lonlat:set/  a:category geo:point?", ""},
		{"a mistake among places", "a.tsv", repeated("lat lon\tn\n", "50.7%d 7.1\t1.5\n", 30) + "abc\t2.5\n", "lat lon:point? n:number", ""},
		{"places by paths", "a.jsonl", repeated("", `{"n":%d,"at":{"lat":1.5,"lon":2.5}}`+"\n", 20), "n:number at.lat:number at.lon:number", ""},
		{"names that come twice", "a.csv", repeated("a,b,b\n", "%d.5,1,2\n", 20), "a:number", `called "b"`},
		{"one column", "a.csv", repeated("colour\n", "red\nblue\n", 20), "colour:category", "taken for a header"},
		{"quotes in tabs", "a.tsv", repeated("", "%d\ta 12\" disc\n", 20), "headless c1:number c2:category", ""},
		{"unlike lines", "a.csv", "1,2,3\n4,5\n6\n7,8,9,10\n" + repeated("", "1,2,3,4,5,6\n1\n2,3\n", 20), "kind=sets format=text set:set/,?", "unlike numbers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), c.file)
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			g, text := described(t, path, Options{})
			if got := summary(g); got != c.want {
				t.Errorf("got  %s\nwant %s\n%s", got, c.want, text)
			}
			doubts := strings.Join(slices.DeleteFunc(g.Doubts, func(d string) bool {
				return c.doubt == "" && (strings.Contains(d, "is the first") || strings.Contains(d, "frequency of its letters"))
			}), "\n")
			if !strings.Contains(doubts, c.doubt) || c.doubt == "" && doubts != "" {
				t.Errorf("doubts %q, want %q", doubts, c.doubt)
			}
		})
	}
}

// TestNames: a file without a header is as one that has it, once its columns are named; what cannot be meant is refused or doubted.
func TestNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	guess := func(text string, names ...string) (g *Guess, proposed string, err error) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err = File(path, Options{Names: names}); err != nil {
			return nil, "", err
		}
		g, proposed = described(t, path, Options{Names: names})
		return g, proposed, nil
	}
	rows := repeated("", "k%d,52.5%d,13.4"+strings.Repeat(",0.5", 20)+"\n", 30)
	names := append([]string{"id", "lat", "lon"}, strings.Split(numberedNames("x", 20)[1:], ",")...)
	skipped := strings.Join(names[3:], ":skip ") + ":skip"
	g, text, err := guess(rows, names...)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := summary(g), "key=id headless id:skip lat:number lon:number "+skipped+" x:vector where:point"; got != want {
		t.Errorf("got  %s\nwant %s\n%s", got, want, text)
	}
	if headed, _, err := guess(strings.Join(names, ",") + "\n" + rows); err != nil || headed.Records != g.Records || strings.Contains(summary(headed), "skip") || !strings.HasSuffix(summary(headed), "x:vector where:point") {
		t.Errorf("with a header: %v %v", summary(headed), err)
	}

	if g, _, err := guess("region,amount\n"+repeated("", "north,%d\n", 30), "where", "how much"); err != nil || !strings.Contains(strings.Join(g.Doubts, "\n"), "looks like a header") {
		t.Errorf("a header that is a record: %v %v", g, err)
	}
	for says, c := range map[string]struct {
		text  string
		names []string
	}{
		"most records have 2 fields, as \"1 | 2\" has, but names were given for 3": {"1,2\n3,4\n5,6\n", []string{"a", "b", "c"}},
		`two columns are named "a"`:   {"1,2\n3,4\n", []string{"a", "a"}},
		`name 2 of the columns is ""`: {"1,2\n3,4\n", []string{"a", ""}},
		"are for tables of fields":    {"1,2,3\n4,5\n6\n7,8,9,10\n" + repeated("", "1,2,3,4,5,6\n1\n2,3\n", 20), []string{"a", "b"}},
	} {
		if g, _, err := guess(c.text, c.names...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v %v", says, g, err)
		}
	}
	lines := filepath.Join(t.TempDir(), "a.jsonl")
	if err := os.WriteFile(lines, []byte(`{"a":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := File(lines, Options{Names: []string{"b"}}); err == nil || !strings.Contains(err.Error(), "its format is jsonl") {
		t.Errorf("names of JSON: %v", err)
	}
}

// words makes rows of a number and so many words each, all unlike each other.
func words(rows, each int) string {
	var b strings.Builder
	for i := range rows {
		name := make([]string, each)
		for j := range name {
			n := i*each + j
			name[j] = string([]byte{'a' + byte(n%26), 'a' + byte(n/26), 'e', 'l'})
		}
		fmt.Fprintf(&b, "%d.5,%s\n", i, strings.Join(name, " "))
	}
	return b.String()
}

func numberedNames(prefix string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ",%s%d", prefix, i+1)
	}
	return b.String()
}

// TestCompressed: what a file is packed in changes nothing.
func TestCompressed(t *testing.T) {
	const text = "id,v\na,1\nb,2\nc,3.5\n"
	var zipped, packed bytes.Buffer
	w := gzip.NewWriter(&zipped)
	w.Write([]byte(text))
	w.Close()
	z, _ := zstd.NewWriter(&packed)
	z.Write([]byte(text))
	z.Close()
	for name, data := range map[string][]byte{"a.csv": []byte(text), "a.csv.gz": zipped.Bytes(), "a.csv.zst": packed.Bytes()} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if g, _ := described(t, path, Options{}); summary(g) != "key=id v:number" || g.Name != "a" {
			t.Errorf("%s: %s %s", name, g.Name, summary(g))
		}
	}
}

// TestCutCharacters: a sample that ends within a character says as much of its encoding as a whole one.
func TestCutCharacters(t *testing.T) {
	text, err := japanese.ShiftJIS.NewEncoder().String(repeated("名前,都市\n", "山田太郎%d,東京都千代田区\n", 200))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for size := range 64 {
		if g, _ := described(t, path, Options{Sample: 2000 + size}); g.Input.Encoding != "shift_jis" || g.Columns[1].Name != "都市" {
			t.Fatalf("of %d bytes: %s", 2000+size, summary(g))
		}
	}
}

// TestRefused: files of which nothing can be guessed say so.
func TestRefused(t *testing.T) {
	if _, err := File(t.TempDir(), Options{}); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a directory: %v", err)
	}
	for name, text := range map[string]string{"empty.csv": "", "blank.csv": "\n\n", "header.jsonl": "[1,2]\n", "open.json": `[{"a":1}`} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if g, err := File(path, Options{}); err == nil || strings.Contains(err.Error(), "array") != strings.HasPrefix(text, "[") {
			t.Errorf("%s: %v %v", name, g, err)
		}
	}
	if _, err := File(filepath.Join(t.TempDir(), "none.csv"), Options{}); err == nil {
		t.Error("a file that is not there")
	}
}

// TestKeysOfWholeFile: a value that comes twice after the sample makes a column no key.
func TestKeysOfWholeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	for last, want := range map[string]string{"x1,1\n": "id:string?", "y,1\n": "key=id"} {
		if err := os.WriteFile(path, []byte(repeated("id,v\n", "x%d,2.5\n", 5000)+last), 0o600); err != nil {
			t.Fatal(err)
		}
		if g, text := described(t, path, Options{Sample: 4096}); !strings.HasPrefix(summary(g), want) && !strings.HasPrefix(summary(g), strings.Replace(want, "string?", "category?", 1)) {
			t.Errorf("%s: %s\n%s", last, summary(g), text)
		}
	}
}

// TestRealFiles guesses files that nobody made for it: no wrong key, no wrong separator, and types that a person would say.
func TestRealFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds, and minutes with the race detector, which it has nothing for")
	}
	for name, want := range map[string]string{
		"adult/adult.data.gz": "format=csv headless missing=? c1:number c2:category c3:number c4:category c5:number c6:category c7:category c8:category " +
			"c9:category c10:category c11:number c12:number c13:number c14:category c15:category",
		"er_abt_buy/Abt.csv.gz":                      "key=id encoding=windows-1252 name:text description:text price:number(1,234.5)",
		"er_abt_buy/Buy.csv.gz":                      "key=id name:text description:text manufacturer:category price:number(1,234.5)",
		"er_amazon_google/Amazon.csv.gz":             "key=id encoding=windows-1252 title:text description:text manufacturer:category price:number",
		"er_amazon_google/GoogleProducts.csv.gz":     "key=id encoding=windows-1252 name:text description:text manufacturer:category price:number(1,234.5)",
		"er_dblp_acm/ACM.csv.gz":                     "key=id title:text authors:text venue:category year:number",
		"er_dblp_acm/DBLP2.csv.gz":                   "key=id encoding=windows-1252 missing=? title:text authors:set/,? venue:category year:number",
		"er_dblp_acm/DBLP-ACM_perfectMapping.csv.gz": "key=idDBLP idACM:category",
		"cities15000/cities15000.txt.gz": "format=tsv headless c1:number c2:string? c3:string? c4:text? c5:number c6:number c7:category c8:category c9:category " +
			"c10:category c11:category c12:category c13:category c14:category c15:number c16:number c17:number c18:category c19:date",
		"cyclones/nasaweather_stormtracks.csv.gz": "Name:category Year:number Month:number Day:number Hour:number Latitude:number Longitude:number " +
			"Pressure:number Wind:number Type:category SeasDay:number where:point",
		"headlines/clickbait_data.txt.gz": "kind=documents text:text",
		"cyclones/hurdat2_nepac.txt.gz": "format=csv headless c1:number c2:category c3:category c4:category c5:category c6:category c7:number c8:number c9:number " +
			"c10:number c11:number c12:number c13:number c14:number c15:number c16:number c17:number c18:number c19:number c20:number c21:skip",
		"genie_static/tweets_20.csv":              "kind=sets format=text set:set/,?",
		"shortdocs_labelled/StackOverflow.txt.gz": "kind=documents text:text",
		"optdigits/optdigits.tra.gz":              "format=csv Class:number block:vector",
		"sets_fimi/retail.dat.gz":                 "kind=sets format=text set:set/",
		"sets_fimi/mushroom.dat.gz":               "kind=sets format=text set:set/",
		"typos/missp.dat.gz":                      "kind=sequences format=text",
		"words/american-english-insane.gz":        "kind=sequences format=text",
		"nasa_atmos/atmos.csv.gz": "missing=NA lat:number long:number year:number month:number surftemp:number temp:number pressure:number ozone:number " +
			"cloudlow:number cloudmid:number cloudhigh:number where:point",
	} {
		g, text := described(t, real.File(t, name), Options{})
		if got := summary(g); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s\n%s", name, got, want, text)
		}
	}
}

// TestNamesThatCommand: names with control characters are proposed as such, and what is said of them holds none, as YAML takes none in comments.
func TestNamesThatCommand(t *testing.T) {
	var header, row []string
	for i := range 20 {
		header, row = append(header, fmt.Sprintf("e\x1b[31m%d", i)), append(row, fmt.Sprint(i))
	}
	path := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(path, []byte(strings.Join(header, ",")+"\n"+strings.Repeat(strings.Join(row, ",")+"\n", 30)), 0o600); err != nil {
		t.Fatal(err)
	}
	g, text := described(t, path, Options{})
	if !strings.Contains(summary(g), ":vector") || !strings.Contains(text, "20 columns of numbers") || strings.Contains(text, "\x1b") {
		t.Errorf("%s of\n%q", summary(g), text)
	}
}

// FuzzFile: whatever a file holds, guessing ends with a schema or an error.
func FuzzFile(f *testing.F) {
	f.Add([]byte("id,v\na,1\nb,2\n"), uint8(0))
	f.Add([]byte(`{"a":[1,2,3],"b":{"c":null}}`+"\n"), uint8(1))
	f.Add([]byte("\xff\xfea\x00\n\x00"), uint8(2))
	f.Add([]byte("a;b\n\"x;y\"\n"), uint8(3))
	names := []string{"a.csv", "a.jsonl", "a.txt", "a.tsv", "a.dat", "a.parquet"}
	f.Fuzz(func(t *testing.T, data []byte, name uint8) {
		path := filepath.Join(t.TempDir(), names[int(name)%len(names)])
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		opts := Options{}
		if name >= 128 { // as many names as there may be columns
			opts.Names = []string{"id", "lat", "lon", "x1"}[:1+bytes.IndexByte(append(data, ','), ',')%4]
		}
		g, err := File(path, opts)
		if err != nil {
			return
		}
		proposed, err := g.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := index.Builtin().ParseSchema(proposed); err != nil && !strings.Contains(err.Error(), "records need at least one column") {
			t.Errorf("%v\n%s", err, proposed)
		}
	})
}
