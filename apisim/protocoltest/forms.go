package protocoltest

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
)

// forms: clients that hold objects as maps, as metadata alone, and as rows of a table
// see the same.
func forms(r *rig) {
	a := r.create("a", "n=1")
	o := metav1.ListOptions{FieldSelector: selected}
	maps, err := dynamic.NewForConfig(r.config)
	r.must(err)
	onlyMetadata, err := metadata.NewForConfig(r.config)
	r.must(err)
	resource := corev1.SchemeGroupVersion.WithResource("configmaps")

	asMaps, err := maps.Resource(resource).Namespace(r.namespace).List(r.ctx, o)
	r.must(err)
	if len(asMaps.Items) != 1 || asMaps.GetKind() != "ConfigMapList" ||
		asMaps.Items[0].GetName() != "a" {
		r.Errorf("as maps: %v", asMaps)
	}
	asMetadata, err := onlyMetadata.Resource(resource).Namespace(r.namespace).List(r.ctx, o)
	r.must(err)
	if len(asMetadata.Items) != 1 || asMetadata.Items[0].Labels["n"] != "1" ||
		asMetadata.Items[0].ResourceVersion != a.ResourceVersion {
		r.Errorf("as metadata: %v", asMetadata)
	}
	o.ResourceVersion = a.ResourceVersion
	mapEvents, err := maps.Resource(resource).Namespace(r.namespace).Watch(r.ctx, o)
	r.must(err)
	metadataEvents, err := onlyMetadata.Resource(resource).Namespace(r.namespace).Watch(r.ctx, o)
	r.must(err)
	changed := r.update("a", "n=2")
	for _, w := range []watch.Interface{mapEvents, metadataEvents} {
		r.expect(w, "MODIFIED a@"+changed.ResourceVersion)
		w.Stop()
	}
	r.table()
	r.withoutManagedFields(changed)
}

// listAs decodes a list that is asked for with an Accept header, and returns its bytes.
func (r *rig) listAs(accept string, into any) []byte {
	raw, err := r.client.CoreV1().RESTClient().Get().Namespace(r.namespace).Resource("configmaps").
		SetHeader("Accept", accept).
		VersionedParams(&metav1.ListOptions{FieldSelector: selected}, metav1.ParameterCodec).
		DoRaw(r.ctx)
	r.must(err)
	r.must(json.Unmarshal(raw, into))
	return raw
}

// withoutManagedFields checks that a server that does not know the parameter drop ignores it.
func (r *rig) withoutManagedFields(want *corev1.ConfigMap) {
	var got corev1.ConfigMapList
	raw := r.listAs("application/json;drop=metadata.managedFields", &got)
	if len(got.Items) != 1 || got.Items[0].ResourceVersion != want.ResourceVersion {
		r.Errorf("without managed fields: %s", raw)
	}
}

func (r *rig) table() {
	var table metav1.Table
	raw := r.listAs("application/json;as=Table;v=v1;g=meta.k8s.io", &table)
	columns := len(table.ColumnDefinitions)
	if table.Kind != "Table" || columns < 2 || len(table.Rows) != 1 ||
		len(table.Rows[0].Cells) != columns || table.Rows[0].Cells[0] != "a" {
		r.Errorf("as a table: %s", raw)
	}
}
