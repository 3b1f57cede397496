package main

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/spf13/pflag"

	"tgc/llm"
)

// samplingFlags say how tokens are drawn and what ends a text.
type samplingFlags struct {
	llm.Sampling
	biases []string
	stops  []string
}

func (s *samplingFlags) register(f *pflag.FlagSet) {
	f.Float64Var(&s.Temperature, "temp", 0.8, "temperature; 0 always takes the likeliest token")
	f.IntVar(&s.TopK, "top-k", 40, "sample from the K likeliest tokens; 0 from all")
	f.Float64Var(&s.TopP, "top-p", 0.95, "sample from the likeliest tokens of this probability together")
	f.Float64Var(&s.MinP, "min-p", 0, "sample from tokens of at least this part of the likeliest one's probability")
	f.Float64Var(&s.RepeatPenalty, "repeat-penalty", 1, "make the last 64 tokens less likely: 1.1 a little; 1 not")
	f.StringArrayVar(&s.biases, "logit-bias", nil, "change a token's logit: ID+NUMBER or ID-NUMBER, 15043-inf forbids it; may be given several times")
	f.StringArrayVar(&s.stops, "stop", nil, "end before this text; may be given several times")
}

// biasPattern is what --logit-bias takes, as llama.cpp does.
var biasPattern = regexp.MustCompile(`^(\d+)([+-](?:[0-9.]+(?:[eE][+-]?\d+)?|inf))$`)

// check reads what flags hold as text.
func (s *samplingFlags) check(command string) error {
	for _, text := range s.biases {
		parts := biasPattern.FindStringSubmatch(text)
		if parts == nil {
			return usagef("%s: --logit-bias %q, want ID+NUMBER or ID-NUMBER, such as 15043-1.5 or 15043-inf", command, text)
		}
		id, err := strconv.ParseInt(parts[1], 10, 32)
		if err != nil {
			return usagef("%s: --logit-bias %q: the token is no 32-bit number", command, text)
		}
		bias, err := strconv.ParseFloat(parts[2], 32)
		if err != nil {
			return usagef("%s: --logit-bias %q: the number is out of range", command, text)
		}
		if s.Bias == nil {
			s.Bias = make(map[int32]float32)
		}
		s.Bias[int32(id)] = float32(bias)
	}
	if s.RepeatPenalty == 0 {
		return usagef("%s: the repeat penalty is 0, want above 0 (1 does nothing)", command)
	}
	if _, err := llm.NewStopMatcher(s.stops); err != nil {
		return usagef("%s: --stop: %v", command, err)
	}
	if err := s.Check(); err != nil {
		return usagef("%s: %v", command, err)
	}
	return nil
}

// checkModel finds tokens that the model does not have.
func (s *samplingFlags) checkModel(m *llm.Model) error {
	for id := range s.Bias {
		if int(id) >= m.Config.Vocabulary {
			return fmt.Errorf("--logit-bias: token %d is outside the vocabulary of %d tokens", id, m.Config.Vocabulary)
		}
	}
	if len(s.stops) > 0 && m.Tokenizer == nil {
		return fmt.Errorf("--stop: %s holds no vocabulary, so that there is no text", m.Name)
	}
	return nil
}
