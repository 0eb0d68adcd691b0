package objects

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// What the two managers of a pod, and the two of a widget, own, in the form of the API.
const (
	podSpecFields = `{"f:metadata":{"f:annotations":{".":{},"f:checksum/config":{},` +
		`"f:prometheus.io/path":{},"f:prometheus.io/port":{},"f:prometheus.io/scrape":{}},` +
		`"f:generateName":{},"f:labels":{".":{},"f:app.kubernetes.io/managed-by":{},` +
		`"f:app.kubernetes.io/name":{},"f:app.kubernetes.io/part-of":{},"f:pod-template-hash":{},` +
		`"f:track":{}},` +
		`"f:ownerReferences":{".":{},"k:{\"uid\":\"own\"}":{}}},` +
		`"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:args":{},"f:env":{".":{},` +
		`"k:{\"name\":\"API_KEY\"}":{},"k:{\"name\":\"REGION\"}":{}},` +
		`"f:image":{},"f:livenessProbe":{},"f:name":{},"f:ports":{},"f:readinessProbe":{},` +
		`"f:resources":{},"f:volumeMounts":{}},"k:{\"name\":\"proxy\"}":{".":{},"f:args":{},` +
		`"f:image":{},"f:name":{},"f:resources":{}}},` +
		`"f:dnsPolicy":{},"f:restartPolicy":{},"f:schedulerName":{},"f:serviceAccountName":{},` +
		`"f:tolerations":{},"f:topologySpreadConstraints":{},"f:volumes":{}}}`
	podStatusFields = `{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":{".":{},` +
		`"f:lastTransitionTime":{},"f:status":{}},"k:{\"type\":\"Initialized\"}":{".":{},` +
		`"f:status":{}},` +
		`"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:status":{}}},` +
		`"f:containerStatuses":{},"f:hostIP":{},"f:hostIPs":{},"f:phase":{},"f:podIP":{},` +
		`"f:podIPs":{},"f:startTime":{}}}`
	widgetSpecFields = `{"f:metadata":{"f:finalizers":{".":{},` +
		`"v:\"shop.example.com/protection\"":{}},"f:labels":{".":{},"f:app.kubernetes.io/name":{},` +
		`"f:track":{}}},` +
		`"f:spec":{".":{},"f:backup":{},"f:class":{},"f:host":{},"f:image":{},"f:parameters":{},` +
		`"f:resources":{},"f:selector":{},"f:shards":{},"f:storage":{}}}`
	widgetStatusFields = `{"f:status":{".":{},"f:conditions":{},"f:endpoint":{},` +
		`"f:observedGeneration":{},"f:phase":{},"f:replicas":{}}}`
)

func managed(manager, subresource string, at metav1.Time, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &at,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields), Subresource: subresource,
	}
}
