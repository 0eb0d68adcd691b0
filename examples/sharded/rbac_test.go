package main

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/tidings-go/tidings/apisim"
)

// rules reads the rights of the manifest. A Role and a ClusterRole have the same fields.
func rules(t *testing.T) (all []apisim.Rule) {
	t.Helper()
	manifest, err := os.ReadFile("rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		var role rbacv1.Role
		if err := yaml.UnmarshalStrict([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		of, err := apisim.RulesOf(role.Namespace, role.Rules)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, of...)
	}
	return all
}

// TestTheRolesAreWhatAReplicaNeeds runs two replicas with the rights of the manifest, one after the
// other, the first of which crashes.
func TestTheRolesAreWhatAReplicaNeeds(t *testing.T) {
	granted := rules(t)
	slog.SetLogLoggerLevel(slog.LevelError + 1)
	t.Cleanup(func() { slog.SetLogLoggerLevel(slog.LevelInfo) })
	synctest.Test(t, func(t *testing.T) {
		server := apisim.Start(t)
		c := &cluster{Server: server}
		if err := c.fill(t.Context()); err != nil {
			t.Fatal(err)
		}
		err := server.SetUsers(apisim.User{Name: "a", Token: "a", Allow: granted},
			apisim.User{Name: "b", Token: "b", Allow: granted})
		if err != nil {
			t.Fatal(err)
		}
		start := func(token string) (stop func() error) {
			config := server.Config()
			config.QPS, config.BearerToken, config.UserAgent = -1, token, token
			r, err := newReplica(config, options{namespace: "default", identity: token})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				ended <- r.Run(ctx, func(_ http.Handler, run func(context.Context) error) error { return run(ctx) })
			}()
			return func() error {
				cancel()
				return <-ended
			}
		}
		stopA := start("a")
		time.Sleep(10 * time.Second)
		cut := server.Inject(apisim.Match{UserAgent: "a"}, apisim.Drop())
		stopB := start("b")
		time.Sleep(time.Minute)
		server.Inject(apisim.Match{Verb: "patch", UserAgent: "b", Times: 1}, apisim.RefuseApplied(500))
		configMap, err := apisim.Get[*corev1.ConfigMap](t.Context(), server, teamOf(0), settingsOf(0))
		if err != nil {
			t.Fatal(err)
		}
		metav1.SetMetaDataAnnotation(&configMap.ObjectMeta, sumAnnotation, "")
		if _, err := server.Update(t.Context(), configMap); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if n, err := c.waiting(t.Context()); n > 0 || err != nil {
			t.Errorf("%d ConfigMaps have no checksum; the error is %v", n, err)
		}
		cut.Lift()
		for _, stop := range []func() error{stopA, stopB} {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
		if held, err := c.held(t.Context(), "default"); len(held) > 0 || err != nil {
			t.Errorf("the Leases %v are held; the error is %v", held, err)
		}
		if err := server.Requests().CheckRights(granted); err != nil {
			t.Error(err)
		}
	})
}
