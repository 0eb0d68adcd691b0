package main

// suite selects tests of a module that is written for client-go's informers.
type suite struct {
	// module is the path, and version the version; "" is the one that e2e/go.mod
	// requires, with which the tests are then built.
	module, version string
	// trees are the directories in which imports are replaced, tests those in whose tests
	// alone they are, because the counterpart is built from the module itself.
	trees, tests []string
	// parts are modules of the same version that go.mod replaces by directories of the module's
	// repository, which the module lacks.
	parts []string
	// newCache replaces calls of controller-runtime's cache.New by those of ctrlruntime.NewCache,
	// which managers get as an option. It replaces no imports.
	newCache bool
	// tutorial names a tutorial of kubebuilder's book, module is kubebuilder, and project the
	// module of the tutorial's project, which is made. The tests are those of the project.
	tutorial, project string
	// packages are the patterns of the packages whose tests run, below the module.
	packages []string
	// skip selects tests that are left out, as go test -skip does.
	skip string
	// server reports whether the tests need an API server, serve whether `tidings serve` runs them.
	server, serve bool
}

// suites are all suites.
var suites = []suite{
	{
		module:   "k8s.io/client-go",
		trees:    []string{"tools/watch"},
		tests:    []string{"dynamic/dynamicinformer", "examples/fake-client"},
		packages: []string{"dynamic/dynamicinformer", "examples/fake-client", "tools/watch"},
	},
	{
		module: "k8s.io/kubernetes",
		trees:  []string{"pkg", "plugin"},
		packages: []string{"pkg/controller/...", "pkg/quota/...", "pkg/scheduler/...",
			"plugin/pkg/admission/..."},
		// It reads a file of Kubernetes' repository that is in no module.
		skip: "^TestPreemptionPolicyValuesAreUnchanged$",
	},
	{
		module: "k8s.io/apiserver",
		trees:  []string{"pkg"},
		packages: []string{"pkg/admission/...", "pkg/quota/...", "pkg/util/flowcontrol",
			"pkg/util/peerproxy", "pkg/util/proxy"},
	},
	{
		module:   "k8s.io/cloud-provider",
		trees:    []string{"."},
		packages: []string{"controllers/..."},
	},
	{
		module:   "k8s.io/kube-aggregator",
		trees:    []string{"pkg"},
		packages: []string{"pkg/controllers/..."},
	},
	{
		module:  "sigs.k8s.io/controller-runtime",
		version: "v0.25.2",
		trees:   []string{"pkg"},
		packages: []string{"pkg/builder", "pkg/cache/...", "pkg/cluster", "pkg/controller", "pkg/handler",
			"pkg/internal/controller", "pkg/internal/source", "pkg/manager", "pkg/source"},
		server: true,
	},
	{
		module:   "sigs.k8s.io/controller-runtime",
		version:  "v0.25.2",
		trees:    []string{"pkg/cluster"},
		tests:    []string{"pkg"},
		newCache: true,
		packages: []string{"pkg/builder", "pkg/cache/...", "pkg/client", "pkg/cluster", "pkg/controller",
			"pkg/internal/controller", "pkg/internal/source", "pkg/manager", "pkg/source"},
		server: true,
	},
	{
		module:   "sigs.k8s.io/cluster-api",
		version:  "v1.14.2",
		parts:    []string{"sigs.k8s.io/cluster-api/api"},
		trees:    []string{"."},
		newCache: true,
		packages: []string{"controllers/clustercache", "core/reconcilers/clusterresourceset",
			"core/reconcilers/machineset"},
		// It dials an address of the internet.
		skip:   "^TestClusterCacheConcurrency$",
		server: true,
	},
	{
		module:   "sigs.k8s.io/kubebuilder/v4",
		version:  "v4.16.0",
		tutorial: "getting-started",
		project:  "example.com/memcached",
		trees:    []string{"."},
		newCache: true,
		packages: []string{"internal/controller"},
		serve:    true,
	},
	{
		module:   "sigs.k8s.io/kubebuilder/v4",
		version:  "v4.16.0",
		tutorial: "cronjob-tutorial",
		project:  "tutorial.kubebuilder.io/project",
		trees:    []string{"."},
		newCache: true,
		// The suite of the webhooks wants a server that calls them.
		packages: []string{"internal/controller"},
		serve:    true,
	},
}
