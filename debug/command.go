package debug

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/tidings-go/tidings/internal/see/gather"
	"github.com/tidings-go/tidings/source"
)

// Command is a text to copy.
type Command struct {
	// For says what it is for.
	For  string `json:"for"`
	Text string `json:"text"`
}

// shellSafe are words that a shell takes as they are.
var shellSafe = regexp.MustCompile(`^[A-Za-z0-9_./:@=-]+$`)

// quote returns a word for a shell.
func quote(word string) string {
	if shellSafe.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// kubectlGet returns the command that shows an object on the server, "" if its resource is not known.
func kubectlGet(r source.Resource, key string) string {
	if r.Name == "" {
		return ""
	}
	name := r.Name
	if r.Group != "" {
		name += "." + r.Version + "." + r.Group
	}
	namespace, object, ok := strings.Cut(key, "/")
	if !ok {
		return fmt.Sprintf("kubectl get %s %s -o yaml", quote(name), quote(key))
	}
	return fmt.Sprintf("kubectl get %s %s -n %s -o yaml --show-managed-fields", quote(name), quote(object), quote(namespace))
}

// profile returns the command that shows the processor time of what has a label in profiles.
func profile(label, name string) Command {
	return Command{
		"Its processor time, if the program serves net/http/pprof (here at port 6060)",
		fmt.Sprintf("go tool pprof -top -tagfocus %s http://localhost:6060/debug/pprof/profile?seconds=10",
			quote(label+"="+regexp.QuoteMeta(name))),
	}
}

// informerCommands are the commands of the page of an informer.
func informerCommands(i gather.Informer) (commands []Command) {
	if i.View != nil {
		if r := i.View.Resource(); r.Name != "" {
			name := r.Name
			if r.Group != "" {
				name += "." + r.Version + "." + r.Group
			}
			commands = append(commands, Command{"What the server has", "kubectl get " + quote(name) + " -A"},
				Command{"What these credentials may do", "kubectl auth can-i watch " + quote(name) + " -A"})
		}
	}
	for _, handler := range i.Health.Handlers {
		commands = append(commands, profile("handler", handler.Name))
	}
	return commands
}

// missingRole returns the role that an error asks for; ok is false if it is none of a permission.
func missingRole(err error) (c Command, ok bool) {
	failed, ok := errors.AsType[*source.Error](err)
	if !ok || failureOf(err) != noPermission {
		return Command{}, false
	}
	parts := strings.SplitN(failed.Resource, ".", 3) // as in deployments.v1.apps
	group := ""
	if len(parts) == 3 {
		group = parts[2]
	}
	kind, namespace := "ClusterRole", ""
	if failed.Namespace != "" {
		kind, namespace = "Role", "\n  namespace: "+failed.Namespace
	}
	return Command{"The role that is missing; bind it to the account of the program", fmt.Sprintf(`apiVersion: rbac.authorization.k8s.io/v1
kind: %s
metadata:
  name: read-%s%s
rules:
- apiGroups: [%q]
  resources: [%q]
  verbs: [get, list, watch]
`, kind, parts[0], namespace, group, parts[0])}, true
}
