package clientgo_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// programs are the directories whose programs run with either import path.
func programs() []string {
	return []string{"customtype", "manager", "workqueue"}
}

// originals maps the import paths of the drop-ins to those that they stand in for.
// They are quoted, as in an import.
func originals() *strings.Replacer {
	return strings.NewReplacer(
		`"github.com/tidings-go/tidings/clientgo/cache"`, `"k8s.io/client-go/tools/cache"`,
		`"github.com/tidings-go/tidings/clientgo/informers"`, `"k8s.io/client-go/informers"`,
	)
}

// buildOriginal builds the programs with client-go's import paths: each file is seen
// with these instead of its own, and one that lies in testdata too is seen as that.
func buildOriginal(t *testing.T) string {
	t.Helper()
	copies := t.TempDir()
	replaced := map[string]string{}
	for _, program := range append(programs(), "loop") {
		files, err := filepath.Glob(filepath.Join(program, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no source files in %s: %v", program, err)
		}
		changed := false
		for _, file := range files {
			name, err := filepath.Abs(file)
			if err != nil {
				t.Fatal(err)
			}
			source := readSource(t, file)
			original := originals().Replace(source)
			if instead := filepath.Join(program, "testdata", filepath.Base(file)); exists(instead) {
				original = readSource(t, instead)
			}
			if strings.Contains(original, "tidings/clientgo") {
				t.Errorf("%s imports a drop-in that this test does not know", file)
			}
			changed = changed || original != source
			copied := filepath.Join(copies, program+"-"+filepath.Base(file))
			if err := os.WriteFile(copied, []byte(original), 0o600); err != nil {
				t.Fatal(err)
			}
			replaced[name] = copied
		}
		if !changed {
			t.Errorf("%s imports no drop-in: both programs would be the same", program)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(copies, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	return build(t, "-overlay", file)
}

// build builds all programs with additional flags.
func build(t *testing.T, flags ...string) string {
	t.Helper()
	out := t.TempDir()
	arguments := append([]string{"build", "-o", out + string(filepath.Separator), "-ldflags=-s -w"}, flags...)
	if underRaceDetector(t) {
		arguments = append(arguments, "-race")
	}
	for _, program := range programs() {
		arguments = append(arguments, "./"+program)
	}
	command := exec.CommandContext(t.Context(), "go", arguments...)
	if message, err := command.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(arguments, " "), err, bytes.TrimSpace(message))
	}
	return out
}

// underRaceDetector reports whether this test was built with -race. Then the programs
// are, too.
func underRaceDetector(t *testing.T) bool {
	t.Helper()
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("the test does not know how it was built")
	}
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

func readSource(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
