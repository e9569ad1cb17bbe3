package tests

import (
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// unused are packages, and names of packages, that no program of ours needs, each with its reason.
var unused = map[string]string{
	"client":             "applications use it",
	"gpuexec/cuda/abi":   "constants of kernels, which a test compares with their sources",
	"index/metric/bound": "proofs, and what kernels take of them",

	"gpuexec/cuda/plan.PathSliced":    "tests of the device force it",
	"gpuexec/cuda/plan.Index.Resting": "tests of the device ask for how long the bound rests",

	"wire/value.Null":        "a kind of value like the others",
	"index/column.otherForm": "a form like the others",
}

// forTests are packages that no program has, by the beginnings of their names; what only they use is not used.
var forTests = []string{"tests", "internal/testkit", "gpuexec/enginetest", "gpuexec/flatscan"}

// An entity is a function, a method, a type, a constant or a variable of a package, which the file and the line tell from
// all others in every load of packages.
type entity struct {
	file string
	line int
	name string
}

// checkUsed reports what is there for tests alone: nothing but test files mentions it, which can have what they need in files of
// their own. Methods that may be called through an interface are taken to be used.
func checkUsed(t *testing.T, loaded []*packages.Package) {
	declared, used := make(map[entity]string), make(map[entity]bool)
	throughInterface := map[string]bool{"Unwrap": true, "Is": true, "As": true} // of errors
	for _, p := range loaded {
		at := func(o types.Object) entity {
			place := p.Fset.Position(o.Pos())
			return entity{filepath.Base(place.Filename), place.Line, o.Name()}
		}
		addInterfaces(throughInterface, p)
		if slices.ContainsFunc(forTests, func(name string) bool { return strings.HasPrefix(nameOf(p), name) }) {
			continue
		}
		for _, o := range p.TypesInfo.Defs {
			if name := fullName(p, o); name != "" && !strings.HasPrefix(o.Name(), "_C") { // what cgo makes
				declared[at(o)] = name
			}
		}
		for _, o := range p.TypesInfo.Uses {
			if f, ok := o.(*types.Func); ok {
				o = f.Origin()
			}
			used[at(o)] = true
		}
	}
	names := make(map[string]bool)
	for e, name := range declared {
		names[name] = true
		slash := strings.LastIndexByte(name, '/') + 1
		parts := strings.Split(name[slash:], ".")
		excused := unused[name] != ""
		switch {
		case used[e] && excused:
			t.Errorf("%s is used: tests/used_test.go need not excuse it", name)
		case used[e], excused, unused[name[:slash]+parts[0]] != "":
		case len(parts) == 3 && throughInterface[e.name]:
		default:
			t.Errorf("%s (%s:%d) is there for tests alone: let it leave the product", name, e.file, e.line)
		}
	}
	for name := range unused {
		if strings.Contains(name, ".") && !names[name] {
			t.Errorf("%s, which tests/used_test.go excuses, is not there", name)
		}
	}
}

// fullName is the name of an object of a package that somebody has to use, with its package and its receiver; empty of others.
func fullName(p *packages.Package, o types.Object) string {
	if o == nil || o.Pkg() != p.Types || o.Name() == "_" {
		return ""
	}
	f, ok := o.(*types.Func)
	switch {
	case ok && f.Signature().Recv() != nil:
		receiver := f.Signature().Recv().Type()
		if pointer, ok := receiver.(*types.Pointer); ok {
			receiver = pointer.Elem()
		}
		named, ok := receiver.(*types.Named)
		if !ok || types.IsInterface(receiver) {
			return ""
		}
		return nameOf(p) + "." + named.Obj().Name() + "." + o.Name()
	case o.Parent() != p.Types.Scope(), ok && (o.Name() == "main" || o.Name() == "init"):
		return ""
	}
	return nameOf(p) + "." + o.Name()
}

// addInterfaces adds the methods of interfaces that a package has or imports.
func addInterfaces(methods map[string]bool, p *packages.Package) {
	add := func(x types.Type) {
		if i, ok := x.Underlying().(*types.Interface); ok {
			for m := range i.Methods() {
				methods[m.Name()] = true
			}
		}
	}
	for _, x := range p.TypesInfo.Types {
		if _, ok := x.Type.(*types.Interface); ok {
			add(x.Type)
		}
	}
	for _, from := range append(p.Types.Imports(), p.Types) {
		for _, name := range from.Scope().Names() {
			if o, ok := from.Scope().Lookup(name).(*types.TypeName); ok {
				add(o.Type())
			}
		}
	}
}
