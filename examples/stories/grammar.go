package main

import (
	"math/rand/v2"
	"strings"
	"unicode"

	"tgc/internal/lists"
)

// A story is a plot: a list of lines in which {name} stands for a word that is
// drawn once for the whole story, and [a|b|c] for one of several ways to say
// something. So a story stays consistent: the ball that is lost is the ball that
// is found, and it is blue both times.

// story tells number n of a series: a function of the numbers alone.
func story(series, n uint64) string {
	r := rand.New(rand.NewPCG(series, n))
	words := cast(r)
	plot := plots[r.IntN(len(plots))]
	out := lists.Map(plot(r), func(line string) string { return polish(expand(line, words, r)) })
	return strings.Join(out, " ")
}

// cast draws everything that a story may speak of.
func cast(r *rand.Rand) map[string]string {
	one := func(list []string) string { return list[r.IntN(len(list))] }
	words := make(map[string]string)
	put := func(role string, p person) {
		words[role], words[role+".he"], words[role+".him"], words[role+".his"] = p.name, p.he, p.him, p.his
	}
	hero, friend := child(r), child(r)
	for friend.name == hero.name {
		friend = child(r)
	}
	put("hero", hero)
	put("friend", friend)
	put("elder", elders[r.IntN(len(elders))])
	words["animal"], words["place"], words["toy"], words["colour"] = one(animals), one(places), one(toys), one(colours)
	words["size"], words["nature"], words["food"], words["weather"] = one(sizes), one(natures), one(foods), one(weathers)
	words["skill"], words["seed"], words["hide"] = one(skills), one(seeds), one(hides)
	return words
}

func child(r *rand.Rand) person {
	if r.IntN(2) == 0 {
		return person{girls[r.IntN(len(girls))], "she", "her", "her"}
	}
	return person{boys[r.IntN(len(boys))], "he", "him", "his"}
}

// expand chooses among [a|b] and puts in {words}, until neither is left.
// Alternatives do not nest.
func expand(line string, words map[string]string, r *rand.Rand) string {
	var out strings.Builder
	for line != "" {
		at := strings.IndexAny(line, "[{")
		if at < 0 {
			out.WriteString(line)
			break
		}
		out.WriteString(line[:at])
		closing := map[byte]string{'[': "]", '{': "}"}[line[at]]
		inside, rest, found := strings.Cut(line[at+1:], closing)
		if !found {
			panic("stories: a line has an open " + line[at:])
		}
		if line[at] == '[' {
			list := strings.Split(inside, "|")
			line = list[r.IntN(len(list))] + rest
			continue
		}
		word, known := words[inside]
		if !known {
			panic("stories: no word for {" + inside + "}")
		}
		out.WriteString(word)
		line = rest
	}
	return out.String()
}

// polish makes sentences begin with capitals and puts "an" before vowels.
func polish(text string) string {
	words := strings.Fields(text)
	begins := true
	for i, w := range words {
		if strings.ToLower(strings.TrimLeft(w, `"`)) == "a" && i+1 < len(words) && strings.ContainsRune("aeiou", rune(words[i+1][0])) {
			w += "n"
		}
		if begins {
			w = capital(w)
		}
		words[i] = w
		end := strings.TrimRight(w, `"`)
		begins = strings.HasSuffix(end, ".") || strings.HasSuffix(end, "!") || strings.HasSuffix(end, "?")
		if begins && end != w && i+1 < len(words) {
			// `"Why?" asked Tom`: what follows speech goes on in lower case.
			begins = !follows(words[i+1])
		}
	}
	return strings.Join(words, " ")
}

// follows reports a word that goes on after speech.
func follows(w string) bool {
	switch strings.Trim(w, `,."`) {
	case "said", "asked", "cried", "called", "answered", "he", "she", "whispered":
		return true
	}
	return false
}

// capital makes the first letter large.
func capital(w string) string {
	for i, c := range w {
		if unicode.IsLetter(c) {
			return w[:i] + string(unicode.ToUpper(c)) + w[i+len(string(c)):]
		}
	}
	return w
}
