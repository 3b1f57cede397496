package template

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Options of a rendering.
type Options struct {
	Limits Limits
	// Clock is the time of strftime_now, which is undefined without.
	Clock Clock
}

// Render fills a template. The texts among the variables carry their origins
// ([Inside], [Outside]); vars is not changed.
func (t *Template) Render(ctx context.Context, vars *Dict, opt Options) ([]Piece, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	r := &run{budget: budget{ctx: ctx, limits: opt.Limits.withDefaults()}}
	root := &scope{parent: &scope{values: globals(opt.Clock)}}
	for i, key := range vars.keys {
		if name, ok := key.(Text); ok {
			root.set(name.s, vars.values[i])
		}
	}
	var out builder
	if err := r.block(t.body, root, &out); err != nil {
		return nil, err
	}
	return out.text().pieces(), nil
}

// run is one rendering.
type run struct {
	budget
	depth int // of nodes being evaluated
	calls int // of macros, one in the other
}

// depthOfNodes bounds the stack. A node takes about 500 bytes of it.
const depthOfNodes = 1 << 14

// scope is where names are looked up. Loops, macros and with have their own; what is
// set in one is gone after it.
type scope struct {
	values map[string]Value
	parent *scope
}

func (s *scope) get(name string) (Value, bool) {
	for ; s != nil; s = s.parent {
		if v, ok := s.values[name]; ok {
			return v, true
		}
	}
	return nil, false
}

func (s *scope) set(name string, v Value) {
	if s.values == nil {
		s.values = make(map[string]Value)
	}
	s.values[name] = v
}

// located gives an error its line, unless it has one; jumps have none.
func located(err error, line int) error {
	var have *Error
	if err == nil || errors.As(err, &have) || errors.Is(err, errBreak) || errors.Is(err, errContinue) {
		return err
	}
	var raised *raisedError
	return &Error{Line: line, Text: err.Error(), Raised: errors.As(err, &raised), cause: err}
}

// raisedError is what raise_exception makes.
type raisedError struct{ text string }

func (e *raisedError) Error() string { return e.text }

// eval is the one place where expressions are evaluated.
func (r *run) eval(e expression, s *scope) (Value, error) {
	r.depth++
	defer func() { r.depth-- }()
	err := r.spend(1)
	if err == nil && r.depth > depthOfNodes {
		err = fmt.Errorf("nested deeper than %d", depthOfNodes)
	}
	if err != nil {
		return nil, located(err, e.at())
	}
	v, err := e.eval(r, s)
	return v, located(err, e.at())
}

// block runs statements.
func (r *run) block(body []statement, s *scope, out *builder) error {
	r.depth++
	defer func() { r.depth-- }()
	for _, n := range body {
		err := r.spend(1)
		if err == nil && r.depth > depthOfNodes {
			err = fmt.Errorf("nested deeper than %d", depthOfNodes)
		}
		if err == nil {
			err = n.exec(r, s, out)
		}
		if err != nil {
			return located(err, n.at())
		}
	}
	return nil
}

// write adds to an output.
func (r *run) write(out *builder, t Text) error {
	if out.len()+len(t.s) > r.limits.Output {
		return fmt.Errorf("more than %d bytes of text", r.limits.Output)
	}
	out.add(t)
	return r.spend(len(t.s)/bytesAStep + len(t.outside))
}

// capture is the text that statements write.
func (r *run) capture(body []statement, s *scope) (Text, error) {
	var out builder
	err := r.block(body, s, &out)
	return out.text(), err
}

func (n *dataStatement) exec(r *run, _ *scope, out *builder) error {
	return r.write(out, Text{s: n.text})
}

func (n *printStatement) exec(r *run, s *scope, out *builder) error {
	v, err := r.eval(n.value, s)
	if err != nil {
		return err
	}
	t, err := r.text(v)
	if err != nil {
		return err
	}
	return r.write(out, t)
}

func (n *doStatement) exec(r *run, s *scope, _ *builder) error {
	_, err := r.eval(n.value, s)
	return err
}

func (n *ifStatement) exec(r *run, s *scope, out *builder) error {
	for _, b := range n.branches {
		v, err := r.eval(b.condition, s)
		if err != nil {
			return err
		}
		if truth(v) {
			return r.block(b.body, s, out)
		}
	}
	return r.block(n.otherwise, s, out)
}

func (n *setStatement) exec(r *run, s *scope, _ *builder) error {
	v, err := n.evaluate(r, s)
	if err != nil {
		return err
	}
	if len(n.targets) == 1 {
		return n.targets[0].assign(s, v)
	}
	items, err := r.unpack(v, len(n.targets))
	for i, t := range n.targets {
		if err == nil {
			err = t.assign(s, items[i])
		}
	}
	return err
}

func (n *setStatement) evaluate(r *run, s *scope) (Value, error) {
	if n.value != nil {
		return r.eval(n.value, s)
	}
	t, err := r.capture(n.block, &scope{parent: s})
	if err != nil {
		return nil, err
	}
	return r.applyAll(n.filters, t, s)
}

func (t setTarget) assign(s *scope, v Value) error {
	if t.attribute == "" {
		s.set(t.name, v)
		return nil
	}
	held, _ := s.get(t.name)
	ns, ok := held.(*namespace)
	if !ok {
		return fmt.Errorf("cannot assign attribute on non-namespace object: %q is %s", t.name, typeName(held))
	}
	ns.Set(t.attribute, v)
	return nil
}

// unpack takes a value apart for several names.
func (r *run) unpack(v Value, n int) ([]Value, error) {
	items, err := r.items(v)
	if err == nil && len(items) != n {
		err = fmt.Errorf("%d values to unpack, want %d", len(items), n)
	}
	return items, err
}

func (n *blockStatement) exec(r *run, s *scope, out *builder) error { return r.block(n.body, s, out) }

func (n *jumpStatement) exec(*run, *scope, *builder) error { return n.jump }

func (n *withStatement) exec(r *run, s *scope, out *builder) error {
	inner := &scope{parent: s}
	for i, name := range n.names {
		v, err := r.eval(n.values[i], s)
		if err != nil {
			return err
		}
		inner.set(name, v)
	}
	return r.block(n.body, inner, out)
}

func (n *filterStatement) exec(r *run, s *scope, out *builder) error {
	t, err := r.capture(n.body, &scope{parent: s})
	if err != nil {
		return err
	}
	v, err := r.applyAll(n.filters, t, s)
	if err != nil {
		return err
	}
	if t, err = r.text(v); err != nil {
		return err
	}
	return r.write(out, t)
}

func (n *forStatement) exec(r *run, s *scope, out *builder) error {
	v, err := r.eval(n.items, s)
	if err != nil {
		return err
	}
	return n.visit(r, s, out, v, 0)
}

// visit runs the body for every item; depth counts the loops of the same statement around it.
func (n *forStatement) visit(r *run, s *scope, out *builder, v Value, depth int) error {
	items, err := r.items(v)
	if err != nil {
		return err
	}
	if items, err = n.chosen(r, s, items); err != nil {
		return err
	}
	if len(items) == 0 {
		return r.block(n.otherwise, &scope{parent: s}, out)
	}
	loop := &loopState{items: items, depth: depth}
	if n.recursive {
		loop.again = func(v Value) (Value, error) {
			var inner builder
			err := r.deeper(depth)
			if err == nil {
				err = n.visit(r, s, &inner, v, depth+1)
			}
			return inner.text(), err
		}
	}
	for loop.index = range items {
		// What an iteration sets is gone in the next one.
		inner := &scope{parent: s}
		inner.set("loop", loop)
		if err := n.bind(r, inner, items[loop.index]); err != nil {
			return err
		}
		err := r.block(n.body, inner, out)
		if errors.Is(err, errBreak) {
			return nil
		}
		if err != nil && !errors.Is(err, errContinue) {
			return err
		}
	}
	return nil
}

// chosen are the items that the loop's condition lets through.
func (n *forStatement) chosen(r *run, s *scope, items []Value) ([]Value, error) {
	if n.condition == nil {
		return items, nil
	}
	var list []Value
	for _, item := range items {
		inner := &scope{parent: s}
		if err := n.bind(r, inner, item); err != nil {
			return nil, err
		}
		v, err := r.eval(n.condition, inner)
		if err != nil {
			return nil, err
		}
		if truth(v) {
			list = append(list, item)
		}
	}
	return list, nil
}

func (n *forStatement) bind(r *run, s *scope, item Value) error {
	if len(n.targets) == 1 {
		s.set(n.targets[0], item)
		return nil
	}
	items, err := r.unpack(item, len(n.targets))
	if err != nil {
		return err
	}
	for i, name := range n.targets {
		s.set(name, items[i])
	}
	return nil
}

func (n *macroStatement) exec(_ *run, s *scope, _ *builder) error {
	s.set(n.name, n.function(n.name, s))
	return nil
}

func (n *callStatement) exec(r *run, s *scope, out *builder) error {
	args, err := n.call.evaluate(r, s)
	if err != nil {
		return err
	}
	callee, err := r.eval(n.call.callee, s)
	if err != nil {
		return err
	}
	args.named = append(args.named, namedValue{"caller", n.function("caller", s)})
	v, err := r.invoke(callee, args)
	if err != nil {
		return err
	}
	t, err := r.text(v)
	if err != nil {
		return err
	}
	return r.write(out, t)
}

// function makes a macro callable, where it sees the names of its surroundings.
func (m *macro) function(name string, s *scope) *function {
	return &function{name, func(r *run, a arguments) (Value, error) {
		r.calls++
		defer func() { r.calls-- }()
		if err := r.deeper(r.calls); err != nil {
			return nil, fmt.Errorf("calls of macros: %w", err)
		}
		inner := &scope{parent: s}
		if err := m.bind(r, inner, name, a); err != nil {
			return nil, err
		}
		return r.capture(m.body, inner)
	}}
}

// bind gives a macro's parameters their values.
func (m *macro) bind(r *run, s *scope, name string, a arguments) error {
	for i, p := range m.parameters {
		v, ok := a.get(i, p.name)
		if !ok && p.otherwise != nil {
			var err error
			if v, err = r.eval(p.otherwise, s); err != nil {
				return err
			}
		} else if !ok {
			v = undefined{fmt.Sprintf("parameter %q was not provided", p.name)}
		}
		s.set(p.name, v)
	}
	rest := NewList()
	rest.tuple = true
	if n := len(m.parameters); len(a.positional) > n {
		rest.items = a.positional[n:]
	}
	s.set("varargs", rest)
	named := NewDict()
	for _, v := range a.named {
		known := slices.ContainsFunc(m.parameters, func(p parameter) bool { return p.name == v.name })
		switch {
		case v.name == "caller" && !known:
			s.set("caller", v.value)
		case !known:
			named.Set(v.name, v.value)
		}
	}
	s.set("kwargs", named)
	return nil
}

// loopState is the variable "loop".
type loopState struct {
	items   []Value
	index   int
	depth   int                        // of a recursive loop
	again   func(Value) (Value, error) // what calling it does, of a recursive loop
	changed *List                      // what loop.changed was given last
}

// loopAttributes are those of "loop", but for its functions.
var loopAttributes = map[string]func(*loopState) Value{
	"index":     func(l *loopState) Value { return int64(l.index + 1) },
	"index0":    func(l *loopState) Value { return int64(l.index) },
	"revindex":  func(l *loopState) Value { return int64(len(l.items) - l.index) },
	"revindex0": func(l *loopState) Value { return int64(len(l.items) - l.index - 1) },
	"first":     func(l *loopState) Value { return l.index == 0 },
	"last":      func(l *loopState) Value { return l.index == len(l.items)-1 },
	"length":    func(l *loopState) Value { return int64(len(l.items)) },
	"depth":     func(l *loopState) Value { return int64(l.depth + 1) },
	"depth0":    func(l *loopState) Value { return int64(l.depth) },
	"previtem": func(l *loopState) Value {
		if l.index == 0 {
			return undefined{"there is no previous item"}
		}
		return l.items[l.index-1]
	},
	"nextitem": func(l *loopState) Value {
		if l.index == len(l.items)-1 {
			return undefined{"there is no next item"}
		}
		return l.items[l.index+1]
	},
	"cycle": func(l *loopState) Value {
		return &function{"cycle", func(_ *run, a arguments) (Value, error) {
			if len(a.positional) == 0 {
				return nil, errors.New("no items for cycling given")
			}
			return a.positional[l.index%len(a.positional)], nil
		}}
	},
	"changed": func(l *loopState) Value {
		return &function{"changed", func(r *run, a arguments) (Value, error) {
			now := &List{items: a.positional, tuple: true}
			same := false
			if l.changed != nil {
				var err error
				if same, err = r.equal(l.changed, now, 0); err != nil {
					return nil, err
				}
			}
			l.changed = now
			return !same, nil
		}}
	},
}
