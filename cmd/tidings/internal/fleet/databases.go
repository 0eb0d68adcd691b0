package fleet

import (
	"context"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/objects"
)

const (
	phaseReady       = "Ready"
	phaseFailingOver = "FailingOver"
)

func (c *cluster) newDatabases() (controller.Runner, error) {
	return controller.New(c.databases, options[*unstructured.Unstructured](c, "databases"),
		c.reconcileDatabase)
}

// reconcileDatabase gives a database that is not ready another primary.
func (c *cluster) reconcileDatabase(
	ctx context.Context, r controller.Request[*unstructured.Unstructured],
) (done controller.Result, err error) {
	if !isAlive(r) || phaseOf(r.Object) == phaseReady {
		return done, nil
	}
	_, err = objects.UpdateStatus(ctx, c.dynamic.Namespace(r.Namespace()), r.Object,
		func(database *unstructured.Unstructured) {
			setStatus(database, phaseReady, instance(database, rand.IntN(3)), time.Now())
		})
	return done, err
}

// phaseOf returns the phase of a database, "" without one.
func phaseOf(database *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(database.Object, "status", "phase")
	return phase
}
