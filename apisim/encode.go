package apisim

import (
	"bytes"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

func inForm(r *resource, f form, obj object) runtime.Object {
	if f.withoutManaged {
		obj = withoutManaged(obj)
	}
	switch {
	case f.table:
		return tableOf(r, f, metav1.ListMeta{ResourceVersion: obj.GetResourceVersion()}, obj)
	case f.metadata:
		return metadataOf(obj)
	default:
		return withKind(obj, r.gvk())
	}
}

func encode(f form, obj runtime.Object) ([]byte, error) {
	return runtime.Encode(f.codec().Serializer, obj)
}

func encodeEvent(r *resource, f form, eventType watch.EventType, obj object) ([]byte, error) {
	return encodeFrame(f, eventType, inForm(r, f, obj))
}

func encodeFrame(f form, eventType watch.EventType, obj runtime.Object) ([]byte, error) {
	raw, err := encode(f, obj)
	if err != nil {
		return nil, err
	}
	var frame bytes.Buffer
	codec := f.codec().StreamSerializer
	event := &metav1.WatchEvent{Type: string(eventType), Object: runtime.RawExtension{Raw: raw}}
	err = codec.Serializer.Encode(event, codec.Framer.NewFrameWriter(&frame))
	return frame.Bytes(), err
}

// listAnswer returns a page of a list. As with a real server, the items of typed lists have no
// kind.
func listAnswer(r *resource, f form, page listPage) (a answer, err error) {
	if f.withoutManaged {
		for i, obj := range page.objects {
			page.objects[i] = withoutManaged(obj)
		}
	}
	if f.table {
		return answer{f, tableOf(r, f, page.meta, page.objects...)}, nil
	}
	var list runtime.Object = &unstructured.UnstructuredList{}
	gvk, items := r.listGVK(), make([]runtime.Object, len(page.objects))
	switch {
	case f.metadata:
		list = &metav1.PartialObjectMetadataList{}
		gvk = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList")
	case r.typed:
		if list, err = scheme.Scheme.New(gvk); err != nil {
			return a, err
		}
	}
	for i, obj := range page.objects {
		switch {
		case f.metadata:
			items[i] = metadataOf(obj)
		case r.typed:
			items[i] = obj
		default: // a map, which may be stored in another version
			items[i] = withKind(obj, r.gvk())
		}
	}
	list.GetObjectKind().SetGroupVersionKind(gvk)
	metadata, err := meta.ListAccessor(list)
	if err != nil {
		return a, err
	}
	metadata.SetResourceVersion(page.meta.ResourceVersion)
	metadata.SetRemainingItemCount(page.meta.RemainingItemCount)
	if page.meta.Continue != "" {
		metadata.SetContinue(page.meta.Continue)
	}
	// As with a real server, lists of metadata and of custom resources have no shard info.
	if sharded, ok := list.(metav1.ShardedListInterface); ok && !f.metadata {
		sharded.SetShardInfo(page.shards)
	}
	return answer{f, list}, meta.SetList(list, items)
}
