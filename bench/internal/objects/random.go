package objects

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Replicas is the number of pods of a workload.
const Replicas = 40

// Namespaces is the number of namespaces of all workloads.
const Namespaces = 50

// random makes the random values of one object, always the same for the same object.
type random struct{ *rand.Rand }

// seed is the seed of everything that differs between runs of another seed.
const seed = 1

// randomOf returns the random numbers of one object, the one with a number among the objects named
// what.
func randomOf(what string, number int) random { return seeded(seed, what, number) }

func seeded(seed uint64, what string, number int) random {
	h := fnv.New64a()
	h.Write([]byte(what)) // never fails
	return random{rand.New(rand.NewPCG(seed^h.Sum64(), uint64(number)))}
}

// from returns n characters of an alphabet.
func (r random) from(alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}

// suffix returns n characters as Kubernetes appends them to generated names.
func (r random) suffix(n int) string { return r.from("bcdfghjklmnpqrstvwxz2456789", n) }

// hex returns n hexadecimal digits.
func (r random) hex(n int) string { return r.from("0123456789abcdef", n) }

func (r random) uid() types.UID {
	return types.UID(r.hex(8) + "-" + r.hex(4) + "-4" + r.hex(3) + "-a" + r.hex(3) + "-" +
		r.hex(12))
}

// epoch is the time of the oldest object.
var epoch = time.Date(2026, time.January, 5, 8, 0, 0, 0, time.UTC)

// time returns a time within the 200 days after epoch, in whole seconds as in the API.
func (r random) time() metav1.Time {
	return metav1.NewTime(epoch.Add(time.Duration(r.IntN(200*24*3600)) * time.Second))
}

// after returns t and some seconds.
func after(t metav1.Time, seconds int) metav1.Time {
	return metav1.NewTime(t.Add(time.Duration(seconds) * time.Second))
}

// word returns a name that reads like one.
func (r random) word() string {
	first := strings.Fields("billing catalog checkout search ledger mail media orders profile " +
		"report session stock")
	second := strings.Fields("api worker cache gateway indexer proxy sync store")
	return first[r.IntN(len(first))] + "-" + second[r.IntN(len(second))]
}

// ip returns the address of an object of a number.
func ip(number int) string {
	return fmt.Sprintf("10.%d.%d.%d", 64+number>>16&63, number>>8&255, number&255)
}

// Node returns the name of the node of a number.
func Node(number int) string { return fmt.Sprintf("node-%d.eu-west-1.compute.internal", number) }

// Namespace returns the namespace of a number's workload.
func Namespace(workload int) string { return fmt.Sprintf("team-%02d", workload%Namespaces) }

// Version returns the resource version of the object of a number.
func Version(number int) string { return fmt.Sprint(FirstVersion + number) }

// FirstVersion is the resource version of object 0.
const FirstVersion = 1_000_000
