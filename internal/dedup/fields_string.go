//go:build fieldsv1string

package dedup

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// setFields sets what apimachinery holds as a string, and shares by itself.
func setFields(to *metav1.FieldsV1, content []byte) { to.SetRawBytes(content) }
