package rollout_test

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

func TestMain(m *testing.M) {
	// Thousands of failures are meant here, and client-go's informers log each.
	klog.SetLogger(logr.Discard())
	// utilruntime holds up whoever reports errors faster than it likes, measured by the
	// clock of the process; from within a bubble of virtual time that can be decades.
	// So its handlers but the first, which logs, are taken away.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	os.Exit(m.Run())
}
