package inspect

import "fmt"

// Names tells several things of one name apart. It counts the uses of each name.
type Names map[string]int

// Distinct returns a name that was not used before: the name itself, or the name with a number, as
// in "pods.v1#2".
func (n Names) Distinct(name string) string {
	distinct := name
	for n[distinct] > 0 {
		n[name]++
		distinct = fmt.Sprintf("%s#%d", name, n[name])
	}
	n[distinct] = 1
	return distinct
}
