package main

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
)

const (
	teams        = 200
	perTeam      = 2
	changePeriod = 50 * time.Millisecond
)

// cluster is an API server in memory, with ConfigMaps in the namespaces of teams.
type cluster struct {
	*apisim.Server
	url string
}

func newCluster(ctx context.Context) (*cluster, error) {
	server, err := apisim.New(apisim.Options{})
	if err != nil {
		return nil, err
	}
	c := &cluster{Server: server}
	if c.url, err = server.Listen("127.0.0.1:0"); err != nil {
		return nil, err
	}
	return c, c.fill(ctx)
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

// change changes one ConfigMap after the other until ctx ends, as users would.
func (c *cluster) change(ctx context.Context) error {
	ticker := time.NewTicker(changePeriod)
	defer ticker.Stop()
	for i := 0; ; i = (i + 1) % (teams * perTeam) {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			err := c.changeOne(ctx, i, now)
			if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				return fmt.Errorf("change a ConfigMap: %w", err)
			}
		}
	}
}

func (c *cluster) changeOne(ctx context.Context, i int, now time.Time) error {
	configMap, err := apisim.Get[*corev1.ConfigMap](ctx, c.Server, teamOf(i), settingsOf(i))
	if err != nil {
		return err
	}
	configMap.Data["changed"] = now.Format(time.StampMilli)
	_, err = apisim.Update(ctx, c.Server, configMap)
	return err
}

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
