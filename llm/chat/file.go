package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"tgc/internal/atomicfile"
)

// fileLimit bounds what is read of a conversation, in bytes.
const fileLimit = 64 << 20

// file is a conversation as JSON; tgc chat --render reads it too.
type file struct {
	Messages []Message `json:"messages"`
}

// Save writes messages to a file.
func Save(name string, messages []Message) error {
	if messages == nil {
		messages = []Message{}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(file{messages}); err != nil {
		return err
	}
	f, err := atomicfile.Create(name)
	if err != nil {
		return err
	}
	defer f.Abort()
	if _, err := f.Write(b.Bytes()); err != nil {
		return err
	}
	return f.Commit()
}

// Load reads the messages of a file. It is no pipe, which might never say anything.
func Load(name string) ([]Message, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: it is a folder, a pipe or a device, want a regular file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, fileLimit+1))
	if err == nil && len(data) > fileLimit {
		err = fmt.Errorf("more than %d bytes", fileLimit)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	messages, err := Read(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return messages, nil
}

// form is what a conversation looks like.
const form = `{"messages": [{"role": "user", "content": "a text"}, ..]}`

// Read reads the messages of a conversation's JSON text.
func Read(data []byte) ([]Message, error) {
	var f struct {
		Messages *[]Message `json:"messages"`
	}
	err := json.Unmarshal(data, &f)
	var other *json.UnmarshalTypeError
	switch {
	case errors.As(err, &other):
		return nil, fmt.Errorf("no conversation: %s at byte %d, want %s", other.Value, other.Offset, form)
	case err != nil:
		return nil, fmt.Errorf("no conversation: %w", err)
	case f.Messages == nil:
		return nil, fmt.Errorf(`no conversation: "messages" is missing, want %s`, form)
	}
	return *f.Messages, nil
}
