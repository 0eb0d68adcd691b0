package clientgo_test

import "testing"

func listDeployments(t *testing.T, binaries string) string {
	c := newCluster(t, nil)
	web := deployment("default", "web", 3, "registry.example/web:1")
	web.Status.ReadyReplicas = 2
	c.create(web, deployment("default", "api", 1, "registry.example/api:1"), deployment("kube-system", "dns", 2, "registry.example/dns:1"))

	named := c.start(binaries, "lister", "web", "dns", "api")
	named.expect("default/web: 2 of 3 replicas ready")
	named.expect("default/dns: not found")
	named.expect("default/api: 0 of 1 replicas ready")
	all := c.start(binaries, "lister", "--namespace", "kube-system")
	all.expect("1 deployments in namespace kube-system")
	all.expect("kube-system/dns: 0 of 2 replicas ready")
	sorted := c.start(binaries, "lister")
	sorted.expect("2 deployments in namespace default")
	sorted.expect("default/api: 0 of 1 replicas ready")
	sorted.expect("default/web: 2 of 3 replicas ready")
	return named.end() + all.end() + sorted.end()
}
