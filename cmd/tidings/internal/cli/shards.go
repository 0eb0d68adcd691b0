package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/internal/see/format"
	"github.com/tidings-go/tidings/shard"
)

type shardsOptions struct {
	namespace string // "" is the namespace of the context
	name      string
	output    string
}

const shardsLong = `Shards prints the map of a group whose members share the objects of a controller with Tidings'
package shard: what each member does and owns, which slots move, and what is wrong in sentences. NAME
is that of the group, and of the Lease with its map; NAMESPACE is that of its Leases, by default the
context's.

It reads the Leases once and writes nothing: the credentials need the verb list on leases. The age of
a renewal is that of the member's own clock. If one is older than half of the Lease's duration, the
command waits for as long and reads again, so that clocks that differ make no member dead.

The weight of a slot is 1, and 16 for each of its objects, as its owner counts them. Slots are divided
by weight.

The exit code is 1 if something is wrong: slots that nobody owns, that are not ready at their owners,
or whose keys wait for long; members that cannot work. Remarks are about what is normal for a while, such as a
rolling update.`

const shardsExample = `  # the group "rollout" of the namespace "ops"
  tidings shards ops/rollout

  # in a script
  tidings shards ops/rollout -o json | jq -r '.problems[]'`

func newShards(c *common) *cobra.Command {
	var o shardsOptions
	cmd := &cobra.Command{
		Use:     "shards [NAMESPACE/]NAME [flags]",
		Short:   "Print which member of a group owns which slots, and what is wrong",
		Long:    shardsLong,
		Example: shardsExample,
		Args:    func(_ *cobra.Command, args []string) error { return o.parse(args) },
	}
	clusters := newClusterFlags(cmd, false)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := checkForm(o.output); err != nil {
			return err
		}
		if err := clusters.check(); err != nil {
			return err
		}
		return runShards(cmd.Context(), c, o, clusters)
	}
	addForm(cmd, &o.output, "what to print: table or json")
	return cmd
}

// addForm adds the flag --output of a command that prints tables or JSON.
func addForm(cmd *cobra.Command, output *string, usage string) {
	cmd.Flags().StringVarP(output, "output", "o", "table", usage)
	completeWords(cmd, "output", "table", "json")
}

func checkForm(output string) error {
	if output != "table" && output != "json" {
		return problem.Usage("--output %q: choose table or json", output)
	}
	return nil
}

func (o *shardsOptions) parse(args []string) error {
	if len(args) != 1 {
		return problem.Usage("name one group, as in ops/rollout")
	}
	var ok bool
	if o.namespace, o.name, ok = strings.Cut(args[0], "/"); !ok {
		o.namespace, o.name = "", args[0]
	}
	if o.name == "" || ok && o.namespace == "" || strings.Contains(o.name, "/") {
		return problem.Usage("%q is no group: write it as in ops/rollout", args[0])
	}
	for _, name := range []string{o.namespace, o.name} {
		if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 && name != "" {
			return problem.Usage("%q is no group: %q is no name: %s", args[0], name,
				strings.Join(wrong, "; "))
		}
	}
	return nil
}

func runShards(ctx context.Context, c *common, o shardsOptions, flags *clusterFlags) error {
	cluster, err := open(ctx, flags.serverFlags)
	if err != nil {
		return err
	}
	if o.namespace == "" {
		if o.namespace, err = cluster.namespace(); err != nil {
			return err
		}
	}
	r, err := shard.Read(ctx, cluster.config, o.namespace, o.name)
	switch {
	case errors.Is(err, shard.ErrNoGroup):
		return fmt.Errorf("%w: check the name and the namespace, and whether its program runs", err)
	case err != nil:
		return cluster.target.Explain(err)
	}
	text := shardsText(r)
	if o.output == "json" {
		encoded, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		text = view.Escaped(string(encoded)) + "\n"
	}
	if err := c.screen().Print(text); err != nil {
		return err
	}
	if n := len(r.Problems); n > 0 {
		return fmt.Errorf("the group %s has %s", r.Lease, format.Counted(n, "problem", "problems"))
	}
	return nil
}

// shardsText returns a report as tables and sentences.
func shardsText(r shard.Report) string {
	var text strings.Builder
	fmt.Fprintf(&text, "GROUP %s: %d %% covered, %s, %d moving\n", r.Lease, int(r.Covered*100),
		format.Counted(len(r.Members), "member", "members"), r.Moving)
	members := [][]string{{"MEMBER", "GENERATION", "STATE", "RENEWED", "SLOTS", "WEIGHT"}}
	for _, m := range r.Members {
		members = append(members, []string{m.Identity, m.Generation, memberState(m, r.Planner),
			format.Short(m.Age) + " ago", fmt.Sprint(m.Slots), fmt.Sprint(m.Weight)})
	}
	owned, owners := map[string]shard.Set{}, [][]string{{"OWNER", "SLOTS"}}
	controllers := [][]string{{"CONTROLLER", "OWNER"}}
	moving := [][]string{{"MOVES", "FROM", "TO", "READY"}}
	for _, e := range r.Slots {
		owner, name := cmp.Or(e.Owner, "(nobody)"), e.Controller
		if name == "" {
			name = fmt.Sprint("slot ", e.Slot)
			slots := owned[owner]
			slots.Add(e.Slot)
			owned[owner] = slots
		} else {
			controllers = append(controllers, []string{name, owner})
		}
		if e.Next != "" {
			ready := map[bool]string{true: "yes", false: "no"}[e.Ready]
			moving = append(moving, []string{name, owner, e.Next, ready})
		}
	}
	for _, owner := range slices.Sorted(maps.Keys(owned)) {
		owners = append(owners, []string{owner, owned[owner].String()})
	}
	for _, rows := range [][][]string{members, owners, controllers, moving} {
		if len(rows) > 1 {
			text.WriteString("\n" + view.Columns(rows))
		}
	}
	if len(r.Problems) == 0 {
		text.WriteString("\nNo problems: each slot and controller has an owner that calls for it.\n")
	}
	for i, sentences := range [][]string{r.Problems, r.Remarks} {
		if len(sentences) > 0 {
			text.WriteString([]string{"\nPROBLEMS\n", "\nREMARKS\n"}[i])
		}
		for _, sentence := range sentences {
			text.WriteString(view.Printable(sentence) + "\n")
		}
	}
	return text.String()
}

func memberState(m shard.MemberHealth, planner string) string {
	if m.Identity == planner {
		return m.String() + ", plans"
	}
	return m.String()
}
