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

// resourceOf returns the name of a resource for kubectl, quoted; "" if it is not known.
func resourceOf(r source.Resource) string {
	name := r.Name
	if r.Group != "" && name != "" {
		name += "." + r.Version + "." + r.Group
	}
	if name == "" {
		return ""
	}
	return quote(name)
}

// kubectlGet returns the command that shows an object on the server, "" if its resource is not
// known.
func kubectlGet(r source.Resource, key string) string {
	name := resourceOf(r)
	if name == "" {
		return ""
	}
	namespace, object, ok := strings.Cut(key, "/")
	if !ok {
		return fmt.Sprintf("kubectl get %s %s -o yaml --show-managed-fields", name, quote(key))
	}
	return fmt.Sprintf("kubectl get %s %s -n %s -o yaml --show-managed-fields", name, quote(object),
		quote(namespace))
}

// profile returns the command that shows the processor time of what has a label in profiles.
func profile(label, name string) Command {
	return Command{
		"Its processor time, if the program serves net/http/pprof (here at port 6060)",
		"go tool pprof -top -tagfocus " + quote(label+"="+regexp.QuoteMeta(name)) +
			" http://localhost:6060/debug/pprof/profile",
	}
}

// informerCommands are the commands of the page of an informer.
func informerCommands(i gather.Informer) (commands []Command) {
	if i.View != nil {
		if name := resourceOf(i.View.Resource()); name != "" {
			commands = append(commands, Command{"What the server has", "kubectl get " + name + " -A"},
				Command{"What your credentials may do", "kubectl auth can-i watch " + name + " -A"})
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
	text := fmt.Sprintf(role, kind, parts[0], namespace, group, parts[0])
	return Command{"The role that is missing; bind it to the account of the program", text}, true
}

// role is the form of a role: its kind, a resource, its namespace, the group and the resource.
const role = `apiVersion: rbac.authorization.k8s.io/v1
kind: %s
metadata:
  name: read-%s%s
rules:
- apiGroups: [%q]
  resources: [%q]
  verbs: [get, list, watch]
`
