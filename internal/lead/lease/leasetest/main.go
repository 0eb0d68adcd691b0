package leasetest

import (
	"context"
	"os"
	"testing"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// Main runs the tests of a package, and exits. It silences client-go, which would log the failures
// that the tests intend.
func Main(m *testing.M) {
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(context.Context, error, string, ...any) {},
	}
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}
