package main

// The generators of Kubernetes itself write the deep copies and the directory generated.
// They need a network the first time.

//go:generate go run k8s.io/code-generator/cmd/deepcopy-gen@v0.37.1 --output-file zz_generated.deepcopy.go ./apis/shop/v1
//go:generate go run k8s.io/code-generator/cmd/client-gen@v0.37.1 --clientset-name versioned --fake-clientset=false --input-base "" --input github.com/tidings-go/tidings/examples/clientgo/customtype/apis/shop/v1 --output-dir generated/clientset --output-pkg github.com/tidings-go/tidings/examples/clientgo/customtype/generated/clientset
//go:generate go run k8s.io/code-generator/cmd/lister-gen@v0.37.1 --output-dir generated/listers --output-pkg github.com/tidings-go/tidings/examples/clientgo/customtype/generated/listers ./apis/shop/v1
//go:generate go run k8s.io/code-generator/cmd/informer-gen@v0.37.1 --versioned-clientset-package github.com/tidings-go/tidings/examples/clientgo/customtype/generated/clientset/versioned --listers-package github.com/tidings-go/tidings/examples/clientgo/customtype/generated/listers --output-dir generated/informers --output-pkg github.com/tidings-go/tidings/examples/clientgo/customtype/generated/informers ./apis/shop/v1
