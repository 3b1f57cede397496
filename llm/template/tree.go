package template

// The tree of a template: statements that write, and expressions that have values.

type statement interface {
	exec(r *run, s *scope, out *builder) error
	at() int
}

type expression interface {
	eval(r *run, s *scope) (Value, error)
	at() int
}

// position is the line of a node.
type position struct{ line int }

func (p position) at() int { return p.line }

// Statements.
type (
	dataStatement struct {
		position
		text string
	}
	printStatement struct {
		position
		value expression
	}
	ifStatement struct {
		position
		branches  []branch
		otherwise []statement
	}
	forStatement struct {
		position
		targets   []string
		items     expression
		condition expression // nil: all items
		recursive bool       // "loop" may be called with other items
		body      []statement
		otherwise []statement
	}
	// setStatement gives names values: of an expression, or of a block's text.
	setStatement struct {
		position
		targets []setTarget
		value   expression
		block   []statement
		filters []filterCall // of the block
	}
	macroStatement struct {
		position
		name string
		macro
	}
	callStatement struct {
		position
		call *callExpression
		macro
	}
	filterStatement struct {
		position
		filters []filterCall
		body    []statement
	}
	withStatement struct {
		position
		names  []string
		values []expression
		body   []statement
	}
	// blockStatement runs its body as it stands: {% generation %} marks what a model
	// wrote, for training.
	blockStatement struct {
		position
		body []statement
	}
	jumpStatement struct {
		position
		jump error
	}
	doStatement struct {
		position
		value expression
	}
)

type branch struct {
	condition expression
	body      []statement
}

// setTarget is a name, or an attribute of a namespace.
type setTarget struct{ name, attribute string }

// macro is a function written in the template.
type macro struct {
	parameters []parameter
	body       []statement
}

type parameter struct {
	name      string
	otherwise expression // nil: undefined
}

// Expressions.
type (
	constant struct {
		position
		value Value
	}
	nameExpression struct {
		position
		name string
	}
	listExpression struct {
		position
		items []expression
		tuple bool
	}
	dictExpression struct {
		position
		keys, values []expression
	}
	unaryExpression struct {
		position
		operator string
		value    expression
	}
	binaryExpression struct {
		position
		operator    string
		left, right expression
	}
	// compareExpression is a chain: a < b < c.
	compareExpression struct {
		position
		first     expression
		operators []string
		others    []expression
	}
	choiceExpression struct {
		position
		condition, yes, no expression // no may be nil: undefined
	}
	attributeExpression struct {
		position
		value expression
		name  string
	}
	itemExpression struct {
		position
		value, key expression
	}
	sliceExpression struct {
		position
		value             expression
		start, stop, step expression // nil where left out
	}
	callExpression struct {
		position
		callee expression
		argumentList
	}
	filterExpression struct {
		position
		value expression
		filterCall
	}
	testExpression struct {
		position
		value expression
		filterCall
		negated bool
	}
)

// filterCall is a filter or test with its arguments.
type filterCall struct {
	name string
	argumentList
}

// argumentList is what stands between the brackets of a call.
type argumentList struct {
	positional []expression
	named      []namedExpression
	list, dict expression // *list, **dict
}

type namedExpression struct {
	name  string
	value expression
}
