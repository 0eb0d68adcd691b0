package apisim

import (
	"fmt"
	"iter"
	"regexp"
	"strings"

	"github.com/tidwall/btree"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/sharding"
)

// objectTree holds objects by their key.
type objectTree = btree.Map[string, object]

// objectSelection is the selection of objects by a request.
type objectSelection struct {
	namespace, name string // "" is any
	labels          labels.Selector
	fields          fields.Selector // nil selects every object
	paths           fieldPaths
	shards          sharding.Selector // nil selects every object
}

func newSelection(r *resource, p requestPath, o *internalversion.ListOptions) (s objectSelection,
	err error) {
	s = objectSelection{namespace: p.namespace, name: p.name, labels: labels.Everything()}
	if o.LabelSelector != nil {
		s.labels = o.LabelSelector
	}
	if o.FieldSelector == nil || o.FieldSelector.Empty() {
		return s, nil
	}
	if s.fields, err = r.fieldSelector(o.FieldSelector); err == nil {
		s.paths, err = r.fieldPaths(s.fields)
	}
	return s, err
}

func (s objectSelection) isEverything() bool {
	return s.name == "" && s.labels.Empty() && s.fields == nil && s.shards == nil
}

func (s objectSelection) matches(obj object) bool {
	matches := (s.namespace == "" || obj.GetNamespace() == s.namespace) &&
		(s.name == "" || obj.GetName() == s.name) &&
		(s.labels.Empty() || s.labels.Matches(labels.Set(obj.GetLabels()))) &&
		(s.fields == nil || s.fields.Matches(selectedFields{obj, s.paths}))
	if !matches || s.shards == nil {
		return matches
	}
	matches, err := s.shards.Matches(obj)
	return err == nil && matches
}

// inNamespace returns the objects of a namespace, or of all namespaces for "", from a key on.
func inNamespace(objects *objectTree, namespace, from string) iter.Seq2[string, object] {
	prefix := ""
	if namespace != "" {
		prefix = namespace + "/"
	}
	return func(yield func(string, object) bool) {
		objects.Ascend(max(prefix, from), func(key string, obj object) bool {
			return strings.HasPrefix(key, prefix) && yield(key, obj)
		})
	}
}

// shardRange matches a part of a shard selector. A real server parses expressions of CEL, which may
// have other spaces.
var shardRange = regexp.MustCompile(
	`^shardRange\((object\.metadata\.(?:uid|namespace)), '(0x[0-9a-f]{16})', '(0x[0-9a-f]{16}|0x10{16})'\)$`)

// parseShards parses a shard selector. As with a real server, the error is an internal error of the
// server.
func parseShards(text string) (sharding.Selector, error) {
	var all []sharding.ShardRangeRequirement
	for part := range strings.SplitSeq(text, "||") {
		m := shardRange.FindStringSubmatch(strings.TrimSpace(part))
		if m == nil || !sharding.HexLess(m[2], m[3]) || len(all) > 0 && m[1] != all[0].Key {
			return nil, apierrors.NewInternalError(fmt.Errorf("invalid shard selector: %.100q", part))
		}
		all = append(all, sharding.ShardRangeRequirement{Key: m[1], Start: m[2], End: m[3]})
	}
	return sharding.NewSelector(all...), nil
}
