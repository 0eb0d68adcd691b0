package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// change is what a mutant is recognised by: no number of a line.
type change struct {
	File     string `json:"file"`
	Function string `json:"function"`
	Block    string `json:"in"` // the line that its block begins in
	Before   string `json:"before"`
	After    string `json:"after"`
}

// mutant is one change, with its place.
type mutant struct {
	change
	Package string `json:"package"`
	Line    int    `json:"line"`
	Kind    string `json:"kind"`

	id int
}

func (m *mutant) is(c change) bool { return m.change == c }

// site is a place with one mutant or more, and the edits that hold them all.
type site struct {
	mutants    []*mutant
	edits      []edit
	begin, end int // lines
}

// finder walks one file.
type finder struct {
	*pkg
	file  *file
	next  *int // the number of the next mutant
	stack []ast.Node
	sites []*site
}

// find lists the sites of a file, outer ones before those in them.
func (p *pkg) find(f *file, next *int) []*site {
	w := &finder{pkg: p, file: f, next: next}
	if ast.IsGenerated(f.syntax) {
		return nil
	}
	for _, d := range f.syntax.Decls {
		ast.Inspect(d, func(n ast.Node) bool {
			if n == nil {
				w.stack = w.stack[:len(w.stack)-1]
				return true
			}
			w.stack = append(w.stack, n)
			if w.visit(n) {
				return true
			}
			w.stack = w.stack[:len(w.stack)-1]
			return false
		})
	}
	return w.sites
}

// visit adds the sites that a node has, and reports whether to go into it.
func (w *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ArrayType, *ast.ChanType, *ast.FuncType, *ast.InterfaceType, *ast.MapType,
		*ast.StructType:
		return false
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.BlockStmt:
		w.statements(n.List)
	case *ast.CaseClause:
		w.statements(n.Body)
	case *ast.CommClause:
		w.receive(n.Comm)
		w.statements(n.Body)
	case *ast.IfStmt:
		w.condition(n.Cond, n.Else == nil)
	case *ast.ForStmt:
		if n.Cond != nil {
			w.condition(n.Cond, false)
		}
	case *ast.SwitchStmt:
		w.cases(n)
	case *ast.AssignStmt:
		w.assign(n)
	case *ast.ReturnStmt:
		w.results(n)
	case *ast.KeyValueExpr:
		w.field(n)
	case *ast.CallExpr:
		for _, arg := range n.Args {
			w.negated(arg)
		}
	case *ast.BinaryExpr:
		w.binary(n)
	}
	if e, ok := n.(ast.Expr); ok {
		return !w.constant(e)
	}
	return true
}

// binary adds operands that are ignored, bounds that are swapped, and - for +.
func (w *finder) binary(n *ast.BinaryExpr) {
	if w.info.Types[n].Value != nil {
		return
	}
	other := map[token.Token]token.Token{
		token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
		token.ADD: token.SUB, token.SUB: token.ADD,
	}[n.Op]
	helper := map[token.Token]string{
		token.LSS: "Less", token.LEQ: "LessEqual", token.GTR: "Greater", token.GEQ: "GreaterEqual",
		token.ADD: "Add", token.SUB: "Sub",
	}[n.Op]
	switch {
	case n.Op == token.LAND || n.Op == token.LOR:
		join, constant := " || mutantOn(%d))", "true"
		if n.Op == token.LOR {
			join, constant = " && !mutantOn(%d))", "false"
		}
		for _, operand := range []ast.Expr{n.X, n.Y} {
			w.wrap(operand, "operand", constant, "((", ")"+join)
		}
	case helper != "" && isNumber(w.info.TypeOf(n.X)) && isNumber(w.info.TypeOf(n.Y)):
		after := w.text(n.X) + " " + other.String() + " " + w.text(n.Y)
		s := w.wrap(n, n.Op.String(), after, "mutant"+helper+"(%d, ", ")")
		at := w.offset(n.OpPos)
		s.edits = append(s.edits, edit{at: at, end: at + len(n.Op.String()), text: ","})
	}
}

// constant adds integers off by one, and reports whether e is a constant.
func (w *finder) constant(e ast.Expr) bool {
	tv := w.info.Types[e]
	if tv.Value == nil || tv.IsType() {
		return false
	}
	basic, ok := types.Default(tv.Type).(*types.Basic)
	if !ok || basic.Info()&types.IsInteger == 0 || w.isCapacity(e) {
		return true
	}
	if tv.Value.String() == "0" {
		w.wrap(e, "constant", "("+w.text(e)+" + 1)", "mutantMore["+basic.Name()+"](%d, ", ")")
		return true
	}
	s := w.wrap(e, "constant", "("+w.text(e)+" + 1)", "mutantMoreOrLess["+basic.Name()+"](%d, ", ")")
	s.mutants = append(s.mutants, w.mutant(e, "constant", "("+w.text(e)+" - 1)"))
	return true
}

// isCapacity reports whether e is how much room a slice or a map is made with.
func (w *finder) isCapacity(e ast.Expr) bool {
	call, ok := w.stack[len(w.stack)-2].(*ast.CallExpr)
	if !ok || len(call.Args) < 2 || call.Args[len(call.Args)-1] != e {
		return false
	}
	name, ok := call.Fun.(*ast.Ident)
	if !ok || name.Name != "make" {
		return false
	}
	_, isMap := w.info.TypeOf(call).Underlying().(*types.Map)
	return isMap || len(call.Args) == 3
}

// condition adds a condition that is negated, always true, or never.
func (w *finder) condition(e ast.Expr, droppable bool) {
	if w.info.Types[e].Value != nil {
		return
	}
	w.wrap(e, "negate", "!("+w.text(e)+")", "((", ") != mutantOn(%d))")
	if droppable {
		w.wrap(e, "never", "false", "((", ") && !mutantOn(%d))")
		w.wrap(e, "always", "true", "((", ") || mutantOn(%d))")
	}
}

// negated adds the negation of a comparison, a logical expression or a constant.
func (w *finder) negated(e ast.Expr) {
	basic, ok := w.info.TypeOf(e).(*types.Basic)
	if !ok || basic.Info()&types.IsBoolean == 0 {
		return
	}
	switch n := ast.Unparen(e).(type) {
	case *ast.BinaryExpr, *ast.UnaryExpr:
	case *ast.Ident:
		if w.info.Types[n].Value == nil {
			return
		}
	default:
		return
	}
	w.wrap(e, "negate", "!("+w.text(e)+")", "((", ") != mutantOn(%d))")
}

// assign adds x -= y for x += y and the like, and negated values.
func (w *finder) assign(n *ast.AssignStmt) {
	for _, e := range n.Rhs {
		w.negated(e)
	}
	other := map[token.Token]string{token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+="}[n.Tok]
	if other == "" || !isNumber(w.info.TypeOf(n.Lhs[0])) || w.info.Types[n.Rhs[0]].Value != nil {
		return
	}
	w.wrap(n.Rhs[0], other, "-("+w.text(n.Rhs[0])+")", "mutantMinus(%d, ", ")")
}

// results adds errors that are not returned, and negated values.
func (w *finder) results(n *ast.ReturnStmt) {
	results := w.signature().Results()
	for i, e := range n.Results {
		w.negated(e)
		if len(n.Results) != results.Len() || w.info.Types[e].IsNil() {
			continue
		}
		if types.Identical(results.At(i).Type(), types.Universe.Lookup("error").Type()) {
			w.wrap(e, "no error", "nil", "mutantError(%d, ", ")")
		}
	}
}

// field adds a field of a literal that is left at its zero value.
func (w *finder) field(n *ast.KeyValueExpr) {
	key, ok := n.Key.(*ast.Ident)
	if !ok {
		return
	}
	v, ok := w.info.Uses[key].(*types.Var)
	if !ok || !v.IsField() || w.info.Types[n.Value].IsNil() {
		return
	}
	w.negated(n.Value)
	if types.Identical(v.Type(), w.info.TypeOf(n.Value)) && w.info.Types[n.Value].Value == nil {
		w.wrap(n.Value, "field", "zero", "mutantZero(%d, ", ")")
	}
}

// receive adds a case of a select that is never taken.
func (w *finder) receive(s ast.Stmt) {
	var channel ast.Expr
	ast.Inspect(s, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SendStmt:
			channel = n.Chan
		case *ast.UnaryExpr:
			if n.Op == token.ARROW && channel == nil {
				channel = n.X
			}
		}
		return channel == nil && n != nil
	})
	if channel != nil {
		w.wrap(channel, "case", "never", "mutantZero(%d, ", ")")
	}
}

// cases adds cases of a switch that are never taken. A switch with a value becomes one
// of conditions.
func (w *finder) cases(n *ast.SwitchStmt) {
	equal := ""
	s := &site{}
	if n.Tag != nil {
		_, plain := n.Tag.(*ast.Ident)
		if len(n.Body.List) == 0 || n.Init != nil && !plain {
			return
		}
		from, to := w.offset(n.Tag.Pos()), w.offset(n.Tag.End())
		if equal = "mutantTag == ("; plain {
			equal = w.text(n.Tag) + " == ("
			s.edits = append(s.edits, edit{at: from, end: to, text: "true"})
		} else {
			s.edits = append(s.edits, edit{at: from, end: from, text: "mutantTag := "},
				edit{at: to, end: to, text: "; true", closes: true})
		}
	}
	s.begin, s.end = w.line(n.Pos()), w.line(n.End())
	w.sites = append(w.sites, s)
	for _, clause := range n.Body.List {
		c := clause.(*ast.CaseClause)
		if len(c.List) == 0 {
			continue
		}
		on := fmt.Sprintf(") && !mutantOn(%d))", *w.next)
		m := w.mutant(c.List[0], "case", "never")
		s.mutants = append(s.mutants, m)
		for _, e := range c.List {
			from, to := w.offset(e.Pos()), w.offset(e.End())
			end := on
			if equal != "" {
				end = ")" + on
			}
			s.edits = append(s.edits, edit{at: from, end: from, text: "((" + equal},
				edit{at: to, end: to, text: end, closes: true})
		}
	}
	if len(s.mutants) == 0 {
		w.sites = w.sites[:len(w.sites)-1]
	}
}

// statements adds statements that are left out.
func (w *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch n := s.(type) {
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				continue
			}
		case *ast.BranchStmt:
			if n.Tok == token.FALLTHROUGH {
				continue
			}
		case *ast.ExprStmt:
			if w.isLog(n.X) {
				continue
			}
		case *ast.IncDecStmt, *ast.SendStmt, *ast.GoStmt, *ast.DeferStmt, *ast.ReturnStmt, *ast.RangeStmt,
			*ast.ForStmt:
		default:
			continue
		}
		if w.isNeeded(s) {
			continue
		}
		w.wrap(s, "drop", "", "if !mutantOn(%d) { ", " }")
	}
}

// isNeeded reports whether a function may not end otherwise than through s.
func (w *finder) isNeeded(s ast.Stmt) bool {
	switch n := s.(type) {
	case *ast.ReturnStmt:
	case *ast.ForStmt:
		if n.Cond != nil {
			return false
		}
	case *ast.ExprStmt:
		if !strings.HasPrefix(w.text(n), "panic(") {
			return false
		}
	default:
		return false
	}
	for i := len(w.stack) - 1; i >= 0; i-- {
		switch n := w.stack[i].(type) {
		case *ast.RangeStmt:
			return false
		case *ast.ForStmt:
			if n.Cond != nil {
				return false
			}
		case *ast.IfStmt:
			if n.Else == nil {
				return false
			}
		case *ast.FuncDecl, *ast.FuncLit:
			return w.signature().Results().Len() > 0
		}
	}
	return true
}

// isLog reports whether e is a call of a logger.
func (w *finder) isLog(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	return ok && w.info.TypeOf(method.X) != nil &&
		strings.HasSuffix(w.info.TypeOf(method.X).String(), "log/slog.Logger")
}

// signature returns the signature of the function around.
func (w *finder) signature() *types.Signature {
	for i := len(w.stack) - 1; i >= 0; i-- {
		switch n := w.stack[i].(type) {
		case *ast.FuncLit:
			return w.info.TypeOf(n).Underlying().(*types.Signature)
		case *ast.FuncDecl:
			return w.info.Defs[n.Name].Type().(*types.Signature)
		}
	}
	return &types.Signature{}
}

// function returns the name of the declaration around, with its receiver.
func (w *finder) function() string {
	d, ok := w.stack[0].(*ast.FuncDecl)
	if !ok {
		return "var"
	}
	if d.Recv == nil {
		return d.Name.Name
	}
	return "(" + w.text(d.Recv.List[0].Type) + ")." + d.Name.Name
}

// isNumber reports whether values of t can be compared and added, and are not text.
func isNumber(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsNumeric != 0
}
