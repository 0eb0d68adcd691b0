package lease

import (
	"fmt"
	"os"
)

// HostName returns the name of this host, for the field Identity of a struct, such as
// election: Options, that is empty.
func HostName(options string) (string, error) {
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("%s.Identity is empty and the host has no name: "+
			"give the name of the pod: %w", options, err)
	}
	return name, nil
}
