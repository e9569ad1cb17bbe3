package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// repository makes one with a small program in the place of ours, which takes minutes to build, and a tag.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                       "module example.com/geniemq\n\ngo 1.26.0\n\nrequire github.com/nats-io/nuid v1.0.1\n",
		"go.sum":                       "github.com/nats-io/nuid v1.0.1 h1:5iA8DT8V7q8WK2EScv2padNa/rTESc1KdnPw4TC2paw=\ngithub.com/nats-io/nuid v1.0.1/go.mod h1:19wcPz3Ph3q0Jbyiqsd0kePYG7A95tJPxeL+1OSON2c=\n",
		"cmd/geniemq/main.go":          "package main\n\nimport \"github.com/nats-io/nuid\"\n\nfunc main() { println(nuid.Next()) }\n",
		"LICENSE":                      "free\n",
		"README.md":                    "# read\n",
		"CHANGELOG.md":                 "# changes\n",
		"cmd/geniemq/testdata/ignored": "",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "all"}, {"tag", "v1.2.3"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

// A release has an archive, a list of modules and checksums for each platform, all of the commit's version, and twice the same bytes. What is not committed is no
// part of it.
func TestRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles the standard library for another way to link")
	}
	source, out := repository(t), filepath.Join(t.TempDir(), "release")
	if err := os.WriteFile(filepath.Join(source, "README.md"), []byte("not committed"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), []string{"-source", source, "-out", out, "-only", "linux/amd64", "-shared-cache"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(out, sums))
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^[0-9a-f]{64}  (\S+)$`).FindAllStringSubmatch(string(text), -1)
	if len(names) != 2 {
		t.Fatalf("the checksums are of %v:\n%s", names, text)
	}
	for _, name := range names {
		if !strings.HasPrefix(name[1], "geniemq-1.2.3-") {
			t.Errorf("%s is not of the version 1.2.3", name[1])
		}
	}
	checkArchive(t, filepath.Join(out, "geniemq-1.2.3-linux-amd64.tar.gz"))
	list, err := os.ReadFile(filepath.Join(out, "geniemq-1.2.3-linux-amd64.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var bom struct {
		BOMFormat  string
		Components []component
	}
	if err := json.Unmarshal(list, &bom); err != nil || bom.BOMFormat != "CycloneDX" || len(bom.Components) != 2 || bom.Components[1].PURL != "pkg:golang/github.com/nats-io/nuid@v1.0.1" {
		t.Errorf("the list of modules: %v\n%s", err, list)
	}
}

func checkArchive(t *testing.T, file string) {
	t.Helper()
	packed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	has := make(map[string]string)
	for tape := tar.NewReader(plain); ; {
		head, err := tape.Next()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(tape)
		if err != nil {
			t.Fatal(err)
		}
		has[head.Name] = string(content)
		if program := strings.HasSuffix(head.Name, "/geniemq"); (head.Mode == 0o755) != program || head.Uname != "" || head.Uid != 0 {
			t.Errorf("%s: %+v", head.Name, head)
		}
	}
	const name = "geniemq-1.2.3-linux-amd64/"
	if len(has) != 4 || has[name+"README.md"] != "# read\n" || len(has[name+"geniemq"]) < 100_000 {
		t.Errorf("%s has %d files: %q", file, len(has), has[name+"README.md"])
	}
}

// Two folders that differ are told apart, and wrong words are refused.
func TestReleaseRefuses(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	for dir, text := range map[string]string{one: "a", two: "b"} {
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := writeSums(dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := same(one, two); err == nil || !strings.Contains(err.Error(), "differs") {
		t.Errorf("files that differ: %v", err)
	}
	if err := run(t.Context(), []string{"-only", "plan9/386"}); err == nil || !strings.Contains(err.Error(), "none of") {
		t.Errorf("another platform: %v", err)
	}
}
