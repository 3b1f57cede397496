// Package events writes and reads the event files of TensorBoard, scalars alone.
//
// A file is records: the length of the data (u64, little-endian), a masked CRC-32C of the
// length, the data, a masked CRC-32C of the data. The data is a protocol buffer Event:
//
//	Event   { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; }
//	Summary { repeated Value value = 1; }
//	Value   { string tag = 1; float simple_value = 2; }
//
// The first one has the version "brain.Event:2". TensorBoard looks for files whose names
// contain "tfevents" in a folder and those below it, a run for each folder.
package events
