package pass

import (
	"context"
	"fmt"
)

// notesKey is the key of a context's *notes.
type notesKey struct{}

// notes is who is told what passes say, and of which row and subject they say it.
type notes struct {
	tell         func(row, subject, text string)
	row, subject string
}

// WithNotes has tell get what passes say about a form.
func WithNotes(ctx context.Context, tell func(row, subject, text string)) context.Context {
	return context.WithValue(ctx, notesKey{}, &notes{tell: tell})
}

// Notef says something about the form that a pass runs on: what one that counts or
// measures has found. ctx is that of the row's Run.
func Notef(ctx context.Context, format string, args ...any) {
	if n, ok := ctx.Value(notesKey{}).(*notes); ok {
		n.tell(n.row, n.subject, fmt.Sprintf(format, args...))
	}
}

// ofRow is the context of one row.
func ofRow(ctx context.Context, row, subject string) context.Context {
	if n, ok := ctx.Value(notesKey{}).(*notes); ok {
		return context.WithValue(ctx, notesKey{}, &notes{n.tell, row, subject})
	}
	return ctx
}
