package shell

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"tgc/llm/chat"
)

// A command is what a line that begins with "/" does.
type command struct {
	name, argument, help string
	run                  func(s *Shell, ctx context.Context, argument string) (leave bool, err error)
}

// commands in the order of /help; filled by init, as that lists them.
var commands []command

func init() {
	commands = []command{
		{"/help", "", "this list", (*Shell).help},
		{"/reset", "", "forget the conversation, not the system prompt", (*Shell).reset},
		{"/system", "[TEXT]", "change the system prompt and forget the conversation; without TEXT show it", (*Shell).system},
		{"/save", "FILE", "write the conversation as JSON", (*Shell).save},
		{"/load", "FILE", "go on with a conversation that was saved", (*Shell).load},
		{"/stats", "[on|off]", "tokens and speed so far; on: after each answer", (*Shell).stats},
		{"/exit", "", "leave, as Ctrl-D does", (*Shell).exit},
	}
}

// Names are those of all commands, for completion.
func Names() []string {
	var names []string
	for _, c := range commands {
		names = append(names, c.name)
	}
	return names
}

// command runs a command line.
func (s *Shell) command(ctx context.Context, line string) (leave bool, err error) {
	name, argument, _ := strings.Cut(strings.TrimSpace(line), " ")
	argument = strings.TrimSpace(argument)
	for _, c := range commands {
		if c.name != name {
			continue
		}
		switch {
		case argument == "" && c.argument != "" && c.argument[0] != '[':
			return false, fmt.Errorf("%s wants %s: %s", c.name, c.argument, c.help)
		case argument != "" && c.argument == "":
			return false, fmt.Errorf("%s takes nothing after it", c.name)
		}
		return c.run(s, ctx, argument)
	}
	return false, fmt.Errorf("%s is no command: /help lists them, and a message that begins with / is written with two", name)
}

func (s *Shell) help(context.Context, string) (bool, error) {
	t := tabwriter.NewWriter(s.Err, 0, 0, 2, ' ', 0)
	for _, c := range commands {
		fmt.Fprintf(t, "%s %s\t%s\n", c.name, c.argument, c.help)
	}
	if s.Interactive {
		fmt.Fprintf(t, "line\\\tthe message goes on in the next line\n%s\tbegins and ends a message of several lines\n", block)
		fmt.Fprintf(t, "Ctrl-C\tstops the answer\nUp, Ctrl-R\tlines of before\n")
	}
	return false, t.Flush()
}

func (s *Shell) reset(context.Context, string) (bool, error) {
	s.Conversation.Reset()
	s.note("(a new conversation)")
	return false, nil
}

func (s *Shell) system(_ context.Context, text string) (bool, error) {
	if text == "" {
		messages := s.Conversation.Messages()
		if len(messages) == 0 || messages[0].Role != chat.System {
			s.note("(there is no system prompt)")
			return false, nil
		}
		s.note("%s", messages[0].Content)
		return false, nil
	}
	s.Conversation.SetSystem(text)
	s.note("(a new conversation with this system prompt)")
	return false, nil
}

func (s *Shell) save(_ context.Context, name string) (bool, error) {
	messages := s.Conversation.Messages()
	if err := chat.Save(name, messages); err != nil {
		return false, err
	}
	s.note("(%s written to %s)", count(len(messages), "message"), name)
	return false, nil
}

func (s *Shell) load(_ context.Context, name string) (bool, error) {
	messages, err := chat.Load(name)
	if err != nil {
		return false, err
	}
	if err := s.Conversation.Restore(messages); err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	s.note("(%s read from %s)", count(len(messages), "message"), name)
	return false, nil
}

func (s *Shell) stats(_ context.Context, argument string) (bool, error) {
	switch argument {
	case "":
		t := s.Conversation.Statistics()
		s.note("(%s: %s)", count(t.Answers, "answer"), s.describe(t))
	case "on", "off":
		s.Statistics = argument == "on"
	default:
		return false, fmt.Errorf("/stats %s: want on or off", argument)
	}
	return false, nil
}

func (s *Shell) exit(context.Context, string) (bool, error) { return true, nil }
