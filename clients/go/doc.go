// Package nodewise is the Go client of Nodewise: how fast a distributed training job would be on configurations that never ran,
// how sure that is, how many nodes it is worth, and which devices each job should get.
//
// Requests and replies are the contract's own messages (packages nodewisev1 and nodewisev1beta1 below gen); their comments give
// meaning and units. This package adds what a caller would otherwise write himself: one [Client] with a method for each call,
// deadlines and retries from the one policy that clients of all languages share, typed errors ([Error]), rows over columns ([RowsOf],
// [JobsOf]), pages ([Pages]), streams that go on after a cut, an ingest writer ([Client.Ingest]) that neither loses nor doubles a batch, and
// short ways to make requests ([NodeRange], [Objective], [StoredProfile], [Configurations], [NodePool]).
//
// Every call takes a context. Where that has no deadline, the client's holds ([WithTimeout]), else that of the shared policy: 10 s, 60 s
// for calls that may compute or store for long, 600 s for long calls as a whole. All methods may be used by several goroutines at once.
package nodewise
