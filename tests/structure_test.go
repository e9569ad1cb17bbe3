package tests

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// The limits of a package, so that a newcomer can hold it in the head. They count what is compiled into the program, tests apart.
const (
	packageLines  = 2500
	fileLines     = 600
	functionLines = 70
	// againstOrder: there is an order of a package's files in which all calls but so many go from a later file to an earlier one.
	againstOrder = 5
)

// exceptions are packages that may have more lines, each with its reason.
var exceptions = map[string]string{
	"wire": "the protocol is one idea: its codecs share the unexported state of readers and encoders",
}

// TestStructure: packages, files and functions are small, the files of a package are layers, and nothing is there for tests alone.
func TestStructure(t *testing.T) {
	if testing.Short() {
		t.Skip("sources do not depend on the race detector: go test without -short looks at them")
	}
	all := loadPackages(t, "", module+"/...")
	tagged := loadPackages(t, "cuda", differing(t, "cuda")...)
	t.Run("Sizes", func(t *testing.T) {
		for _, p := range slices.Concat(all, tagged) {
			checkSizes(t, p)
		}
	})
	t.Run("Layers", func(t *testing.T) {
		for _, p := range slices.Concat(all, tagged) {
			if order, against := layers(callsOf(p)); len(against) > againstOrder {
				t.Errorf("package %s: in the order %v of its files, %d calls go up, more than %d:\n\t%s",
					nameOf(p), order, len(against), againstOrder, strings.Join(against, "\n\t"))
			}
		}
	})
	t.Run("Used", func(t *testing.T) { checkUsed(t, slices.Concat(all, tagged)) })
}

func nameOf(p *packages.Package) string { return strings.TrimPrefix(p.PkgPath, module+"/") }

func checkSizes(t *testing.T, p *packages.Package) {
	lines := 0
	for _, file := range p.Syntax {
		f := p.Fset.File(file.FileStart)
		if strings.Contains(f.Name(), "go-build") {
			continue // made by cgo
		}
		lines += f.LineCount()
		if f.LineCount() > fileLines {
			t.Errorf("%s/%s has %d lines, more than %d: split it by idea", nameOf(p), filepath.Base(f.Name()), f.LineCount(), fileLines)
		}
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok {
				if n := f.Line(d.End()) - f.Line(d.Pos()) + 1; n > functionLines {
					t.Errorf("%s/%s: %s has %d lines, more than %d", nameOf(p), filepath.Base(f.Name()), d.Name.Name, n, functionLines)
				}
			}
		}
	}
	if _, ok := exceptions[nameOf(p)]; !ok && lines > packageLines {
		t.Errorf("package %s has %d lines, more than %d", nameOf(p), lines, packageLines)
	}
}

// loadPackages reads packages of ours from their sources, and what they import of others from what the compiler knows of it. Looking
// at the sources of those too took ten times as long.
func loadPackages(t *testing.T, tags string, patterns ...string) []*packages.Package {
	t.Helper()
	all, err := packages.Load(&packages.Config{
		Mode:       packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports,
		BuildFlags: []string{"-tags=" + tags},
	}, patterns...)
	if err != nil {
		t.Fatalf("loading %v with tags %q: %v", patterns, tags, err)
	}
	if tags == "" && len(all) < len(rules)/2 {
		t.Fatalf("only %d packages are found", len(all))
	}
	return all
}

// differing are the packages that have other files with a tag.
func differing(t *testing.T, tag string) (paths []string) {
	t.Helper()
	files := func(tags string) map[string][]string {
		all, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedFiles, BuildFlags: []string{"-tags=" + tags}}, module+"/...")
		if err != nil {
			t.Fatalf("listing packages with tags %q: %v", tags, err)
		}
		of := make(map[string][]string)
		for _, p := range all {
			of[p.PkgPath] = p.GoFiles
		}
		return of
	}
	plain := files("")
	for path, tagged := range files(tag) {
		if !slices.Equal(tagged, plain[path]) {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		t.Fatalf("no package has other files with the tag %s", tag)
	}
	slices.Sort(paths)
	return paths
}

// A call is one of a function to another one, of two files of a package; calls between the same two count once.
type call struct{ from, to, caller, callee string }

// callsOf finds the calls between files. What is called through an interface is a tie that has been cut.
func callsOf(p *packages.Package) []call {
	calls := make(map[call]bool)
	base := func(f *ast.File) string { return filepath.Base(p.Fset.File(f.FileStart).Name()) }
	for _, file := range p.Syntax {
		for _, decl := range file.Decls {
			caller, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(caller, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				if !ok {
					return true
				}
				f, ok := p.TypesInfo.Uses[id].(*types.Func)
				if !ok || f.Pkg() != p.Types {
					return true
				}
				f = f.Origin()
				if recv := f.Signature().Recv(); recv != nil && types.IsInterface(recv.Type()) {
					return true
				}
				to := filepath.Base(p.Fset.File(f.Pos()).Name())
				if to != base(file) {
					calls[call{base(file), to, caller.Name.Name, f.Name()}] = true
				}
				return true
			})
		}
	}
	return slices.SortedFunc(maps.Keys(calls), func(a, b call) int {
		return cmp.Or(strings.Compare(a.from, b.from), strings.Compare(a.to, b.to), strings.Compare(a.caller, b.caller), strings.Compare(a.callee, b.callee))
	})
}

// layers finds an order of files, callers last, in which few calls go from an earlier file to a later one, and returns these. It
// starts from random orders, always the same ones, and moves single files as long as that helps.
func layers(calls []call) (order, against []string) {
	weight := make(map[[2]string]int)
	files := make(map[string]bool)
	for _, c := range calls {
		weight[[2]string{c.from, c.to}]++
		files[c.from], files[c.to] = true, true
	}
	const starts = 200
	rng := rand.New(rand.NewPCG(1, 1))
	for start := range starts {
		try := slices.Sorted(maps.Keys(files))
		rng.Shuffle(len(try), func(i, j int) { try[i], try[j] = try[j], try[i] })
		settle(try, weight)
		var up []string
		for _, c := range calls {
			if slices.Index(try, c.from) < slices.Index(try, c.to) {
				up = append(up, fmt.Sprintf("%s: %s calls %s of %s", c.from, c.caller, c.callee, c.to))
			}
		}
		if start == 0 || len(up) < len(against) {
			order, against = try, up
		}
	}
	return order, against
}

// settle moves single files to where fewer calls go up, until none is left to move.
func settle(order []string, weight map[[2]string]int) {
	for moved := true; moved; {
		moved = false
		for i := range order {
			best, at := 0, i
			for _, step := range []int{-1, 1} {
				gain := 0
				for j := i + step; j >= 0 && j < len(order); j += step {
					up, down := weight[[2]string{order[i], order[j]}], weight[[2]string{order[j], order[i]}]
					// Moving i before j makes i's calls to j go up, and frees j's calls to i; moving it behind j the other way.
					if step < 0 {
						gain += down - up
					} else {
						gain += up - down
					}
					if gain > best {
						best, at = gain, j
					}
				}
			}
			if best > 0 {
				file := order[i]
				copy(order, slices.Insert(slices.Delete(slices.Clone(order), i, i+1), at, file))
				moved = true
			}
		}
	}
}

// TestLayers: the order is found, and calls in a circle are counted.
func TestLayers(t *testing.T) {
	calls := []call{{"c", "b", "f", "g"}, {"b", "a", "g", "h"}, {"c", "a", "f", "h"}}
	if order, against := layers(calls); !slices.Equal(order, []string{"a", "b", "c"}) || len(against) > 0 {
		t.Errorf("%v %v", order, against)
	}
	if _, against := layers(append(calls, call{"a", "c", "h", "x"})); len(against) != 1 {
		t.Errorf("a circle: %v", against)
	}
}
