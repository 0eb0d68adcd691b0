package fleet

import (
	"context"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/objects"
)

const (
	// writesPerHeartbeat is the number of writes for each heartbeat of a node.
	writesPerHeartbeat = 7
	// longestPeriod bounds the time between the heartbeats of a node.
	longestPeriod = time.Hour
)

// newNodes returns the controller that sends the heartbeats of a number of nodes. perSecond is the
// rate of all writes.
func (c *cluster) newNodes(nodes int, perSecond float64) (controller.Runner, error) {
	seconds := min(writesPerHeartbeat*float64(nodes)/perSecond, longestPeriod.Seconds())
	period := time.Duration(seconds * float64(time.Second))
	return controller.New(c.nodes, options[*corev1.Node](c, "nodes"), func(
		ctx context.Context, r controller.Request[*corev1.Node],
	) (done controller.Result, err error) {
		if !isAlive(r) {
			return done, nil
		}
		left := time.Until(lastHeartbeat(r.Object).Add(period / 2))
		if left <= 0 {
			_, err = objects.UpdateStatus(ctx, c.client.CoreV1().Nodes(), r.Object,
				func(node *corev1.Node) { setHeartbeat(node, time.Now().Truncate(time.Second)) })
			left = period / 2
		}
		return controller.Result{RequeueAfter: left + rand.N(period)}, err
	})
}

func lastHeartbeat(node *corev1.Node) (last time.Time) {
	for _, c := range node.Status.Conditions {
		last = c.LastHeartbeatTime.Time
	}
	return last
}

func setHeartbeat(node *corev1.Node, now time.Time) {
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].LastHeartbeatTime = metav1.NewTime(now)
	}
}
