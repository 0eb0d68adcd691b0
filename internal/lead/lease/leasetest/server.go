package leasetest

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/apisim"
)

// Namespace is that of all Leases.
const Namespace = "ops"

// Resource is that of Leases.
var Resource = coordinationv1.SchemeGroupVersion.WithResource("leases")

// Start returns a server with the namespace, until the end of the test.
func Start(t *testing.T, o apisim.Options) *apisim.Server {
	t.Helper()
	server := o.Start(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}
	if _, err := server.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return server
}

// Config returns the configuration of a process.
func Config(server *apisim.Server, process string) *rest.Config {
	config := server.Config()
	config.UserAgent, config.BearerToken = process, process
	return config
}

// By matches the requests of a process for Leases; "" is any process, and any verb.
func By(process, verb string) apisim.Match {
	return apisim.Match{Resource: "leases.coordination.k8s.io", UserAgent: process, Verb: verb}
}

// Get returns a stored Lease.
func Get(t *testing.T, server *apisim.Server, name string) *coordinationv1.Lease {
	t.Helper()
	stored, err := server.Get(t.Context(), Resource, Namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	return stored.(*coordinationv1.Lease)
}

// Change writes a Lease past all processes.
func Change(t *testing.T, server *apisim.Server, name string, change func(*coordinationv1.Lease)) {
	t.Helper()
	l := Get(t, server, name)
	change(l)
	if _, err := server.Update(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}

// WantBetween checks a duration.
func WantBetween(t *testing.T, name string, got, least, most time.Duration) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s: %v, want between %v and %v", name, got, least, most)
	}
}
