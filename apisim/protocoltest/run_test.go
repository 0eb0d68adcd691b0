package protocoltest_test

import (
	"testing"
	"testing/synctest"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/apisim/protocoltest"
)

func TestApisim(t *testing.T) {
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
