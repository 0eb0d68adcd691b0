package house

// wall has the packages that a package may import besides the standard library.
type wall struct {
	rooms  []string // packages of this module
	others []string // import paths of other modules, each with the packages below it
	tests  []string // additional imports of its tests, in either form; "*" is anything
	// dropIn lets it import client-go's own informers.
	dropIn bool
}

var (
	informerRooms = []string{".", "store", "health", "internal/change", "internal/engine", "internal/delta", "internal/fanout", "source", "internal/dedup", "internal/reflector"}
	// walls has an entry for every package, lowest first, with the packages that it may import. The
	// entry of a directory holds for the packages below it without an entry of their own.
	walls = map[string]wall{
		"store":                    {tests: []string{"store", "pgregory.net/rapid"}},
		"internal/change":          {},
		"internal/histogram":       {},
		"internal/delta":           {rooms: []string{"internal/change"}, tests: []string{"internal/delta", "store", "pgregory.net/rapid"}},
		"internal/fanout":          {rooms: []string{"internal/change", "internal/histogram"}, tests: []string{"internal/fanout", "pgregory.net/rapid"}},
		"internal/dedup":           {rooms: []string{"internal/fieldpath", "internal/wire"}, others: []string{"k8s.io/apimachinery", "sigs.k8s.io/json"}, tests: []string{"*"}},
		"internal/dedup/deduptest": {rooms: []string{"internal/wire"}, others: []string{"k8s.io/apimachinery"}, tests: []string{"*"}},
		"internal/tape":            {},
		"flight": {
			rooms:  []string{"internal/fieldpath", "internal/tape"},
			others: []string{"github.com/klauspost/compress/zstd", "k8s.io/apimachinery"},
			tests:  []string{"*"},
		},
		"source": {
			rooms: []string{"internal/dedup", "internal/fieldpath", "internal/served", "internal/tape", "internal/wire"},
			others: []string{
				"k8s.io/apimachinery", "k8s.io/client-go/rest", "k8s.io/client-go/tools/metrics", "k8s.io/client-go/util/flowcontrol",
				"sigs.k8s.io/json",
			},
			tests: []string{"*"},
		},
		"health": {rooms: []string{"source", "internal/histogram"}, tests: []string{"pgregory.net/rapid"}},
		"internal/engine": {
			rooms: []string{"store", "health", "internal/change", "internal/delta", "internal/fanout", "internal/histogram", "internal/dedup", "internal/inspect", "internal/slot", "internal/tape", "source", "internal/reflector"},
			tests: []string{"*"},
		},
		"internal/reflector": {
			rooms:  []string{"internal/lograte", "health", "source", "internal/delta", "internal/served", "internal/slot", "internal/tape"},
			others: []string{"k8s.io/apimachinery"},
			tests:  []string{"*"},
		},
		"internal/fieldpath": {},
		"internal/served":    {others: []string{"k8s.io/apimachinery"}, tests: []string{"internal/served"}},
		"internal/wire":      {},
		"internal/metaindex": {
			rooms:  []string{"store"},
			others: []string{"k8s.io/apimachinery"},
			tests:  []string{"*"},
		},
		"internal/builtin": {
			others: []string{"k8s.io/apimachinery"},
			tests:  []string{"*"},
		},
		"internal/fielddiff": {
			others: []string{"k8s.io/apimachinery"},
			tests:  []string{"*"},
		},
		"internal/lograte":   {},
		"internal/logtable":  {},
		"internal/footprint": {rooms: []string{"internal/inspect"}, tests: []string{"*"}},
		"internal/inspect":   {rooms: []string{"health", "internal/change", "internal/slot", "source"}, others: []string{"k8s.io/apimachinery"}},
		".": {
			rooms:  []string{"internal/lograte", "store", "health", "internal/change", "internal/engine", "internal/delta", "internal/fanout", "source", "internal/dedup", "internal/reflector", "internal/builtin", "internal/fielddiff", "internal/fieldpath", "internal/inspect", "internal/metaindex", "internal/slot"},
			others: []string{"k8s.io/apimachinery", "k8s.io/client-go/rest", "k8s.io/client-go/kubernetes/scheme"},
			tests:  []string{"*"},
		},
		"controller/internal/queue": {others: []string{"k8s.io/client-go/util/workqueue"}},
		"controller/guard": {
			rooms:  []string{"internal/served", "internal/wire"},
			others: []string{"k8s.io/apimachinery", "k8s.io/client-go/rest"},
			tests:  []string{"*"},
		},
		"internal/lease": {
			others: []string{"k8s.io/apimachinery", "k8s.io/api", "k8s.io/client-go/rest", "golang.org/x/sys/unix"},
			tests:  []string{"*"},
		},
		"internal/lease/leasetest": {
			rooms: []string{"apisim", "internal/seeds"},
			others: []string{
				"k8s.io/apimachinery", "k8s.io/api", "k8s.io/client-go/rest", "k8s.io/klog/v2",
				"github.com/go-logr/logr",
			},
		},
		"internal/written": {
			rooms:  []string{"controller/guard", "internal/delta", "source"},
			others: []string{"k8s.io/apimachinery"},
			tests:  []string{"*"},
		},
		"controller/election": {
			rooms:  []string{"internal/lease"},
			others: []string{"k8s.io/apimachinery", "k8s.io/api", "k8s.io/client-go/rest"},
			tests:  []string{"*"},
		},
		"controller": {
			rooms: []string{
				".", "controller/guard", "controller/internal/queue", "controller/election",
				"health", "internal/dedup", "internal/delta", "internal/fielddiff", "internal/histogram",
				"internal/inspect", "internal/lograte", "internal/slot", "internal/written", "source",
			},
			others: []string{"k8s.io/apimachinery", "k8s.io/client-go/rest", "k8s.io/client-go/util/workqueue"},
			tests:  []string{"*"},
		},
		"controller/objects": {
			rooms:  []string{"."},
			others: []string{"k8s.io/apimachinery", "k8s.io/client-go/applyconfigurations/meta/v1"},
			tests:  []string{"*"},
		},
		"controller/recorder": {
			others: []string{
				"k8s.io/apimachinery", "k8s.io/client-go/kubernetes", "k8s.io/client-go/rest",
				"k8s.io/client-go/tools/events",
			},
			tests: []string{"*"},
		},
		"internal/slot": {tests: []string{"internal/slot", "k8s.io/apimachinery"}},
		"shard": {
			rooms: []string{
				"controller/guard", "internal/lease", "internal/slot", "shard/internal/balance",
				"shard/internal/handover",
			},
			others: []string{"k8s.io/apimachinery", "k8s.io/api", "k8s.io/client-go/rest"},
			tests:  []string{"*"},
		},
		"shard/internal/handover": {rooms: []string{"internal/slot"}, tests: []string{"pgregory.net/rapid"}},
		"shard/internal/balance": {
			rooms: []string{"internal/slot", "shard/internal/handover"},
			tests: []string{"internal/seeds", "pgregory.net/rapid"},
		},
		"metrics": {
			rooms: []string{
				"health", "controller", "controller/election", "controller/guard", "internal/footprint",
				"internal/histogram", "internal/inspect", "shard",
			},
			others: []string{"github.com/prometheus/client_golang/prometheus", "github.com/prometheus/client_model"},
			tests:  []string{"*"},
		},
		"tracing": {
			rooms:  []string{"source"},
			others: []string{"go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/codes", "go.opentelemetry.io/otel/trace"},
			tests:  []string{"*"},
		},
		"debug": {
			rooms: []string{
				".", "controller", "controller/election", "controller/guard", "flight", "health", "source",
				"internal/dedup", "internal/fielddiff", "internal/fieldpath", "internal/footprint",
				"internal/inspect", "shard",
			},
			others: []string{"k8s.io/api", "k8s.io/apimachinery", "sigs.k8s.io/structured-merge-diff/v6/fieldpath", "sigs.k8s.io/yaml"},
			tests:  []string{"*"},
		},
		"apisim": {
			rooms: []string{"internal/builtin"},
			others: []string{
				"k8s.io/apimachinery", "k8s.io/api", "k8s.io/client-go/applyconfigurations", "k8s.io/client-go/discovery", "k8s.io/client-go/kubernetes/scheme",
				"k8s.io/client-go/rest", "k8s.io/client-go/util/jsonpath", "github.com/tidwall/btree",
				"k8s.io/client-go/util/cert", "google.golang.org/protobuf/encoding/protowire",
				"gopkg.in/evanphx/json-patch.v4", "sigs.k8s.io/structured-merge-diff/v6",
			},
			tests: []string{"*"},
		},
		"apiserver": {
			others: []string{"k8s.io/client-go/rest", "k8s.io/client-go/util/cert", "k8s.io/client-go/util/keyutil"},
			tests:  []string{"*"},
		},
		"apisim/protocoltest": {
			others: []string{"k8s.io/apimachinery", "k8s.io/api", "k8s.io/client-go"},
			tests:  []string{"*"},
		},
		"clientgo/internal/listwatch": {
			rooms:  []string{"source", "internal/delta", "internal/dedup", "internal/tape"},
			others: []string{"k8s.io/apimachinery", "k8s.io/client-go"},
			tests:  []string{"*"}, dropIn: true,
		},
		"clientgo/internal/sharedinformer": {
			rooms:  append([]string{"clientgo/internal/listwatch", "internal/inspect", "internal/lograte", "internal/metaindex", "internal/slot"}, informerRooms...),
			others: []string{"k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/klog/v2", "github.com/go-logr/logr"},
			tests:  []string{"*"}, dropIn: true,
		},
		"clientgo/internal/factory": {
			rooms:  []string{"clientgo/cache", "clientgo/internal/listwatch", "clientgo/internal/sharedinformer", "internal/fieldpath", "internal/inspect", "internal/slot", "health", "source", "internal/dedup"},
			others: []string{"k8s.io/apimachinery", "k8s.io/client-go"},
			tests:  []string{"*"}, dropIn: true,
		},
		"clientgo": {
			rooms:  append([]string{"clientgo/cache", "clientgo/internal", "internal/builtin", "internal/fieldpath", "internal/metaindex"}, informerRooms...),
			others: []string{"k8s.io"},
			tests:  []string{"*"}, dropIn: true,
		},
		"internal/follow": {
			rooms:  []string{".", "internal/delta"},
			others: []string{"k8s.io/apimachinery"},
		},
		// One test compares with client-go's own informer.
		"tidingstest": {
			rooms:  []string{".", "health", "source", "internal/follow", "clientgo/cache", "clientgo/informers", "clientgo/dynamicinformer", "clientgo/metadatainformer"},
			others: []string{"k8s.io/apimachinery", "k8s.io/api", "k8s.io/client-go/rest", "k8s.io/client-go/kubernetes", "k8s.io/client-go/dynamic", "k8s.io/client-go/metadata"},
			tests:  []string{"*"}, dropIn: true,
		},
		"cmd":                 {rooms: []string{"*"}, others: []string{"*"}, tests: []string{"*"}},
		"examples":            {rooms: []string{".", "examples/command"}, others: []string{"k8s.io"}, tests: []string{"*"}},
		"examples/controller": {rooms: []string{".", "controller", "controller/objects", "controller/recorder", "examples/command", "metrics"}, others: []string{"k8s.io", "github.com/prometheus/client_golang/prometheus"}, tests: []string{"*"}},
		"examples/manager":    {rooms: []string{".", "controller", "controller/objects", "examples/command"}, others: []string{"k8s.io"}, tests: []string{"*"}},
		"examples/sharded": {
			rooms:  []string{".", "apisim", "controller", "debug", "examples/command", "internal/replicas", "metrics", "shard"},
			others: []string{"k8s.io", "github.com/prometheus/client_golang/prometheus"},
			tests:  []string{"*"},
		},
		"examples/customtype": {rooms: []string{".", "examples/clientgo/customtype/apis", "examples/command"}, others: []string{"k8s.io"}, tests: []string{"*"}},
		"examples/clientgo": {
			rooms:  []string{"clientgo/cache", "clientgo/informers", "clientgo/dynamicinformer", "clientgo/metadatainformer", "examples/clientgo", "examples/command"},
			others: []string{"k8s.io"},
			tests:  []string{"*"}, dropIn: true,
		},
		"internal/gen":        {rooms: []string{"internal/gen"}, others: []string{"k8s.io"}, tests: []string{"*"}, dropIn: true},
		"internal/secrets":    {tests: []string{"*"}, dropIn: true},
		"internal/hostile":    {tests: []string{"*"}, dropIn: true},
		"internal/rollout":    {tests: []string{"*"}, dropIn: true},
		"internal/simulation": {tests: []string{"*"}, dropIn: true},
		"internal/seeds":      {},
		"internal/replicas":   {rooms: []string{"shard"}, tests: []string{"*"}},
		"internal/mutants":    {rooms: []string{"internal/gen"}},
		"internal/house":      {},
		"contract":            {tests: []string{"*"}, dropIn: true},
	}
	// nowhere are client-go's own informers, which only the drop-ins import.
	nowhere = []string{"k8s.io/client-go/tools/cache", "k8s.io/client-go/informers", "k8s.io/client-go/listers"}
	// heavy takes long to compile and must not come with the native API.
	heavy = []string{
		"k8s.io/client-go/kubernetes", "k8s.io/client-go/informers", "k8s.io/client-go/tools/cache",
		"k8s.io/cli-runtime", "github.com/spf13/cobra", "sigs.k8s.io/kustomize", "github.com/prometheus",
		"github.com/klauspost/compress", "charm.land", "go.opentelemetry.io",
	}
)
