package tokenizer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dlclark/regexp2"
)

// The published expressions, applied one after the other. \p{..} of Go's
// tables; anything that llama.cpp adapts is noted.
const (
	gpt2Expression  = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	contractions    = `(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])`
	llama3Tail      = ` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	casedWord       = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`
	casedWordUpper  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`
	casedTail       = ` ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	bloomExpression = ` ?[^(\s|.,!?…。，、।۔،)]+`
	notSpace        = `(?:(?!\s)`
)

var expressions = map[string][]string{
	"default": {`[\p{P}\$\+<=>\^~\|]+`, gpt2Expression, `\p{N}+`, `[0-9][0-9][0-9]`},
	"gpt-2":   {gpt2Expression}, "olmo": {gpt2Expression},
	"starcoder": {`\p{N}`, gpt2Expression}, "command-r": {`\p{N}`, gpt2Expression},
	"falcon":     {"[\\p{P}\\$\\+<=>\\^~\\|`]+", gpt2Expression, `[0-9][0-9][0-9]`},
	"llama-bpe":  {contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|` + llama3Tail},
	"dbrx":       {contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|` + llama3Tail},
	"qwen2":      {contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|` + llama3Tail},
	"bailingmoe": {`'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`},
	"qwen35":     {contractions + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`},
	"ufakzeka":   {`[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|` + llama3Tail},
	"seed-coder": {contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+`},
	"minicpm5":   {`\p{N}{1,3}`, contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+|` + llama3Tail},
	"tekken":     {casedWord + `|` + casedWordUpper + `|\p{N}|` + casedTail},
	"gpt-4o":     {casedWord + contractions + `?|` + casedWordUpper + contractions + `?|\p{N}{1,3}|` + casedTail},
	// White space outside ASCII is no ideograph for llama.cpp.
	"deepseek-coder": {`[\r\n]`, `\s?\p{L}+`, `\s?\p{P}+`, notSpace + `[一-龥ࠀ-一가-퟿])+`, `\p{N}`},
	"deepseek-llm": {
		`[\r\n]`, `\s?[` + deepseekLetters + `]+`, `\s?` + notSpace + `[!-/:-~！-／：-～‘-‟　-。])+`, `\s+$`,
		notSpace + `[一-龥ࠀ-一가-퟿])+`, `\p{N}+`,
	},
	"deepseek-v3": {
		`\p{N}{1,3}`, `[一-龥぀-ゟ゠-ヿ]+`,
		"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
	},
	"bloom":  {bloomExpression},
	"viking": {bloomExpression, `\p{N}`},
}

// splitByExpressions cuts a text into matches and gaps, expression by
// expression.
func splitByExpressions(t *testing.T, list []*regexp2.Regexp, text string) []string {
	pieces := []string{text}
	for _, expression := range list {
		var next []string
		for _, piece := range pieces {
			next = append(next, matchesAndGaps(t, expression, piece)...)
		}
		pieces = next
	}
	return pieces
}

func matchesAndGaps(t *testing.T, expression *regexp2.Regexp, text string) (pieces []string) {
	runes := []rune(text)
	done := 0
	match, err := expression.FindRunesMatch(runes)
	for ; match != nil; match, err = expression.FindNextMatch(match) {
		if match.Index > done {
			pieces = append(pieces, string(runes[done:match.Index]))
		}
		if match.Length > 0 {
			pieces = append(pieces, match.String())
		}
		done = match.Index + match.Length
	}
	if err != nil {
		t.Fatal(err)
	}
	if done < len(runes) {
		pieces = append(pieces, string(runes[done:]))
	}
	return pieces
}

// alphabet is what random texts are made of: each class and the characters
// that the expressions name.
var alphabet = append(strings.Split(
	"a|b|E|L|S|s|t|r|e|v|l|m|d|T|D|'|'s|'LL|'rE|0|1|9|12|٣|²|Ⅷ| | |  |   |\t|\n|\r|\r\n|\v|\u0085|\u00a0|\u2003|\u2028|\u3000|"+
		"é|É|ſ|K|ß|ж|Я|א|ا|ह|ि|中|文|龥|ー|か|カ|한|ǅ|ʰ|ª|\u0301|\u20dd|.|,|!|?|(|)|-|_|/|\\|:|;|@|#|%|&|*|[|]|{|}|\"|"+
		"$|+|<|=|>|^|~|`|€|©|…|。|，|、|।|‘|：|～|¡|«|😀|👩\u200d💻|🇩🇪|\u200b|\ufeff|\x00|\x1b|\x7f|\u0378|\ue000|𝐀|𝟗|𐐀|𠀀", "|"), "|")

func randomText(r *rand.Rand, most int) string {
	var b strings.Builder
	for range r.IntN(most) {
		b.WriteString(alphabet[r.IntN(len(alphabet))])
	}
	return b.String()
}

func TestSplittersEqualExpressions(t *testing.T) {
	rounds := 20000
	if testing.Short() {
		rounds = 600
	}
	for name, sources := range expressions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var list []*regexp2.Regexp
			for _, source := range sources {
				list = append(list, regexp2.MustCompile(source, regexp2.None))
			}
			pre, ok := findPreTokenizer(name)
			if !ok {
				t.Fatal("no such pre-tokenizer")
			}
			r := rand.New(rand.NewPCG(1, 2))
			for range rounds {
				text := randomText(r, 24)
				var got []string
				pre.split(text, func(word string) { got = append(got, word) })
				want := splitByExpressions(t, list, text)
				if text == "" {
					want = nil
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%q:\n got %q\nwant %q", text, got, want)
				}
			}
		})
	}
}

// TestEveryRowIsCompared keeps the table of expressions complete.
func TestEveryRowIsCompared(t *testing.T) {
	names := map[string]bool{}
	for _, row := range preTokenizers {
		compared := false
		for _, name := range row.names {
			if names[name] {
				t.Errorf("%q is in two rows", name)
			}
			names[name] = true
			compared = compared || expressions[name] != nil
		}
		if !compared {
			t.Errorf("no expression for %q", row.names)
		}
	}
}

// TestSplitIsLinear splits texts that make a careless splitter scan again and
// again; a quadratic one would run for minutes.
func TestSplitIsLinear(t *testing.T) {
	const n = 1 << 18
	for _, unit := range []string{" ", "a", "\n", " \n", "1", "'", "é", "\u3000", "!", "a ", "\t", "中", "\u0301", "A", "/"} {
		text := strings.Repeat(unit, n/len(unit))
		for _, row := range preTokenizers {
			total := 0
			row.split(text, func(word string) { total += len(word) })
			if total != len(text) {
				t.Errorf("%q, %q: %d bytes, want %d", row.names, unit, total, len(text))
			}
		}
	}
}

// TestUnicodeVersion pins the version of the tables, 15.1: letters that came
// later are none in the reference. Should Go's tables grow, class.go has to
// take the new letters out.
func TestUnicodeVersion(t *testing.T) {
	for r, want := range map[rune]class{
		'a': letter | lower, 'ǅ': letter | upper, '中': letter, '٣': number, '\u3000': space, '。': punct, '\u0301': mark,
		'€': symbolic, '😀': symbolic, 0x0378: 0, 0xD800: 0,
		0x2EBF0: letter,                   // 15.1
		0x13460: 0, 0x1C89: 0, 0x10D40: 0, // 16.0
		0x323B0: 0, 0x1F6D8: 0, // 17.0
	} {
		if got := classOf(r); got != want {
			t.Errorf("%U: got class %08b, want %08b", r, got, want)
		}
	}
}

func TestUnknownPreTokenizer(t *testing.T) {
	v := NewVocabulary("gpt2", "no-such\nthing")
	v.Tokens = []string{"a"}
	_, err := New(v)
	const want = `tokenizer: tokenizer.ggml.pre: unknown pre-tokenizer "no-such\nthing"`
	if fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
