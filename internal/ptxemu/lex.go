package ptxemu

import "fmt"

// token is a word, number or punctuation sign of PTX. Opcodes and directives
// come with their dots: "ld.global.v4.b32", ".reg".
type token struct {
	text string
	line int
}

func (t token) String() string {
	if t.text == "" {
		return "the end of the text"
	}
	return fmt.Sprintf("%q", t.text)
}

// maxText bounds the size of a module against hostile input, in bytes.
const maxText = 64 << 20

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c == '%' || c == '.'
}

// lex cuts the text into tokens; comments vanish.
func lex(text string) ([]token, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("ptx: %d bytes of text, want at most %d", len(text), maxText)
	}
	var out []token
	line := 1
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '\n':
			line++
			i++
		case c == ' ' || c == '\t' || c == '\r' || c == 0:
			i++
		case c == '/' && i+1 < len(text) && text[i+1] == '/':
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case c == '/' && i+1 < len(text) && text[i+1] == '*':
			start := line
			for i += 2; i+1 < len(text) && (text[i] != '*' || text[i+1] != '/'); i++ {
				if text[i] == '\n' {
					line++
				}
			}
			if i+1 >= len(text) {
				return nil, fmt.Errorf("ptx: line %d: a comment does not end", start)
			}
			i += 2
		case c == '"':
			end := i + 1
			for end < len(text) && text[end] != '"' && text[end] != '\n' {
				end++
			}
			if end >= len(text) || text[end] != '"' {
				return nil, fmt.Errorf("ptx: line %d: a string does not end", line)
			}
			out = append(out, token{text[i : end+1], line})
			i = end + 1
		case isWordByte(c):
			end := wordEnd(text, i)
			out = append(out, token{text[i:end], line})
			i = end
		default:
			out = append(out, token{text[i : i+1], line})
			i++
		}
	}
	return out, nil
}

// wordEnd: a double colon belongs to a word (".L1::no_allocate"), a single one
// ends a label.
func wordEnd(text string, i int) int {
	for i < len(text) {
		switch {
		case isWordByte(text[i]):
			i++
		case text[i] == ':' && i+2 < len(text) && text[i+1] == ':' && isWordByte(text[i+2]):
			i += 2
		default:
			return i
		}
	}
	return i
}
