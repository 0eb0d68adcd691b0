package main

import (
	"fmt"
	"hash/fnv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "github.com/tidings-go/tidings/examples/operator/api/v1"
)

// pageOf returns the ConfigMap for a Website's page, without its content. Its name tells
// the content, so that a new page is a new ConfigMap and rolls the Deployment out.
func pageOf(site *webv1.Website) *corev1.ConfigMap {
	hash := fnv.New32a()
	hash.Write([]byte(site.Spec.Page)) //nolint:errcheck // a hash takes everything
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: fmt.Sprintf("%s-%08x", site.Name, hash.Sum32())}}
}

// fillPage gives the ConfigMap its content.
func fillPage(page *corev1.ConfigMap, site *webv1.Website) {
	page.Labels = labelsOf(site)
	page.Data = map[string]string{"index.html": site.Spec.Page}
}

// serversOf returns the Deployment for a Website, without its content.
func serversOf(site *webv1.Website) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}}
}

// fillServers gives the Deployment its content. It writes fields with defaults of the server in
// full, or does not change them once they exist: otherwise every call would find a change.
func fillServers(servers *appsv1.Deployment, site *webv1.Website, page string) {
	servers.Labels = labelsOf(site)
	servers.Spec.Replicas = &site.Spec.Replicas
	if servers.Spec.Selector == nil {
		servers.Spec.Selector = &metav1.LabelSelector{MatchLabels: labelsOf(site)}
		servers.Spec.Template.Labels = labelsOf(site)
		servers.Spec.Template.Spec.Containers = []corev1.Container{{
			Name:         "nginx",
			Image:        "nginx:stable",
			VolumeMounts: []corev1.VolumeMount{{Name: "page", MountPath: "/usr/share/nginx/html"}},
		}}
	}
	servers.Spec.Template.Spec.Volumes = []corev1.Volume{{
		Name: "page",
		VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: page},
			DefaultMode:          new(corev1.ConfigMapVolumeSourceDefaultMode),
		}},
	}}
}

// labelsOf returns the labels of everything that a Website has.
func labelsOf(site *webv1.Website) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "website", "app.kubernetes.io/instance": site.Name}
}
