package check

import (
	"path/filepath"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
)

// What docker compose reads the file with finds nothing wrong with it.
func TestComposeFile(t *testing.T) {
	options, err := cli.NewProjectOptions([]string{filepath.Join("..", "compose", "compose.yml")}, cli.WithName("geniemq"))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if workers := project.Services["worker"].Deploy.Replicas; workers == nil || *workers != 2 || len(project.Services) < 7 {
		t.Errorf("%d services, %v workers", len(project.Services), workers)
	}
}
