package word

import "fmt"

// Line is a named value.
type Line struct {
	Name  string
	Value uint64
}

func (l Line) String() string { return fmt.Sprintf("%s = %#x", l.Name, l.Value) }

// Decode names every field of a structure, and what is set outside of all.
func (l *Layout) Decode(words []uint32) ([]Line, error) {
	if len(words) != l.Words {
		return nil, fmt.Errorf("%s: %d words, want %d", l.Name, len(words), l.Words)
	}
	var lines []Line
	rest := append([]uint32(nil), words...)
	for _, f := range l.Fields {
		for i := range f.Count {
			lines = append(lines, Line{f.elementName(i), l.Get(words, f, i)})
			for bit := f.Low + i*f.Step; bit <= f.High+i*f.Step; bit++ {
				rest[bit/32] &^= 1 << (bit % 32)
			}
		}
	}
	for i, w := range rest {
		if w != 0 {
			lines = append(lines, Line{fmt.Sprintf("RESERVED(%d)", i), uint64(w)})
		}
	}
	return lines, nil
}

// Decode names every word that a pushbuffer sends. A word that no front end takes is an
// error; the lines are those before it.
func Decode(words []uint32) ([]Line, error) {
	var lines []Line
	for at := 0; at < len(words); {
		h := words[at]
		fail := func(format string, args ...any) ([]Line, error) {
			return lines, fmt.Errorf("word %d, %08x: %s", at, h, fmt.Sprintf(format, args...))
		}
		get := func(name Name) uint64 { return header.Get(words[at:at+1], header.Fields[header.byName[name]], 0) }
		op, count := opcode(get("OPCODE")), int(get("COUNT"))
		switch {
		case h == 0: // no operation
			at++
			continue
		case op == opEndSegment:
			return append(lines, Line{"END_PB_SEGMENT", 0}), nil
		case get("ZERO") != 0:
			return fail("bit 12 of a header is set")
		case op != opIncrease && op != opNonIncrease && op != opImmediate && op != opOneIncrease:
			return fail("opcode %d is none that is in use", op)
		}
		data := []uint32{uint32(count)}
		if op != opImmediate {
			if count > len(words)-at-1 {
				return fail("%d words of data, %d follow", count, len(words)-at-1)
			}
			data = words[at+1 : at+1+count]
		}
		offset := int(get("ADDRESS")) * 4
		for i, v := range data {
			step := i
			switch op {
			case opNonIncrease:
				step = 0
			case opOneIncrease:
				step = min(i, 1)
			}
			name, err := methodName(Subchannel(get("SUBCHANNEL")), offset+4*step)
			if err != nil {
				return fail("%v", err)
			}
			lines = append(lines, Line{name, uint64(v)})
		}
		at++
		if op != opImmediate {
			at += count
		}
	}
	return lines, nil
}

func methodName(to Subchannel, offset int) (string, error) {
	class := to.Class()
	if offset < HostMethods && (class == nil || offset != 0) {
		class = Host()
	}
	if class == nil {
		return "", fmt.Errorf("method %#x on subchannel %d, which has no class", offset, to)
	}
	m, element, ok := class.At(offset)
	if !ok && offset == 0 {
		m, element, ok = Host().At(0) // SET_OBJECT
	}
	if !ok {
		return "", fmt.Errorf("class %s has no method %#x", class.Name, offset)
	}
	return m.elementName(element), nil
}
