// Package tests holds the checks that concern more than one package.
package tests

import (
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/geniemq/geniemq"

// rule says what a package may import: of ours, and of third parties (a prefix of the import path). Test files
// are held to neither: they may look anywhere.
type rule struct {
	ours, modules []string
}

const (
	natsGo = "github.com/nats-io/nats.go"
	nuid   = "github.com/nats-io/nuid"
	xtext  = "golang.org/x/text"
	cudaGo = "gorgonia.org/cu"
	// jsontext is the tokenizer that encoding/json is moving to.
	jsontext = "github.com/go-json-experiment/json"
	xxhash   = "github.com/cespare/xxhash/v2"
	yaml     = "go.yaml.in/yaml/v3"
)

// rules is the table of DESIGN.md, "Packages". A package that is not listed fails the test, so that a new one is
// a decision.
var rules = map[string]rule{
	// Heads and scalars of MessagePack.
	"internal/msgpack": {nil, nil},
	// A channel that wakes, which consumer, producer and pipeline wait at.
	"internal/bell": {nil, nil},
	// All cores at once.
	"internal/alarm": {nil, []string{"golang.org/x/sys"}},
	// Memory that is used again.
	"internal/pool": {nil, nil},
	"internal/crew": {nil, nil},
	// Programs to start from, with what an application has.
	"examples/lookup":     {[]string{"client"}, []string{natsGo}},
	"examples/facets":     {[]string{"client"}, []string{natsGo}},
	"examples/cities":     {nil, []string{natsGo}},
	"examples/duplicates": {[]string{"client"}, []string{natsGo}},
	// For tests only.
	"internal/testkit":          {[]string{"wire", "index", "index/schema", "internal/testkit/onebyone"}, []string{natsGo, "github.com/nats-io/nats-server/v2", "go.uber.org/goleak"}},
	"internal/testkit/cluster":  {[]string{"service/broker"}, nil},
	"internal/testkit/naive":    {[]string{"index/filter"}, nil},
	"internal/testkit/program":  {nil, nil},
	"internal/testkit/onebyone": {[]string{"index", "index/postings", "index/schema"}, nil},
	"internal/testkit/raced":    {nil, nil},
	"internal/testkit/seeded":   {nil, nil},
	"internal/testkit/real":     {[]string{"internal/testkit/raced"}, nil},
	// Values of shapes that only a type of column knows.
	"wire/value": {[]string{"internal/msgpack"}, []string{jsontext}},
	"wire":       {[]string{"internal/msgpack", "wire/fields", "wire/value"}, []string{jsontext, "github.com/klauspost/compress"}},
	// The table of the protocol, and what is made of it for other programs.
	"wire/fields":          {nil, nil},
	"wire/schema":          {[]string{"wire/fields"}, nil},
	"wire/schema/generate": {[]string{"wire/schema"}, nil},

	"internal/varint":    {nil, nil},
	"internal/bits":      {nil, nil},
	"internal/processor": {nil, []string{"golang.org/x/sys"}},
	"index/schema":       {[]string{"index/levenshtein", "index/stopwords"}, []string{yaml}},
	"index/ngram":        {nil, nil},
	// Hash functions of vectors. The generator of their assembly is no part of the program.
	"index/lsh":             {[]string{"index/lsh/block", "index/metric/sums", "internal/spread"}, []string{"gonum.org/v1/gonum"}},
	"index/lsh/block":       {nil, []string{"golang.org/x/sys"}},
	"index/lsh/block/asm":   {nil, []string{"github.com/mmcloughlin/avo"}},
	"index/lsh/planner":     {nil, []string{"gonum.org/v1/gonum"}},
	"index/store":           {[]string{"index/schema"}, []string{xxhash, "github.com/edsrzf/mmap-go", "golang.org/x/sync", "golang.org/x/sys"}},
	"index/values":          {[]string{"index/schema", "index/store"}, []string{xxhash}},
	"index/stopwords":       {nil, nil},
	"index/filter":          {nil, nil},
	"index/postings":        {[]string{"index/filter", "index/schema", "index/store", "index/values", "internal/bits", "internal/inorder", "internal/pool", "internal/spread"}, []string{"golang.org/x/sync"}},
	"index/objects":         {[]string{"index/schema", "index/store"}, []string{xxhash, jsontext}},
	"index/postings/single": {[]string{"index/filter", "index/postings", "index/schema", "index/store"}, nil},
	"index/forward":         {[]string{"index/metric/sums", "index/filter", "index/graph", "index/schema", "index/similarity", "index/store", "index/tree", "index/values", "internal/inorder"}, []string{"github.com/klauspost/compress", jsontext}},
	"index/fold":            {nil, []string{xtext}},
	"index/segment":         {nil, []string{"github.com/clipperhouse/uax29/v2", xtext}},
	"index/column":          {[]string{"index/distance", "index/filter", "index/fold", "index/schema", "index/segment", "index/ngram", "index/postings", "wire/value", "index/dates", "index/notation", "index/refusal"}, []string{jsontext}},
	"index":                 {[]string{"index/metric", "index/filling", "internal/pool", "index/objects", "index/postings/single", "index/filter", "index/similarity", "index/schema", "index/store", "index/postings", "index/forward", "index/column", "index/column/vector", "index/verify", "index/values", "index/column/structure", "internal/inorder", "index/column/minhash", "index/column/point", "index/distance", "index/nearest", "index/lsh", "index/refusal"}, []string{"golang.org/x/sync"}},
	"index/load":            {[]string{"index/load/array", "index/load/columnar", "index/load/cut", "index/load/elements", "index/load/jsonpath", "index/load/source", "index/notation", "index/schema", "internal/human", "internal/inorder"}, []string{jsontext, "github.com/parquet-go/parquet-go"}},
	"index/load/array":      {nil, nil},
	"index/load/columnar":   {nil, []string{"github.com/parquet-go/parquet-go"}},
	"index/load/source":     {nil, []string{xtext, "github.com/klauspost/compress"}},
	"index/load/cut":        {nil, nil},
	"index/load/elements":   {nil, nil},
	"index/load/jsonpath":   {nil, nil},
	"index/column/vector":   {[]string{"internal/spill", "index/metric/recall", "index/column", "index/distance", "index/lsh", "index/metric", "index/schema", "wire/value"}, nil},
	"index/column/point":    {[]string{"index/column", "index/distance", "index/schema"}, nil},
	"index/nearest":         {[]string{"index/distance", "index/refusal", "index/schema"}, nil},
	"index/distance":        {[]string{"index/filter", "index/forward", "index/metric", "index/metric/cells", "index/metric/descent", "index/metric/permutation", "index/metric/sums", "index/metric/tree", "index/schema", "index/store", "internal/spill", "index/metric/cost", "index/metric/recall"}, nil},
	"index/verify":          {[]string{"index/filter", "index/forward", "index/graph", "index/levenshtein", "index/ngram", "index/schema", "index/similarity", "index/store", "index/tree"}, nil},
	"kernels":               {nil, nil},
	"kernels/emulator":      {nil, nil},
	"index/shown":           {[]string{"index", "index/column", "index/forward"}, []string{jsontext}},
	"gpuexec":               {[]string{"index/verify"}, nil},
	"gpuexec/topk":          {nil, nil},
	"gpuexec/run":           {[]string{"index/metric", "internal/alarm", "internal/pool", "gpuexec", "gpuexec/topk", "index/filter", "index/verify", "index/lsh", "index/refusal"}, nil},
	"gpuexec/cpu/nearest":   {[]string{"gpuexec", "gpuexec/passing", "gpuexec/run", "index/distance", "index/filter", "index/metric", "index/postings", "index/verify", "index/metric/cost", "index/ngram", "index/schema", "index/store", "internal/pool", "internal/processor"}, nil},
	"gpuexec/cpu":           {[]string{"internal/pool", "gpuexec/cpu/nearest", "index/distance", "gpuexec", "gpuexec/run", "gpuexec/topk", "index/filter", "index/postings", "index/schema", "index/store", "internal/bits", "gpuexec/passing"}, nil},
	// What makes one engine of several.
	"gpuexec/group": {[]string{"index/metric", "internal/pool", "gpuexec", "gpuexec/run", "gpuexec/topk", "index/filter", "index/lsh", "index/verify"}, nil},
	// Pieces, forms on the device, placement, policies: needs no device.
	"gpuexec/cuda/plan":   {[]string{"internal/pool", "gpuexec", "gpuexec/passing", "gpuexec/run", "gpuexec/topk", "gpuexec/cuda/abi", "gpuexec/cuda/filters", "gpuexec/cuda/profile", "index/filter", "index/postings", "index/schema", "index/verify", "gpuexec/cuda/rescoring", "gpuexec/cuda/texts"}, nil},
	"gpuexec/cuda/device": {[]string{"gpuexec", "gpuexec/cuda/turns", "gpuexec/run", "gpuexec/cuda/abi", "gpuexec/cuda/plan", "gpuexec/cuda/profile", "index/filter", "index/postings", "index/schema", "index/verify", "kernels", "gpuexec/passing", "index/lsh", "gpuexec/cuda/rescoring"}, []string{cudaGo}},
	// Searches by distance: what of them runs on a device, planned without one.
	"gpuexec/cuda/nearest":    {[]string{"gpuexec", "gpuexec/run", "gpuexec/cpu/nearest", "gpuexec/cuda/abi", "gpuexec/cuda/plan", "gpuexec/cuda/profile", "gpuexec/cuda/texts", "index/distance", "index/filter", "index/metric", "index/metric/bound", "index/metric/cells", "index/metric/permutation", "index/metric/tree"}, nil},
	"gpuexec/cuda/neighbours": {[]string{"index/metric/sums", "gpuexec", "gpuexec/run", "gpuexec/cpu/nearest", "gpuexec/cuda/abi", "gpuexec/cuda/device", "gpuexec/cuda/nearest", "gpuexec/cuda/plan", "gpuexec/cuda/profile", "gpuexec/cuda/room", "gpuexec/cuda/textscan", "index/distance", "index/filter", "index/metric"}, nil},
	"gpuexec/cuda/textscan":   {[]string{"gpuexec", "gpuexec/run", "gpuexec/cpu/nearest", "gpuexec/cuda/abi", "gpuexec/cuda/device", "gpuexec/cuda/nearest", "gpuexec/cuda/room", "gpuexec/cuda/texts", "index/distance", "index/metric", "kernels"}, nil},
	"gpuexec/cuda/room":       {[]string{"gpuexec", "gpuexec/run", "gpuexec/cuda/device", "gpuexec/cuda/plan", "index/filter", "index/postings"}, nil},
	// Who has a lane.
	"gpuexec/cuda/turns": {[]string{"gpuexec"}, nil},
	// What the host and the kernels agree on.
	"gpuexec/cuda/abi": {nil, nil},
	// What was measured of devices, and how filters lie on one.
	"gpuexec/cuda/profile": {[]string{"gpuexec/cuda/abi"}, nil},
	"gpuexec/cuda/texts":   {[]string{"gpuexec/run", "gpuexec/topk", "gpuexec/cuda/abi"}, nil},
	"gpuexec/cuda/filters": {[]string{"gpuexec/run", "gpuexec/cuda/abi", "index/filter", "index/postings", "index/schema"}, nil},
	"gpuexec/open":         {[]string{"gpuexec", "gpuexec/run", "gpuexec/cpu", "index/distance", "gpuexec/group", "gpuexec/cuda/device", "gpuexec/cuda/neighbours", "gpuexec/cuda/plan", "gpuexec/cuda/profile", "index/postings", "index/verify", "kernels", "gpuexec/cuda/rescoring"}, nil},
	// What the tests of engines are made of. No product package imports it.
	"gpuexec/enginetest": {[]string{"index/levenshtein", "bench/workload", "gpuexec", "gpuexec/flatscan", "index", "index/schema", "index/column", "index/load", "index/postings", "index/verify", "index/filter", "index/store", "internal/testkit/naive", "internal/testkit/onebyone", "internal/testkit/raced", "index/refusal", "index/forward"}, nil},
	// The yardstick of the CPU engine: it must not share code with what it checks.
	"gpuexec/flatscan":      {[]string{"index/metric", "index/postings", "index/store", "index/filter"}, nil},
	"batcher":               {nil, nil},
	"consumer":              {[]string{"wire", "internal/bell", "consumer/streams"}, []string{natsGo}},
	"producer":              {[]string{"consumer/streams", "wire", "internal/bell"}, []string{natsGo}},
	"bodystore":             {[]string{"wire"}, []string{natsGo, nuid}},
	"service/fetch":         {[]string{"bodystore", "consumer", "internal/bell", "service/memory", "wire"}, nil},
	"client":                {[]string{"bodystore", "internal/bell", "wire"}, []string{natsGo, nuid}},
	"service/memory":        {[]string{"internal/human", "internal/bell"}, []string{"github.com/prometheus"}},
	"service/exclusion":     {nil, nil},
	"service/door":          {[]string{"bodystore", "wire", "wire/fields", "wire/schema"}, []string{natsGo, nuid}},
	"service/translate":     {[]string{"internal/pool", "index/postings/single", "wire", "gpuexec", "index", "index/shown", "index/column", "index/distance", "index/nearest", "index/filter", "index/postings", "index/schema", "index/verify", "index/refusal"}, nil},
	"service/pipeline":      {[]string{"internal/pool", "index/distance", "wire", "batcher", "gpuexec", "index", "index/postings", "index/store", "service/exclusion", "service/memory", "service/translate", "internal/bell", "internal/crew", "internal/human", "service/admission"}, nil},
	"service/generation":    {[]string{"gpuexec", "index", "index/distance", "index/postings", "index/schema", "index/store", "service/pipeline", "service/translate", "internal/bell"}, nil},
	"service/intake":        {[]string{"consumer", "internal/pool", "producer", "service/admission", "service/clock", "service/config", "service/fetch", "service/generation", "service/identity", "service/memory", "service/metrics", "service/observe", "service/pipeline", "service/storedanswers", "service/suspects", "service/translate", "wire"}, []string{natsGo}},
	"service/served":        {[]string{"consumer", "consumer/streams", "gpuexec", "index", "internal/bell", "service/clock", "service/config", "service/connection", "service/exclusion", "service/fetch", "service/generation", "service/intake", "service/memory", "service/metrics", "service/observe", "service/pipeline", "service/repeats", "service/storedanswers", "service/streamwatch", "service/suspects", "wire"}, []string{natsGo}},
	"service":               {[]string{"bodystore", "service/fetch", "wire", "index", "gpuexec", "gpuexec/open", "consumer", "producer", "internal/human", "service/admin", "service/broker", "service/clock", "service/config", "service/connection", "service/depot", "service/exclusion", "service/generation", "service/intake", "service/memory", "service/metrics", "service/observe", "service/repeats", "service/served", "service/suspects", "internal/bell", "consumer/letters", "service/door", "consumer/streams", "service/admission", "service/storedanswers", "service/streamwatch"}, []string{natsGo}},
	"consumer/streams":      {[]string{"bodystore", "wire", "internal/bell", "internal/human"}, []string{natsGo}},
	"service/admission":     {[]string{"wire"}, nil},
	"service/storedanswers": {[]string{"internal/bell", "service/identity", "wire"}, []string{natsGo}},
	"service/identity":      {[]string{"consumer", "wire"}, []string{natsGo}},
	"service/streamwatch":   {[]string{"internal/bell", "service/clock", "wire"}, []string{natsGo}},
	// What is measured: data, their index, queries, and the right answers.
	"bench/workload": {[]string{"wire", "index", "index/lsh", "index/levenshtein", "index/schema", "index/similarity", "wire/value", "index/store", "index/postings", "index/load", "gpuexec", "service/translate", "bench/export"}, nil},
	"bench": {
		[]string{"bench/workload", "wire", "index", "index/postings", "index/store", "gpuexec", "gpuexec/cpu", "gpuexec/open", "gpuexec/flatscan", "service", "service/broker", "service/config", "service/connection", "internal/bell"},
		[]string{natsGo, "github.com/prometheus/common"},
	},
	"cmd/geniemq/depots":  {[]string{"cmd/geniemq/table", "internal/human", "service/config", "service/connection", "service/depot", "wire"}, []string{natsGo, "github.com/spf13"}},
	"cmd/geniemq/inspect": {[]string{"gpuexec/open", "index", "index/distance", "index/lsh", "index/postings", "index/schema", "index/store", "index/verify", "internal/human", "index/metric/cost", "cmd/geniemq/table"}, nil},
	"cmd/geniemq":         {[]string{"index/metric", "bench/near", "bench/sets", "cmd/geniemq/depots", "cmd/geniemq/filled", "cmd/geniemq/inputs", "cmd/geniemq/inspect", "index/filling", "index/guess", "wire", "index", "index/schema", "index/store", "index/load", "index/lsh/planner", "gpuexec", "gpuexec/open", "client", "service", "bench", "bench/workload", "internal/human", "service/config", "service/connection", "index/lsh", "cmd/geniemq/answers", "cmd/geniemq/dead", "cmd/geniemq/table", "cmd/geniemq/top", "cmd/geniemq/match", "cmd/geniemq/progress", "cmd/geniemq/operate", "cmd/geniemq/measured", "cmd/geniemq/planned"}, []string{natsGo, "github.com/spf13", "golang.org/x/term"}},
	"cmd/geniemq/operate": {[]string{"cmd/geniemq/table", "consumer/streams", "internal/human", "service/admin", "service/config", "service/connection", "wire"}, []string{"github.com/spf13"}},
	"tests":               {nil, nil},
	"tests/toy":           {nil, nil},
	"tests/walkthroughs":  {nil, nil},
	// The oracle of mixed records: tests alone.
	"tests/records":      {nil, nil},
	"tests/faults/disk":  {nil, nil},
	"tests/faults/proxy": {nil, nil},
	// The judge knows what is on disk and what brute force says of it: nothing of what it judges.
	"tests/faults/history": {nil, nil},
	"tests/faults/crowd":   {[]string{"client", "index", "index/load", "wire"}, nil},
	"tests/faults/judge":   {[]string{"tests/faults/crowd", "tests/faults/history"}, nil},
	"tests/faults": {
		[]string{"tests/faults/crowd", "tests/faults/disk", "tests/faults/history", "tests/faults/judge", "tests/faults/proxy", "cmd/geniemq/table", "consumer/streams", "gpuexec", "gpuexec/open", "service", "service/config", "wire"},
		[]string{natsGo, "github.com/nats-io/nats-server/v2", "github.com/spf13"},
	},

	// What the types of columns are made of: structures that become keywords, and the arithmetic of scores.
	"index/tree":        {[]string{"internal/varint"}, nil},
	"index/graph":       {[]string{"internal/varint"}, nil},
	"index/similarity":  {[]string{"index/metric/sums"}, nil},
	"index/levenshtein": {nil, []string{"golang.org/x/sys"}},
	"index/metric":      {[]string{"index/levenshtein", "index/metric/bound", "index/metric/fenced", "index/metric/sums"}, nil},
	// What finds the nearest objects of a space without comparing all.
	"index/metric/tree":    {[]string{"index/metric", "index/metric/bound", "index/metric/sorting", "internal/spread", "index/metric/cost", "index/metric/columns", "internal/pool"}, nil},
	"index/metric/sorting": {[]string{"index/metric", "internal/spread"}, nil},
	"index/metric/bound":   {nil, nil},
	"index/metric/fenced":  {nil, nil},
	"index/metric/sums":    {nil, []string{"golang.org/x/sys"}},
	// The generator of its assembly is no part of the program.
	"index/metric/sums/asm": {nil, []string{"github.com/mmcloughlin/avo"}},
	"index/levenshtein/asm": {nil, []string{"github.com/mmcloughlin/avo"}},

	"internal/human":   {nil, nil},
	"service/admin":    {[]string{"consumer/letters", "internal/human", "service/live"}, []string{"github.com/prometheus"}},
	"service/live":     {nil, []string{"github.com/prometheus"}},
	"consumer/letters": {[]string{"bodystore", "consumer", "wire"}, []string{natsGo}},
	// What commands show: tables, results, a worker live, dead letters.
	"cmd/geniemq/table":      {nil, []string{"github.com/charmbracelet/colorprofile", "github.com/charmbracelet/x/ansi", "golang.org/x/term"}},
	"cmd/geniemq/answers":    {[]string{"cmd/geniemq/table", "index/schema", "internal/human", "service/translate", "wire"}, nil},
	"cmd/geniemq/measured":   {[]string{"cmd/geniemq/table"}, nil},
	"cmd/geniemq/top":        {[]string{"cmd/geniemq/table", "internal/human", "service/admin", "service/live"}, []string{"charm.land/bubbletea/v2"}},
	"cmd/geniemq/dead":       {[]string{"cmd/geniemq/table", "consumer/letters", "internal/human", "service/config", "service/connection", "wire"}, []string{"github.com/spf13"}},
	"service/metrics":        {[]string{"wire", "service/pipeline"}, []string{"github.com/prometheus"}},
	"service/observe":        {[]string{"wire", "service/metrics", "service/pipeline"}, []string{"go.opentelemetry.io/otel"}},
	"service/clock":          {nil, nil},
	"service/repeats":        {[]string{"internal/bell"}, nil},
	"service/suspects":       {[]string{"consumer", "service/exclusion", "service/pipeline", "internal/bell"}, nil},
	"service/connection":     {[]string{"service/config"}, []string{natsGo, "github.com/synadia-io/orbit.go/natscontext"}},
	"service/depot":          {[]string{"index", "internal/human", "service/config", "wire"}, []string{natsGo}},
	"service/broker":         {[]string{"internal/bell", "internal/lock"}, []string{"github.com/nats-io/nats-server/v2"}},
	"service/config":         {[]string{"wire", "gpuexec", "internal/human", "service/memory", "consumer/streams", "service/admission"}, []string{natsGo, "github.com/spf13/pflag", yaml}},
	"gpuexec/passing":        {[]string{"gpuexec/run", "index/filter", "index/postings", "index/schema", "index/store"}, nil},
	"index/column/structure": {[]string{"index/column", "index/graph", "index/schema", "index/tree", "wire/value"}, []string{jsontext}},
	"index/dates":            {nil, nil},
	"index/filling":          {nil, nil},
	"index/notation":         {nil, []string{xtext}},
	"index/guess":            {[]string{"index/dates", "index/load", "index/load/source", "index/notation", "index/schema", "index/load/elements", "index/load/jsonpath"}, []string{yaml, jsontext, "github.com/gogs/chardet"}},
	"cmd/geniemq/inputs":     {[]string{"index/guess", "index/load", "index/schema", "cmd/geniemq/progress"}, []string{"github.com/spf13"}},
	"cmd/geniemq/progress":   {nil, []string{"github.com/schollz/progressbar/v3"}},
	"cmd/geniemq/figure":     {[]string{"cmd/geniemq/table"}, []string{"github.com/guptarohit/asciigraph", "github.com/wcharczuk/go-chart/v2"}},
	// Which rows of a file are objects of an index, or each other.
	"cmd/geniemq/match":            {[]string{"client", "cmd/geniemq/figure", "cmd/geniemq/inputs", "cmd/geniemq/match/alike", "cmd/geniemq/match/journal", "cmd/geniemq/match/pairing", "cmd/geniemq/progress", "cmd/geniemq/table", "index", "index/dates", "index/distance", "index/guess", "index/levenshtein", "index/load", "index/load/source", "index/metric", "index/schema", "internal/inorder", "internal/lock", "service", "service/config", "service/connection", "wire"}, []string{natsGo, "github.com/klauspost/compress", "github.com/spf13"}},
	"cmd/geniemq/match/alike":      {[]string{"index/column/point", "index/column/vector", "index/dates", "index/distance", "index/fold", "index/levenshtein", "index/metric", "index/schema"}, nil},
	"cmd/geniemq/match/journal":    {[]string{"internal/lock"}, nil},
	"cmd/geniemq/match/pairing":    {nil, nil},
	"cmd/geniemq/planned":          {[]string{"cmd/geniemq/figure", "cmd/geniemq/table", "index/lsh/planner"}, nil},
	"cmd/geniemq/filled":           {[]string{"cmd/geniemq/table", "index", "index/dates", "index/filling", "index/lsh", "index/postings", "index/schema"}, nil},
	"internal/inorder":             {nil, []string{"golang.org/x/sync"}},
	"index/column/minhash":         {[]string{"index/column", "index/schema"}, []string{xxhash}},
	"index/metric/cells":           {[]string{"index/lsh/block", "index/metric", "index/metric/bound", "index/metric/recall", "internal/spread"}, nil},
	"index/metric/permutation":     {[]string{"index/metric", "index/metric/recall", "internal/spread"}, []string{"golang.org/x/sys"}},
	"index/metric/permutation/asm": {nil, []string{"github.com/mmcloughlin/avo"}},
	"index/metric/recall":          {[]string{"index/lsh", "index/metric", "internal/spread"}, nil},
	"internal/spread":              {nil, nil},
	"internal/lock":                {nil, nil},
	"internal/spill":               {nil, []string{"github.com/edsrzf/mmap-go"}},
	"index/refusal":                {nil, nil},
	"gpuexec/cuda/rescoring":       {[]string{"gpuexec/cuda/texts", "gpuexec", "gpuexec/run", "gpuexec/topk", "gpuexec/cuda/abi", "index/forward", "index/schema", "index/verify"}, nil},
	"index/metric/columns":         {[]string{"index/metric/sums"}, nil},
	"index/metric/cost":            {[]string{"index/levenshtein", "index/metric", "index/metric/sums", "internal/processor"}, nil},
	"index/metric/descent":         {[]string{"index/metric", "index/metric/columns", "index/metric/sums", "index/metric/tree", "internal/pool"}, nil},
	"bench/near":                   {[]string{"gpuexec", "index", "index/distance", "index/metric", "index/metric/tree", "index/postings", "bench/sets", "bench/export"}, nil},
	"bench/export":                 {[]string{"gpuexec", "internal/spread"}, nil},
	"bench/sets":                   {[]string{"index", "index/metric", "index/nearest", "index/schema", "internal/spread"}, nil},
	"internal/testkit/generated":   {nil, nil},
	"internal/testkit/jsonlines":   {[]string{"index", "index/load", "index/schema"}, nil},
	// Builds releases; no part of geniemq.
	"internal/release": {nil, nil},
}

// TestImportTable: packages import what their rules allow, and all of it with one tag or the other, so that the table says what is.
func TestImportTable(t *testing.T) {
	imported := make(map[string][]string)
	for _, tags := range []string{"", "cuda"} {
		// -e: with the cuda tag the headers may be absent; imports are listed all the same.
		cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports", "-tags", tags, module+"/...")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("listing packages with tags %q: %v", tags, err)
		}
		seen := 0
		for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
			var pkg struct {
				ImportPath string
				Imports    []string
			}
			if err := dec.Decode(&pkg); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("reading go list's output: %v", err)
			}
			seen++
			name := strings.TrimPrefix(pkg.ImportPath, module+"/")
			r, ok := rules[name]
			if !ok {
				t.Errorf("package %s is not in the import table of DESIGN.md and tests/imports_test.go", name)
				continue
			}
			imported[name] = append(imported[name], pkg.Imports...)
			for _, imp := range pkg.Imports {
				if !r.allows(imp) {
					t.Errorf("package %s (tags %q) may not import %s", name, tags, imp)
				}
			}
		}
		if seen < len(rules)/2 {
			t.Fatalf("only %d packages listed with tags %q: the test looks at the wrong place", seen, tags)
		}
	}
	for name, r := range rules {
		for _, unneeded := range r.beyond(imported[name]) {
			t.Errorf("package %s does not import %s: take it from the import table of DESIGN.md and tests/imports_test.go", name, unneeded)
		}
	}
}

// beyond is what a rule allows beside what is imported.
func (r rule) beyond(imports []string) (unneeded []string) {
	for _, one := range r.ours {
		if !slices.Contains(imports, module+"/"+one) {
			unneeded = append(unneeded, one)
		}
	}
	for _, one := range r.modules {
		if !slices.ContainsFunc(imports, rule{modules: []string{one}}.allowsModule) {
			unneeded = append(unneeded, one)
		}
	}
	return unneeded
}

func (r rule) allows(imp string) bool {
	if rest, ok := strings.CutPrefix(imp, module+"/"); ok {
		return slices.Contains(r.ours, rest)
	}
	if first, _, _ := strings.Cut(imp, "/"); !strings.Contains(first, ".") {
		return imp != "text/tabwriter" // standard library, and "C"; tables are cmd/geniemq/table's
	}
	return r.allowsModule(imp)
}

func (r rule) allowsModule(imp string) bool {
	return slices.ContainsFunc(r.modules, func(m string) bool {
		return imp == m || strings.HasPrefix(imp, m+"/")
	})
}
