//go:build cuda

package cuda

import (
	"fmt"
	"math/bits"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/kernels"
)

// TestDeviceLayouts: the mirrors have the fields of the kernels' structs, in their order. The sizes, which the compilers
// check on both sides, would not tell two fields that changed places.
func TestDeviceLayouts(t *testing.T) {
	for _, c := range []struct {
		file, name string
		mirror     any
	}{
		{"batch.cuh", "Section", deviceSection{}},
		{"batch.cuh", "Span", deviceSpan{}},
		{"batch.cuh", "Query", deviceQuery{}},
		{"batch.cuh", "State", deviceState{}},
		{"batch.cuh", "Batch", deviceBatch{}},
		{"load.cu", "Survey", deviceSurvey{}},
		{"sliced.cuh", "SlicedAttribute", deviceSlicedAttribute{}},
		{"sliced.cuh", "Plan", devicePlan{}},
		{"sliced.cuh", "Sliced", deviceSliced{}},
		{"filter.cuh", "FilterCodes", deviceFilterCodes{}},
		{"filter.cuh", "FilterPlan", deviceFilterPlan{}},
		{"filter.cuh", "FilterMatch", deviceFilterMatch{}},
		{"resolve.cu", "Form", deviceForm{}},
		{"resolve.cu", "Resolve", deviceResolve{}},
		{"verify.cu", "VerifyTask", deviceVerifyTask{}},
		{"verify.cu", "Verify", deviceVerify{}},
		{"scan.cu", "ScanQuery", deviceScanQuery{}},
		{"scan.cu", "Scan", deviceScan{}},
	} {
		want, widths := structOf(t, "../../kernels/"+c.file, c.name)
		var got []string
		for f := range reflect.TypeOf(c.mirror).Fields() {
			if f.Name == "_" {
				continue
			}
			got = append(got, f.Name)
			if w, ok := widths[f.Name]; ok && uintptr(w) != f.Type.Size() {
				t.Errorf("%s.%s has %d bytes, its mirror %d", c.name, f.Name, w, f.Type.Size())
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s of %s has the fields\n%v, its mirror\n%v", c.name, c.file, want, got)
		}
	}
}

var (
	comment    = regexp.MustCompile(`//[^\n]*`)
	identifier = regexp.MustCompile(`(\w+)\s*$`)
)

// structOf returns the fields of a struct of plain members, without those named unused, and their bytes.
func structOf(t *testing.T, file, name string) (fields []string, widths map[string]int) {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, body, found := strings.Cut(comment.ReplaceAllString(string(source), ""), "struct "+name+" {")
	body, _, closed := strings.Cut(body, "};")
	if !found || !closed {
		t.Fatalf("%s has no struct %s", file, name)
	}
	widths = map[string]int{}
	for declaration := range strings.SplitSeq(body, ";") {
		for i, declarator := range strings.Split(declaration, ",") {
			m := identifier.FindStringSubmatch(declarator)
			if m == nil || m[1] == "unused" {
				continue
			}
			fields = append(fields, m[1])
			switch {
			case strings.Contains(declaration, "*") || strings.Contains(declaration, "uint64_t"):
				widths[m[1]] = 8
			case strings.Contains(declaration, "uint32_t"):
				widths[m[1]] = 4
			default:
				t.Fatalf("%s: %q (%d) is of a type that this test does not know", file, declaration, i)
			}
		}
	}
	return fields, widths
}

// TestConstants: numbers that both sides name are the same.
func TestConstants(t *testing.T) {
	for file, names := range map[string]map[string]string{
		"batch.cuh": {"kTileObjects": strconv.Itoa(index.TileObjects)},
		"edit.cuh":  {"kSlots": strconv.Itoa(hashedMaskBytes / (8 + 4)), "kNone": fmt.Sprintf("%#x", noSymbol)},
		"filter.cuh": {
			"kFilterCodes": strconv.Itoa(maxCodes), "kFilterQueries": strconv.Itoa(filterQueries), "kFilterTile": strconv.Itoa(filterTile),
			"kFilterMarks": "1 << " + strconv.Itoa(bits.Len(filterMarks)-1), "kFilterChunk": strconv.Itoa(chunkColumns),
			"kFilterStepColumns": strconv.Itoa(stepColumns), "kFilterRoom": strconv.Itoa(filterRoom),
		},
		"filter_plan.cu": {"kThreads": "256"}, // a divisor of a group's objects, for filter_codes
		"resolve.cu":     {"kThreads": strconv.Itoa(kernels.SelectThreads)},
		"select.cu":      {"kThreads": strconv.Itoa(kernels.SelectThreads)},
		"sliced.cuh": {
			"kGroupObjects": strconv.Itoa(index.GroupObjects), "kTreeRows": strconv.Itoa(treeRows), "kRowBytes": strconv.Itoa(rowBytes),
			"kMaxBlockQueries": strconv.Itoa(maxBlockQueries), "kUnitOctets": strconv.Itoa(unitCodes / 8),
		},
		"sliced_plan.cu": {"kThreads": strconv.Itoa(slicedPlanThreads)},
	} {
		source, err := os.ReadFile("../../kernels/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range names {
			m := regexp.MustCompile(`\nconstexpr \w+ ` + name + ` = ([^;]+);`).FindSubmatch(source)
			if m == nil || string(m[1]) != value {
				t.Errorf("%s of %s is %q, not %s", name, file, m, value)
			}
		}
	}
}
