// Package check holds the files of deploy against what reads them: the chart against Kubernetes's own types and its schema of values, the compose file
// against the library that docker compose reads it with. It is a module of its own, so that geniemq's stays small.
package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"github.com/santhosh-tekuri/jsonschema/v6"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

const chart = "../helm/geniemq"

// values are those of values.yaml, with others over them, as helm merges them.
func values(t *testing.T, over string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all, set := make(map[string]any), make(map[string]any)
	for text, into := range map[string]*map[string]any{string(text): &all, over: &set} {
		if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
	merge(all, set)
	return all
}

func merge(into, from map[string]any) {
	for key, value := range from {
		below, ok := value.(map[string]any)
		if have, both := into[key].(map[string]any); ok && both {
			merge(have, below)
			continue
		}
		if value == nil {
			delete(into, key)
			continue
		}
		into[key] = value
	}
}

// render makes the chart's objects with the functions of helm that it uses, by kind.
func render(t *testing.T, over string) map[string][]byte {
	t.Helper()
	about := make(map[string]any)
	text, err := os.ReadFile(filepath.Join(chart, "Chart.yaml"))
	if err == nil {
		err = yaml.Unmarshal(text, &about)
	}
	if err != nil {
		t.Fatal(err)
	}
	capital := make(map[string]any) // as templates name them
	for key, value := range about {
		capital[strings.ToUpper(key[:1])+key[1:]] = value
	}
	all := template.New("").Option("missingkey=zero")
	functions := sprig.TxtFuncMap()
	functions["toYaml"] = func(v any) (string, error) {
		text, err := yaml.Marshal(v)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	functions["include"] = func(name string, data any) (string, error) {
		var out bytes.Buffer
		err := all.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	all.Funcs(functions)
	files, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	if err != nil || len(files) < 8 {
		t.Fatalf("templates: %v, %v", files, err)
	}
	const base = "geniemq/templates"
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		template.Must(all.New(base + "/" + filepath.Base(file)).Parse(string(text)))
	}
	data := map[string]any{
		"Values": values(t, over), "Chart": capital,
		"Release":  map[string]any{"Name": "prod", "Namespace": "search", "Service": "Helm"},
		"Template": map[string]any{"BasePath": base},
	}
	objects := make(map[string][]byte)
	for _, file := range files {
		if strings.HasSuffix(file, ".tpl") {
			continue
		}
		var out bytes.Buffer
		if err := all.ExecuteTemplate(&out, base+"/"+filepath.Base(file), data); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "<no value>") {
			t.Errorf("%s prints what is not there:\n%s", file, &out)
		}
		if strings.HasSuffix(file, ".txt") || len(bytes.TrimSpace(out.Bytes())) == 0 {
			continue
		}
		var head struct{ Kind string }
		if err := yaml.Unmarshal(out.Bytes(), &head); err != nil || head.Kind == "" || objects[head.Kind] != nil {
			t.Fatalf("%s: %v, kind %q:\n%s", file, err, head.Kind, &out)
		}
		objects[head.Kind] = out.Bytes()
	}
	return objects
}

// strict reads an object as Kubernetes does, and refuses what it does not know.
func strict[T any](t *testing.T, objects map[string][]byte, kind string) (object T) {
	t.Helper()
	if err := yaml.UnmarshalStrict(objects[kind], &object); err != nil {
		t.Fatalf("%s: %v\n%s", kind, err, objects[kind])
	}
	return object
}

// variants of values that switch on what is off.
const everything = `
existingSecret: geniemq
adminTokenSecret: geniemq-admin
gpu: {count: 2, runtimeClassName: nvidia}
autoscaling: {enabled: true, natsLag: {enabled: true}}
serviceMonitor: {enabled: true, labels: {release: prometheus}}
imagePullSecrets: [{name: registry}]
podLabels: {team: search}
podAnnotations: {note: "1"}
nodeSelector: {gpu: h200}
tolerations: [{key: nvidia.com/gpu, operator: Exists}]
affinity: {nodeAffinity: {}}
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
config: {context: /secrets/context.json, nats: null, index: {words: /indexes/words.gmq}}
data: {volume: {emptyDir: null, persistentVolumeClaim: {claimName: fetched}}}
`

func TestChart(t *testing.T) {
	for name, over := range map[string]string{"defaults": "", "everything": everything, "little": "podDisruptionBudget: {enabled: false}\nserviceAccount: {create: false}\n",
		"fetched": "config: {index: {people: 'nats:'}}\nindexes: {volume: {persistentVolumeClaim: null, emptyDir: {}}}\n", "placed": "config: {data-dir: /tmp/data}\n"} {
		t.Run(name, func(t *testing.T) {
			objects := render(t, over)
			d := strict[appsv1.Deployment](t, objects, "Deployment")
			settings := settingsOf(t, objects)
			service := strict[corev1.Service](t, objects, "Service")
			selector, labels := d.Spec.Selector.MatchLabels, d.Spec.Template.Labels
			for _, s := range []map[string]string{selector, service.Spec.Selector} {
				for key, value := range s {
					if labels[key] != value {
						t.Errorf("%s=%s selects none of %v", key, value, labels)
					}
				}
			}
			if objects["PodDisruptionBudget"] != nil {
				budget := strict[policyv1.PodDisruptionBudget](t, objects, "PodDisruptionBudget")
				if !reflect.DeepEqual(budget.Spec.Selector.MatchLabels, selector) {
					t.Errorf("the budget is for %v", budget.Spec.Selector)
				}
			}
			if objects["ServiceAccount"] != nil {
				account := strict[corev1.ServiceAccount](t, objects, "ServiceAccount")
				if account.Name != d.Spec.Template.Spec.ServiceAccountName {
					t.Errorf("the account %s is not that of the workers, %s", account.Name, d.Spec.Template.Spec.ServiceAccountName)
				}
			}
			checkPod(t, &d.Spec.Template.Spec)
			if dir, _ := settings["data-dir"].(string); !writable(&d.Spec.Template.Spec, dir) {
				t.Errorf("a worker cannot write data-dir, %q, where it keeps the indexes that it fetches", dir)
			}
			schema(t, values(t, over), "")
		})
	}
	off, on := render(t, ""), render(t, everything)
	for _, kind := range []string{"ScaledObject", "ServiceMonitor"} {
		if off[kind] != nil || on[kind] == nil {
			t.Errorf("%s is there when it is off, or not when it is on", kind)
		}
	}
	d := strict[appsv1.Deployment](t, on, "Deployment")
	if d.Spec.Replicas != nil {
		t.Error("two say how many workers there are")
	}
	if gpus := d.Spec.Template.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]; gpus.Value() != 2 {
		t.Errorf("workers have %v GPUs", gpus)
	}
	if settings := settingsOf(t, on); settings["engine"] != "cuda" || settings["admin"] != "0.0.0.0:9464" || settings["admin-token-file"] != "/admin/token" || settings["nats"] != nil {
		t.Errorf("the settings are %v", settings)
	}
}

// settingsOf are the settings of the workers.
func settingsOf(t *testing.T, objects map[string][]byte) (settings map[string]any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(strict[corev1.ConfigMap](t, objects, "ConfigMap").Data["geniemq.yaml"]), &settings); err != nil {
		t.Fatal(err)
	}
	return settings
}

// writable says whether the worker can make a folder: the root of its file system is read-only, so something must be mounted there that is not.
func writable(pod *corev1.PodSpec, dir string) bool {
	for _, m := range pod.Containers[0].VolumeMounts {
		if dir == m.MountPath || strings.HasPrefix(dir, m.MountPath+"/") {
			return !m.ReadOnly
		}
	}
	return false
}

// checkPod: what is mounted is there, probes ask ports that are open, and there is time to drain.
func checkPod(t *testing.T, pod *corev1.PodSpec) {
	t.Helper()
	volumes, ports := make(map[string]bool), make(map[string]bool)
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
	}
	c := &pod.Containers[0]
	for _, p := range c.Ports {
		ports[p.Name] = true
	}
	for _, m := range c.VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("%s is mounted and not there", m.Name)
		}
		delete(volumes, m.Name)
	}
	if len(volumes) > 0 {
		t.Errorf("%v are there and not mounted", slices.Collect(maps.Keys(volumes)))
	}
	for name, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil || !ports[probe.HTTPGet.Port.String()] || !slices.Contains([]string{"/healthz", "/readyz"}, probe.HTTPGet.Path) {
			t.Errorf("the %s probe is %v", name, probe)
		}
	}
	const startup = 600 // seconds, the chart's default
	if p := c.StartupProbe; p.PeriodSeconds*p.FailureThreshold != startup {
		t.Errorf("a worker may load for %d times %d s", p.FailureThreshold, p.PeriodSeconds)
	}
	const drain = 20 // seconds, geniemq's default
	if pre := c.Lifecycle.PreStop.Sleep; pre == nil || *pod.TerminationGracePeriodSeconds < pre.Seconds+drain {
		t.Errorf("a worker may take %d s to end, after %v", *pod.TerminationGracePeriodSeconds, pre)
	}
}

// schema holds values against values.schema.json. wrong names what is to be found wrong, "" nothing.
func schema(t *testing.T, values map[string]any, wrong string) {
	t.Helper()
	compiled, err := jsonschema.NewCompiler().Compile(filepath.Join(chart, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiled.Validate(plain); (err == nil) != (wrong == "") || err != nil && !strings.Contains(fmt.Sprint(err), wrong) {
		t.Errorf("wrong should be %q: %v", wrong, err)
	}
}

// Values that make no sense are refused, and every value has its place in the schema.
func TestChartSchema(t *testing.T) {
	for over, wrong := range map[string]string{
		"replica: 3":                               "replica",
		"replicas: 0":                              "/replicas",
		"replicas: many":                           "/replicas",
		"image: {pullPolicy: Sometimes}":           "/image/pullPolicy",
		"config: {nats: null}":                     "/config",
		"config: {index: {a b: x.gmq}}":            "propertyName",
		"config: {admin: off}":                     "/config/admin",
		"gpu: {count: -1}":                         "/gpu/count",
		"autoscaling: {minReplicaCount: 0}":        "/autoscaling/minReplicaCount",
		"indexes: {volume: {a: {}}}":               "/indexes/volume",
		"serviceMonitor: {labels: {a: 1}}":         "/serviceMonitor/labels/a",
		"autoscaling: {prometheus: {query: down}}": "/autoscaling/prometheus",
	} {
		schema(t, values(t, over), wrong)
	}
}

// Every template is written with what render knows, so that helm and it agree: no files, no look-ups in a cluster.
func TestChartIsPlain(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"lookup", ".Files", "tpl ", ".Capabilities", "fromYaml", "required "} {
			if strings.Contains(string(text), word) {
				t.Errorf("%s uses %s", file, word)
			}
		}
	}
}
