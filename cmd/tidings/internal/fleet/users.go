package fleet

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/objects"
)

// signature is the annotation of the specs that users write. It does not match a spec that another
// client has changed. Users leave such a deployment unchanged.
const signature = "fleet.example/spec-hash"

func sign(d *appsv1.Deployment) {
	metav1.SetMetaDataAnnotation(&d.ObjectMeta, signature, hashOf(d.Spec))
}

func isSigned(d *appsv1.Deployment) bool { return d.Annotations[signature] == hashOf(d.Spec) }

// mostCounted is the longest wait of users after a period of many writes, in seconds.
const mostCounted = 20

// users change the cluster, to which the controllers react. They run as one of the controllers of a
// manager.
type users struct {
	*cluster
	rng       *rand.Rand
	apps      []string // the keys of the deployments that Populate has created
	size      int      // approximate number of pods
	perSecond float64
	written   func() uint64 // counts the writes of users and controllers
}

func newUsers(f *Fleet, c *cluster, perSecond float64) *users {
	u := &users{
		cluster: c, rng: f.rng, apps: f.apps, size: f.o.Pods, perSecond: perSecond, written: f.o.Written,
	}
	if u.written == nil {
		u.written = func() uint64 { return c.guard.Stats().Sent }
	}
	return u
}

// Name returns the name of the users in the manager.
func (u *users) Name() string { return "users" }

// Health returns a constant: users have no state of their own.
func (u *users) Health() controller.Health {
	return controller.Health{Name: u.Name(), State: controller.StateRunning}
}

// RunTerm makes changes until ctx ends. Each write, of users or controllers, delays the next act.
func (u *users) RunTerm(ctx context.Context, _ controller.Term) error {
	if err := u.factory.WaitForSync(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	if u.perSecond == 0 {
		<-ctx.Done()
		return nil
	}
	most := 1 + int(mostCounted*u.perSecond)
	limiter := rate.NewLimiter(rate.Limit(u.perSecond), most)
	limiter.AllowN(time.Now(), most) // no writes in advance
	for counted := u.written(); ; {
		sent := u.written()
		writes := max(1, sent-counted) // an act without a write counts too
		counted = sent
		if limiter.WaitN(ctx, min(int(writes), most)) != nil {
			return nil
		}
		if err := u.act(ctx, u.next()); err != nil && ctx.Err() == nil {
			u.logger.Debug("a write of a user failed", "error", err)
		}
	}
}

// act is the next act of the users. The seed determines it; its effect depends on the state of the
// cluster.
type act struct {
	roll int     // chooses the kind of act, of a thousand
	app  string  // the key of a deployment
	pick float64 // chooses one of several objects or values, from 0 to 1
}

func (u *users) next() act {
	return act{u.rng.IntN(1000), u.apps[u.rng.IntN(len(u.apps))], u.rng.Float64()}
}

// act carries out an act, or does nothing if an object for it is missing.
func (u *users) act(ctx context.Context, a act) error {
	switch {
	case a.roll < 467:
		return u.configure(ctx, a)
	case a.roll < 600:
		return u.changeSpec(ctx, a, u.release)
	case a.roll < 707:
		return u.changeSpec(ctx, a, u.scale)
	}
	pods := u.podsOf(a.app)
	if len(pods) == 0 {
		return nil
	}
	pod := pods[int(a.pick*float64(len(pods)))]
	client := u.coreV1.Pods(pod.Namespace)
	if a.roll < 867 {
		_, err := objects.UpdateStatus(ctx, client, pod, func(pod *corev1.Pod) {
			crash(pod, time.Now())
		})
		return err
	}
	return client.EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
	})
}

func (u *users) podsOf(app string) (pods []*corev1.Pod) {
	d, err := u.deployments.Lister().Get(app)
	if err != nil {
		return nil // the deployment was deleted
	}
	for _, set := range u.sets.Lister().Controlled(d.UID) {
		for _, pod := range u.pods.Lister().Controlled(set.UID) {
			if pod.DeletionTimestamp == nil {
				pods = append(pods, pod)
			}
		}
	}
	return pods
}

func (u *users) configure(ctx context.Context, a act) error {
	data := map[string]string{"pool.size": strconv.Itoa(4 + int(a.pick*60))}
	if int(a.pick*1000)%2 == 0 {
		data = map[string]string{"cache.ttl": strconv.Itoa(30+int(a.pick*300)) + "s"}
	}
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return err
	}
	namespace, name, _ := strings.Cut(a.app, "/")
	_, err = u.coreV1.ConfigMaps(namespace).Patch(ctx, name, types.MergePatchType, patch,
		metav1.PatchOptions{})
	return err
}

// changeSpec changes the spec of a deployment, unless another client has changed it.
func (u *users) changeSpec(
	ctx context.Context, a act, change func(*appsv1.Deployment, act),
) error {
	d, err := u.deployments.Lister().Get(a.app)
	if err != nil || !isSigned(d) {
		return err
	}
	d = d.DeepCopy()
	change(d, a)
	sign(d)
	_, err = u.appsV1.Deployments(d.Namespace).Update(ctx, d,
		metav1.UpdateOptions{FieldManager: "kubectl-edit"})
	return err
}

func (u *users) release(d *appsv1.Deployment, _ act) {
	d.Spec.Template.Spec.Containers[0].Image = image(d.Namespace, d.Name, revision(d)+1)
}

// scale brings the number of all pods closer to the initial one.
func (u *users) scale(d *appsv1.Deployment, a act) {
	by := 1 + int32(a.pick*3)
	if u.pods.Lister().Len() >= u.size && *d.Spec.Replicas > by {
		by = -by
	}
	*d.Spec.Replicas += by
}
