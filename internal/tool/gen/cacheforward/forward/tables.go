package forward

// Upstream is the package whose names are forwarded.
const Upstream = "k8s.io/client-go/tools/cache"

// tables have the exceptions to the forwarding.
type tables struct {
	ours      []string          // functions that the package implements itself
	variables map[string]string // functions that become variables, each with the end of the sentence that says why
}

// Client-go skips its own directory when it looks for a reflector's maker, as a vendored build has
// it. A function of ours would lie outside that directory, and every reflector would have its name.
const (
	namesReflector = "it names a reflector without a name by its caller"
	logsCaller     = "its log lines name its caller"
	knownByAddress = "informers know it by its address, and keep no index of what the keys say already"
)

// clientGo returns the tables of client-go's tools/cache.
func clientGo() tables {
	return tables{
		ours: []string{
			"ListAll",
			"ListAllByNamespace",
			"NewGenericLister",
			"NewIndexerInformer",
			"NewInformer",
			"NewInformerWithOptions",
			"NewSharedIndexInformer",
			"NewSharedIndexInformerWithOptions",
			"NewSharedInformer",
			"NewTransformingIndexerInformer",
			"NewTransformingInformer",
		},
		variables: map[string]string{
			"MetaNamespaceIndexFunc":               knownByAddress,
			"NewNamedReflector":                    namesReflector,
			"NewNamespaceKeyedIndexerAndReflector": namesReflector,
			"NewReflector":                         namesReflector,
			"NewReflectorWithOptions":              namesReflector,
			"WaitFor":                              logsCaller,
		},
	}
}
