package tokenizer

import (
	"cmp"
	"slices"
	"strings"
)

// specials finds the special tokens in a text. The rule: longer tokens go
// first, everywhere in the text, then shorter ones in what is left; among
// equally long ones the smaller id; each takes its occurrences from left to
// right.
//
// Searching the whole text for every token would be slow with thousands of
// them. Instead one pass of an Aho-Corasick automaton finds all occurrences
// and groups those that overlap: groups do not influence each other, and a
// group is nearly always a single token.
type specials struct {
	ids    map[string]int32
	texts  map[int32]string
	nodes  []specialNode
	atRoot [256]int32 // the root's children by first byte; 0: none
	none   bool       // there are no special tokens
}

// A specialNode is a prefix of special tokens.
type specialNode struct {
	label   byte
	child   int32 // first child; siblings are linked. Node 0, the root, is no child
	sibling int32
	fail    int32 // node of the longest proper suffix that is a prefix of a token
	accept  int32 // nearest node on the way of fail, this one included, that is a token; 0: none
	length  int32 // bytes of the prefix
	id      int32 // token that ends here; NoToken: none
}

func newSpecials(v *Vocabulary, include func(tokenType int32) bool) *specials {
	s := &specials{
		ids: map[string]int32{}, texts: map[int32]string{},
		nodes: []specialNode{{id: NoToken}}, none: true,
	}
	for id, text := range v.Tokens {
		if text != "" && include(v.Types[id]) {
			s.insert(text, int32(id))
		}
	}
	s.link()
	return s
}

func (s *specials) insert(text string, id int32) {
	s.none = false
	s.ids[text], s.texts[id] = id, text
	at := int32(0)
	for i := range len(text) {
		next := s.childOf(at, text[i])
		if next == 0 {
			next = int32(len(s.nodes))
			s.nodes = append(s.nodes, specialNode{
				label: text[i], sibling: s.nodes[at].child, length: int32(i + 1), id: NoToken,
			})
			s.nodes[at].child = next
			if at == 0 {
				s.atRoot[text[i]] = next
			}
		}
		at = next
	}
	s.nodes[at].id = id
}

func (s *specials) childOf(at int32, label byte) int32 {
	if at == 0 {
		return s.atRoot[label]
	}
	next := s.nodes[at].child
	for next != 0 && s.nodes[next].label != label {
		next = s.nodes[next].sibling
	}
	return next
}

// link sets fail and accept, in the order of growing length.
func (s *specials) link() {
	queue := make([]int32, 1, len(s.nodes))
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for next := s.nodes[at].child; next != 0; next = s.nodes[next].sibling {
			n := &s.nodes[next]
			if at != 0 {
				n.fail = s.step(s.nodes[at].fail, n.label)
			}
			n.accept = s.nodes[n.fail].accept
			if n.id != NoToken {
				n.accept = next
			}
			queue = append(queue, next)
		}
	}
}

// step returns the node of the longest suffix of the text read so far, with
// label added, that is a prefix of a token.
func (s *specials) step(at int32, label byte) int32 {
	for {
		if next := s.childOf(at, label); next != 0 {
			return next
		}
		if at == 0 {
			return 0
		}
		at = s.nodes[at].fail
	}
}

// A fragment is a span of a text: a special token, or text (NoToken).
type fragment struct {
	start, end int
	id         int32
}

// admission tells whether a special token may be seen at a place in a text.
type admission func(start, end int, id int32) bool

func admitAll(int, int, int32) bool { return true }

// partition cuts a text into special tokens and the text between, in order. What is not
// admitted is as if it were not there.
func (s *specials) partition(text string, admit admission) []fragment {
	var fragments []fragment
	add := func(f fragment) {
		last := len(fragments) - 1
		switch {
		case f.start == f.end:
		case f.id == NoToken && last >= 0 && fragments[last].id == NoToken:
			fragments[last].end = f.end
		default:
			fragments = append(fragments, f)
		}
	}
	done := 0
	for _, group := range s.groups(text) {
		add(fragment{done, group.start, NoToken})
		done = group.end
		if id, ok := s.ids[text[group.start:group.end]]; ok && admit(group.start, group.end, id) {
			add(fragment{group.start, group.end, id})
			continue
		}
		for _, f := range s.resolve(text, group, admit) {
			add(f)
		}
	}
	add(fragment{done, len(text), NoToken})
	return fragments
}

// groups returns the spans of text that are covered by occurrences which
// overlap. Occurrences that only touch are in different groups.
func (s *specials) groups(text string) []fragment {
	if s.none {
		return nil
	}
	var groups []fragment
	at := int32(0)
	for i := 0; i < len(text); i++ {
		if at == 0 {
			for i < len(text) && s.atRoot[text[i]] == 0 {
				i++
			}
			if i == len(text) {
				break
			}
		}
		at = s.step(at, text[i])
		longest := s.nodes[at].accept
		if longest == 0 {
			continue
		}
		end := i + 1
		start := end - int(s.nodes[longest].length)
		for len(groups) > 0 && groups[len(groups)-1].end > start {
			start = min(start, groups[len(groups)-1].start)
			groups = groups[:len(groups)-1]
		}
		groups = append(groups, fragment{start, end, NoToken})
	}
	return groups
}

// resolve applies the rule to one group of overlapping occurrences.
func (s *specials) resolve(text string, group fragment, admit admission) []fragment {
	var found []fragment
	open := []fragment{group}
	for _, id := range s.within(text[group.start:group.end]) {
		token := s.texts[id]
		var rest []fragment
		for _, f := range open {
			for from := f.start; ; {
				i := strings.Index(text[from:f.end], token)
				if i < 0 {
					break
				}
				at := from + i
				if !admit(at, at+len(token), id) {
					from = at + 1
					continue
				}
				found = append(found, fragment{at, at + len(token), id})
				rest = append(rest, fragment{f.start, at, NoToken})
				f.start = at + len(token)
				from = f.start
			}
			rest = append(rest, f)
		}
		open = slices.DeleteFunc(rest, func(f fragment) bool { return f.start == f.end })
	}
	found = append(found, open...)
	slices.SortFunc(found, func(a, b fragment) int { return cmp.Compare(a.start, b.start) })
	return found
}

// within lists the special tokens that occur in text, longest first.
func (s *specials) within(text string) []int32 {
	seen := map[int32]bool{}
	var ids []int32
	at := int32(0)
	for i := range len(text) {
		at = s.step(at, text[i])
		// Whatever ends here besides a node seen before was seen with it.
		for n := s.nodes[at].accept; n != 0 && !seen[n]; n = s.nodes[s.nodes[n].fail].accept {
			seen[n] = true
			ids = append(ids, s.nodes[n].id)
		}
	}
	slices.SortFunc(ids, func(a, b int32) int {
		return cmp.Or(cmp.Compare(len(s.texts[b]), len(s.texts[a])), cmp.Compare(a, b))
	})
	return ids
}
