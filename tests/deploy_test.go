package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/spf13/pflag"
	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/geniemq/geniemq/internal/testkit/program"
	"github.com/geniemq/geniemq/service/config"
)

// readDeployed reads a YAML file of deploy.
func readDeployed(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deploy, name))
	if err == nil {
		err = yamlv3.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// settingsOf are the settings that a command line of serve has, or those of a file, checked as serve does.
func settingsOf(t *testing.T, args []string, file string) (cfg config.Config) {
	t.Helper()
	cfg.EnsureDefaults()
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	cfg.Flags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	if err := config.Resolve(flags, func(string) (string, bool) { return "", false }, file); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if err := cfg.Validate(); err != nil {
		t.Errorf("%v %s: %v", args, file, err)
	}
	return cfg
}

// composed is what tests look at of a compose file. docker compose itself reads it where it is there.
type composed struct {
	Services map[string]struct {
		Image       string
		Command     []string
		Environment map[string]string
		Volumes     []string
		Ports       []string
		DependsOn   any `yaml:"depends_on"`
		Build       struct{ Context, Dockerfile string }
		StopGrace   string `yaml:"stop_grace_period"`
	}
	Volumes map[string]any
}

// The compose file starts what is there: its commands are geniemq's, the files it mounts exist, images have versions, and ports are this machine's. The
// example is built and inspected by those commands.
func TestCompose(t *testing.T) {
	ofProcesses(t)
	t.Parallel()
	command := program.Path(t)
	var all composed
	readDeployed(t, "compose/compose.yml", &all)
	dir := filepath.Join(deploy, "compose")
	for name, s := range all.Services {
		if s.Image != "geniemq" && !regexp.MustCompile(`:v?\d+\.\d+`).MatchString(s.Image) {
			t.Errorf("%s: the image %q has no version", name, s.Image)
		}
		for _, volume := range s.Volumes {
			from, _, _ := strings.Cut(volume, ":")
			if !strings.HasPrefix(from, ".") {
				if _, ok := all.Volumes[from]; !ok {
					t.Errorf("%s: there is no volume %s", name, from)
				}
			} else if _, err := os.Stat(filepath.Join(dir, from)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s: the port %s is open to others, and nobody is asked for a password", name, port)
			}
		}
		if s.Image == "geniemq" {
			if _, err := os.Stat(filepath.Join(dir, s.Build.Context, s.Build.Dockerfile)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	worker := all.Services["worker"].Command
	if len(worker) < 2 || worker[0] != "serve" {
		t.Fatalf("the worker's command is %v", worker)
	}
	cfg := settingsOf(t, worker[1:], "")
	for url := range strings.SplitSeq(cfg.NATS, ",") {
		if host := strings.TrimSuffix(strings.TrimPrefix(url, "nats://"), ":4222"); all.Services[host].Image == "" {
			t.Errorf("the worker asks for %s, which is no service", host)
		}
	}
	if cfg.Admin != "0.0.0.0:9464" || cfg.Indexes[0].Path != "/indexes/people.gmq" {
		t.Errorf("the worker has %+v", cfg)
	}
	var scrape struct {
		ScrapeConfigs []struct {
			JobName string `yaml:"job_name"`
			DNS     []struct {
				Names []string
				Port  int
			} `yaml:"dns_sd_configs"`
		} `yaml:"scrape_configs"`
	}
	readDeployed(t, "prometheus/prometheus.yml", &scrape)
	if s := scrape.ScrapeConfigs[0]; s.JobName != "geniemq" || !slices.Equal(s.DNS[0].Names, []string{"worker"}) || s.DNS[0].Port != 9464 {
		t.Errorf("Prometheus scrapes %+v", s)
	}

	out := t.TempDir()
	place := strings.NewReplacer("/example/", filepath.Join(dir, "example")+"/", "/indexes/", out+"/")
	var build []string
	for _, arg := range all.Services["build"].Command {
		build = append(build, place.Replace(arg))
	}
	for _, args := range [][]string{build, {"inspect", filepath.Join(out, "people.gmq"), "--verify"}} {
		if text, err := exec.CommandContext(within(t), command, args...).CombinedOutput(); err != nil {
			t.Errorf("geniemq %v: %v\n%s", args, err, text)
		}
	}
}

// A real nats-server takes the configuration of the cluster's servers, and what geniemq needs is in it.
func TestComposedServers(t *testing.T) {
	t.Setenv("SERVER_NAME", "nats-2")
	opts, err := server.ProcessConfigFile(filepath.Join(deploy, "compose", "nats.conf"))
	if err != nil {
		t.Fatal(err)
	}
	if opts.ServerName != "nats-2" || !opts.JetStream || opts.MaxPayload != 8454144 || len(opts.Routes) != 3 || opts.Cluster.Name != "genie" || opts.HTTPPort != 8222 {
		t.Errorf("%+v", opts)
	}
}

// The unit of systemd names commands and files as geniemq has them, and leaves time to drain.
func TestUnit(t *testing.T) {
	ofProcesses(t)
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(deploy, "systemd", "geniemq.service"))
	if err != nil {
		t.Fatal(err)
	}
	unit := string(text)
	for _, line := range []string{
		"\nExecStart=/usr/local/bin/geniemq serve --config /etc/geniemq/geniemq.yaml\n", "\nExecReload=/bin/kill -HUP $MAINPID\n", "\nKillSignal=SIGTERM\n", "\nTimeoutStopSec=30\n",
		"\nRestart=on-failure\n", "\nWantedBy=multi-user.target\n",
	} {
		if !strings.Contains(unit, line) {
			t.Errorf("the unit lacks %s", strings.TrimSpace(line))
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is not installed: the unit was looked at, and not verified")
		return
	}
	file := writeFile(t, t.TempDir(), "geniemq.service", []byte(strings.ReplaceAll(unit, "/usr/local/bin/geniemq", program.Path(t))))
	out, err := exec.Command(analyze, "verify", "--man=no", file).CombinedOutput()
	if bad := regexp.MustCompile(`(?m)^.*geniemq\.service.*$`).FindString(string(out)); bad != "" { // of other units it says what it likes
		t.Errorf("systemd-analyze: %v\n%s", err, bad)
	}
}

// The chart's settings are some that serve takes.
func TestChartSettings(t *testing.T) {
	t.Parallel()
	var values struct {
		Config                        map[string]any
		TerminationGracePeriodSeconds int `yaml:"terminationGracePeriodSeconds"`
	}
	readDeployed(t, "helm/geniemq/values.yaml", &values)
	values.Config["admin"] = "0.0.0.0:9464"
	text, err := yamlv3.Marshal(values.Config)
	if err != nil {
		t.Fatal(err)
	}
	cfg := settingsOf(t, nil, writeFile(t, t.TempDir(), "geniemq.yaml", text))
	if grace := values.TerminationGracePeriodSeconds; cfg.DrainTimeout.Seconds() >= float64(grace) {
		t.Errorf("draining may take %v, and Kubernetes waits for %d s", cfg.DrainTimeout, grace)
	}
}

// Images are built with the Go that go.mod wants, from stages that are there, and run as nobody.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(deploy, "docker", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join("..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(mod))[1]
	if !strings.Contains(string(text), "FROM golang:"+want+"-") {
		t.Errorf("the image is not built with Go %s", want)
	}
	stages := map[string]bool{}
	var final []string // stages that are images
	for line := range strings.Lines(string(text)) {
		if m := regexp.MustCompile(`^FROM (\S+) AS (\S+)\n$`).FindStringSubmatch(line); m != nil {
			if !stages[m[1]] && !strings.Contains(m[1], ":") {
				t.Errorf("%s is no stage and has no version", m[1])
			}
			stages[m[2]] = true
			final = append(final, m[2])
		} else if m := regexp.MustCompile(`^COPY --from=(\S+) `).FindStringSubmatch(line); m != nil && !stages[m[1]] {
			t.Errorf("%s is no stage before: %s", m[1], line)
		}
	}
	if last := final[len(final)-1]; last != "cpu" || !stages["cuda"] {
		t.Errorf("without --target the image is %s, of %v", last, final)
	}
	for _, part := range []string{"USER 65532:65532", `ENTRYPOINT ["/usr/local/bin/geniemq"]`, "CGO_ENABLED=0"} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the Dockerfile lacks %s", part)
		}
	}
}
