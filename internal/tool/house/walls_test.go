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
	informerRooms = []string{".", "store", "health", "internal/engine/change", "internal/engine", "internal/engine/delta", "internal/engine/fanout", "source", "internal/decode/dedup", "internal/engine/reflector"}
	// walls has an entry for every package, with the packages that it may import. The
	// entry of a directory holds for the packages below it without an entry of their own.
	walls = map[string]wall{
		"store":                           {tests: []string{"store", "pgregory.net/rapid"}},
		"internal/engine/change":          {},
		"internal/see/histogram":          {},
		"internal/engine/delta":           {rooms: []string{"internal/engine/change"}, tests: []string{"internal/engine/delta", "store", "pgregory.net/rapid"}},
		"internal/engine/fanout":          {rooms: []string{"internal/engine/change", "internal/see/histogram"}, tests: []string{"internal/engine/fanout", "pgregory.net/rapid"}},
		"internal/decode/dedup":           {rooms: []string{"internal/decode/fieldpath", "internal/decode/wire"}, others: []string{"k8s.io/apimachinery", "sigs.k8s.io/json"}, tests: []string{"*"}},
		"internal/decode/dedup/deduptest": {rooms: []string{"internal/decode/wire", "internal/decode/fieldpath"}, others: []string{"k8s.io/apimachinery"}, tests: []string{"*"}},
		"internal/engine/tape":            {},
		"flight": {
			rooms:  []string{"internal/decode/fieldpath", "internal/engine/tape"},
			others: []string{"github.com/klauspost/compress/zstd", "k8s.io/apimachinery"},
			tests:  []string{"*"},
		},
		"source": {
			rooms: []string{"internal/decode/dedup", "internal/decode/fieldpath", "internal/engine/served", "internal/engine/tape", "internal/decode/wire"},
			others: []string{
				"k8s.io/apimachinery", "k8s.io/client-go/rest", "k8s.io/client-go/tools/metrics", "k8s.io/client-go/util/flowcontrol",
				"sigs.k8s.io/json",
			},
			tests: []string{"*"},
		},
		"health": {rooms: []string{"source", "internal/see/histogram"}, tests: []string{"pgregory.net/rapid"}},
		"internal/engine": {
			rooms: []string{"store", "health", "internal/engine/change", "internal/engine/delta", "internal/engine/fanout", "internal/see/histogram", "internal/decode/dedup", "internal/see/inspect", "internal/engine/slot", "internal/engine/tape", "source", "internal/engine/reflector"},
			tests: []string{"*"},
		},
		"internal/engine/reflector": {
			rooms:  []string{"internal/see/lograte", "health", "source", "internal/engine/delta", "internal/engine/served", "internal/engine/slot", "internal/engine/tape"},
			others: []string{"k8s.io/apimachinery"},
			tests:  []string{"*"},
		},
		"internal/decode/fieldpath": {},
		"internal/engine/served":    {others: []string{"k8s.io/apimachinery"}, tests: []string{"internal/engine/served"}},
		"internal/decode/wire":      {},
		"internal/engine/metaindex": {
			rooms:  []string{"store"},
			others: []string{"k8s.io/apimachinery"},
			tests:  []string{"*"},
		},
		"internal/engine/builtin": {
			others: []string{"k8s.io/apimachinery"},
			tests:  []string{"*"},
		},
		"internal/see/fielddiff": {
			others: []string{"k8s.io/apimachinery"},
			tests:  []string{"*"},
		},
		"internal/see/format":    {},
		"internal/see/lograte":   {},
		"internal/test/logtable": {},
		"internal/see/footprint": {rooms: []string{"internal/see/inspect"}, tests: []string{"*"}},
		"internal/see/inspect":   {rooms: []string{"health", "internal/engine/change", "internal/engine/slot", "source"}, others: []string{"k8s.io/apimachinery"}},
		".": {
			rooms:  []string{"internal/see/lograte", "store", "health", "internal/engine/change", "internal/engine", "internal/engine/delta", "internal/engine/fanout", "source", "internal/decode/dedup", "internal/engine/reflector", "internal/engine/builtin", "internal/see/fielddiff", "internal/decode/fieldpath", "internal/see/inspect", "internal/engine/metaindex", "internal/engine/slot"},
			others: []string{"k8s.io/apimachinery", "k8s.io/api/core/v1", "k8s.io/client-go/rest", "k8s.io/client-go/kubernetes/scheme"},
			tests:  []string{"*"},
		},
		"controller/internal/queue": {others: []string{"k8s.io/client-go/util/workqueue"}},
		"controller/internal/caches": {
			rooms:  []string{".", "internal/engine/delta", "internal/engine/slot", "internal/lead/written", "internal/see/histogram", "internal/see/inspect", "source"},
			others: []string{"k8s.io/apimachinery"},
			tests:  []string{"*"},
		},
		"controller/internal/barrier": {
			rooms:  []string{"controller/guard", "controller/internal/caches", "internal/engine/delta", "internal/engine/slot", "internal/lead/written", "internal/see/lograte"},
			others: []string{"k8s.io/apimachinery"},
			tests:  []string{"*"},
		},
		"controller/internal/gate": {
			rooms: []string{"controller/guard", "controller/internal/barrier", "controller/internal/caches", "internal/lead/written", "source"},
			tests: []string{"*"},
		},
		"controller/internal/terms": {
			rooms: []string{"controller/guard", "controller/election", "controller/internal/barrier", "controller/internal/caches", "controller/internal/gate", "internal/engine/slot"},
			tests: []string{"*"},
		},
		"controller/internal/incarnation": {
			rooms:  []string{".", "internal/lead/written"},
			others: []string{"k8s.io/apimachinery"},
			tests:  []string{"*"},
		},
		"controller/internal/fights": {
			rooms:  []string{".", "controller/guard", "controller/internal/caches", "internal/decode/dedup", "internal/see/fielddiff", "source"},
			others: []string{"k8s.io/apimachinery"},
			tests:  []string{"*"},
		},
		"controller/internal/entries": {
			rooms:  []string{"controller/guard", "controller/internal/caches", "internal/engine/slot"},
			others: []string{"k8s.io/apimachinery"},
			tests:  []string{"*"},
		},
		"controller/guard": {
			rooms:  []string{"internal/engine/served", "internal/decode/wire"},
			others: []string{"k8s.io/apimachinery", "k8s.io/client-go/rest"},
			tests:  []string{"*"},
		},
		"internal/lead/lease": {
			others: []string{"k8s.io/apimachinery", "k8s.io/api", "k8s.io/client-go/rest", "golang.org/x/sys/unix"},
			tests:  []string{"*"},
		},
		"internal/lead/lease/leasetest": {
			rooms: []string{"apisim", "internal/test/seeds"},
			others: []string{
				"k8s.io/apimachinery", "k8s.io/api", "k8s.io/client-go/rest", "k8s.io/klog/v2",
				"github.com/go-logr/logr",
			},
		},
		"internal/lead/written": {
			rooms:  []string{"controller/guard", "internal/engine/delta", "source"},
			others: []string{"k8s.io/apimachinery"},
			tests:  []string{"*"},
		},
		"controller/election": {
			rooms:  []string{"internal/lead/lease"},
			others: []string{"k8s.io/apimachinery", "k8s.io/api", "k8s.io/client-go/rest"},
			tests:  []string{"*"},
		},
		"controller": {
			rooms: []string{
				".", "controller/guard", "controller/internal/caches", "controller/internal/barrier", "controller/internal/gate", "controller/internal/terms", "controller/internal/incarnation", "controller/internal/fights", "controller/internal/entries", "controller/internal/queue", "controller/election",
				"health", "internal/decode/dedup", "internal/engine/delta", "internal/see/fielddiff", "internal/see/histogram",
				"internal/see/inspect", "internal/see/lograte", "internal/engine/slot", "internal/lead/written", "source",
			},
			others: []string{
				"github.com/go-logr/logr", "k8s.io/apimachinery", "k8s.io/client-go/rest",
				"k8s.io/client-go/util/workqueue",
			},
			tests: []string{"*"},
		},
		"controller/objects": {
			rooms: []string{"."},
			others: []string{
				"k8s.io/apimachinery", "k8s.io/client-go/applyconfigurations/meta/v1",
				"k8s.io/client-go/gentype", "k8s.io/client-go/rest",
			},
			tests: []string{"*"},
		},
		"controller/recorder": {
			others: []string{
				"k8s.io/apimachinery", "k8s.io/client-go/kubernetes", "k8s.io/client-go/rest",
				"k8s.io/client-go/tools/events",
			},
			tests: []string{"*"},
		},
		"internal/engine/slot": {tests: []string{"internal/engine/slot", "k8s.io/apimachinery"}},
		"shard": {
			rooms: []string{
				"controller/guard", "internal/lead/lease", "internal/engine/slot", "shard/internal/balance",
				"shard/internal/handover",
			},
			others: []string{"k8s.io/apimachinery", "k8s.io/api", "k8s.io/client-go/rest"},
			tests:  []string{"*"},
		},
		"shard/internal/handover": {rooms: []string{"internal/engine/slot"}, tests: []string{"pgregory.net/rapid"}},
		"shard/internal/balance": {
			rooms: []string{"internal/engine/slot", "shard/internal/handover"},
			tests: []string{"internal/test/seeds", "pgregory.net/rapid"},
		},
		"internal/see/gather": {
			rooms: []string{
				"health", "controller", "controller/election", "controller/guard", "internal/see/inspect",
				"shard", "source",
			},
			tests: []string{"*"},
		},
		"metrics": {
			rooms: []string{
				"health", "controller", "controller/election", "controller/guard", "internal/see/footprint",
				"internal/see/gather", "internal/see/histogram", "internal/see/inspect", "shard",
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
				"internal/decode/dedup", "internal/see/fielddiff", "internal/decode/fieldpath", "internal/see/footprint",
				"internal/see/format", "internal/see/gather", "internal/see/inspect", "shard",
			},
			others: []string{"k8s.io/api", "k8s.io/apimachinery", "sigs.k8s.io/structured-merge-diff/v6/fieldpath", "sigs.k8s.io/yaml"},
			tests:  []string{"*"},
		},
		"apisim": {
			rooms: []string{"internal/engine/builtin"},
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
			rooms:  []string{"source", "internal/engine/delta", "internal/decode/dedup", "internal/engine/tape"},
			others: []string{"k8s.io/apimachinery", "k8s.io/client-go"},
			tests:  []string{"*"}, dropIn: true,
		},
		"clientgo/internal/sharedinformer": {
			rooms:  append([]string{"clientgo/internal/listwatch", "internal/see/inspect", "internal/see/lograte", "internal/engine/metaindex", "internal/engine/slot"}, informerRooms...),
			others: []string{"k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/klog/v2", "github.com/go-logr/logr"},
			tests:  []string{"*"}, dropIn: true,
		},
		"clientgo/internal/factory": {
			rooms:  []string{"clientgo/cache", "clientgo/internal/listwatch", "clientgo/internal/sharedinformer", "internal/decode/fieldpath", "internal/see/inspect", "internal/engine/slot", "health", "source", "internal/decode/dedup"},
			others: []string{"k8s.io/apimachinery", "k8s.io/client-go"},
			tests:  []string{"*"}, dropIn: true,
		},
		"clientgo": {
			rooms:  append([]string{"clientgo/cache", "clientgo/internal/factory", "clientgo/internal/listwatch", "clientgo/internal/sharedinformer", "internal/engine/builtin", "internal/decode/fieldpath", "internal/engine/metaindex"}, informerRooms...),
			others: []string{"k8s.io"},
			tests:  []string{"*"}, dropIn: true,
		},
		"internal/test/follow": {
			rooms:  []string{".", "internal/engine/delta"},
			others: []string{"k8s.io/apimachinery"},
		},
		// One test compares with client-go's own informer.
		"tidingstest": {
			rooms:  []string{".", "health", "source", "internal/test/follow", "clientgo/cache", "clientgo/informers", "clientgo/dynamicinformer", "clientgo/metadatainformer"},
			others: []string{"k8s.io/apimachinery", "k8s.io/api", "k8s.io/client-go/rest", "k8s.io/client-go/kubernetes", "k8s.io/client-go/dynamic", "k8s.io/client-go/metadata"},
			tests:  []string{"*"}, dropIn: true,
		},
		"cmd":                 {rooms: []string{"*"}, others: []string{"*"}, tests: []string{"*"}},
		"examples":            {rooms: []string{".", "examples/command"}, others: []string{"k8s.io"}, tests: []string{"*"}},
		"examples/controller": {rooms: []string{".", "controller", "controller/objects", "controller/recorder", "examples/command", "metrics"}, others: []string{"k8s.io", "github.com/prometheus/client_golang/prometheus"}, tests: []string{"*"}},
		"examples/sharded": {
			rooms:  []string{".", "apisim", "controller", "debug", "examples/command", "metrics", "shard"},
			others: []string{"k8s.io", "github.com/prometheus/client_golang/prometheus"},
			tests:  []string{"*"},
		},
		"examples/customtype": {rooms: []string{".", "examples/clientgo/customtype/apis", "examples/command"}, others: []string{"k8s.io"}, tests: []string{"*"}},
		"examples/clientgo": {
			rooms:  []string{"clientgo/cache", "clientgo/informers", "clientgo/dynamicinformer", "clientgo/metadatainformer", "examples/clientgo", "examples/command"},
			others: []string{"k8s.io"},
			tests:  []string{"*"}, dropIn: true,
		},
		"internal/tool/gen":        {rooms: []string{"internal/tool/gen"}, others: []string{"k8s.io"}, tests: []string{"*"}, dropIn: true},
		"internal/test/secrets":    {rooms: []string{".", "flight"}, tests: []string{"*"}, dropIn: true},
		"internal/test/simulation": {tests: []string{"*"}, dropIn: true},
		"internal/test/seeds":      {},
		"internal/tool/mutants":    {rooms: []string{"internal/tool/gen"}},
		"internal/tool/house":      {tests: []string{"apisim", "k8s.io/api", "k8s.io/apimachinery"}},
		"internal/tool/compat":     {},
		"internal/tool/release":    {},
		"internal/tool/migration":  {},
		"contract":                 {tests: []string{"*"}, dropIn: true},
	}
	// nowhere are client-go's own informers, which only the drop-ins import.
	nowhere = []string{"k8s.io/client-go/tools/cache", "k8s.io/client-go/informers", "k8s.io/client-go/listers"}
	// heavy takes long to compile and must not come with the native API.
	heavy = []string{
		"k8s.io/client-go/kubernetes", "k8s.io/client-go/informers", "k8s.io/client-go/tools/cache",
		"github.com/spf13/cobra", "github.com/prometheus",
		"github.com/klauspost/compress", "charm.land", "go.opentelemetry.io",
	}
)
