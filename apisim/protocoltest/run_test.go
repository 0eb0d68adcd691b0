package protocoltest_test

import (
	"flag"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/apisim/protocoltest"
)

var kubeconfig = flag.String("kubeconfig", "", "test the server that this kubeconfig names, instead of apisim")

// TestServer tests apisim, in virtual time, or the server that the flag names.
func TestServer(t *testing.T) {
	if *kubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		protocoltest.Run(t, protocoltest.Server{Config: config})
		return
	}
	for name, test := range protocoltest.Tests() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := apisim.Start(t)
				test(t, protocoltest.Server{Config: server.Config(), Forget: func() error {
					server.Compact()
					return nil
				}})
			})
		})
	}
}
