package tokenizer

import (
	"cmp"
	"container/heap"
)

// byteTokens returns the printable characters that mean the 256 bytes in a
// byte-level vocabulary, in the order of ids, and by byte. Printable Latin-1
// means itself and comes first; the rest are U+0100 and on.
func byteTokens() (inOrder []string, byByte [256]rune) {
	printable := func(b int) bool { return b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae }
	for b := range byByte {
		if printable(b) {
			byByte[b] = rune(b)
			inOrder = append(inOrder, string(rune(b)))
		}
	}
	next := rune(0x100)
	for b := range byByte {
		if !printable(b) {
			byByte[b] = next
			inOrder = append(inOrder, string(next))
			next++
		}
	}
	return inOrder, byByte
}

// trainer learns byte-pair merges: again and again, the most frequent pair of
// neighbours becomes a token.
type trainer struct {
	tokens []string
	ids    map[string]int
	words  []trainingWord
	pairs  map[tokenPair]*pairCount
	grown  []tokenPair // pairs to queue after the current step
	queue  pairQueue
}

type trainingWord struct {
	ids    []int
	weight int
}

type tokenPair struct{ left, right int }

type pairCount struct {
	weight int
	words  []int // that held the pair at some time
	grown  bool  // it is in trainer.grown
}

// WeightedWord is a word of a training text, as a pre-tokenizer cuts it, and how
// often it counts.
type WeightedWord struct {
	Text   string
	Weight int
}

// TrainBPE learns a byte-level vocabulary (Sennrich et al. 2016; bytes as in
// GPT-2): the 256 byte tokens followed by learned ones, size in all if the words
// give as many, and the merges in the order learned. Ties go to the pair with the
// smaller ids.
func TrainBPE(words []WeightedWord, size int) (tokens, merges []string) {
	t := &trainer{ids: map[string]int{}, pairs: map[tokenPair]*pairCount{}}
	inOrder, byByte := byteTokens()
	for _, token := range inOrder {
		t.add(token)
	}
	for _, w := range words {
		t.addWord(w.Text, w.Weight, &byByte)
	}
	t.enqueue()
	for len(t.tokens) < size {
		pair, ok := t.best()
		if !ok {
			break
		}
		merges = append(merges, t.tokens[pair.left]+" "+t.tokens[pair.right])
		t.merge(pair)
		t.enqueue()
	}
	return t.tokens, merges
}

// CountWords cuts texts as the named pre-tokenizer does and counts the words, in
// order of first appearance. ok is false for a name that is not known.
func CountWords(pre string, texts []string) (words []WeightedWord, ok bool) {
	p, ok := findPreTokenizer(pre)
	if !ok {
		return nil, false
	}
	at := make(map[string]int)
	for _, text := range texts {
		p.split(text, func(word string) {
			k, known := at[word]
			if !known {
				k = len(words)
				at[word] = k
				words = append(words, WeightedWord{Text: word})
			}
			words[k].Weight++
		})
	}
	return words, true
}

// add returns the id of a token, a new one if need be.
func (t *trainer) add(token string) int {
	id, ok := t.ids[token]
	if !ok {
		id = len(t.tokens)
		t.ids[token] = id
		t.tokens = append(t.tokens, token)
	}
	return id
}

func (t *trainer) addWord(word string, weight int, byByte *[256]rune) {
	w := trainingWord{weight: weight}
	for _, b := range []byte(word) {
		w.ids = append(w.ids, t.ids[string(byByte[b])])
	}
	t.words = append(t.words, w)
	t.count(len(t.words)-1, 1)
}

// count adds (sign 1) or takes away (-1) the pairs of a word.
func (t *trainer) count(word, sign int) {
	w := &t.words[word]
	for i := 1; i < len(w.ids); i++ {
		p := tokenPair{w.ids[i-1], w.ids[i]}
		c := t.pairs[p]
		if c == nil {
			c = &pairCount{}
			t.pairs[p] = c
		}
		c.weight += sign * w.weight
		if sign > 0 {
			c.words = append(c.words, word)
			if !c.grown {
				c.grown = true
				t.grown = append(t.grown, p)
			}
		}
	}
}

// enqueue queues the pairs that may have become heavier, each once.
func (t *trainer) enqueue() {
	for _, p := range t.grown {
		c := t.pairs[p]
		c.grown = false
		if c.weight > 0 {
			heap.Push(&t.queue, queuedPair{p, c.weight})
		}
	}
	t.grown = t.grown[:0]
}

// best returns the heaviest pair. The queue holds outdated entries too: one
// heavier than the truth is put back with its true weight.
func (t *trainer) best() (tokenPair, bool) {
	for t.queue.Len() > 0 {
		top := heap.Pop(&t.queue).(queuedPair)
		weight := t.pairs[top.pair].weight
		if weight == top.weight {
			return top.pair, true
		}
		if 0 < weight && weight < top.weight {
			heap.Push(&t.queue, queuedPair{top.pair, weight})
		}
	}
	return tokenPair{}, false
}

// merge replaces a pair by its token in every word.
func (t *trainer) merge(p tokenPair) {
	id := t.add(t.tokens[p.left] + t.tokens[p.right])
	for _, word := range t.pairs[p].words {
		ids := t.words[word].ids
		if !hasPair(ids, p) {
			continue
		}
		t.count(word, -1)
		kept := ids[:0]
		for i := 0; i < len(ids); i++ {
			if i+1 < len(ids) && ids[i] == p.left && ids[i+1] == p.right {
				kept = append(kept, id)
				i++
				continue
			}
			kept = append(kept, ids[i])
		}
		t.words[word].ids = kept
		t.count(word, 1)
	}
}

func hasPair(ids []int, p tokenPair) bool {
	for i := 1; i < len(ids); i++ {
		if ids[i-1] == p.left && ids[i] == p.right {
			return true
		}
	}
	return false
}

// pairQueue is a heap, heaviest first, ties by ids.
type pairQueue []queuedPair

type queuedPair struct {
	pair   tokenPair
	weight int
}

func (q pairQueue) Len() int      { return len(q) }
func (q pairQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *pairQueue) Push(x any)   { *q = append(*q, x.(queuedPair)) }

func (q pairQueue) Less(i, j int) bool {
	a, b := q[i], q[j]
	return cmp.Or(
		cmp.Compare(b.weight, a.weight),
		cmp.Compare(a.pair.left, b.pair.left),
		cmp.Compare(a.pair.right, b.pair.right),
	) < 0
}

func (q *pairQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
