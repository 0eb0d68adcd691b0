package main

// suite is the tests of a module that is written for client-go's informers.
type suite struct {
	name   string
	module string
	// version is that of the module; "" is the one that e2e/go.mod requires, with which
	// the tests are then built.
	version string
	// trees are the directories whose imports are replaced.
	trees []string
	// packages are the patterns of the packages whose tests run, below the module.
	packages []string
	// server says that the tests need an API server.
	server bool
}

// suites are what can be run.
var suites = []suite{
	{
		name:     "kubernetes",
		module:   "k8s.io/kubernetes",
		trees:    []string{"pkg", "plugin"},
		packages: []string{"pkg/controller/...", "pkg/quota/...", "pkg/scheduler/...", "plugin/pkg/admission/..."},
	},
	{
		name:     "controller-runtime",
		module:   "sigs.k8s.io/controller-runtime",
		version:  "v0.25.2",
		trees:    []string{"pkg"},
		packages: []string{"pkg/builder", "pkg/cache/...", "pkg/cluster", "pkg/controller", "pkg/handler", "pkg/internal/controller", "pkg/internal/source", "pkg/manager", "pkg/source"},
		server:   true,
	},
}
