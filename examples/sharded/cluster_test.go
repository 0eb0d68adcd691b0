package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/shard"
)

const teams, perTeam = 200, 2

// cluster is an API server in memory, with ConfigMaps in the namespaces of teams.
type cluster struct {
	*apisim.Server
	url string
}

// listen starts a server at an address of this machine.
func listen(t *testing.T) *cluster {
	t.Helper()
	server, err := apisim.New(apisim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() }) //nolint:errcheck // the test ends
	c := &cluster{Server: server}
	if c.url, err = server.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	return c
}

// awaitOwners waits until a number of replicas own slots.
func (c *cluster) awaitOwners(t *testing.T, replicas int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	for {
		r, err := shard.Read(ctx, &rest.Config{Host: c.url, QPS: -1}, "default", name)
		if err != nil && !errors.Is(err, shard.ErrNoGroup) {
			t.Fatal(err)
		}
		owners := 0
		for _, m := range r.Members {
			if m.Slots > 0 {
				owners++
			}
		}
		if owners == replicas && r.Moving == 0 {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the members are %+v", r.Members)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (c *cluster) fill(ctx context.Context) error {
	for i := range teams {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: teamOf(i)}}
		if _, err := c.Create(ctx, namespace); err != nil {
			return err
		}
	}
	for i := range teams * perTeam {
		configMap := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: teamOf(i), Name: settingsOf(i),
				Labels: map[string]string{"checksum": "wanted"},
			},
			Data: map[string]string{"changed": "never"},
		}
		if _, err := c.Create(ctx, configMap); err != nil {
			return err
		}
	}
	return nil
}

func teamOf(i int) string { return fmt.Sprintf("team-%03d", i%teams) }

func settingsOf(i int) string { return fmt.Sprintf("settings-%d", i/teams) }

// waiting returns the number of ConfigMaps without the checksum of their data.
func (c *cluster) waiting(ctx context.Context) (n int, err error) {
	all, _, err := c.List(ctx, corev1.SchemeGroupVersion.WithResource("configmaps"), "")
	for _, object := range all {
		configMap := object.(*corev1.ConfigMap)
		if configMap.Labels["checksum"] == "wanted" &&
			configMap.Annotations[sumAnnotation] != checksum(configMap) {
			n++
		}
	}
	return n, err
}

// held returns the names of the Leases that are held.
func (c *cluster) held(ctx context.Context, namespace string) (names []string, err error) {
	all, _, err := c.List(ctx, coordinationv1.SchemeGroupVersion.WithResource("leases"), namespace)
	for _, object := range all {
		lease := object.(*coordinationv1.Lease)
		if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" {
			names = append(names, lease.Name)
		}
	}
	return names, err
}
