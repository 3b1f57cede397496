package synth

import (
	"fmt"
	"strconv"
	"strings"

	"tgc/gguf"
)

// customForm is how the command line describes a model that the table lacks.
const customForm = "ARCH:d=..,layers=..,heads=..,ff=..,vocab=..,quant=..[,kv=..][,head=..][,ctx=..][,experts=..,used=..][,window=..][,orig=..][,tied=0][,pure=1]"

// leastVocabulary is the smallest vocabulary: 256 bytes and the control tokens.
const leastVocabulary = 266

// parseCustom reads a model of the form customForm.
func parseCustom(text string) (Shape, error) {
	arch, rest, _ := strings.Cut(text, ":")
	s := Shape{
		Name: text, Title: "Custom " + arch, Architecture: arch,
		Context: 4096, Tied: true, RopeBase: 10000, Epsilon: 1e-5, mixture: published("q8_0"),
	}
	if f, ok := families[arch]; ok {
		s.Window = f.window
		if f.ropeBase != 0 {
			s.RopeBase = f.ropeBase
		}
	}
	fields := map[string]*int{
		"d": &s.Width, "layers": &s.Layers, "heads": &s.Heads, "kv": &s.KVHeads, "head": &s.HeadSize, "ff": &s.FeedForward,
		"vocab": &s.Vocabulary, "ctx": &s.Context, "experts": &s.Experts, "used": &s.ExpertsUsed,
		"window": &s.Window, "orig": &s.Original,
	}
	pure := false
	for pair := range strings.SplitSeq(rest, ",") {
		key, value, _ := strings.Cut(pair, "=")
		var err error
		switch field, ok := fields[key]; {
		case ok:
			if *field, err = strconv.Atoi(value); err == nil && (*field < 1 || *field > 1<<24) {
				err = fmt.Errorf("%d is out of range", *field)
			}
		case key == "tied":
			s.Tied, err = strconv.ParseBool(value)
		case key == "quant":
			s.mixture, err = parseMixture(value)
		case key == "pure":
			pure, err = strconv.ParseBool(value)
		default:
			err = fmt.Errorf("no such key; the form is %s", customForm)
		}
		if err != nil {
			return Shape{}, fmt.Errorf("synth: %s: %q: %w", text, pair, err)
		}
	}
	if pure {
		s.mixture = uniform(s.mixture.base)
	}
	return s, s.complete()
}

// parseMixture finds a mixture by its name in lower case; the name of a type that no
// mixture has is that type throughout.
func parseMixture(name string) (*mixture, error) {
	if m, ok := mixtureByName(name); ok {
		return m, nil
	}
	t, ok := gguf.TypeByName(name)
	if _, err := Fill(t, 1, 0, ""); !ok || err != nil {
		return nil, fmt.Errorf("synth makes no models of this type; mixtures are %s", strings.Join(MixtureNames(), ", "))
	}
	return uniform(t), nil
}

// complete fills in what a custom model leaves out and checks the rest.
func (s *Shape) complete() error {
	family, ok := families[s.Architecture]
	if !ok {
		return fmt.Errorf("synth: %s: no architecture %q", s.Name, s.Architecture)
	}
	if s.KVHeads == 0 {
		s.KVHeads = s.Heads
	}
	if s.HeadSize == 0 {
		s.HeadSize = s.Width / max(s.Heads, 1)
	}
	switch {
	case s.Width == 0 || s.Layers == 0 || s.Heads == 0 || s.FeedForward == 0 || s.HeadSize == 0:
		return fmt.Errorf("synth: %s: d, layers, heads or ff is missing; the form is %s", s.Name, customForm)
	case s.Heads%s.KVHeads != 0:
		return fmt.Errorf("synth: %s: %d heads are no multiple of %d", s.Name, s.Heads, s.KVHeads)
	case family.learned && (s.KVHeads != s.Heads || s.HeadSize*s.Heads != s.Width):
		return fmt.Errorf("synth: %s: the heads of %s divide its width", s.Name, s.Architecture)
	case s.Vocabulary < leastVocabulary:
		return fmt.Errorf("synth: %s: a vocabulary of %d tokens, want %d at least", s.Name, s.Vocabulary, leastVocabulary)
	case s.ExpertsUsed > s.Experts || (s.Experts > 0) != (s.ExpertsUsed > 0):
		return fmt.Errorf("synth: %s: %d experts of which a token takes %d", s.Name, s.Experts, s.ExpertsUsed)
	case s.Experts > 0 && family.experts == denseOnly, s.Experts == 0 && family.experts == alwaysExperts:
		return fmt.Errorf("synth: %s: %d experts are not for the architecture %s", s.Name, s.Experts, s.Architecture)
	}
	s.tokenizer = family.tokenizer.placed(s.Vocabulary)
	return nil
}

// placed returns the tokenizer with its control tokens at the end of a vocabulary.
func (t *tokenizer) placed(vocabulary int) *tokenizer {
	c := *t
	last := t.special[len(t.special)-1].id
	c.special = nil
	for _, s := range t.special {
		c.special = append(c.special, specialToken{s.id - last + vocabulary - 1, s.text})
	}
	shift := uint32(vocabulary-1) - uint32(last)
	c.bos, c.eos = t.bos+shift, t.eos+shift
	return &c
}
