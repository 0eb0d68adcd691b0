package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"

	"github.com/tidings-go/tidings/apiserver"
	"github.com/tidings-go/tidings/e2e/internal/cluster"
	"github.com/tidings-go/tidings/e2e/internal/proxy"
)

// rollout is the program of examples/controller beside a server, with the controllers, scheduler
// and nodes that make its ReplicaSets' pods run.
type rollout struct {
	*world
	server  *apiserver.Server
	program string
	roles   *rbacv1.ClusterRole
	role    *rbacv1.Role
}

func startRollout(t *testing.T) (*rollout, func() auditLog) {
	t.Helper()
	server, audit := startAudited(t)
	client, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	c, err := cluster.Start(ctx, server.Config(), cluster.Tidings(), nodes,
		names.ReplicaSetController, names.GarbageCollectorController)
	t.Cleanup(func() {
		stop()
		if c != nil {
			c.Wait()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &rollout{world: &world{T: t, client: client}, server: server,
		program: build(t, "..", "examples/controller")}
	manifest, err := os.ReadFile("../examples/controller/rbac.yaml")
	r.must(err)
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		role, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(document), nil, nil)
		r.must(err)
		switch role := role.(type) {
		case *rbacv1.ClusterRole:
			r.roles = role
		case *rbacv1.Role:
			r.role = role
		}
	}
	return r, audit
}

func (r *rollout) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// start starts the program as a user of the group, whose requests go to an address.
func (r *rollout) start(user, host string) *replica {
	r.Helper()
	config, err := r.server.ConfigFor(user, replicas)
	r.must(err)
	config.Host = host
	return startReplica(r.T, user, r.program, "-kubeconfig", kubeconfig(r.T, config),
		"-listen", "127.0.0.1:0")
}

// standby starts another replica, and waits until it is ready.
func (r *rollout) standby(user string) *replica {
	r.Helper()
	p := r.start(user, r.server.URL())
	p.awaitReady()
	return p
}

// ask asks a probe of the program.
func (r *replica) ask(ctx context.Context, path string) error {
	address := r.prints(`address=(\S+)`, 1)[1]
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", path, answer.Status)
	}
	return nil
}

// awaitReady waits until the program is ready, and asks that it is alive.
func (r *replica) awaitReady() {
	r.Helper()
	err := eventually(r.Context(), patience, func(ctx context.Context) (bool, error) {
		err := r.ask(ctx, "/readyz")
		return err == nil, err
	})
	if err == nil {
		err = r.ask(r.Context(), "/livez")
	}
	if err != nil {
		r.Fatalf("replica %s: %v", r.name, err)
	}
}

// grant binds the roles to the group, with these rules of the ClusterRole.
func (r *rollout) grant(rules []rbacv1.PolicyRule) {
	r.Helper()
	group := []rbacv1.Subject{{Kind: "Group", APIGroup: rbacv1.GroupName, Name: replicas}}
	roles := r.roles.DeepCopy()
	roles.Rules = rules
	api, o := r.client.RbacV1(), metav1.CreateOptions{}
	_, err := api.ClusterRoles().Create(r.Context(), roles, o)
	r.must(err)
	_, err = api.Roles(r.role.Namespace).Create(r.Context(), r.role, o)
	r.must(err)
	_, err = api.ClusterRoleBindings().Create(r.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: r.roles.Name}, Subjects: group,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.roles.Name},
	}, o)
	r.must(err)
	_, err = api.RoleBindings(r.role.Namespace).Create(r.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: r.role.Name}, Subjects: group,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: r.role.Name},
	}, o)
	r.must(err)
}

// without returns the rules of the ClusterRole without a verb on a resource.
func (r *rollout) without(verb, resource string) []rbacv1.PolicyRule {
	rules := r.roles.DeepCopy().Rules
	for i, rule := range rules {
		if slices.Contains(rule.Resources, resource) {
			rules[i].Verbs = slices.DeleteFunc(rule.Verbs, func(v string) bool { return v == verb })
		}
	}
	return rules
}

// putConfigMap creates or updates a ConfigMap.
func (r *rollout) putConfigMap(name, value string) {
	r.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name},
		Data: map[string]string{"value": value}}
	maps := r.client.CoreV1().ConfigMaps(shop)
	_, err := maps.Update(r.Context(), m, metav1.UpdateOptions{})
	if err != nil {
		_, err = maps.Create(r.Context(), m, metav1.CreateOptions{})
	}
	r.must(err)
}

// createDeployment creates the Deployment "web", whose pods mention two ConfigMaps.
func (r *rollout) createDeployment() {
	r.Helper()
	pods := template("web:1")
	for _, name := range []string{"settings", "more"} {
		pods.Spec.Volumes = append(pods.Spec.Volumes, corev1.Volume{Name: name,
			VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: name}}}})
	}
	_, err := r.client.AppsV1().Deployments(shop).Create(r.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(3)),
			Selector: &metav1.LabelSelector{MatchLabels: app}, Template: pods},
	}, metav1.CreateOptions{})
	r.must(err)
}

// setImage changes the image of the Deployment.
func (r *rollout) setImage(image string) {
	r.Helper()
	r.must(r.change(r.Context(), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Image = image
	}))
}

// rolledOut waits until all pods are those of one ReplicaSet of an image, and returns its name.
func (r *rollout) rolledOut(step, image string) string {
	r.Helper()
	r.becomes(r.Context(), step, fmt.Sprintf(
		"deployment/web:3/3/3 pods/running-of-ReplicaSet:3 replicaset/%s:3", image))
	sets, err := r.client.AppsV1().ReplicaSets(shop).List(r.Context(), metav1.ListOptions{})
	r.must(err)
	return sets.Items[0].Name
}

// awaitEvents waits until the event about the missing ConfigMap was repeated.
func (r *rollout) awaitEvents() {
	r.Helper()
	r.must(eventually(r.Context(), patience, func(ctx context.Context) (bool, error) {
		events, err := r.client.EventsV1().Events(shop).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, e := range events.Items {
			if e.Reason == "ConfigMapMissing" && e.Series != nil {
				return true, nil
			}
		}
		return false, fmt.Errorf("the events are %v", events.Items)
	}))
}

// loseAnswer makes a change, and cuts the connections of a replica between a write of its call and
// the answer. wrote reports whether the server has applied the write.
func (r *rollout) loseAnswer(p *proxy.Proxy, change func(), wrote func(context.Context) bool) {
	r.Helper()
	p.Delay(2 * time.Second)
	change()
	r.must(eventually(r.Context(), patience, func(ctx context.Context) (bool, error) {
		return wrote(ctx), nil
	}))
	p.Cut()
	p.Delay(0)
}

// hasFinalizer reports whether the Deployment has one.
func (r *rollout) hasFinalizer(ctx context.Context) bool {
	d, err := r.client.AppsV1().Deployments(shop).Get(ctx, "web", metav1.GetOptions{})
	return err == nil && len(d.Finalizers) > 0
}

// hasSet returns a function that reports whether there is a ReplicaSet of an image.
func (r *rollout) hasSet(image string) func(context.Context) bool {
	return func(ctx context.Context) bool {
		sets, err := r.client.AppsV1().ReplicaSets(shop).List(ctx, metav1.ListOptions{})
		return err == nil && slices.ContainsFunc(sets.Items, func(set appsv1.ReplicaSet) bool {
			return set.Spec.Template.Spec.Containers[0].Image == image
		})
	}
}

// TestRollout runs replicas of examples/controller with the roles of its manifest, through
// roll-outs, lost answers, a planned take-over, a crash and a process that stands still.
func TestRollout(t *testing.T) {
	t.Parallel()
	r, audit := startRollout(t)
	r.checkRefusals()
	p := startProxy(t, r.server)
	one := r.start("one", p.URL())
	one.prints("a controller starts", 1)
	one.awaitReady()
	_, err := r.client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}}, metav1.CreateOptions{})
	r.must(err)

	r.loseAnswer(p, r.createDeployment, r.hasFinalizer)
	one.prints("a volume of the pods", 1)
	r.putConfigMap("more", "1") // leads to another call, and to the same event
	r.awaitEvents()
	r.putConfigMap("settings", "1")
	one.prints(`cannot create resource \\"replicasets`, 1)
	roles, err := r.client.RbacV1().ClusterRoles().Get(t.Context(), r.roles.Name, metav1.GetOptions{})
	r.must(err)
	roles.Rules = r.roles.Rules
	_, err = r.client.RbacV1().ClusterRoles().Update(t.Context(), roles, metav1.UpdateOptions{})
	r.must(err)
	first := r.rolledOut("roll out", "web:1")
	r.putConfigMap("settings", "2")
	r.must(eventually(t.Context(), patience, func(ctx context.Context) (bool, error) {
		return r.rolledOut("another ConfigMap", "web:1") != first, nil
	}))
	r.loseAnswer(p, func() { r.setImage("web:2") }, r.hasSet("web:2"))
	r.rolledOut("another image, whose write loses its answer", "web:2")

	two := r.standby("two")
	one.stop()
	r.setImage("web:3")
	r.rolledOut("a planned take-over", "web:3")
	three := r.standby("three")
	killed := time.Now()
	two.kill()
	r.setImage("web:4")
	r.rolledOut("a take-over after a crash", "web:4")
	four := r.standby("four")
	halted := time.Now()
	three.halt()
	r.setImage("web:5")
	r.rolledOut("a take-over from a process that stands still", "web:5")
	three.resume()
	three.prints("the term is closed before its end", 1)
	three.awaitReady()
	pause(t.Context(), 2*time.Second) // one that has lost its term waits a second before the next
	four.stop()
	r.setImage("web:6")
	r.rolledOut("a planned take-over by the one that stood still", "web:6")
	r.must(r.client.AppsV1().Deployments(shop).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	r.becomes(t.Context(), "delete", "")
	three.stop()

	log := audit()
	checkTakeOvers(t, log.checkFenced(t), killed, halted)
	r.checkRights(log)
}

// checkRefusals starts the program without rights, and asks that it names the missing one. Then it
// grants all but the right to create ReplicaSets.
func (r *rollout) checkRefusals() {
	r.Helper()
	none := r.start("none", r.server.URL())
	const want = "grant the verb get on leases of the API group coordination.k8s.io in the " +
		"namespace default"
	if err := none.awaitEnd(); err == nil || !strings.Contains(none.text(), want) {
		r.Errorf("without rights, the program ends with %v, want that it prints %q", err, want)
	}
	r.grant(r.without("create", "replicasets"))
}

// checkTakeOvers asks that each replica has taken over in time: within a second of a release, and
// within the duration of the Lease and two seconds of the times at which holders were killed and
// halted.
func checkTakeOvers(t *testing.T, terms []heldTerm, killed, halted time.Time) {
	t.Helper()
	var users []string
	for _, term := range terms {
		users = append(users, term.user)
	}
	if want := []string{"one", "two", "three", "four", "three"}; !slices.Equal(users, want) {
		t.Fatalf("the terms are those of %q, want %q", users, want)
	}
	if !terms[0].released || !terms[3].released {
		t.Errorf("a replica that was stopped has not released the Lease: %+v", terms)
	}
	const crash = 15*time.Second + 2*time.Second // the Lease has the default duration
	for _, takeOver := range []struct {
		name     string
		from, to time.Time
		most     time.Duration
	}{
		{"that was planned", terms[0].until, terms[1].taken, time.Second},
		{"after a crash", killed, terms[2].taken, crash},
		{"from a process that stands still", halted, terms[3].taken, crash},
		{"by the process that stood still", terms[3].until, terms[4].taken, time.Second},
	} {
		took := takeOver.to.Sub(takeOver.from)
		t.Logf("the take-over %s took %v", takeOver.name, took.Round(time.Millisecond))
		if took > takeOver.most {
			t.Errorf("the take-over %s took %v, want at most %v", takeOver.name, took, takeOver.most)
		}
	}
}

// checkRights asks that the roles allow all requests, and that each of their verbs was needed.
func (r *rollout) checkRights(log auditLog) {
	r.Helper()
	for _, e := range log {
		isCreate := e.Verb == "patch" && resourceOf(e) == "replicasets.apps" // before it was granted
		if e.ResponseStatus != nil && e.ResponseStatus.Code == http.StatusForbidden &&
			e.User.Username != "none" && !isCreate {
			r.Errorf("the roles do not allow %s to %s %s", e.User.Username, e.Verb, resourceOf(e))
		}
	}
	for _, rule := range slices.Concat(r.roles.Rules, r.role.Rules) {
		for _, verb := range rule.Verbs {
			for _, resource := range rule.Resources {
				if verb == "create" && resource == "replicasets" {
					continue // no request has this verb: an apply without the right was refused
				}
				main, sub, _ := strings.Cut(resource, "/")
				name := resourceName(rule.APIGroups[0], main, sub)
				if !slices.ContainsFunc(log, func(e auditv1.Event) bool {
					return e.Verb == verb && resourceOf(e) == name && succeeded(e)
				}) {
					r.Errorf("the roles grant %s on %s, which no request needed", verb, name)
				}
			}
		}
	}
}
