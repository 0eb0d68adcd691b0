package apisim

import (
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/sharding"
)

// shardRange is a part of a shard selector. Those of a real server are expressions of CEL, which may
// have other spaces.
var shardRange = regexp.MustCompile(
	`^shardRange\((object\.metadata\.(?:uid|namespace)), '(0x[0-9a-f]{16})', '(0x[0-9a-f]{16}|0x10{16})'\)$`)

// parseShards returns the selector that a text stands for. As with a real server, the error is no
// fault of the request.
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

// inShard reports whether an object is selected by a shard selector, nil being all.
func inShard(s sharding.Selector, obj object) bool {
	if s == nil {
		return true
	}
	matches, err := s.Matches(obj)
	return err == nil && matches
}
