package v1

import "k8s.io/apimachinery/pkg/runtime"

// DeepCopyInto writes a copy of w to out that shares nothing with it.
func (w *Website) DeepCopyInto(out *Website) {
	*out = *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
}

// DeepCopy returns a copy that shares nothing with w; nil for nil.
func (w *Website) DeepCopy() *Website {
	if w == nil {
		return nil
	}
	out := new(Website)
	w.DeepCopyInto(out)
	return out
}

// DeepCopyObject is [Website.DeepCopy] for the Kubernetes machinery.
func (w *Website) DeepCopyObject() runtime.Object {
	if w == nil {
		return nil
	}
	return w.DeepCopy()
}

// DeepCopyInto writes a copy of l to out that shares nothing with it.
func (l *WebsiteList) DeepCopyInto(out *WebsiteList) {
	*out = *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	if l.Items == nil {
		return
	}
	out.Items = make([]Website, len(l.Items))
	for i := range l.Items {
		l.Items[i].DeepCopyInto(&out.Items[i])
	}
}

// DeepCopy returns a copy that shares nothing with l; nil for nil.
func (l *WebsiteList) DeepCopy() *WebsiteList {
	if l == nil {
		return nil
	}
	out := new(WebsiteList)
	l.DeepCopyInto(out)
	return out
}

// DeepCopyObject is [WebsiteList.DeepCopy] for the Kubernetes machinery.
func (l *WebsiteList) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	return l.DeepCopy()
}
