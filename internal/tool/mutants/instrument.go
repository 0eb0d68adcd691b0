package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// helpers is the file that is added to every instrumented package.
//
//go:embed helpers.go.txt
var helpers string

// edit replaces the bytes from at to end. Of several at one place, those that close come
// first, in reverse order.
type edit struct {
	at, end int
	text    string
	closes  bool
}

func (w *finder) offset(p token.Pos) int { return w.fset.Position(p).Offset }

func (w *finder) line(p token.Pos) int { return w.fset.Position(p).Line }

func (w *finder) text(n ast.Node) string {
	return string(w.file.text[w.offset(n.Pos()):w.offset(n.End())])
}

// wrap adds a mutant that replaces a node by a text, by texts around the node. Its number replaces
// %d in them.
func (w *finder) wrap(n ast.Node, kind, after, open, closing string) *mutant {
	from, to := w.offset(n.Pos()), w.offset(n.End())
	number := func(text string) string { return strings.ReplaceAll(text, "%d", fmt.Sprint(*w.next)) }
	begin, end := w.lines(from, to)
	before := string(w.file.text[begin:end])
	after = string(w.file.text[begin:from]) + after + string(w.file.text[to:end])
	m := &mutant{
		change:  change{w.file.rel, w.function(), w.block(), short(before), short(after)},
		Package: w.dir, Line: w.line(n.Pos()), end: w.line(n.End()), Kind: kind, id: *w.next,
		edits: []edit{
			{at: from, end: from, text: number(open)},
			{at: to, end: to, text: number(closing), closes: true},
		},
	}
	*w.next++
	w.found = append(w.found, m)
	return m
}

// lines widens a range of offsets to whole lines.
func (w *finder) lines(from, to int) (begin, end int) {
	begin = bytes.LastIndexByte(w.file.text[:from], '\n') + 1
	if n := bytes.IndexByte(w.file.text[to:], '\n'); n >= 0 {
		return begin, to + n
	}
	return begin, len(w.file.text)
}

// block returns the first line of the innermost block.
func (w *finder) block() string {
	for _, n := range slices.Backward(w.stack) {
		switch n.(type) {
		case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
			at := w.offset(n.Pos())
			begin, end := w.lines(at, at)
			return short(string(w.file.text[begin:end]))
		}
	}
	return ""
}

// short joins lines and cuts long texts.
func short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 160 {
		text = text[:120] + " … " + text[len(text)-30:]
	}
	return text
}

// instrumentAll finds the mutants of all packages, writes the instrumented files into work, and
// returns the name of the overlay.
func instrumentAll(packages []*pkg, work string) (string, error) {
	next := 1
	replace := map[string]string{}
	for i, p := range packages {
		p.first = next
		for _, f := range p.files {
			f.mutants = p.find(f, &next)
		}
		p.last = next
		texts, err := p.instrument()
		if err != nil {
			return "", err
		}
		for name, text := range texts {
			copied := filepath.Join(work, fmt.Sprintf("%d_%s", i, filepath.Base(name)))
			if err := os.WriteFile(copied, text, 0o600); err != nil {
				return "", err
			}
			replace[name] = copied
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(work, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// instrument returns the instrumented files, and drops the mutants that do not compile.
func (p *pkg) instrument() (map[string][]byte, error) {
	for {
		texts := map[string][]byte{}
		for _, f := range p.files {
			texts[f.name] = f.instrumented()
		}
		texts[filepath.Join(p.abs, "zz_mutants.go")] = fmt.Appendf(nil, helpers, p.name, p.first, p.last)
		failed, err := p.check(texts)
		if err != nil || len(failed) == 0 {
			return texts, err
		}
		dropped := 0
		for _, e := range failed {
			dropped += p.drop(e)
		}
		if dropped == 0 {
			return nil, fmt.Errorf("%s, with mutants: %w", p.path, failed[0])
		}
	}
}

// instrumented returns the text of a file with the edits of its mutants.
func (f *file) instrumented() []byte {
	opens, closes, skips := map[int]string{}, map[int]string{}, map[int]int{}
	for _, m := range f.mutants {
		for _, e := range m.edits {
			if e.closes {
				closes[e.at] = e.text + closes[e.at]
				continue
			}
			opens[e.at] += e.text
			skips[e.at] += e.end - e.at
		}
	}
	var out []byte
	for at := 0; at < len(f.text); at++ {
		out = append(append(out, closes[at]...), opens[at]...)
		if skips[at] > 0 {
			at += skips[at] - 1
			continue
		}
		out = append(out, f.text[at])
	}
	return out
}

// check returns the type errors of the instrumented package. Its lines have the same numbers.
func (p *pkg) check(texts map[string][]byte) (failed []types.Error, err error) {
	fset := token.NewFileSet()
	var syntax []*ast.File
	for name, text := range texts {
		parsed, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		syntax = append(syntax, parsed)
	}
	config := types.Config{Importer: p.importer, Error: func(err error) {
		failed = append(failed, err.(types.Error))
	}}
	_, err = config.Check(p.path, fset, syntax, nil)
	if len(failed) > 0 {
		err = nil
	}
	return failed, err
}

// drop removes the mutants around the line of an error that have the fewest lines, and returns
// how many there were. The error at the end of a function without a return comes from the
// last statement that is left out.
func (p *pkg) drop(e types.Error) int {
	at := e.Fset.Position(e.Pos)
	i := slices.IndexFunc(p.files, func(f *file) bool { return f.name == at.Filename })
	if i < 0 {
		return 0
	}
	f, before := p.files[i], len(p.files[i].mutants)
	distance := func(m *mutant) int {
		missing := e.Msg == "missing return" && m.Kind == "drop"
		switch {
		case missing && m.end <= at.Line:
			return at.Line - m.end
		case e.Msg != "missing return" && m.Line <= at.Line && at.Line <= m.end:
			return m.end - m.Line
		default:
			return 1 << 30
		}
	}
	nearest := 1<<30 - 1
	for _, m := range f.mutants {
		nearest = min(nearest, distance(m))
	}
	f.mutants = slices.DeleteFunc(f.mutants, func(m *mutant) bool { return distance(m) == nearest })
	return before - len(f.mutants)
}
