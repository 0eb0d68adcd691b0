package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

var (
	fence   = regexp.MustCompile("(?ms)^```(\\w+)\\n(.*?)^```$")
	command = regexp.MustCompile(`(?m)(?:^|\||<\() *(?:go run \./cmd/)?tidings( [^|>&#)\n]*)?`)
	flag    = regexp.MustCompile("`-{1,2}([A-Za-z][a-z-]*)")
)

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// manual returns the pages of the command: docs/command.md, which has what all commands share, and
// those of docs/command.
func manual(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for _, name := range []string{"", "/serve", "/top", "/watch"} {
		text.WriteString(page(t, "docs/command"+name+".md") + "\n")
	}
	return text.String()
}

// fenced returns the code blocks of a language.
func fenced(text, language string) []string {
	var blocks []string
	for _, match := range fence.FindAllStringSubmatch(text, -1) {
		if match[1] == language {
			blocks = append(blocks, match[2])
		}
	}
	return blocks
}

// TestExamplesAreCommandLines parses every command line of this command in the help and in the
// documentation.
func TestExamplesAreCommandLines(t *testing.T) {
	texts := map[string]string{
		"docs/command.md":  strings.Join(fenced(manual(t), "sh"), ""),
		"docs/tutorial.md": strings.Join(fenced(page(t, "docs/tutorial.md"), "sh"), ""),
		"README.md":        strings.Join(fenced(page(t, "README.md"), "sh"), ""),
	}
	root := newRoot(Streams{})
	texts[root.CommandPath()] = root.Example
	for _, c := range root.Commands() {
		if !c.Hidden {
			texts[c.CommandPath()] = c.Example
		}
	}
	for from, text := range texts {
		found := command.FindAllStringSubmatch(strings.ReplaceAll(text, "\n  ", "\n"), -1)
		if len(found) == 0 {
			t.Errorf("%s has no example", from)
		}
		for _, match := range found {
			words := strings.Fields(strings.ReplaceAll(match[1], "'", ""))
			c, rest, err := newRoot(Streams{}).Find(words)
			if err == nil {
				err = c.ParseFlags(rest)
			}
			if err == nil {
				err = c.ValidateArgs(c.Flags().Args())
			}
			if err != nil {
				t.Errorf("%s: tidings %s: %v", from, strings.Join(words, " "), err)
			}
		}
	}
}

// TestDocsNameEveryFlag compares the flags in each command's section of the manual with those of
// the command. Those of the introduction are of all commands, and those of "Which cluster" of all
// commands that read a cluster.
func TestDocsNameEveryFlag(t *testing.T) {
	text := manual(t)
	intro, rest, _ := strings.Cut(text, "\n## ")
	cluster, _, found := strings.Cut(rest, "\n## ")
	if !strings.HasPrefix(cluster, "Which cluster\n") || !found {
		t.Fatal("the manual does not begin with the flags that choose a cluster")
	}
	known := map[string]bool{}
	for _, c := range newRoot(Streams{}).Commands() {
		if c.Hidden {
			continue
		}
		_, section, ok := strings.Cut(text, "\n## "+c.CommandPath()+"\n")
		if !ok {
			t.Errorf("%s has no section", c.CommandPath())
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		if strings.Contains(section, "#which-cluster)") {
			section += cluster
		}
		named := flagsIn(intro + section)
		c.InitDefaultHelpFlag()
		check := func(f *pflag.Flag) {
			known[f.Name], known[f.Shorthand] = true, true
			for _, name := range []string{f.Name, f.Shorthand} {
				if name != "" && !slices.Contains(named, name) {
					t.Errorf("the section of %s does not name the flag %s", c.CommandPath(), name)
				}
			}
		}
		c.Flags().VisitAll(check)
		c.InheritedFlags().VisitAll(check)
	}
	for _, name := range flagsIn(text) {
		if !known[name] {
			t.Errorf("the page names a flag %s, which no command has", name)
		}
	}
}

func flagsIn(text string) []string {
	var names []string
	for _, match := range flag.FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	return names
}

// TestDocsScript runs the script of docs/command/serve.md with the real command, twice in one place.
func TestDocsScript(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Fatalf("the script needs bash: %v", err)
	}
	_, section, ok := strings.Cut(page(t, "docs/command/serve.md"), "\n### With a command\n")
	files, scripts := fenced(section, "yaml"), fenced(section, "sh")
	if !ok || len(files) == 0 || len(scripts) == 0 {
		t.Fatal("the page has no script")
	}
	directory, binaries := t.TempDir(), t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(binaries, "tidings"), "../..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	manifests := filepath.Join(directory, "manifests")
	if err := os.Mkdir(manifests, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(manifests, "web.yaml"), []byte(files[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 2 {
		script := exec.CommandContext(ctx, "bash", "-eu", "-c", scripts[0])
		script.Dir = directory
		script.WaitDelay = 10 * time.Second
		script.Env = append(os.Environ(), "PATH="+binaries+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+directory)
		out, err := script.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if !strings.Contains(string(out), "pod default/web") {
			t.Errorf("the script prints\n%s", out)
		}
	}
}
