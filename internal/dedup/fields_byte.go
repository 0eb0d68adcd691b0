//go:build !fieldsv1string

package dedup

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// setFields sets what apimachinery holds as bytes. Its own setter leaves room behind them,
// into which two users who append to a shared slice would both write.
func setFields(to *metav1.FieldsV1, content []byte) {
	raw := make([]byte, len(content))
	copy(raw, content)
	//lint:ignore SA1019 the setters cannot do this
	to.Raw = raw
}
