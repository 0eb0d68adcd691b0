package main

// program is a program of others.
type program struct {
	name            string
	module, version string
	// newCache gives managers of controller-runtime the option NewCache in the directories trees;
	// otherwise imports are replaced there.
	newCache bool
	trees    []string
	// main is the directory of the main package. If source is set, it is made of that file.
	main, source string
	// missing are modules that cannot be had any more. Requirements name them, and no package needs
	// them.
	missing []string
	// arguments and environment are those of the program. KUBECONFIG in an argument stands for the
	// file that the variable of that name has.
	arguments, environment []string
	// crds are directories with definitions of the program's custom resources.
	crds []string
	// The program is ready when it has printed a line with the text ready, or when the server at the
	// URL readyz answers with 200.
	ready, readyz string
	// packages have the tests that -tests runs, without those that skip selects, as go test -skip
	// does.
	packages []string
	skip     string
}

// said is what main packages of testdata print when they are ready.
const said = "programs: ready"

// programs are all programs. docs/reports/programs.md has their reasons.
var programs = []program{
	{
		name: "external-dns", module: "sigs.k8s.io/external-dns", version: "v0.21.0",
		trees: []string{"."}, main: ".", missing: []string{"vbom.ml/util"},
		arguments: []string{"--kubeconfig=KUBECONFIG", "--provider=inmemory", "--registry=noop",
			"--source=service", "--source=pod", "--interval=1h"},
		ready:    "All records are already up to date",
		packages: []string{"./source/..."},
		// Its fake, which does not declare that it is one, deletes an object that it never had. Handlers
		// do not receive that: docs/migrate.md.
		skip: "^TestCRDSource_AddEventHandler$/^Delete$",
	},
	{
		name: "Prometheus, discovery of pods", module: "github.com/prometheus/prometheus",
		version: "v0.316.0", trees: []string{"discovery/kubernetes"},
		main: "cmd/programs", source: "prometheus.go", ready: said,
		packages: []string{"./discovery/kubernetes/..."},
	},
	{
		name:    "OpenTelemetry, k8sattributes",
		module:  "github.com/open-telemetry/opentelemetry-collector-contrib/processor/k8sattributesprocessor",
		version: "v1.0.0", trees: []string{"."},
		main: "cmd/programs", source: "k8sattributes.go", ready: said,
		packages: []string{"./..."},
	},
	{
		name: "descheduler", module: "sigs.k8s.io/descheduler", version: "v0.36.0",
		trees: []string{"cmd", "pkg"}, main: "cmd/descheduler",
		arguments: []string{"--kubeconfig=KUBECONFIG", "--policy-config-file=examples/too-many-restarts.yml",
			"--descheduling-interval=1h", "--secure-port=0", "-v=1"},
		ready:    "Number of evictions/requests",
		packages: []string{"./pkg/..."},
	},
	{
		name: "Karpenter, with its provider KWOK", module: "sigs.k8s.io/karpenter", version: "v1.14.1",
		newCache: true, trees: []string{"pkg/operator"}, main: "kwok",
		crds: []string{"pkg/apis/crds", "kwok/apis/crds"},
		environment: []string{"DISABLE_LEADER_ELECTION=true", "METRICS_PORT=8980",
			"HEALTH_PROBE_PORT=8981"},
		readyz: "http://127.0.0.1:8981/readyz",
	},
}
