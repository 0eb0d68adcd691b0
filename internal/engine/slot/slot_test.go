package slot

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"
)

var rangeOf = regexp.MustCompile(`^shardRange\((object\.metadata\.\w+), '(0x\d*[0-9a-f]{16})', '(0x\d*[0-9a-f]{16})'\)$`)

// parse returns the selector of apimachinery that a text stands for.
func parse(t *testing.T, text string) sharding.Selector {
	t.Helper()
	var requirements []sharding.ShardRangeRequirement
	for part := range strings.SplitSeq(text, " || ") {
		m := rangeOf.FindStringSubmatch(part)
		if m == nil {
			t.Fatalf("%q is no range", part)
		}
		requirements = append(requirements, sharding.ShardRangeRequirement{Key: m[1], Start: m[2], End: m[3]})
	}
	selector := sharding.NewSelector(requirements...)
	if selector.String() != text {
		t.Fatalf("apimachinery writes %q, and this package %q", selector, text)
	}
	return selector
}

func pod(random *rand.Rand) *metav1.PartialObjectMetadata {
	uid := fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", random.Uint32(), random.Uint32()>>16,
		random.Uint32()>>20, random.Uint32()>>20, random.Uint64()>>16)
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		UID: types.UID(uid), Namespace: fmt.Sprintf("team-%03d", random.IntN(1000)),
	}}
}

func TestS1_TheServerSelectsTheSameUIDs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for round := range 100 {
		set := All()
		for range round * 5 {
			set.Remove(random.IntN(Count))
		}
		if round == 1 {
			set = Of(0, 1, 2, 255)
		}
		selector := parse(t, set.UIDSelector())
		for range 100 {
			p := pod(random)
			matches, err := selector.Matches(p)
			if n := UID.Of(string(p.UID), ""); err != nil || matches != set.Has(n) {
				t.Fatalf("%s of slot %d: the server selects it: %t, %v; the set %v: %t", p.UID, n, matches,
					err, set, set.Has(n))
			}
		}
	}
}

func TestS1_AdjacentSlotsAreOneRange(t *testing.T) {
	for _, test := range []struct {
		set            Set
		text, selector string
	}{
		{Set{}, "", "shardRange(object.metadata.uid, '0x0000000000000000', '0x0000000000000001')"},
		{All(), "0-255",
			"shardRange(object.metadata.uid, '0x0000000000000000', '0x10000000000000000')"},
		{Of(1, 2, 3), "1-3",
			"shardRange(object.metadata.uid, '0x0100000000000000', '0x0400000000000000')"},
		{Of(0, 64, 255), "0,64,255",
			"shardRange(object.metadata.uid, '0x0000000000000000', '0x0100000000000000') || " +
				"shardRange(object.metadata.uid, '0x4000000000000000', '0x4100000000000000') || " +
				"shardRange(object.metadata.uid, '0xff00000000000000', '0x10000000000000000')"},
	} {
		if got := test.set.String(); got != test.text {
			t.Errorf("the set is %q, want %q", got, test.text)
		}
		if got := test.set.UIDSelector(); got != test.selector {
			t.Errorf("the selector is %q, want %q", got, test.selector)
		}
	}
}

func teams(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("team-%03d", i))
	}
	return names
}

func TestS1_NamespacesThatAreAlikeSpread(t *testing.T) {
	var used, plain Set
	for _, name := range teams(500) {
		used.Add(Namespace.Of("", name) / 4)
		plain.Add(UID.Of(name, "") / 4)
	}
	if used.Len() != 64 {
		t.Errorf("500 names use %d of 64 slots", used.Len())
	}
	if plain.Len() > 16 {
		t.Errorf("FNV-1a alone uses %d of 64 slots: it would do", plain.Len())
	}
}

// TestS1_ThousandNamespacesAreBalanced gives each replica equally many slots.
func TestS1_ThousandNamespacesAreBalanced(t *testing.T) {
	for _, replicas := range []int{2, 4, 8} {
		count := make([]int, replicas)
		for _, name := range teams(1000) {
			count[Namespace.Of("", name)%replicas]++
		}
		if most := slices.Max(count); float64(most) > 1.3*1000/float64(replicas) {
			t.Errorf("%d replicas have %v namespaces", replicas, count)
		}
		t.Logf("%d replicas: %v", replicas, count)
	}
}

func TestS1_Sets(t *testing.T) {
	a, b := Of(1, 2, 200), Of(2, 3)
	if got := a.Union(b); got != Of(1, 2, 3, 200) || got.Len() != 4 {
		t.Errorf("the union is %v", got)
	}
	if got := a.Minus(b); got != Of(1, 200) {
		t.Errorf("the difference is %v", got)
	}
	if got := slices.Collect(a.Slots()); !slices.Equal(got, []int{1, 2, 200}) {
		t.Errorf("the slots are %v", got)
	}
	a.Remove(200)
	if a != Of(1, 2) || a.IsEmpty() || !new(Set).IsEmpty() {
		t.Errorf("the rest is %v", a)
	}
}
