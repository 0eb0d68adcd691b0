package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tidings-go/tidings/cmd/tidings/internal/problem"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/shard"
)

// shardsOptions are the argument and the flags of `tidings shards`.
type shardsOptions struct {
	namespace string // "" is the context's
	name      string
	output    string
}

const shardsLong = `Shards prints the map of a group whose members share the objects of a controller with Tidings'
package shard: which member owns which slots, which slots move, and what is wrong in sentences. NAME
is that of the group, and of the Lease with its map; NAMESPACE is that of its Leases, by default the
context's.

It reads the Leases once and writes nothing: the credentials need the verb list on leases. The age of
a renewal is that of the member's own clock. If one is older than half of the Lease's duration, the
command waits for as long and reads again, so that clocks that differ make no member dead.

The exit code is 1 if something is wrong. Remarks are about what is normal for a while, such as a
rolling update.`

const shardsExample = `  # the group "rollout" of the namespace "ops"
  tidings shards ops/rollout

  # in a script
  tidings shards ops/rollout -o json | jq -r '.problems[]'`

func newShards(c *common) *cobra.Command {
	var o shardsOptions
	clusters := newClusterFlags()
	clusters.set.Lookup("context").Usage = "The name of the kubeconfig context to use"
	cmd := &cobra.Command{
		Use:     "shards [NAMESPACE/]NAME [flags]",
		Short:   "Print which member of a group owns which slots, and what is wrong",
		Long:    shardsLong,
		Example: shardsExample,
		Args: func(cmd *cobra.Command, args []string) error {
			return o.parse(cmd.CommandPath(), args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.output != "table" && o.output != "json" {
				return problem.Usage(cmd.CommandPath(), "--output %q: choose table or json", o.output)
			}
			if err := clusters.check(cmd.CommandPath()); err != nil {
				return err
			}
			return runShards(cmd, c, o, clusters)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&o.output, "output", "o", "table", "what to print: table or json")
	flags.AddFlagSet(clusters.set)
	complete(cmd, "context", clusters.completeContexts)
	complete(cmd, "output", cobra.FixedCompletions([]string{"table", "json"},
		cobra.ShellCompDirectiveNoFileComp))
	cmd.SetUsageFunc(usageWith("Flags for the cluster, as for kubectl", clusters.set))
	return cmd
}

// parse reads the argument.
func (o *shardsOptions) parse(command string, args []string) error {
	if len(args) != 1 {
		return problem.Usage(command, "name one group, as in ops/rollout")
	}
	var ok bool
	if o.namespace, o.name, ok = strings.Cut(args[0], "/"); !ok {
		o.namespace, o.name = "", args[0]
	}
	if o.name == "" || ok && o.namespace == "" || strings.Contains(o.name, "/") {
		return problem.Usage(command, "%q is no group: write it as in ops/rollout", args[0])
	}
	for _, name := range []string{o.namespace, o.name} {
		if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 && name != "" {
			return problem.Usage(command, "%q is no group: %q is no name: %s", args[0], name,
				strings.Join(wrong, "; "))
		}
	}
	return nil
}

func runShards(cmd *cobra.Command, c *common, o shardsOptions, clusters *clusterFlags) error {
	flags := clusters.each()
	if len(flags) > 1 {
		return problem.Usage(cmd.CommandPath(), "--context: name one")
	}
	cluster, err := open(cmd.Context(), flags[0])
	if err != nil {
		return err
	}
	if o.namespace == "" {
		if o.namespace, err = cluster.namespace(); err != nil {
			return err
		}
	}
	prepare(cluster.config)
	r, err := shard.Read(cmd.Context(), cluster.config, o.namespace, o.name)
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
	if err := c.screen(cmd).Print(text); err != nil {
		return err
	}
	if n := len(r.Problems); n > 0 {
		return fmt.Errorf("the group %s has %s", r.Lease, view.Counted(n, "problem", "problems"))
	}
	return nil
}

// shardsText returns a report as tables and sentences.
func shardsText(r shard.Report) string {
	var text strings.Builder
	fmt.Fprintf(&text, "GROUP %s: %s covered, %s, %d moving\n", r.Lease, coveredText(r),
		view.Counted(len(r.Members), "member", "members"), r.Moving)
	rows := [][]string{{"MEMBER", "GENERATION", "STATE", "RENEWED", "SLOTS", "LOAD"}}
	for _, m := range r.Members {
		rows = append(rows, []string{m.Identity, m.Generation, memberState(m, r.Planner),
			view.Short(m.Age) + " ago", fmt.Sprint(m.Slots), fmt.Sprintf("%.4g", m.Load)})
	}
	writeTable(&text, rows)
	owned, moving := map[string]shard.Set{}, [][]string{{"MOVES", "FROM", "TO", "READY"}}
	controllers := [][]string{{"CONTROLLER", "OWNER"}}
	for _, e := range r.Slots {
		name := e.Controller
		if name == "" {
			name = fmt.Sprint("slot ", e.Slot)
			slots := owned[e.Owner]
			slots.Add(e.Slot)
			owned[e.Owner] = slots
		} else {
			controllers = append(controllers, []string{name, nobody(e.Owner)})
		}
		if e.Next != "" {
			moving = append(moving, []string{name, nobody(e.Owner), e.Next,
				map[bool]string{true: "yes", false: "no"}[e.Ready]})
		}
	}
	rows = [][]string{{"OWNER", "SLOTS"}}
	for _, owner := range slices.Sorted(maps.Keys(owned)) {
		rows = append(rows, []string{nobody(owner), owned[owner].String()})
	}
	writeTable(&text, rows)
	writeTable(&text, controllers)
	writeTable(&text, moving)
	if len(r.Problems) == 0 {
		text.WriteString("\nNo problems: all have a live owner that reports them in order.\n")
	}
	writeSentences(&text, "PROBLEMS", r.Problems)
	writeSentences(&text, "REMARKS", r.Remarks)
	return text.String()
}

// writeSentences writes sentences below a heading, if there are any.
func writeSentences(text *strings.Builder, heading string, sentences []string) {
	if len(sentences) > 0 {
		text.WriteString("\n" + heading + "\n")
	}
	for _, s := range sentences {
		text.WriteString(view.Printable(s) + "\n")
	}
}

// coveredText returns the covered share, rounded down: 100 % is all.
func coveredText(r shard.Report) string { return fmt.Sprintf("%d %%", int(r.Covered*100)) }

// memberState describes a member.
func memberState(m shard.MemberHealth, planner string) string {
	switch {
	case !m.Live:
		return "gone"
	case m.Leaving:
		return "leaves"
	case m.Joining:
		return "joins"
	case m.Identity == planner:
		return "lives, plans"
	}
	return "lives"
}

// nobody returns an owner, or a word for none.
func nobody(owner string) string {
	if owner == "" {
		return "(nobody)"
	}
	return owner
}

// writeTable writes rows below an empty line, unless there is only the heading.
func writeTable(text *strings.Builder, rows [][]string) {
	if len(rows) == 1 {
		return
	}
	text.WriteByte('\n')
	table := tabwriter.NewWriter(text, 0, 8, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = view.Printable(cell)
		}
		fmt.Fprintln(table, strings.Join(row, "\t")) //nolint:errcheck // it is memory
	}
	table.Flush() //nolint:errcheck // it is memory
}
