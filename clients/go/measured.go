package nodewise

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Rows that were measured (Observations, PhaseTimings) and what ran (Configurations) are columns: empty, of one entry for all rows, or of one
// entry per row. Some are packed: dictionaries of names, and compressed sparse rows of placements and groups.

const configurationsField = "configurations"

// packs are compressed sparse rows: offsets, and the columns that they cut.
var packs = map[protoreflect.Name][]protoreflect.Name{
	"placement_offsets": {"placement_workers"},
	"group_offsets":     {"group_workers", "group_device_indexes", "group_compute_factors"},
}

func packed(name protoreflect.Name) bool {
	return strings.HasPrefix(string(name), "placement_") || strings.HasPrefix(string(name), "group_")
}

func dictionaryName(name protoreflect.Name) bool { return strings.HasSuffix(string(name), "_names") }

// rowsCount is how many rows there are: the longest column says.
func rowsCount(message protoreflect.Message) int {
	count := 0
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		name := field.Name()
		switch {
		case name == configurationsField:
			count = max(count, rowsCount(value.Message()))
		case packs[name] != nil:
			count = max(count, value.List().Len()-1)
		case name == "device_names", name == "offer_names":
			count = max(count, 1)
		case field.IsList() && !packed(name):
			count = max(count, value.List().Len())
		}
		return true
	})
	return count
}

// checkRows tells which column has neither no entry, nor one, nor one per row, or is packed wrongly.
func checkRows(message protoreflect.Message, rows int) error {
	var wrong error
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		name := field.Name()
		switch {
		case name == configurationsField:
			wrong = checkRows(value.Message(), rows)
		case packs[name] != nil:
			wrong = checkPacked(message, field, rows)
		case field.IsList() && !packed(name) && !dictionaryName(name):
			if entries := value.List().Len(); entries != 1 && entries != rows {
				wrong = invalid(string(name), fmt.Sprintf("has %d values for %d rows; give none, one or %d", entries, rows, rows))
			}
		}
		return wrong == nil
	})
	return wrong
}

func checkPacked(message protoreflect.Message, field protoreflect.FieldDescriptor, rows int) error {
	offsets := message.Get(field).List()
	if entries := offsets.Len() - 1; entries != 1 && entries != rows {
		return invalid(string(field.Name()), fmt.Sprintf("delimits %d rows, but there are %d; give one offset more than there are rows", entries, rows))
	}
	workers := message.Get(message.Descriptor().Fields().ByName(packs[field.Name()][0])).List().Len()
	previous := int64(0)
	for i := range offsets.Len() {
		offset := offsets.Get(i).Int()
		if offset < previous || (i == 0 && offset != 0) || (i == offsets.Len()-1 && int(offset) != workers) {
			return invalid(string(field.Name()), fmt.Sprintf("must ascend from 0 to %d, but offset %d is %d", workers, i, offset))
		}
		previous = offset
	}
	return nil
}

// invalid is what the server would say of a field.
func invalid(field, description string) *Error {
	return &Error{
		Code: codes.InvalidArgument, Reason: "INVALID_FIELD", Message: field + " " + description,
		Violations: []Violation{{Field: field, Description: description}},
	}
}

// joinable tells whether rows of two messages may stand in one: both state the same columns, by the same dictionaries.
func joinable(one, other protoreflect.Message) bool {
	fields := one.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if one.Has(field) != other.Has(field) {
			return false
		}
		if !one.Has(field) {
			continue
		}
		if field.Name() == configurationsField && !joinable(one.Get(field).Message(), other.Get(field).Message()) {
			return false
		}
		if dictionaryName(field.Name()) && !one.Get(field).Equal(other.Get(field)) {
			return false
		}
	}
	return true
}

// appendRows adds rows begin to end to a message that they may join, or to an empty one.
func appendRows(target, source protoreflect.Message, begin, end int) {
	source.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		name := field.Name()
		switch {
		case name == configurationsField:
			appendRows(target.Mutable(field).Message(), value.Message(), begin, end)
		case packs[name] != nil:
			appendPacked(target, source, field, begin, end)
		case dictionaryName(name):
			if !target.Has(field) {
				target.Set(field, proto.Clone(source.Interface()).ProtoReflect().Get(field))
			}
		case field.IsList() && !packed(name):
			entries, to := value.List(), target.Mutable(field).List()
			for row := begin; row < end; row++ {
				to.Append(entries.Get(row % entries.Len()))
			}
		}
		return true
	})
}

func appendPacked(target, source protoreflect.Message, field protoreflect.FieldDescriptor, begin, end int) {
	offsets, to := source.Get(field).List(), target.Mutable(field).List()
	fields := source.Descriptor().Fields()
	if to.Len() == 0 {
		to.Append(protoreflect.ValueOfInt32(0))
	}
	for row := begin; row < end; row++ {
		from := row % (offsets.Len() - 1)
		first, last := int(offsets.Get(from).Int()), int(offsets.Get(from+1).Int())
		for _, name := range packs[field.Name()] {
			column := fields.ByName(name)
			if !source.Has(column) {
				continue
			}
			entries, held := source.Get(column).List(), target.Mutable(column).List()
			for entry := first; entry < last; entry++ {
				held.Append(entries.Get(entry % entries.Len()))
			}
		}
		to.Append(protoreflect.ValueOfInt32(int32(int(to.Get(to.Len()-1).Int()) + last - first)))
	}
}

// cut gives a message's rows in pieces of at most so many.
func cut[M proto.Message](message M, rows, most int) []M {
	if rows <= most {
		return []M{message}
	}
	pieces := []M{}
	for begin := 0; begin < rows; begin += most {
		piece := message.ProtoReflect().New()
		appendRows(piece, message.ProtoReflect(), begin, min(begin+most, rows))
		pieces = append(pieces, piece.Interface().(M))
	}
	return slices.Clip(pieces)
}
