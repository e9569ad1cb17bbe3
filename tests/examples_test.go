package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
)

// Every example prints what its README says.
func TestExamples(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob("../examples/*/main.go")
	if err != nil || len(folders) == 0 {
		t.Fatal("no examples:", err)
	}
	dir := t.TempDir()
	var sources []config.IndexSource
	for _, main := range folders {
		schema, data := exampleFiles(t, filepath.Dir(main))
		schemaText, err := os.ReadFile(schema)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(data)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, config.IndexSource{Path: buildFile(t, dir, filepath.Base(data), string(schemaText), string(text))})
	}
	r := start(t, config.Config{Indexes: sources, Engine: "cpu"}, service.Options{})
	for _, main := range folders {
		folder := filepath.Dir(main)
		readme, err := os.ReadFile(filepath.Join(folder, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		run := exec.CommandContext(within(t), "go", "run", "./examples/"+filepath.Base(folder), "--nats", r.srv.NATSURL())
		run.Dir = ".."
		out, err := run.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", folder, err, out)
			continue
		}
		shown := strings.TrimRight("    "+strings.ReplaceAll(strings.TrimRight(string(out), "\n"), "\n", "\n    "), " ")
		if !strings.HasSuffix(strings.TrimRight(string(readme), "\n"), ":\n\n"+shown) {
			t.Errorf("%s prints something else than its README.md ends with:\n%s", folder, shown)
		}
	}
}

// exampleFiles returns the schema and the data of an example.
func exampleFiles(t *testing.T, folder string) (schema, data string) {
	t.Helper()
	schemas, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(schemas) != 1 {
		t.Fatalf("%s has %d schemas: %v", folder, len(schemas), err)
	}
	all, err := filepath.Glob(strings.TrimSuffix(schemas[0], "yaml") + "*")
	if err != nil || len(all) != 2 {
		t.Fatalf("%s: %v %v", folder, all, err)
	}
	if all[0] == schemas[0] {
		return all[0], all[1]
	}
	return all[1], all[0]
}
