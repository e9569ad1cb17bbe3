package abi

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mirrors are all structs that have one here, by their name in the kernels.
var mirrors = []any{
	Section{}, Span{}, Query{}, State{}, Batch{}, Survey{}, Form{}, Resolve{},
	SlicedAttribute{}, Plan{}, Sliced{},
	BoundCodes{}, BoundPlan{}, BoundMatch{},
	Filters{}, FilteredBatch{}, FilteredSliced{}, FilteredBound{}, Clause{}, FilterHead{}, Numbers{}, FilterTiles{},
	VerifyTask{}, Verify{}, ScanQuery{}, Scan{}, Hash{}, AskedTerm{}, TermsTask{}, Terms{}, TermsOrder{}, OrderedHit{}, OrderedHead{}, TermsOrders{},
	NearEntry{}, NearQuery{}, NearState{}, Near{}, NearReach{}, NearSieved{}, NearSieve{}, NearLevels{}, NearRanked{}, NearRankScan{}, NearCelled{}, NearOrder{}, NearGroup{}, NearVisits{}, NearVisitsOrder{}, GramAsk{}, NearGrams{}, NearAsk{}, NearLoad{},
	TextQuery{}, TextCounts{}, TextScan{},
	DescentTree{}, DescentLevel{}, DescentState{}, DescentWork{}, Descent{}, DescentDepth{},
}

// TestMirrors compares every field of every mirror with the kernels' sources.
func TestMirrors(t *testing.T) {
	structs := structsOf(t)
	for _, mirror := range mirrors {
		of := reflect.TypeOf(mirror)
		there, ok := structs[of.Name()]
		if !ok {
			t.Errorf("the kernels have no struct %s", of.Name())
			continue
		}
		for _, difference := range there.differences(of) {
			t.Error(difference)
		}
	}
}

// TestMirrorsOfArguments: what a kernel takes by value has a mirror, which the host fills.
func TestMirrorsOfArguments(t *testing.T) {
	kernel := regexp.MustCompile(`__global__ void\s+(?:__launch_bounds__\([^{]*?\)\s+)?(\w+)\(const (?:__grid_constant__ )?(\w+)`)
	named := 0
	for file, source := range sourcesOf(t) {
		for _, m := range kernel.FindAllStringSubmatch(strings.ReplaceAll(source, "##", "_"), -1) {
			named++
			if !slices.ContainsFunc(mirrors, func(mirror any) bool { return reflect.TypeOf(mirror).Name() == m[2] }) {
				t.Errorf("%s: kernel %s takes a %s, which has no mirror", file, m[1], m[2])
			}
		}
		if n := strings.Count(source, "__global__"); n != len(kernel.FindAllString(strings.ReplaceAll(source, "##", "_"), -1)) {
			t.Errorf("%s: %d kernels are not all understood by this test", file, n)
		}
	}
	if named < 15 {
		t.Errorf("only %d kernels were found", named)
	}
}

// TestDifferences: the comparison sees fields of equal width that changed places, whichever side they are on, and whatever
// else can be wrong.
func TestDifferences(t *testing.T) {
	there := structsOf(t)["Span"]
	type swapped struct{ Attribute, Hi, Lo, Weight uint32 }
	type missing struct{ Attribute, Lo, Hi uint32 }
	type wider struct {
		Attribute, Lo, Hi uint32
		Weight            uint64
	}
	type more struct{ Attribute, Lo, Hi, Weight, Other uint32 }
	type blank struct{ Attribute, Lo, _, Weight uint32 }
	type same struct{ Attribute, Lo, Hi, Weight uint32 }
	for _, c := range []struct {
		mirror any
		equal  bool
	}{{same{}, true}, {swapped{}, false}, {missing{}, false}, {wider{}, false}, {more{}, false}, {blank{}, false}} {
		if found := there.differences(reflect.TypeOf(c.mirror)); (len(found) == 0) != c.equal {
			t.Errorf("%T: %q", c.mirror, found)
		}
	}
	// All mirrors of the kernels' own fields, two neighbours of one width exchanged: each is seen.
	exchanged := 0
	for name, s := range structsOf(t) {
		i := slices.IndexFunc(mirrors, func(mirror any) bool { return reflect.TypeOf(mirror).Name() == name })
		if i < 0 {
			continue
		}
		for j := range len(s.fields) - 1 {
			if s.fields[j].width != s.fields[j+1].width {
				continue
			}
			other := layout{name: name, size: s.size, fields: slices.Clone(s.fields)}
			a, b := &other.fields[j], &other.fields[j+1]
			a.name, b.name = b.name, a.name
			if len(other.differences(reflect.TypeOf(mirrors[i]))) == 0 {
				t.Errorf("%s: %s and %s changed places unseen", name, a.name, b.name)
			}
			exchanged++
		}
	}
	if exchanged < 100 {
		t.Errorf("only %d exchanges were tried", exchanged)
	}
}

// TestRecordSizes: what the kernels alone know has the size that the host makes room for.
func TestRecordSizes(t *testing.T) {
	structs := structsOf(t)
	for name, bytes := range map[string]uintptr{
		"Program": ProgramBytes, "Chunk": ChunkBytes, "Task": TaskBytes, "RecordHead": RecordHeadBytes, "Wave": WaveBytes, "DescentPlace": DescentPlaceBytes,
	} {
		if s, ok := structs[name]; !ok || s.size != bytes {
			t.Errorf("%s has %d bytes, not %d", name, s.size, bytes)
		}
	}
}

// TestConstants: numbers that both sides name are the same.
func TestConstants(t *testing.T) {
	for file, names := range map[string]map[string]int64{
		"batch.cuh": {"kTileObjects": TileObjects},
		"terms.cu": {
			"kTermsThreads": TermsThreads, "kMaxAskedTerms": MaxAskedTerms, "kMaxObjectTerms": MaxObjectTerms,
			"kTermsCounted": int64(TermsCounted), "kTermsSummed": int64(TermsSummed), "kTermsBM25": int64(TermsBM25),
			"kOrderThreads": OrderThreads, "kMostOrdered": MostOrdered, "kLeastRoom": OrderLeastRoom,
		},
		"edit.cuh": {"kSlots": HashSlots, "kNone": NoSymbol, "kMaxPattern": MaxPattern, "kMaxText": MaxText},
		"bound.cuh": {
			"kBoundCodes": MaxCodes, "kBoundQueries": BoundQueries, "kBoundTile": BoundTile, "kBoundMarks": BoundMarks,
			"kBoundWave": BoundWave, "kBoundChunk": ChunkColumns, "kBoundStepColumns": StepColumns, "kBoundStepBytes": StepBytes,
			"kBoundRoom": BoundRoom, "kBoundGivenUp": GivenUp,
		},
		"bound_plan.cu": {"kThreads": BoundCodeThreads},
		"sliced.cuh": {
			"kGroupObjects": GroupObjects, "kTreeRows": TreeRows, "kRowBytes": RowBytes, "kOctetRows": OctetRows, "kOctetBytes": OctetBytes,
			"kMaxBlockQueries": MaxBlockQueries, "kUnitOctets": UnitOctets, "kUnitCodes": UnitCodes, "kRowKinds": RowKinds,
		},
		"sliced_plan.cu": {"kThreads": SlicedPlanThreads},
		"descent.cuh": {
			"kDescentLevels": DescentLevels, "kDescentSeeds": DescentSeeds, "kDescentBins": DescentBins,
			"kDescentValue": int64(DescentValue), "kDescentRoot": int64(DescentRoot), "kDescentChord": int64(DescentChord),
		},
		"near_hits.cuh":  {"kWarpHits": WarpHits},
		"near_nth.cuh":   {"kMostHeld": MostHeld},
		"near_gate.cu":   {"kMostKept": MostKept},
		"near_texts.cuh": {"kNarrow": MaxNarrow},
		"text_scan.cu":   {"kTextBlock": TextBlock, "kTextTotal": TextTotal},
		"filter.cu":      {"kClauseFirst": ClauseFirst, "kClauseLast": ClauseLast, "kClauseNot": ClauseNot},
		"listed.cuh":     {"kMostListed": MostListed},
		"forms.cuh":      {"kFormPostings": int64(FormPostings), "kFormPlanes": int64(FormPlanes), "kFormRare": int64(FormRare)},
		"near_sieve.cuh": {"kSieveObjects": SieveObjects, "kSieveQueries": SieveQueries},
		"near.cuh":       {"kNearF32": int64(NearF32), "kNearF16": int64(NearF16), "kNearU8": int64(NearU8), "kNearF64": int64(NearF64)},
	} {
		there := constantsOf(t, file)
		for name, want := range names {
			if got, ok := there[name]; !ok || got != want {
				t.Errorf("%s of %s is %d, not %d", name, file, got, want)
			}
		}
	}
	if HashClamp != 0 || HashRehash != 1 || HashSign != 2 || !strings.Contains(sourcesOf(t)["hash.cu"], "{ kHashClamp, kHashRehash, kHashSign }") {
		t.Error("the kinds of hashes are not those of hash.cu")
	}
	if GroupObjects%BoundCodeThreads != 0 {
		t.Error("a block of bound_codes crosses groups")
	}
}

// A layout is a struct as a compiler lays it out.
type layout struct {
	name   string
	fields []field // without those named unused
	size   uintptr
	// alignment is that of the struct as a member.
	alignment uintptr
}

type field struct {
	name          string
	offset, width uintptr
}

// differences compares with a mirror.
func (l *layout) differences(mirror reflect.Type) (found []string) {
	var fields []field
	for f := range mirror.Fields() {
		if f.Name != "_" {
			fields = append(fields, field{strings.ToLower(f.Name[:1]) + f.Name[1:], f.Offset, f.Type.Size()})
		}
	}
	for i := range max(len(fields), len(l.fields)) {
		here, there := "nothing", "nothing"
		if i < len(fields) {
			here = fmt.Sprint(fields[i])
		}
		if i < len(l.fields) {
			there = fmt.Sprint(l.fields[i])
		}
		if here != there {
			found = append(found, fmt.Sprintf("%s: field %d (name, offset, width) is %s in the kernels and %s here", l.name, i, there, here))
		}
	}
	if mirror.Size() != l.size {
		found = append(found, fmt.Sprintf("%s: %d bytes in the kernels, %d here", l.name, l.size, mirror.Size()))
	}
	return found
}

// sourcesOf are the kernels' sources without comments, macros on one line.
func sourcesOf(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("../../../kernels/*.cu*")
	if err != nil || len(names) == 0 {
		t.Fatal("there are no sources of kernels: ", err)
	}
	comment := regexp.MustCompile(`//[^\n]*`)
	sources := map[string]string{}
	for _, name := range names {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sources[filepath.Base(name)] = strings.ReplaceAll(comment.ReplaceAllString(string(source), ""), "\\\n", " ")
	}
	return sources
}

// structsOf are the kernels' structs of plain members and of each other, by name. Those that are declared in another one, and templates, are not
// among them: the host never sees these.
func structsOf(t *testing.T) map[string]*layout {
	t.Helper()
	declaration := regexp.MustCompile(`(?m)^struct (\w+) \{([^{}]*)\};`)
	structs := map[string]*layout{}
	var left [][]string // with members of other types: of structs that are found later, or of what the host does not see
	for file, source := range sourcesOf(t) {
		for _, m := range declaration.FindAllStringSubmatch(source, -1) {
			l, err := layoutOf(m[1], m[2], nil)
			if err != nil {
				left = append(left, m)
				continue
			}
			if structs[m[1]] != nil {
				t.Fatalf("%s: there is another struct %s", file, m[1])
			}
			structs[m[1]] = l
		}
	}
	for _, m := range left {
		if l, err := layoutOf(m[1], m[2], structs); err == nil {
			structs[m[1]] = l
		}
	}
	return structs
}

// layoutOf lays a struct out as C++ does.
func layoutOf(name, body string, others map[string]*layout) (*layout, error) {
	widths := map[string]uintptr{"uint8_t": 1, "uint16_t": 2, "uint32_t": 4, "int32_t": 4, "float": 4, "uint64_t": 8, "double": 8}
	member := regexp.MustCompile(`^(?:const\s+)?((?:unsigned long long|\w+)(?:\s*\*(?:\s*const\b)?)*)\s*(.+)$`)
	declarator := regexp.MustCompile(`^(\w+)(?:\[(\d+)\])?$`)
	l := &layout{name: name}
	alignment := uintptr(1)
	for declaration := range strings.SplitSeq(body, ";") {
		if declaration = strings.Join(strings.Fields(declaration), " "); declaration == "" {
			continue
		}
		m := member.FindStringSubmatch(declaration)
		if m == nil {
			return nil, fmt.Errorf("%s: %q is no member", name, declaration)
		}
		width := widths[m[1]]
		each := width // to which members are aligned
		if strings.Contains(m[1], "*") {
			width, each = 8, 8
		} else if other := others[m[1]]; other != nil {
			width, each = other.size, other.alignment
		}
		if width == 0 {
			return nil, fmt.Errorf("%s: %q is of a type that is not known", name, declaration)
		}
		for d := range strings.SplitSeq(m[2], ",") {
			d := declarator.FindStringSubmatch(strings.TrimSpace(d))
			if d == nil {
				return nil, fmt.Errorf("%s: %q is not understood", name, declaration)
			}
			count := uintptr(1)
			if d[2] != "" {
				n, err := strconv.Atoi(d[2])
				if err != nil {
					return nil, err
				}
				count = uintptr(n)
			}
			l.size = (l.size + each - 1) / each * each
			if d[1] != "unused" {
				l.fields = append(l.fields, field{d[1], l.size, width * count})
			}
			l.size += width * count
			alignment = max(alignment, each)
		}
	}
	l.size, l.alignment = (l.size+alignment-1)/alignment*alignment, alignment
	return l, nil
}

// constantsOf evaluates the constants and enumerators of a source, which are expressions of numbers and of each other.
func constantsOf(t *testing.T, file string) map[string]int64 {
	t.Helper()
	source := sourcesOf(t)[file]
	var program strings.Builder
	program.WriteString("package p\n")
	suffix := regexp.MustCompile(`\b(0x[0-9a-fA-F]+|\d+)(?:u|ull)\b`)
	for _, m := range regexp.MustCompile(`(?m)^constexpr uint32_t (\w+) = ([^;]+);`).FindAllStringSubmatch(source, -1) {
		expression := suffix.ReplaceAllString(m[2], "$1")
		if expression == "~0" {
			expression = "1<<32 - 1"
		}
		fmt.Fprintf(&program, "const %s = %s\n", m[1], expression)
	}
	for _, m := range regexp.MustCompile(`(?m)^enum \w+ : uint32_t \{([^}]*)\};`).FindAllStringSubmatch(source, -1) {
		for i, name := range strings.Split(m[1], ",") {
			fmt.Fprintf(&program, "const %s = %d\n", strings.TrimSpace(name), i)
		}
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, program.String(), 0)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	config := types.Config{Error: func(error) {}} // what needs other sources is left out
	checked, _ := config.Check("p", fset, []*ast.File{parsed}, nil)
	values := map[string]int64{}
	for _, name := range checked.Scope().Names() {
		if c, ok := checked.Scope().Lookup(name).(*types.Const); ok && c.Val().Kind() == constant.Int {
			values[name], _ = constant.Int64Val(c.Val())
		}
	}
	return values
}
