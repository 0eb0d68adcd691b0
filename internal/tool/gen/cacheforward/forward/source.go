package forward

import (
	"bytes"
	"fmt"
	"go/types"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// local is the name of the forwarded package in the generated file.
const local = "cache"

// writer collects the declarations of a generated file, each kind for itself.
type writer struct {
	upstream   *types.Package
	deprecated map[string]bool
	tables     tables
	imports    map[string]string // name in the file → import path

	constants, variables, types, functions bytes.Buffer
}

// source returns the text of a package that forwards the exported names of another one, not yet
// formatted.
func source(upstream *types.Package, deprecated map[string]bool, t tables) ([]byte, error) {
	w := &writer{upstream: upstream, deprecated: deprecated, tables: t, imports: map[string]string{local: upstream.Path()}}
	if err := w.checkTables(); err != nil {
		return nil, err
	}
	for _, name := range upstream.Scope().Names() { // sorted
		object := upstream.Scope().Lookup(name)
		if !object.Exported() || slices.Contains(t.ours, name) {
			continue
		}
		if err := w.declare(object); err != nil {
			return nil, fmt.Errorf("forwarding %s.%s: %w", upstream.Path(), name, err)
		}
	}
	return w.file(), nil
}

// checkTables returns an error for a table with a name that is no function of upstream.
func (w *writer) checkTables() error {
	for _, name := range slices.Concat(w.tables.ours, slices.Sorted(maps.Keys(w.tables.variables))) {
		if _, ok := w.upstream.Scope().Lookup(name).(*types.Func); !ok {
			return fmt.Errorf("tables.go names %s, but %s has no function of that name: remove it there", name, w.upstream.Path())
		}
		if _, both := w.tables.variables[name]; both && slices.Contains(w.tables.ours, name) {
			return fmt.Errorf("tables.go names %s both as ours and as a variable: remove one", name)
		}
	}
	return nil
}

func (w *writer) declare(object types.Object) error {
	name := object.Name()
	switch object := object.(type) {
	case *types.Const:
		w.comment(&w.constants, name, "")
		fmt.Fprintf(&w.constants, "const %s = %s.%s\n", name, local, name)
	case *types.Var:
		if !types.Identical(object.Type(), types.Universe.Lookup("error").Type()) {
			return fmt.Errorf("it is a variable of type %s, and a copy would not follow assignments to it: decide how to forward it", object.Type())
		}
		w.comment(&w.variables, name, "")
		fmt.Fprintf(&w.variables, "var %s = %s.%s\n", name, local, name)
	case *types.TypeName:
		parameters, arguments := w.parameters(typeParameters(object.Type()))
		w.comment(&w.types, name, "")
		fmt.Fprintf(&w.types, "type %s%s = %s.%s%s\n", name, parameters, local, name, arguments)
	case *types.Func:
		if reason, ok := w.tables.variables[name]; ok {
			w.comment(&w.variables, name, ", a variable because "+reason)
			fmt.Fprintf(&w.variables, "var %s = %s.%s\n", name, local, name)
			return nil
		}
		return w.function(name, object.Signature())
	default:
		return fmt.Errorf("it is neither constant, variable, type nor function: decide how to forward it")
	}
	return nil
}

// function writes a function that calls its namesake.
func (w *writer) function(name string, signature *types.Signature) error {
	var passed []string
	for parameter := range signature.Params().Variables() {
		switch parameter.Name() {
		case "", "_":
			return fmt.Errorf("parameter %d has no name to pass on: add the function to the variables in tables.go", len(passed)+1)
		case local:
			return fmt.Errorf("parameter %d hides the package of that name: import it under another name", len(passed)+1)
		}
		passed = append(passed, parameter.Name())
	}
	if signature.Variadic() {
		passed[len(passed)-1] += "..."
	}
	var declared bytes.Buffer
	types.WriteSignature(&declared, signature, w.qualify)
	_, arguments := w.parameters(signature.TypeParams())
	call := fmt.Sprintf("%s.%s%s(%s)", local, name, arguments, strings.Join(passed, ", "))
	if signature.Results().Len() > 0 {
		call = "return " + call
	}
	w.comment(&w.functions, name, "")
	fmt.Fprintf(&w.functions, "func %s%s {\n\t%s\n}\n", name, modern(declared.String()), call)
	return nil
}

// parameters returns a list of type parameters as it is declared and as it is passed on.
func (w *writer) parameters(list *types.TypeParamList) (declared, passed string) {
	if list.Len() == 0 {
		return "", ""
	}
	var declarations, names []string
	for parameter := range list.TypeParams() {
		name := parameter.Obj().Name()
		names = append(names, name)
		declarations = append(declarations, name+" "+modern(types.TypeString(parameter.Constraint(), w.qualify)))
	}
	return "[" + strings.Join(declarations, ", ") + "]", "[" + strings.Join(names, ", ") + "]"
}

// typeParameters returns those of a named type or of an alias.
func typeParameters(t types.Type) *types.TypeParamList {
	if generic, ok := t.(interface{ TypeParams() *types.TypeParamList }); ok {
		return generic.TypeParams()
	}
	return nil
}

// modern spells the empty interface as new code does.
func modern(text string) string {
	return strings.ReplaceAll(text, "interface{}", "any")
}

var version = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// qualify returns the name by which the file knows a package. Forwarded types need none. That of an
// API version gets its group in front, as in metav1.
func (w *writer) qualify(p *types.Package) string {
	if p == w.upstream {
		return ""
	}
	name := p.Name()
	if version.MatchString(name) {
		name = path.Base(path.Dir(p.Path())) + name
	}
	for taken := w.imports[name]; taken != "" && taken != p.Path(); taken = w.imports[name] {
		name += "_"
	}
	w.imports[name] = p.Path()
	return name
}

// comment writes the comment of a name, end being the end of its sentence.
func (w *writer) comment(b *bytes.Buffer, name, end string) {
	fmt.Fprintf(b, "\n// %s is client-go's [%s.%s]%s.\n", name, local, name, end)
	if !w.deprecated[name] {
		return
	}
	fmt.Fprintf(b, "//\n// Deprecated: client-go deprecates it; see [%s.%s].\n", local, name)
	if b != &w.functions { // where staticcheck sees for itself that the user is deprecated too
		b.WriteString("//\n//lint:ignore SA1019 its forward is deprecated too\n")
	}
}

func (w *writer) file() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// Code generated by internal/tool/gen/cacheforward from %s. DO NOT EDIT.\n\npackage cache\n\nimport (\n", w.upstream.Path())
	byPath := map[string]string{}
	for name, imported := range w.imports {
		byPath[imported] = name
	}
	standard := true
	for _, imported := range slices.SortedFunc(maps.Keys(byPath), compareImports) {
		if standard && !isStandard(imported) {
			standard = false
			b.WriteString("\n")
		}
		name := byPath[imported]
		if name == path.Base(imported) {
			name = ""
		}
		fmt.Fprintf(&b, "\t%s %q\n", name, imported)
	}
	b.WriteString(")\n")
	for _, part := range []*bytes.Buffer{&w.constants, &w.variables, &w.types, &w.functions} {
		b.Write(part.Bytes())
	}
	return b.Bytes()
}

// compareImports orders the standard library before everything else.
func compareImports(a, b string) int {
	switch {
	case isStandard(a) == isStandard(b):
		return strings.Compare(a, b)
	case isStandard(a):
		return -1
	default:
		return 1
	}
}

func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}
