package fleet

import (
	"fmt"
	"math/rand/v2"
)

var (
	namespaceNames = []string{"shop", "payments", "search", "media", "billing", "identity", "analytics", "support", "logistics", "platform"}
	subjects       = []string{"cart", "catalog", "checkout", "invoice", "ledger", "login", "mail", "orders", "pricing", "profile", "reviews", "session", "stock", "thumbnail", "tracking"}
	roles          = []string{"api", "web", "worker", "cache", "gateway", "sync"}
	zones          = []string{"zone-a", "zone-b", "zone-c"}
)

// nameRunes are the characters of generated names: no vowels and nothing that is
// read as one, so that no word comes out.
const nameRunes = "bcdfghjklmnpqrstvwxz2456789"

func randomName(rng *rand.Rand, length int) string {
	name := make([]byte, length)
	for i := range name {
		name[i] = nameRunes[rng.IntN(len(nameRunes))]
	}
	return string(name)
}

// numbered returns the i-th of names, with a number once they are used up.
func numbered(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s-%d", names[i%len(names)], i/len(names)+1)
}

// appName returns the i-th name of an application.
func appName(i int) string {
	subject := subjects[i%len(subjects)]
	role := roles[(i%len(subjects)+i/len(subjects))%len(roles)]
	if round := i / (len(subjects) * len(roles)); round > 0 {
		return fmt.Sprintf("%s-%s-%d", subject, role, round+1)
	}
	return subject + "-" + role
}

func podIP(rng *rand.Rand) string {
	return fmt.Sprintf("10.%d.%d.%d", 64+rng.IntN(64), rng.IntN(256), 2+rng.IntN(250))
}

func imageID(rng *rand.Rand) string {
	return fmt.Sprintf("sha256:%016x%016x%016x%016x", rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64())
}
