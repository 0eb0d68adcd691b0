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

// helpers is the file that every changed package gets.
//
//go:embed helpers.go.txt
var helpers string

// edit replaces the bytes from at to end. Where several begin at one place, those that
// close go first, the last one made first.
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

// wrap adds a site with one mutant around a node; the mutant's number is put into the texts.
func (w *finder) wrap(n ast.Node, kind, after, open, closing string) *site {
	number := func(text string) string {
		return strings.ReplaceAll(text, "%d", fmt.Sprint(*w.next))
	}
	from, to := w.offset(n.Pos()), w.offset(n.End())
	s := &site{begin: w.line(n.Pos()), end: w.line(n.End()), edits: []edit{
		{at: from, end: from, text: number(open)},
		{at: to, end: to, text: number(closing), closes: true},
	}}
	s.mutants = []*mutant{w.mutant(n, kind, after)}
	w.sites = append(w.sites, s)
	return s
}

// mutant numbers a mutant that puts a text in the place of a node.
func (w *finder) mutant(n ast.Node, kind, after string) *mutant {
	from, to := w.offset(n.Pos()), w.offset(n.End())
	begin, end := w.lines(from, to)
	before := string(w.file.text[begin:end])
	after = string(w.file.text[begin:from]) + after + string(w.file.text[to:end])
	m := &mutant{
		change:  change{w.file.rel, w.function(), w.block(), short(before), short(after)},
		Package: w.dir, Line: w.line(n.Pos()), Kind: kind, id: *w.next,
	}
	*w.next++
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

// block returns the line that the innermost block around begins in.
func (w *finder) block() string {
	for i := len(w.stack) - 1; i >= 0; i-- {
		switch w.stack[i].(type) {
		case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
			at := w.offset(w.stack[i].Pos())
			begin, end := w.lines(at, at)
			return short(string(w.file.text[begin:end]))
		}
	}
	return ""
}

// short joins lines and cuts what is long.
func short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 160 {
		text = text[:120] + " … " + text[len(text)-30:]
	}
	return text
}

// weaveAll finds the mutants of all packages, writes the changed files into work, and returns
// the name of the overlay.
func weaveAll(packages []*pkg, work string) (string, error) {
	next := 1
	replace := map[string]string{}
	for i, p := range packages {
		p.first = next
		for _, f := range p.files {
			f.sites = p.find(f, &next)
		}
		p.last = next
		texts, err := p.weave()
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

// weave returns the changed files, and drops the sites that do not compile.
func (p *pkg) weave() (map[string][]byte, error) {
	for {
		texts := map[string][]byte{}
		for _, f := range p.files {
			texts[f.name] = f.woven()
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

// woven returns the text of a file with the edits of its sites.
func (f *file) woven() []byte {
	opens, closes, skips := map[int]string{}, map[int]string{}, map[int]int{}
	for _, s := range f.sites {
		for _, e := range s.edits {
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

// check returns the errors of the changed package. Lines are the same as before.
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

// drop takes out the sites around the line of an error that have the fewest lines, and returns
// how many there were.
func (p *pkg) drop(e types.Error) int {
	at := e.Fset.Position(e.Pos)
	for _, f := range p.files {
		if f.name != at.Filename {
			continue
		}
		shortest := 1 << 30
		for _, s := range f.sites {
			if s.begin <= at.Line && at.Line <= s.end {
				shortest = min(shortest, s.end-s.begin)
			}
		}
		n := len(f.sites)
		f.sites = slices.DeleteFunc(f.sites, func(s *site) bool {
			return s.begin <= at.Line && at.Line <= s.end && s.end-s.begin == shortest
		})
		return n - len(f.sites)
	}
	return 0
}

// mutants are those that compile.
func (p *pkg) mutants() []*mutant {
	var all []*mutant
	for _, f := range p.files {
		for _, s := range f.sites {
			all = append(all, s.mutants...)
		}
	}
	return all
}
