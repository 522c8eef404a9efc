package nodewise

import (
	"context"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Listing is a request of which there are pages.
type Listing interface {
	proto.Message
	GetPageToken() string
}

// Page is a reply that says whether another page follows.
type Page interface {
	proto.Message
	GetNextPageToken() string
}

// List is a method of [Client] that gives a page of a listing.
type List[Q Listing, P Page] func(context.Context, Q, ...grpc.CallOption) (P, error)

// Pages gives all pages of a listing, each fetched when it is asked for; it ends after an error.
//
//	for page, err := range nodewise.Pages(ctx, client.ListProfiles, &nodewisev1.ListProfilesRequest{}) { ... }
func Pages[Q Listing, P Page](ctx context.Context, list List[Q, P], request Q, options ...grpc.CallOption) iter.Seq2[P, error] {
	return func(yield func(P, error) bool) {
		next := request
		for {
			page, err := list(ctx, next, options...)
			if !yield(page, err) || err != nil || page.GetNextPageToken() == "" {
				return
			}
			next = shallow(next)
			fields := next.ProtoReflect()
			fields.Set(fields.Descriptor().Fields().ByName("page_token"), protoreflect.ValueOfString(page.GetNextPageToken()))
		}
	}
}

// Items gives the entries of all pages of a listing, as `of` finds them in a page; it ends after an error.
//
//	for profile, err := range nodewise.Items(ctx, client.ListProfiles, &nodewisev1.ListProfilesRequest{}, (*nodewisev1.ListProfilesResponse).GetProfiles) { ... }
func Items[Q Listing, P Page, I any](
	ctx context.Context, list List[Q, P], request Q, of func(P) []I, options ...grpc.CallOption,
) iter.Seq2[I, error] {
	return func(yield func(I, error) bool) {
		for page, err := range Pages(ctx, list, request, options...) {
			if err != nil {
				var none I
				yield(none, err)
				return
			}
			for _, item := range of(page) {
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}

// shallow is a copy of a message whose parts are those of the original: what is changed in it itself does not change the caller's.
func shallow[M proto.Message](message M) M {
	source := message.ProtoReflect()
	target := source.New()
	source.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		target.Set(field, value)
		return true
	})
	target.SetUnknown(source.GetUnknown())
	return target.Interface().(M)
}
