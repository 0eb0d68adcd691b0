package leasetest

import (
	"context"
	"os"
	"testing"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// Main runs the tests of a package, and exits. It silences what client-go logs of failures that are
// meant.
func Main(m *testing.M) {
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(context.Context, error, string, ...any) {},
	}
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}
