package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// change identifies a mutant, without the number of a line.
type change struct {
	File     string `json:"file"`
	Function string `json:"function"`
	Block    string `json:"in"` // the line that its block begins in
	Before   string `json:"before"`
	After    string `json:"after"`
}

// mutant is one change, with its place, and the edits that add it.
type mutant struct {
	change
	Package   string
	Line, end int
	Kind      string
	id        int
	edits     []edit
}

// finder walks one file.
type finder struct {
	*pkg
	file  *file
	next  *int // the number of the next mutant
	stack []ast.Node
	found []*mutant
}

// find lists the mutants of a file, outer ones before inner ones.
func (p *pkg) find(f *file, next *int) []*mutant {
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
	return w.found
}

// visit adds the mutants of a node, and reports whether to visit its children.
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
		w.communication(n.Comm)
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
		for _, e := range n.Rhs {
			w.value(e)
		}
	case *ast.ReturnStmt:
		w.results(n)
	case *ast.KeyValueExpr:
		w.field(n)
	case *ast.CallExpr:
		if name, ok := n.Fun.(*ast.Ident); ok && name.Name == "make" {
			return false // nothing depends on a capacity
		}
		for _, arg := range n.Args {
			w.value(arg)
		}
	case *ast.BinaryExpr:
		w.binary(n)
	}
	if e, ok := n.(ast.Expr); ok {
		return !w.constant(e)
	}
	return true
}

// swaps are the operators of numbers that mutants replace, and the helpers that do so.
var swaps = map[token.Token]struct {
	to     token.Token
	helper string
}{
	token.LSS: {token.LEQ, "Less"}, token.LEQ: {token.LSS, "LessEqual"},
	token.GTR: {token.GEQ, "Greater"}, token.GEQ: {token.GTR, "GreaterEqual"},
	token.ADD: {token.SUB, "Add"}, token.SUB: {token.ADD, "Sub"},
}

// binary adds operands that are ignored, and operators that are swapped.
func (w *finder) binary(n *ast.BinaryExpr) {
	swap, ok := swaps[n.Op]
	switch {
	case w.info.Types[n].Value != nil:
	case n.Op == token.LAND:
		w.wrap(n.X, "operand", "true", "((", always)
		w.wrap(n.Y, "operand", "true", "((", always)
	case n.Op == token.LOR:
		w.wrap(n.X, "operand", "false", "((", never)
		w.wrap(n.Y, "operand", "false", "((", never)
	case ok && isNumber(w.info.TypeOf(n.X)) && isNumber(w.info.TypeOf(n.Y)):
		after := w.text(n.X) + " " + swap.to.String() + " " + w.text(n.Y)
		m := w.wrap(n, n.Op.String(), after, "mutant"+swap.helper+"(%d, ", ")")
		at := w.offset(n.OpPos)
		m.edits = append(m.edits, edit{at: at, end: at + len(n.Op.String()), text: ","})
	}
}

// constant adds integers that are one more, and reports whether e is a constant.
func (w *finder) constant(e ast.Expr) bool {
	tv := w.info.Types[e]
	if tv.Value == nil || tv.IsType() {
		return false
	}
	basic, ok := types.Default(tv.Type).(*types.Basic)
	if !ok || basic.Info()&types.IsInteger == 0 {
		return true
	}
	w.wrap(e, "constant", "("+w.text(e)+" + 1)", "mutantMore["+basic.Name()+"](%d, ", ")")
	return true
}

// The ends of conditions that begin with "((".
const (
	negated = ") != mutantOn(%d))"
	never   = ") && !mutantOn(%d))"
	always  = ") || mutantOn(%d))"
)

func (w *finder) negate(e ast.Expr) {
	w.wrap(e, "negate", "!("+w.text(e)+")", "((", negated)
}

// condition adds a condition that is negated and, if droppable, never or always true.
func (w *finder) condition(e ast.Expr, droppable bool) {
	if w.info.Types[e].Value != nil {
		return
	}
	w.negate(e)
	if droppable {
		w.wrap(e, "never", "false", "((", never)
		w.wrap(e, "always", "true", "((", always)
	}
}

// value adds the negation of a comparison, a logical expression or a constant.
func (w *finder) value(e ast.Expr) {
	basic, ok := w.info.TypeOf(e).(*types.Basic)
	if !ok || basic.Info()&types.IsBoolean == 0 {
		return
	}
	switch n := ast.Unparen(e).(type) {
	case *ast.BinaryExpr, *ast.UnaryExpr:
		w.negate(e)
	case *ast.Ident:
		if w.info.Types[n].Value != nil {
			w.negate(e)
		}
	}
}

// results adds errors that are not returned, and negated values.
func (w *finder) results(n *ast.ReturnStmt) {
	results := w.signature().Results()
	for i, e := range n.Results {
		w.value(e)
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
	w.value(n.Value)
	if types.Identical(v.Type(), w.info.TypeOf(n.Value)) && w.info.Types[n.Value].Value == nil {
		w.wrap(n.Value, "field", "zero", "mutantZero(%d, ", ")")
	}
}

// communication adds a case of a select that is never taken.
func (w *finder) communication(s ast.Stmt) {
	var received ast.Expr
	switch s := s.(type) {
	case *ast.SendStmt:
		w.wrap(s.Chan, "case", "never", "mutantZero(%d, ", ")")
	case *ast.ExprStmt:
		received = s.X
	case *ast.AssignStmt:
		received = s.Rhs[0]
	}
	if n, ok := ast.Unparen(received).(*ast.UnaryExpr); ok {
		w.wrap(n.X, "case", "never", "mutantZero(%d, ", ")")
	}
}

// cases adds cases of a switch without a value that are never taken. Those of another one have
// statements that are left out.
func (w *finder) cases(n *ast.SwitchStmt) {
	for _, clause := range n.Body.List {
		for _, e := range clause.(*ast.CaseClause).List {
			if n.Tag == nil {
				w.wrap(e, "case", "never", "((", never)
			}
		}
	}
}

// statements adds statements that are left out. Where the end of a function is missing then,
// the compiler refuses the mutant.
func (w *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		drop := true
		switch n := s.(type) {
		case *ast.AssignStmt:
			drop = n.Tok != token.DEFINE
		case *ast.BranchStmt:
			drop = n.Tok != token.FALLTHROUGH
		case *ast.ExprStmt:
			drop = !w.isLog(n.X)
		case *ast.IncDecStmt, *ast.SendStmt, *ast.GoStmt, *ast.DeferStmt, *ast.ReturnStmt,
			*ast.RangeStmt, *ast.ForStmt:
		default:
			drop = false
		}
		if drop {
			w.wrap(s, "drop", "", "if !mutantOn(%d) { ", " }")
		}
	}
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

// signature returns the signature of the innermost function.
func (w *finder) signature() *types.Signature {
	for _, n := range slices.Backward(w.stack) {
		switch n := n.(type) {
		case *ast.FuncLit:
			return w.info.TypeOf(n).Underlying().(*types.Signature)
		case *ast.FuncDecl:
			return w.info.Defs[n.Name].Type().(*types.Signature)
		}
	}
	return &types.Signature{}
}

// function returns the name of the enclosing declaration, with its receiver.
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
