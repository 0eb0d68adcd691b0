//go:build ignore

// Generate writes table.go from the sources of k8s.io/api.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

type resource struct {
	group, version, plural, kind string
	namespaced, status           bool
	removed                      string
}

func main() {
	log.SetFlags(0)
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}} {{.Version}}", "k8s.io/api").Output()
	if err != nil {
		log.Fatalf("finding k8s.io/api: %v", err)
	}
	var root string
	var release int // k8s.io/api v0.37.1 is of Kubernetes 1.37
	if _, err := fmt.Sscanf(string(out), "%s v0.%d.", &root, &release); err != nil {
		log.Fatalf("reading the version of k8s.io/api in %q: %v", out, err)
	}
	var all []resource
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		found, err := resourcesIn(name, release)
		all = append(all, found...)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	slices.SortFunc(all, func(a, b resource) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.version, b.version),
			cmp.Compare(a.plural, b.plural))
	})
	if err := os.WriteFile("table.go", source(all), 0o644); err != nil {
		log.Fatal(err)
	}
}

// resourcesIn reads the package of one version of a group. Other directories have no
// resources.
func resourcesIn(dir string, release int) ([]resource, error) {
	fset := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var group string
	var found []resource
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".pb.go") ||
			strings.HasPrefix(filepath.Base(name), "zz_") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		group = cmp.Or(group, groupName(file))
		found = append(found, resourcesOf(file)...)
	}
	removals, err := removalsIn(dir)
	if err != nil {
		return nil, err
	}
	for i := range found {
		found[i].group, found[i].version = group, filepath.Base(dir)
		if minor, ok := removals[found[i].kind]; ok && minor <= release {
			found[i].removed = fmt.Sprintf("1.%d", minor)
		}
	}
	return found, nil
}

var removal = regexp.MustCompile(
	`func \(in \*(\w+)\) APILifecycleRemoved\(\) \(major, minor int\) \{\s*return 1, (\d+)\s`)

// removalsIn returns the minor release that stops serving each kind. The API server uses
// these functions too: their generator knows the release also of types whose comments have
// only that of their introduction or deprecation.
func removalsIn(dir string) (map[string]int, error) {
	text, err := os.ReadFile(filepath.Join(dir, "zz_generated.prerelease-lifecycle.go"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	removals := map[string]int{}
	for _, match := range removal.FindAllSubmatch(text, -1) {
		if removals[string(match[1])], err = strconv.Atoi(string(match[2])); err != nil {
			return nil, err
		}
	}
	return removals, nil
}

// groupName returns the value of the constant GroupName.
func groupName(file *ast.File) string {
	for _, decl := range file.Decls {
		constants, ok := decl.(*ast.GenDecl)
		if !ok || constants.Tok != token.CONST {
			continue
		}
		for _, spec := range constants.Specs {
			value := spec.(*ast.ValueSpec)
			if literal, ok := value.Values[0].(*ast.BasicLit); ok && value.Names[0].Name == "GroupName" {
				name, _ := strconv.Unquote(literal.Value)
				return name
			}
		}
	}
	return ""
}

func resourcesOf(file *ast.File) []resource {
	var found []resource
	end := file.Name.End()
	for _, decl := range file.Decls {
		marks := marksBetween(file, end, decl)
		end = decl.End()
		general, ok := decl.(*ast.GenDecl)
		if !ok || general.Tok != token.TYPE || !slices.Contains(marks, "+genclient") {
			continue
		}
		spec := general.Specs[0].(*ast.TypeSpec)
		fields, ok := spec.Type.(*ast.StructType)
		if !ok || !listed(marks) {
			continue
		}
		r := resource{kind: spec.Name.Name, plural: plural(spec.Name.Name)}
		r.namespaced = !slices.Contains(marks, "+genclient:nonNamespaced")
		r.status = hasField(fields, "Status") && !slices.Contains(marks, "+genclient:noStatus")
		found = append(found, r)
	}
	return found
}

// marksBetween returns the comment lines that begin with a plus between the end of a
// declaration and the next one.
func marksBetween(file *ast.File, end token.Pos, decl ast.Decl) []string {
	var marks []string
	for _, comments := range file.Comments {
		if comments.Pos() < end || comments.Pos() > decl.End() ||
			comments.End() > decl.Pos() && !isDoc(decl, comments) {
			continue
		}
		for _, line := range comments.List {
			text := strings.TrimSpace(strings.TrimPrefix(line.Text, "//"))
			if strings.HasPrefix(text, "+") {
				marks = append(marks, text)
			}
		}
	}
	return marks
}

func isDoc(decl ast.Decl, comments *ast.CommentGroup) bool {
	general, ok := decl.(*ast.GenDecl)
	return ok && general.Doc == comments
}

// listed reports whether objects of the type can be listed.
func listed(marks []string) bool {
	for _, mark := range marks {
		if mark == "+genclient:noVerbs" {
			return false
		}
		verbs, ok := strings.CutPrefix(mark, "+genclient:onlyVerbs=")
		if ok && !slices.Contains(strings.Split(verbs, ","), "list") {
			return false
		}
	}
	return true
}

func hasField(fields *ast.StructType, name string) bool {
	isName := func(ident *ast.Ident) bool { return ident.Name == name }
	return slices.ContainsFunc(fields.Fields.List, func(field *ast.Field) bool {
		return slices.ContainsFunc(field.Names, isName)
	})
}

// plural is the rule of English that the names of Kubernetes follow.
func plural(kind string) string {
	name := strings.ToLower(kind)
	switch {
	case name == "endpoints":
		return name
	case strings.HasSuffix(name, "s"), strings.HasSuffix(name, "x"), strings.HasSuffix(name, "ch"),
		strings.HasSuffix(name, "sh"):
		return name + "es"
	case strings.HasSuffix(name, "y") && !strings.ContainsAny(name[len(name)-2:len(name)-1], "aeiou"):
		return name[:len(name)-1] + "ies"
	}
	return name + "s"
}

func source(all []resource) []byte {
	var b bytes.Buffer
	b.WriteString("// Code generated by generate.go from k8s.io/api. DO NOT EDIT.\n\npackage builtin\n\n")
	b.WriteString("// table is ordered by group, version and plural.\nvar table = [...]Resource{\n")
	for _, r := range all {
		fmt.Fprintf(&b, "{Group: %q, Version: %q, Resource: %q, Kind: %q, Namespaced: %t, "+
			"HasStatus: %t, Removed: %q},\n",
			r.group, r.version, r.plural, r.kind, r.namespaced, r.status, r.removed)
	}
	b.WriteString("}\n")
	text, err := format.Source(b.Bytes())
	if err != nil {
		log.Fatal(err)
	}
	return text
}
