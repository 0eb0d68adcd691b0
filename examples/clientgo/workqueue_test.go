package clientgo_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// failure is the answer of a server that cannot write.
const failure = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"reason":"InternalError","message":"the disk is full"}`

func keepImageLists(t *testing.T, binaries string) string {
	var failing atomic.Int32 // how many of the next writes of ConfigMaps fail
	c := newCluster(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			writes := r.Method == http.MethodPost || r.Method == http.MethodPut
			if writes && strings.Contains(r.URL.Path, "/configmaps") && failing.Add(-1) >= 0 {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusInternalServerError)
				w.Write([]byte(failure)) //nolint:errcheck // a client that is gone needs no answer
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	c.create(deployment("default", "web", 1, "registry.example/web:1"))

	failing.Store(1)
	p := c.start(binaries, "workqueue", "--retries", "2")
	p.expect("the caches are filled")
	p.expect("default/web: the disk is full; trying again")
	p.expect("created default/web-images: registry.example/web:1")

	edit(c, deploymentsResource, "default", "web", func(d *appsv1.Deployment) {
		setImages(d, "registry.example/web:2", "registry.example/proxy:7", "registry.example/web:2")
	})
	p.expect("updated default/web-images: registry.example/proxy:7 registry.example/web:2")

	// Somebody changes the list, then deletes it.
	edit(c, configMapsResource, "default", "web-images", func(list *corev1.ConfigMap) { list.Data["images"] = "nothing" })
	p.expect("updated default/web-images: registry.example/proxy:7 registry.example/web:2")
	c.delete(configMapsResource, "default", "web-images")
	p.expect("created default/web-images: registry.example/proxy:7 registry.example/web:2")

	// A ConfigMap that is there already is somebody else's.
	c.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "api-images"}})
	c.create(deployment("default", "api", 1, "registry.example/api:1"))
	p.expect("default/api-images is not ours: left alone")

	// More failures than retries, and then a change.
	failing.Store(3)
	c.create(deployment("default", "db", 1, "registry.example/db:1"))
	p.expect("default/db: the disk is full; trying again")
	p.expect("default/db: the disk is full; trying again")
	p.expect("default/db: the disk is full; giving up until it changes")
	edit(c, deploymentsResource, "default", "db", func(d *appsv1.Deployment) { setImages(d, "registry.example/db:2") })
	p.expect("created default/db-images: registry.example/db:2")

	c.delete(deploymentsResource, "default", "web")
	p.expect("deleted default/web-images")
	return p.interrupt()
}
